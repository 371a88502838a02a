//! What was logged, file by file, because tests run beside each other.

use std::sync::{Mutex, Once};

struct Kept(Mutex<Vec<String>>);

impl log::Log for Kept {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        if record.level() <= log::Level::Warn && record.target().starts_with("windrow_audio") {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }
    fn flush(&self) {}
}

static KEPT: Kept = Kept(Mutex::new(Vec::new()));

/// Keeps warnings from now on.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&KEPT).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
}

/// Those about a file.
pub(crate) fn warnings(file: &str) -> Vec<String> {
    let about = format!("{file}: ");
    KEPT.0.lock().unwrap().iter().filter(|w| w.starts_with(&about)).cloned().collect()
}
