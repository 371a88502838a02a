//! Log records go to Python's `logging`, under the loggers `windrow.*`.

use log::{Log, Metadata, Record};
use pyo3::prelude::*;
use pyo3_log::{Caching, Logger};
use windrow::dev::store::text_without_secrets;

use crate::python::interrupt::keep;

/// Sends this process's log records to Python, but for those while the command line runs; does nothing where another logger was installed before.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let logger = Logger::new(py, Caching::LoggersAndLevels)?.filter(log::LevelFilter::Info);
    if log::set_boxed_logger(Box::new(Renamed(logger))).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
    Ok(())
}

// To users the crates of windrow are one package: `windrow_core::format` logs as `windrow.format`.
struct Renamed(Logger);

fn renamed(target: &str) -> String {
    let (krate, rest) = target.split_once("::").unwrap_or((target, ""));
    if !krate.starts_with("windrow") {
        target.to_string()
    } else if rest.is_empty() {
        "windrow".to_string()
    } else {
        format!("windrow::{rest}")
    }
}

impl Log for Renamed {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if windrow_cli::took(record) || !self.0.enabled(record.metadata()) {
            return;
        }
        let target = renamed(record.target());
        let text = record.args().to_string();
        // Warnings name files, and logs are read by others.
        let text = if text.contains("://") { text_without_secrets(&text) } else { text };
        Python::attach(|py| {
            self.0.log(
                &Record::builder()
                    .target(&target)
                    .level(record.level())
                    .args(format_args!("{text}"))
                    .module_path(record.module_path())
                    .file(record.file())
                    .line(record.line())
                    .build(),
            );
            // What Python raises over a record is left behind, and would be raised by a call that succeeds.
            if let Some(raised) = PyErr::take(py) {
                keep(py, raised);
            }
        });
    }

    fn flush(&self) {
        self.0.flush();
    }
}
