//! GluonTS's data sets: JSON Lines, though they are called `.json`, of `start`, `target` and what is beside them.

use windrow_core::format::lines::json_kind::{self, JsonKind};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::{Error, Result};

use super::converted::{self, Event, Parse, Reading, START, Sink, TARGET, word_of_target};
use super::series_json::scan::Scan;
use super::series_json::{parse_line, text_head};

use crate::foreign;
use crate::open_options::COLUMN;

/// Series as GluonTS writes them.
#[derive(Clone, Copy, Debug)]
pub struct GluonTs;

static INFO: FormatInfo = FormatInfo {
    name: "gluonts",
    title: "GluonTS JSON Lines",
    layout: "one `.json` file, also `.gz` and `.zst`, with an object of `start` and `target` on every line",
    records: "float32 [T], or [T, C] of a `target` [C, T], with the other keys beside it",
    written_by: "GluonTS's JsonLinesWriter",
    holds: &[Holds::Series],
    series_suffixes: json_kind::SUFFIXES,
    open_options: &[COLUMN],
    ..FormatInfo::NONE
};

impl Format for GluonTs {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let is_lines =
            || JsonKind::at(probe.store.as_ref(), &probe.key).is_ok_and(|kind| kind != JsonKind::Document);
        let is_named = !probe.is_folder && json_kind::may_hold_records(&probe.file_name());
        Confidence::yes_if(is_named && begins_with_a_row(&text_head(probe)) && is_lines())
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        foreign::refuse_as_text(probe.store.open(&probe.key)?.as_ref())?;
        let reading = Reading::of_gluonts(options);
        converted::open_reading(self.name(), probe, options, reading, Parse::EachLine(parse_line))
    }
}

/// Whether a text begins with an object of a time that is text and a target that is numbers, seen from its beginning alone.
pub(super) fn begins_with_a_row(head: &[u8]) -> bool {
    let mut row = Row::default();
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    // Ends with an error where the head ends, or where it is clear that it is not a row.
    let _ = Scan::new(text, 0, "").value(&mut row);
    row.has_start && row.has_target
}

/// Looks for both keys.
#[derive(Default)]
struct Row {
    depth: usize,
    is_start: bool,
    is_target: bool,
    has_start: bool,
    has_target: bool,
}

impl Sink for Row {
    fn event(&mut self, event: Event<'_>, _byte: Option<u64>) -> Result<()> {
        let other = || Err(Error::corrupt("decided"));
        let is_of_target = self.is_target && self.depth > 0;
        match event {
            _ if self.depth == 0 && event != Event::Dict => return other(),
            Event::Key(key) if self.depth == 1 => {
                (self.is_start, self.is_target) = (key == START, key == TARGET)
            }
            Event::Text(_) if self.is_start && self.depth == 1 => self.has_start = true,
            // No numbers, and one channel or several.
            Event::ListEnd if self.is_target && self.depth == 2 => self.has_target = true,
            Event::Text(text) if is_of_target && word_of_target(text).is_some() => {}
            Event::Text(_) | Event::Dict if is_of_target => {
                self.has_target = false;
                return other();
            }
            event if self.is_target && self.depth > 1 && event.is_number() => self.has_target = true,
            event if (self.is_start || self.is_target) && self.depth == 1 && event != Event::List => {
                return other();
            }
            _ => {}
        }
        match event {
            Event::List | Event::Dict => self.depth += 1,
            Event::ListEnd | Event::DictEnd => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        // One line says enough.
        if self.depth == 0 { other() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_time_and_numbers() {
        for yes in [
            "{\"start\": \"2021-01-01 00:00\", \"target\": [1.5, 2",
            "\u{feff}{\"target\": [[1, \"Nan\"], [2, 3]], \"item_id\": \"a\", \"start\": \"2021\", \"text\": \"x\"",
            "{\"feat_static_cat\": [1], \"feat\": {\"start\": 1}, \"target\": [], \"start\": \"2021\"}\n",
            "{\"start\":\"2016\",\"target\":[\"Nan\",null],\"x\":1}",
        ] {
            assert!(begins_with_a_row(yes.as_bytes()), "{yes}");
        }
        for no in [
            "",
            "[{\"start\": \"2021\", \"target\": [1]}]",
            "{\"target\": [1, 2]}\n{\"start\": \"2021\"}",
            "{\"start\": 5, \"target\": [1]}",
            "{\"start\": \"2021\", \"target\": \"a\"}",
            "{\"start\": \"2021\", \"target\": [\"a\", 1]}",
            "{\"start\": \"2021\", \"target\": [1, \"a\"]}",
            "{\"start\": \"2021\", \"target\": {\"a\": [1]}}",
            "{\"start\": \"2021\", \"target\": [{\"a\": 1}]}",
            "{\"start\": \"2021\", \"x\": {\"target\": [1]}}",
            "{\"start\": \"2021\", \"target\": null}",
        ] {
            assert!(!begins_with_a_row(no.as_bytes()), "{no}");
        }
    }
}
