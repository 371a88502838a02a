//! Warnings of the library, on stderr.

use std::io::{self, Write};

use log::{LevelFilter, Log, Metadata, Record};
use windrow::dev::store::text_without_secrets;

use crate::text;

struct Stderr;

/// Shows warnings; none with `quiet`. A logger that is there already is left alone.
pub(crate) fn listen(quiet: bool) {
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(if quiet { LevelFilter::Off } else { LevelFilter::Warn });
    }
}

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("windrow")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // A warning that cannot be shown must not stop the work.
            let warning = text_without_secrets(&record.args().to_string());
            let _ = writeln!(io::stderr(), "warning: {}", escaped(&warning));
        }
    }

    fn flush(&self) {}
}

// Names of files are quoted as they are: none may colour the terminal or begin a line. Only an error in a warning has lines.
fn escaped(warning: &str) -> String {
    let mut out = String::with_capacity(warning.len());
    for (number, line) in warning.split('\n').enumerate() {
        let is_of_an_error = line.starts_with("  at: ") || line.starts_with("  hint: ");
        if number > 0 {
            out.push_str(if is_of_an_error { "\n" } else { "\\n" });
        }
        out.push_str(&text::escaped(line));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_lines_of_an_error_stay_lines() {
        assert_eq!(
            escaped("a\u{1b}[2K\nerror: b\r.bin: left out"),
            "a\\u{1b}[2K\\nerror: b\\r.bin: left out"
        );
        let error = "not kept: no space\n  at: /cache\n  hint: delete files";
        assert_eq!(escaped(error), error);
    }
}
