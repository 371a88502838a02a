//! How far a task is: a line on a terminal that changes, a line every few seconds elsewhere, nothing when quiet. Of a task that
//! is interrupted, what was done stays.

mod line;
mod speed;

use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windrow::prepare::{self, Watch};

use crate::interrupt::Interrupt;
use crate::{stderr, text};

use self::line::{At, Unit};
use self::speed::Speed;

const BETWEEN_LINES: Duration = Duration::from_secs(3);
const BETWEEN_DRAWINGS: Duration = Duration::from_millis(100);

/// Shows how far a task is, and asks it to stop on Ctrl-C.
pub(crate) struct Progress<'a> {
    doing: &'static str,
    one: &'static str,
    way: Way,
    now: Mutex<Now>,
    interrupt: &'a Interrupt,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// One line, drawn again and again.
    Drawn,
    Lines,
    Nothing,
}

struct Now {
    at: Option<At>,
    speed: Speed,
    shown: Instant,
    is_over: bool,
}

impl<'a> Progress<'a> {
    /// `doing` comes first.
    pub(crate) fn new(doing: &'static str, quiet: bool, interrupt: &'a Interrupt) -> Progress<'a> {
        // A terminal that cannot go back in a line has no use of it.
        let is_drawn =
            io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let way = match (quiet, is_drawn) {
            (true, _) => Way::Nothing,
            (false, true) => Way::Drawn,
            (false, false) => Way::Lines,
        };
        let now = Now { at: None, speed: Speed::default(), shown: Instant::now(), is_over: false };
        Progress { doing, one: "record", way, now: Mutex::new(now), interrupt }
    }

    /// What is counted, instead of records.
    #[cfg(any(feature = "dac", feature = "remote"))]
    pub(crate) fn counting(mut self, one: &'static str) -> Progress<'a> {
        self.one = one;
        self
    }

    fn is_at(&self, at: At) {
        let mut now = self.now();
        if now.is_over || self.way == Way::Nothing {
            return;
        }
        let between = if self.way == Way::Drawn { BETWEEN_DRAWINGS } else { BETWEEN_LINES };
        if now.shown.elapsed() >= between {
            let moment = Instant::now();
            now.shown = moment;
            now.speed.add(moment, at.done);
            match self.way {
                // The last column stays free: a terminal may wrap a line that fills it.
                Way::Drawn => {
                    stderr::show(line::drawn(self.doing, &at, now.speed.per_second(), text::columns() - 1));
                }
                _ => stderr::print(&line::said(self.doing, &at)),
            }
        }
        now.at = Some(at);
    }

    // What was done is said once, and nothing is drawn any more: a second Ctrl-C finds the cursor on a line of its own.
    fn is_stopped(&self) {
        let mut now = self.now();
        if now.is_over {
            return;
        }
        now.is_over = true;
        stderr::wipe();
        if let Some(at) = &now.at {
            stderr::print(&line::said(self.doing, at));
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Progress<'_> {
    fn progress(&self, now: prepare::Progress) {
        let unit = Unit::Bytes { beside: now.records, one: self.one };
        self.is_at(At { done: now.done_bytes, total: now.total_bytes, unit });
    }

    fn counted(&self, done: u64, total: u64, one: &'static str) {
        self.is_at(At { done, total, unit: Unit::Counted(one) });
    }

    fn cancelled(&self) -> bool {
        let is_asked = self.interrupt.asked();
        if is_asked {
            self.is_stopped();
        }
        is_asked
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.interrupt.asked() {
            self.is_stopped();
        } else {
            stderr::wipe();
        }
    }
}
