//! Warnings of the library, one line each on stderr.

use std::io::{self, Write};

use log::{LevelFilter, Log, Metadata, Record};

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
            let _ = writeln!(io::stderr(), "warning: {}", record.args());
        }
    }

    fn flush(&self) {}
}
