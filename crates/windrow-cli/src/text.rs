//! Texts for a terminal: how wide it is, and paths as a shell takes them. What pages share with it is re-exported.

use std::path::Path;

use windrow::Error;

pub(crate) use windrow::preview::text::{count, counted, escaped, message, number, rate, size, truncated};

/// Columns of the terminal; where there is none those of `COLUMNS`, else 100.
pub(crate) fn columns() -> usize {
    let said = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).or_else(said);
    columns.filter(|columns| *columns > 0).unwrap_or(100)
}

/// Columns of what is shown of data: in fewer than 40 nothing could be read.
pub(crate) fn width() -> usize {
    columns().max(40)
}

/// What is wrong with a value, and what it may be, for the parser of arguments.
pub(crate) fn one_line(error: &Error) -> String {
    let hint = error.hint_text().map_or(String::new(), |hint| format!("; {hint}"));
    error.message().to_string() + &hint
}

/// A number of bytes as it would be typed: `64MiB` where it is a whole number of MiB.
pub(crate) fn typed_size(bytes: u64) -> String {
    const MEBIBYTE: u64 = 1 << 20;
    if bytes > 0 && bytes.is_multiple_of(MEBIBYTE) {
        format!("{}MiB", bytes / MEBIBYTE)
    } else {
        bytes.to_string()
    }
}

/// A path as a shell takes it.
pub(crate) fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// A text as a shell takes it.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_string()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted_path(Path::new("a b/it's")), "'a b/it'\\''s'");
        assert_eq!(quoted_path(Path::new("a/b-c_1.json")), "a/b-c_1.json");
    }
}
