//! How far a task is: a bar on a terminal, a line every few seconds elsewhere, nothing when quiet.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use windrow::prepare::{self, Watch};

use crate::interrupt::Interrupt;
use crate::text;

const BETWEEN_LINES: Duration = Duration::from_secs(3);
const BAR: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
/// Of work that is not counted in bytes.
const COUNTED: &str = "{msg} {wide_bar} {human_pos}/{human_len} {eta}";

/// Shows how far a task is, and asks it to stop on Ctrl-C.
pub(crate) struct Progress<'a> {
    doing: &'static str,
    one: &'static str,
    shown: Shown,
    interrupt: &'a Interrupt,
}

enum Shown {
    Bar(ProgressBar),
    Lines(Mutex<Instant>),
    Nothing,
}

impl<'a> Progress<'a> {
    /// `doing` comes before the bar.
    pub(crate) fn new(doing: &'static str, quiet: bool, interrupt: &'a Interrupt) -> Progress<'a> {
        let shown = match (quiet, io::stderr().is_terminal()) {
            (true, _) => Shown::Nothing,
            (false, true) => Shown::Bar(ProgressBar::new(0).with_message(doing)),
            (false, false) => Shown::Lines(Mutex::new(Instant::now())),
        };
        Progress { doing, one: "record", shown, interrupt }
    }

    /// What is counted, instead of records.
    #[cfg(any(feature = "dac", feature = "remote"))]
    pub(crate) fn counting(mut self, one: &'static str) -> Progress<'a> {
        self.one = one;
        self
    }
}

// Moves the bar, whose style is that of what it counts.
fn bar_at(bar: &ProgressBar, style: &str, done: u64, total: u64) {
    if bar.length() == Some(0)
        && let Ok(style) = ProgressStyle::with_template(style)
    {
        bar.set_style(style);
    }
    bar.set_length(total);
    bar.set_position(done);
}

// Prints a line, unless the last one was a short time ago.
fn line(last: &Mutex<Instant>, text: impl FnOnce() -> String) {
    let Ok(mut last) = last.lock() else { return };
    if last.elapsed() >= BETWEEN_LINES {
        *last = Instant::now();
        // Progress that cannot be shown must not stop the work.
        let _ = writeln!(io::stderr(), "{}", text());
    }
}

impl Watch for Progress<'_> {
    fn progress(&self, now: prepare::Progress) {
        match &self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => bar_at(bar, BAR, now.done_bytes, now.total_bytes),
            Shown::Lines(last) => line(last, || {
                let (done, total) = (text::size(now.done_bytes), text::size(now.total_bytes));
                format!("{}: {done} of {total}, {}", self.doing, text::counted(now.records, self.one))
            }),
        }
    }

    fn counted(&self, done: u64, total: u64, one: &'static str) {
        match &self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => bar_at(bar, COUNTED, done, total),
            Shown::Lines(last) => line(last, || {
                format!("{}: {} of {}", self.doing, text::count(done), text::counted(total, one))
            }),
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupt.asked()
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}
