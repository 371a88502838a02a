//! The keys of a record, and which of them holds the series.

use super::event::{Event, START, TARGET, word_of_target};

/// The key of a series, unless another is named.
const USUAL: &str = "sequence";
/// What to do about a key that holds no series: which others the record has is not known before it ends.
pub(super) const NAMED: &str = "@column@ names the key that holds the series";
/// Characters of keys that an error shows.
const SHOWN: usize = 300;

/// Which key holds the series: the one that was named, else `sequence`, else GluonTS's `target` beside a `start`, else the only one
/// of the first record that holds numbers.
pub(super) struct Keys {
    column: Option<String>,
    /// No record has ended yet, and no key was named.
    undecided: bool,
    /// Of the open record, joined.
    names: String,
    /// Of the first record: keys of numbers, the key whose value is open, and what was seen of it.
    lists: Vec<String>,
    open: String,
    numbers: bool,
    others: bool,
    has_start: bool,
    only: Option<String>,
}

impl Keys {
    pub(super) fn new(column: Option<String>) -> Keys {
        Keys {
            undecided: column.is_none(),
            column,
            names: String::new(),
            lists: Vec::new(),
            open: String::new(),
            numbers: false,
            others: false,
            has_start: false,
            only: None,
        }
    }

    /// The key that is looked for.
    pub(super) fn column(&self) -> &str {
        self.column.as_deref().unwrap_or(USUAL)
    }

    /// Whether another key than the usual one was named: then every record is an object.
    pub(super) fn is_named(&self) -> bool {
        self.column() != USUAL
    }

    /// Whether a key of the first record may still turn out to be it.
    pub(super) fn is_undecided(&self) -> bool {
        self.undecided
    }

    /// A record begins.
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.lists.clear();
        self.has_start = false;
    }

    /// Takes in a value beside the series, or a part of it, of which `depth` lists and objects are open.
    pub(super) fn told(&mut self, event: &Event<'_>, depth: usize) {
        match event {
            Event::Key(key) if depth == 0 => {
                if self.names.len() < SHOWN {
                    let comma = if self.names.is_empty() { "" } else { ", " };
                    self.names.extend([comma, key]);
                }
                if self.undecided {
                    self.open.clear();
                    self.open.push_str(key);
                    (self.numbers, self.others) = (false, false);
                }
            }
            Event::List => self.others |= depth >= 2,
            Event::ListEnd | Event::Empty(_) => {}
            // A null among numbers is a gap: the error that names it helps more.
            Event::Null => self.others |= depth == 0,
            event if event.is_number() && depth > 0 => self.numbers = true,
            Event::Text(text) if depth > 0 && self.open == TARGET && word_of_target(text).is_some() => {
                self.numbers = true;
            }
            event => {
                self.has_start |= depth == 0 && self.open == START && matches!(event, Event::Text(_));
                self.others = true;
            }
        }
    }

    /// The open value has ended.
    pub(super) fn end_of_value(&mut self) {
        if self.undecided && self.numbers && !self.others {
            self.lists.push(self.open.clone());
        }
    }

    /// The first record has the key.
    pub(super) fn decided(&mut self) {
        self.undecided = false;
    }

    /// A record has ended without the key.
    pub(super) fn ended_without(&mut self) {
        if !self.undecided {
            return;
        }
        // Beside the series, GluonTS has covariates of numbers.
        let target = self.lists.iter().find(|key| self.has_start && *key == TARGET);
        let only = self.lists.first().filter(|_| self.lists.len() == 1);
        self.only = target.or(only).cloned().or_else(|| self.only.take());
    }

    /// The key that holds the series instead, where it is clear which one does.
    pub(super) fn only(&self) -> Option<String> {
        self.only.clone()
    }

    /// What to do about a record without it, which has ended.
    pub(super) fn hint(&self) -> String {
        let names = if self.names.is_empty() { "none" } else { &self.names };
        let lists = match self.lists.len() {
            0 => String::new(),
            _ => format!("; numbers are in {}", self.lists.join(", ")),
        };
        format!("its other keys: {names}{lists}; {NAMED}")
    }
}
