//! A page: sections of text, tables and drawings. Whatever is put in is escaped here, so nothing of a file becomes markup.

use std::fmt::Write;

use crate::picture::Picture;
use crate::svg::Svg;
use windrow::Result;
use windrow::preview::text;

// A table that scrolls has shades where more of it is: what moves along with the table covers them at its own ends.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2330;--soft:#667085;--line:#d9dee7;--back:#fff;--mark:#2563c9;--other:#c2571a;--bad:#c81e3a;--shade:#1c233055}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#98a2b3;--line:#343b48;--back:#14181f;--mark:#7aa8f5;--other:#f0a36b;--bad:#ff7b8d;--shade:#e6e9ef66}}\
body{margin:0 auto;padding:1rem;max-width:52rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);overflow-wrap:anywhere}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem;border-bottom:1px solid var(--line)}\
.scroll{overflow-x:auto;margin:1rem 0;scrollbar-width:thin;background:\
linear-gradient(90deg,var(--back) 1rem,transparent) 0 0/2rem 100% no-repeat local,\
linear-gradient(270deg,var(--back) 1rem,transparent) 100% 0/2rem 100% no-repeat local,\
linear-gradient(90deg,var(--shade),transparent) 0 0/1rem 100% no-repeat,\
linear-gradient(270deg,var(--shade),transparent) 100% 0/1rem 100% no-repeat}\
table{border-collapse:collapse;overflow-wrap:normal;font-size:.9rem}th{white-space:nowrap}td{white-space:nowrap}.long{white-space:normal;overflow-wrap:anywhere;min-width:14rem}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}\
figure{margin:1rem 0}figcaption,.axis,.note{color:var(--soft);font-size:.85rem}.axis{display:flex;justify-content:space-between}\
svg{display:block;width:100%}.bar,.own{fill:var(--mark)}.next{fill:var(--other)}.bad{fill:var(--bad)}.line{fill:none;stroke:var(--mark);stroke-width:1.5;vector-effect:non-scaling-stroke}\
.rest{fill:var(--line)}.end{fill:var(--ink)}\
.picture{position:relative}.picture img{display:block;width:100%}.grid{image-rendering:pixelated}\
.tick{position:absolute;left:.3rem;font-size:.7rem;line-height:1;transform:translateY(50%);color:#fff;text-shadow:0 0 3px #000,0 0 3px #000}\
audio{display:block;width:100%;margin:.5rem 0}h3{font-size:1rem;margin:2rem 0 0}";

/// A cell of more characters has lines.
const LONG: usize = 32;

/// How the pixels of a picture are stretched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pixels {
    /// Each is a value of its own: its borders stay sharp.
    Apart,
    /// They are one surface.
    Joined,
}

/// A page that grows downwards.
pub(crate) struct Page {
    title: String,
    body: String,
}

impl Page {
    pub(crate) fn new(title: &str) -> Page {
        Page { title: escaped(title), body: String::new() }
    }

    pub(crate) fn section(&mut self, heading: &str) {
        self.put("h2", "", heading);
    }

    /// One of several things in a section.
    pub(crate) fn part(&mut self, heading: &str) {
        self.put("h3", "", heading);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.put("p", "", text);
    }

    /// How the numbers around it were found.
    pub(crate) fn note(&mut self, text: &str) {
        self.put("p", " class=\"note\"", text);
    }

    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.body.push_str("<div class=\"scroll\"><table>\n");
        if !head.is_empty() {
            self.body.push_str("<tr>");
            head.iter().for_each(|cell| self.cell("th", "", cell));
            self.body.push_str("</tr>\n");
        }
        for row in rows {
            self.body.push_str("<tr>");
            for cell in row {
                let attributes = if cell.chars().count() > LONG { " class=\"long\"" } else { "" };
                self.cell("td", attributes, cell);
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</table></div>\n");
    }

    /// A drawing, what it shows, and the labels below its left and its right end.
    pub(crate) fn figure(&mut self, caption: &str, svg: &Svg, ends: [&str; 2]) {
        self.body.push_str("<figure>");
        self.put("figcaption", "", caption);
        self.body.push_str(&svg.to_text(&escaped(caption)));
        self.ends(ends);
    }

    /// A picture as wide as the page and `height` pixels high, with marks at shares of its height from below.
    ///
    /// # Errors
    /// Those of [`Picture::data_uri`].
    pub(crate) fn picture(
        &mut self,
        caption: &str,
        (picture, pixels): (&Picture, Pixels),
        height: usize,
        ticks: &[(f64, String)],
        ends: [&str; 2],
    ) -> Result<()> {
        self.body.push_str("<figure>");
        self.put("figcaption", "", caption);
        let class = if pixels == Pixels::Apart { " class=\"grid\"" } else { "" };
        let (alt, uri) = (escaped(caption), picture.data_uri()?);
        let _ = write!(
            self.body,
            "<div class=\"picture\"><img{class} alt=\"{alt}\" style=\"height:{height}px\" src=\"{uri}\"/>"
        );
        for (share, label) in ticks {
            let (bottom, label) = (share * 100.0, escaped(label));
            let _ = write!(self.body, "<span class=\"tick\" style=\"bottom:{bottom:.1}%\">{label}</span>");
        }
        self.body.push_str("</div>");
        self.ends(ends);
        Ok(())
    }

    /// A player of what a data URI holds.
    pub(crate) fn player(&mut self, label: &str, data_uri: &str) {
        let label = escaped(label);
        let _ = writeln!(
            self.body,
            "<audio controls preload=\"metadata\" aria-label=\"{label}\" src=\"{data_uri}\"></audio>"
        );
    }

    pub(crate) fn finish(self) -> String {
        let Page { title, body } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n{body}</body></html>\n"
        )
    }

    fn ends(&mut self, ends: [&str; 2]) {
        self.body.push_str("<div class=\"axis\">");
        ends.iter().for_each(|end| self.cell("span", "", end));
        self.body.push_str("</div></figure>\n");
    }

    fn put(&mut self, tag: &str, attributes: &str, text: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.body, "<{tag}{attributes}>{}</{tag}>", escaped(text));
    }

    fn cell(&mut self, tag: &str, attributes: &str, text: &str) {
        let _ = write!(self.body, "<{tag}{attributes}>{}</{tag}>", escaped(text));
    }
}

/// Text that is safe in a page, between quotes too.
pub(crate) fn escaped(text: &str) -> String {
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
    use crate::picture::VIRIDIS;

    #[test]
    fn nothing_put_in_becomes_markup() {
        let mut page = Page::new("<script>'\"&");
        page.section("<b>");
        page.table(&["<i>"], &[vec!["<u>\u{1b}".to_string()]]);
        page.figure("\"><x>", &Svg::bars(&[1, 2]), ["<y>", "<z>"]);
        page.part("<h>");
        let picture = Picture { width: 1, colours: &VIRIDIS, levels: vec![0] };
        let ticks = [(0.5, "<t>".to_string())];
        page.picture("\"><p>", (&picture, Pixels::Apart), 9, &ticks, ["<l>", "<r>"]).unwrap();
        page.player("\"><a>", "data:audio/wav;base64,");
        let html = page.finish();
        let tags =
            ["<script", "<b>", "<i>", "<u>", "<x>", "<y>", "<z>", "<h>", "<t>", "<p>", "<l>", "<r>", "<a>"];
        for tag in tags.into_iter().chain(["\u{1b}"]) {
            assert!(!html.contains(tag), "{tag} in {html}");
        }
        assert!(html.contains("&lt;script&gt;&#39;&quot;&amp;"), "{html}");
    }
}
