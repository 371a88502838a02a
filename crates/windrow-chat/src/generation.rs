//! The tag `{% generation %}`, which the engine does not have, as a `{% call %}` block, which it has.

use std::ops::Range;

use windrow_core::{Error, Result};

/// The function that such a block calls.
pub(crate) const FUNCTION: &str = "__generation";

/// A template without the tag, and where in it the calls are that stand in its place.
pub(crate) struct Rewritten {
    pub(crate) source: String,
    pub(crate) calls: Vec<Range<usize>>,
}

/// Puts a call block in the place of each generation block. What is in comments, strings and raw blocks stays as it is.
///
/// # Errors
/// `Config` where a tag is not closed, as the engine would say it too.
pub(crate) fn rewrite(template: &str) -> Result<Rewritten> {
    let mut out = Rewritten { source: String::with_capacity(template.len()), calls: Vec::new() };
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.source.push_str(before);
        let size = match from.as_bytes().get(1) {
            Some(b'#') => from.find("#}").map(|end| end + 2),
            Some(b'{') => code(&from[2..], "}}").map(|end| end + 4),
            Some(b'%') => {
                let inside = &from[2..];
                let name_at = 2 + inside.len() - inside.trim_start_matches(['-', '+']).trim_start().len();
                let name_len = from[name_at..]
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(from.len() - name_at);
                let end = code(inside, "%}").map(|end| end + 4);
                match (&from[name_at..name_at + name_len], end) {
                    (name @ ("generation" | "endgeneration"), Some(end)) => {
                        out.source.push_str(&from[..name_at]);
                        if name == "generation" {
                            out.source.push_str("call ");
                            let start = out.source.len();
                            out.source.push_str(FUNCTION);
                            out.source.push_str("()");
                            out.calls.push(start..out.source.len());
                        } else {
                            out.source.push_str("endcall");
                        }
                        out.source.push_str(&from[name_at + name_len..end]);
                        rest = &from[end..];
                        continue;
                    }
                    ("raw", Some(end)) => end_of_raw(&from[end..]).map(|more| end + more),
                    (_, end) => end,
                }
            }
            _ => Some(1),
        };
        let size = size.ok_or_else(|| {
            let line = template.len() - from.len();
            let line = template[..line].matches('\n').count() + 1;
            Error::config(format!("the chat template opens a tag in line {line} and does not close it"))
        })?;
        out.source.push_str(&from[..size]);
        rest = &from[size..];
    }
    out.source.push_str(rest);
    Ok(out)
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

// How many bytes of what follows `{% raw %}` are up to the end of its `{% endraw %}`.
fn end_of_raw(text: &str) -> Option<usize> {
    text.match_indices("{%").find_map(|(at, _)| {
        let inside = text[at + 2..].trim_start_matches(['-', '+']).trim_start().strip_prefix("endraw")?;
        let behind = inside.trim_start().trim_start_matches(['-', '+']).strip_prefix("%}")?;
        Some(text.len() - behind.len())
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
            ("{% raw %}{% generation %}{%- endraw -%}{", "{% raw %}{% generation %}{%- endraw -%}{"),
            (
                "{{ {'a': {'b': 1}}['a'] }}{% generation%}",
                "{{ {'a': {'b': 1}}['a'] }}{% call __generation()%}",
            ),
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
