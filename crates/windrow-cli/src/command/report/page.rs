//! A page: sections of text, tables and drawings. Whatever is put in is escaped here, so nothing of a file becomes markup.

use std::fmt::Write;

use super::svg::Svg;
use crate::text;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2330;--soft:#667085;--line:#d9dee7;--back:#fff;--mark:#2563c9;--other:#c2571a;--bad:#c81e3a}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#98a2b3;--line:#343b48;--back:#14181f;--mark:#7aa8f5;--other:#f0a36b;--bad:#ff7b8d}}\
body{margin:0 auto;padding:1rem;max-width:52rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);overflow-wrap:anywhere}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem;border-bottom:1px solid var(--line)}\
.scroll{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;overflow-wrap:normal;font-size:.9rem}th{white-space:nowrap}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}\
figure{margin:1rem 0}figcaption,.axis,.note{color:var(--soft);font-size:.85rem}.axis{display:flex;justify-content:space-between}\
svg{display:block;width:100%}.bar,.own{fill:var(--mark)}.next{fill:var(--other)}.bad{fill:var(--bad)}.line{fill:none;stroke:var(--mark);stroke-width:1.5;vector-effect:non-scaling-stroke}\
.rest{fill:var(--line)}.end{fill:var(--ink)}";

/// A page that grows downwards.
pub(super) struct Page {
    title: String,
    body: String,
}

impl Page {
    pub(super) fn new(title: &str) -> Page {
        Page { title: escaped(title), body: String::new() }
    }

    pub(super) fn section(&mut self, heading: &str) {
        self.put("h2", "", heading);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.put("p", "", text);
    }

    /// How what stands around it came about.
    pub(super) fn note(&mut self, text: &str) {
        self.put("p", " class=\"note\"", text);
    }

    pub(super) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.body.push_str("<div class=\"scroll\"><table>\n");
        if !head.is_empty() {
            self.body.push_str("<tr>");
            head.iter().for_each(|cell| self.cell("th", cell));
            self.body.push_str("</tr>\n");
        }
        for row in rows {
            self.body.push_str("<tr>");
            row.iter().for_each(|cell| self.cell("td", cell));
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</table></div>\n");
    }

    /// A drawing, what it shows, and what stands below its left and its right end.
    pub(super) fn figure(&mut self, caption: &str, svg: &Svg, ends: [&str; 2]) {
        self.body.push_str("<figure>");
        self.put("figcaption", "", caption);
        self.body.push_str(&svg.to_text(&escaped(caption)));
        self.body.push_str("<div class=\"axis\">");
        ends.iter().for_each(|end| self.cell("span", end));
        self.body.push_str("</div></figure>\n");
    }

    pub(super) fn finish(self) -> String {
        let Page { title, body } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{body}</body></html>\n"
        )
    }

    fn put(&mut self, tag: &str, attributes: &str, text: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.body, "<{tag}{attributes}>{}</{tag}>", escaped(text));
    }

    fn cell(&mut self, tag: &str, text: &str) {
        let _ = write!(self.body, "<{tag}>{}</{tag}>", escaped(text));
    }
}

/// Text as it may stand in a page, between quotes too.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text::escaped(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_put_in_becomes_markup() {
        let mut page = Page::new("<script>'\"&");
        page.section("<b>");
        page.table(&["<i>"], &[vec!["<u>\u{1b}".to_string()]]);
        page.figure("\"><x>", &Svg::bars(&[1, 2]), ["<y>", "<z>"]);
        let html = page.finish();
        for tag in ["<script", "<b>", "<i>", "<u>", "<x>", "<y>", "<z>", "\u{1b}"] {
            assert!(!html.contains(tag), "{tag} in {html}");
        }
        assert!(html.contains("&lt;script&gt;&#39;&quot;&amp;"), "{html}");
    }
}
