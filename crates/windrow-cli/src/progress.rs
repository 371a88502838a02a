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
            (false, true) => {
                let bar = ProgressBar::new(0).with_message(doing);
                if let Ok(style) = ProgressStyle::with_template(BAR) {
                    bar.set_style(style);
                }
                Shown::Bar(bar)
            }
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

impl Watch for Progress<'_> {
    fn progress(&self, now: prepare::Progress) {
        match &self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.set_length(now.total_bytes);
                bar.set_position(now.done_bytes);
            }
            Shown::Lines(last) => {
                let Ok(mut last) = last.lock() else { return };
                if last.elapsed() >= BETWEEN_LINES {
                    *last = Instant::now();
                    let (done, total) = (text::size(now.done_bytes), text::size(now.total_bytes));
                    let records = text::counted(now.records, self.one);
                    // Progress that cannot be shown must not stop the work.
                    let _ = writeln!(io::stderr(), "{}: {done} of {total}, {records}", self.doing);
                }
            }
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
