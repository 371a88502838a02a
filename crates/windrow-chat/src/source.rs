//! The source of a template as the engine reads it as Jinja does: tags that it does not have, and the code in tags.

use std::ops::Range;

use windrow_core::{Error, Result};

use crate::expression;

/// The function that a `{% generation %}` block calls: it is a `{% call %}` block for the engine.
pub(crate) const FUNCTION: &str = "__generation";

/// A template's source, and where in it the calls are that stand for generation blocks.
pub(crate) struct Rewritten {
    pub(crate) source: String,
    pub(crate) calls: Vec<Range<usize>>,
    /// Namespaces that the template assigns to.
    assigned: Vec<String>,
}

/// Rewrites each tag. What is in comments and raw blocks stays as it is.
///
/// # Errors
/// `Config` where a tag is not closed, as the engine would say it too; `Unsupported` for what would not be what it is in Jinja.
pub(crate) fn rewrite(template: &str) -> Result<Rewritten> {
    let mut out = Rewritten {
        source: String::with_capacity(template.len()),
        calls: Vec::new(),
        assigned: assigned(template),
    };
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.source.push_str(before);
        let line = || template[..template.len() - from.len()].matches('\n').count() + 1;
        let written = match from.as_bytes().get(1) {
            Some(b'#') => from.find("#}").map(|end| Ok(out.as_it_is(&from[..end + 2]))),
            Some(b'{') => tag(from, "}}").map(|tag| out.code(&tag, false)),
            Some(b'%') => tag(from, "%}").and_then(|tag| out.block(&tag, from)),
            _ => Some(Ok(out.as_it_is("{"))),
        };
        let size = match written {
            Some(Ok(size)) => size,
            Some(Err(what)) => {
                return Err(Error::unsupported(format!(
                    "the chat template {what}, in the tag of line {}",
                    line()
                )));
            }
            None => {
                let what = format!("the chat template opens a tag in line {} and does not close it", line());
                return Err(Error::config(what));
            }
        };
        rest = &from[size..];
    }
    out.source.push_str(rest);
    Ok(out)
}

/// A tag: its brackets with their marks of white space, and the code between them.
struct Tag<'t> {
    open: &'t str,
    code: &'t str,
    close: &'t str,
}

impl Tag<'_> {
    fn size(&self) -> usize {
        self.open.len() + self.code.len() + self.close.len()
    }
}

/// How much of a template was written; or what in it is not supported.
type Size = std::result::Result<usize, String>;

impl Rewritten {
    fn as_it_is(&mut self, text: &str) -> usize {
        self.source.push_str(text);
        text.len()
    }

    fn code(&mut self, tag: &Tag<'_>, is_block: bool) -> Size {
        self.source.push_str(tag.open);
        self.source.push_str(&expression::rewritten(tag.code, is_block)?);
        self.source.push_str(tag.close);
        Ok(tag.size())
    }

    // A block's tag, which `from` begins with; of a raw block all of it. `None` where a raw block has no end.
    fn block(&mut self, tag: &Tag<'_>, from: &str) -> Option<Size> {
        let name = tag.code.trim_start();
        let is_end = |c: char| !c.is_alphanumeric() && c != '_';
        let (name, behind) = name.split_at(name.find(is_end).unwrap_or(name.len()));
        let space = &tag.code[..tag.code.len() - name.len() - behind.len()];
        match name {
            "generation" | "endgeneration" => {
                self.source.push_str(tag.open);
                self.source.push_str(space);
                self.call(name);
                self.source.push_str(behind);
                self.source.push_str(tag.close);
                if name == "generation" {
                    self.read_assigned(tag);
                }
                Some(Ok(tag.size()))
            }
            "macro" | "call" => {
                let size = self.code(tag, true);
                self.read_assigned(tag);
                Some(size)
            }
            "raw" if tag.close == "+%}" => Some(Err("has a raw block that begins with +%}".to_string())),
            "raw" => Some(Ok(tag.size() + self.raw(tag, &from[tag.size()..])?)),
            "autoescape" => {
                Some(Err("escapes text with {% autoescape %}, which is not supported".to_string()))
            }
            _ => Some(self.code(tag, true)),
        }
    }

    // The body of a call or a macro knows what it reads outside, for the engine: it reads the namespaces that it may assign to.
    fn read_assigned(&mut self, tag: &Tag<'_>) {
        let close = tag.close;
        for name in &self.assigned {
            self.source.push_str(&format!("{{% if {name} %}}{{% endif {close}"));
        }
    }

    // A raw block with what is behind its tag. Jinja keeps the line feed there, and before the other tag white space that does
    // not begin a line.
    fn raw(&mut self, tag: &Tag<'_>, behind: &str) -> Option<usize> {
        let (end, size) = end_of_raw(behind)?;
        let (inside, end) = (&behind[..end], &behind[end..size]);
        let close = if tag.close == "%}" { "+%}" } else { tag.close };
        let is_kept = !inside.contains('\n') && !end.starts_with("{%-") && !end.starts_with("{%+");
        let open = if is_kept { "{%+" } else { "{%" };
        self.source.extend([tag.open, tag.code, close, inside, open, &end[2..]]);
        Some(size)
    }

    fn call(&mut self, name: &str) {
        if name == "endgeneration" {
            self.source.push_str("endcall");
            return;
        }
        self.source.push_str("call ");
        let start = self.source.len();
        self.source.push_str(FUNCTION);
        self.source.push_str("()");
        self.calls.push(start..self.source.len());
    }
}

// The names in `{% set name.attribute … %}`, each once.
fn assigned(template: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, _) in template.match_indices("{%") {
        let code = template[at + 2..].trim_start_matches(['-', '+']).trim_start();
        let Some(target) = code.strip_prefix("set").filter(|target| target.starts_with(char::is_whitespace))
        else {
            continue;
        };
        let target = target.trim_start();
        let is_end = |c: char| !c.is_alphanumeric() && c != '_';
        let (name, behind) = target.split_at(target.find(is_end).unwrap_or(target.len()));
        if behind.trim_start().starts_with('.') && !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }
    names
}

// The tag that a text begins with.
fn tag<'t>(from: &'t str, close: &str) -> Option<Tag<'t>> {
    let end = 2 + code(&from[2..], close)?;
    let is_mark = |at: usize| matches!(from.as_bytes()[at], b'-' | b'+');
    let start = if end > 2 && is_mark(2) { 3 } else { 2 };
    let stop = if end > start && is_mark(end - 1) { end - 1 } else { end };
    Some(Tag { open: &from[..start], code: &from[start..stop], close: &from[stop..end + 2] })
}

// Where code ends that `close` closes: not in a string, nor in brackets.
fn code(text: &str, close: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_u32);
    while at < bytes.len() {
        if depth == 0 && bytes[at..].starts_with(close.as_bytes()) {
            return Some(at);
        }
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at += 1;
                while *bytes.get(at)? != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

// Where in what follows `{% raw %}` its `{% endraw %}` begins and ends.
fn end_of_raw(text: &str) -> Option<(usize, usize)> {
    text.match_indices("{%").find_map(|(at, _)| {
        let inside = text[at + 2..].trim_start_matches(['-', '+']).trim_start().strip_prefix("endraw")?;
        let behind = inside.trim_start().trim_start_matches(['-', '+']).strip_prefix("%}")?;
        Some((at, text.len() - behind.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tags_are_rewritten_and_their_marks_of_white_space_stay() {
        for (template, want) in [
            ("{% generation %}x{% endgeneration %}", "{% call __generation() %}x{% endcall %}"),
            ("{%- generation -%}x{%+endgeneration+%}", "{%- call __generation() -%}x{%+endcall+%}"),
            (
                "{# {% generation %} #}{{ '{% generation %}' }}",
                "{# {% generation %} #}{{ '{% generation %}' }}",
            ),
            ("{% set x = \"%} {% generation %}\" %}", "{% set x = \"%} {% generation %}\" %}"),
            ("{% raw %}{% generation %}{%- endraw -%}{", "{% raw +%}{% generation %}{%- endraw -%}{"),
            (
                "{{ {'a': {'b': 1}}['a'] }}{% generation%}",
                "{{ {'a': {'b': 1}}['a'] }}{% call __generation()%}",
            ),
            ("{% raw %} {% endraw %}", "{% raw +%} {%+ endraw %}"),
            ("{% raw -%}\n{% endraw %}", "{% raw -%}\n{% endraw %}"),
            ("{% generations %}{ % generation %}", "{% generations %}{ % generation %}"),
        ] {
            let found = rewrite(template).unwrap();
            assert_eq!(found.source, want);
            assert!(found.calls.iter().all(|call| &found.source[call.clone()] == "__generation()"));
        }
        let error = rewrite("a\n{% if 'x").err().unwrap();
        assert!(error.message().contains("in line 2"), "{error}");
    }
}
