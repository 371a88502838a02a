//! stderr: messages, each from the beginning of a line, and below them the line that says how far a task is.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::colour::{self, ERROR, LABEL, WARNING};

/// The line that is on the screen and will be replaced; empty where there is none.
static LINE: Mutex<String> = Mutex::new(String::new());

/// Back to the beginning of the line, of which the rest is wiped.
const WIPE: &str = "\r\u{1b}[K";

/// What a message is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    Error,
    Warning,
    /// What the program does, for whoever asked with `-v`.
    Info,
}

/// Prints a message. Only its lines `at:` and `hint:` stand below it.
pub(crate) fn say(message: Message, text: &str) {
    let (word, style) = match message {
        Message::Error => ("error:", ERROR),
        Message::Warning => ("warning:", WARNING),
        Message::Info => ("info:", LABEL),
    };
    if !colour::of(&io::stderr()) {
        return print(&format!("{word} {text}"));
    }
    let mut shown = format!("{style}{word}{style:#}");
    for (number, line) in text.split('\n').enumerate() {
        match ["  at:", "  hint:"].iter().find_map(|label| Some((label, line.strip_prefix(label)?))) {
            Some((label, rest)) => shown.push_str(&format!("\n{LABEL}{label}{LABEL:#}{rest}")),
            None => shown.push_str(&format!("{}{line}", if number == 0 { " " } else { "\n" })),
        }
    }
    print(&shown);
}

/// Prints lines as they are, above the line that says how far a task is.
pub(crate) fn print(text: &str) {
    let line = line();
    let (wipe, again) = if line.is_empty() { ("", "") } else { (WIPE, line.as_str()) };
    // What cannot be shown must not stop the work.
    let _ = io::stderr().lock().write_all(format!("{wipe}{text}\n{again}").as_bytes());
}

/// Shows how far a task is, in place of what was shown before.
pub(crate) fn show(now: String) {
    let mut line = line();
    // In one write, so that nothing is seen half.
    let _ = io::stderr().lock().write_all(format!("{WIPE}{now}").as_bytes());
    *line = now;
}

/// Wipes that line.
pub(crate) fn wipe() {
    let mut line = line();
    if !std::mem::take(&mut *line).is_empty() {
        let _ = io::stderr().lock().write_all(WIPE.as_bytes());
    }
}

fn line() -> MutexGuard<'static, String> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}
