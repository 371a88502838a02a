//! Series written as JSON: one list of them in a `.json`, or one a line in a `.jsonl`; converted once, then read in place.

mod json;
pub(super) mod scan;
mod write;

use memchr::{memchr, memchr_iter};
use windrow_core::format::lines;
use windrow_core::format::lines::json_kind::{self, HEAD};
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::expanded_head;
use windrow_core::{Error, Result};

use self::scan::Scan;
use self::write::WriteLines;
use super::converted::{self, Event, Parse, START, Shapes, Sink, TARGET, word_of_target};
use super::json_lines::NAME;

use crate::foreign;
use crate::open_options::{AXIS, COLUMN};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A list of series in one JSON file.
#[derive(Clone, Copy, Debug)]
pub struct SeriesJson;

/// A series a line.
#[derive(Clone, Copy, Debug)]
pub struct SeriesJsonLines;

static INFO: FormatInfo = FormatInfo {
    name: "series-json",
    title: "Series in JSON",
    layout: "one `.json` file, also `.gz` and `.zst`: a list of series, or numbers that are one series",
    records: "numbers [T] or [T, C]: a list, or one key of an object (`sequence`, `column=`, the only one of numbers) with extras beside it",
    written_by: "any program",
    holds: &[Holds::Series],
    series_suffixes: json_kind::SUFFIXES,
    open_options: &[COLUMN, AXIS],
    ..FormatInfo::NONE
};

impl Format for SeriesJson {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        if !probe.is_folder && json_kind::may_hold_records(&probe.file_name()) && !json_kind::is_lines(probe)
        {
            Confidence::Maybe
        } else {
            Confidence::No
        }
    }

    /// A document that begins with anything but series, where its size or its name says that it holds no data.
    fn is_description(&self, probe: &Probe) -> bool {
        let is_small = probe.is_small() || json_kind::is_description(&probe.key);
        is_small && !document_begins_with_a_series(&text_head(probe))
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        foreign::refuse_as_text(probe.store.open(&probe.key)?.as_ref())?;
        converted::open(self.name(), probe, options, Parse::Whole(parse_whole))
    }
}

static LINES: FormatInfo = FormatInfo {
    name: "series-jsonl",
    title: "Series in JSON Lines",
    layout: "one `.jsonl` or `.ndjson` file, or a `.json` that holds lines, also `.gz` and `.zst`, whose first line is a series",
    records: "numbers [T] or [T, C] per line: a list, or one key of an object (`sequence`, `column=`, GluonTS's `target`) with extras beside it",
    written_by: "`windrow convert --to jsonl`, `wr.write`, any program",
    holds: &[Holds::Series],
    series_suffixes: lines::SUFFIXES,
    open_options: &[COLUMN],
    written_as: "a line per record: a row as an object, numbers as {\"sequence\": [...]}",
    ..FormatInfo::NONE
};

impl Format for SeriesJsonLines {
    fn info(&self) -> &'static FormatInfo {
        &LINES
    }

    /// Sure where the first line is a series; else it is JSON Lines of something else.
    fn recognise(&self, probe: &Probe) -> Confidence {
        let name = probe.file_name();
        let named = lines::is_named(&name) || !probe.is_folder && json_kind::is_lines(probe);
        // What was written as rows is read as rows, whatever numbers they hold.
        let are_rows = probe.manifest.as_ref().is_some_and(|written| written.format == NAME);
        Confidence::yes_if(!probe.is_folder && named && !are_rows && begins_with_a_series(&text_head(probe)))
    }

    fn writer(&self, _options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteLines)))
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        foreign::refuse_as_text(probe.store.open(&probe.key)?.as_ref())?;
        converted::open(self.name(), probe, options, Parse::EachLine(parse_line))
    }
}

/// The first bytes of the text, expanded where the file is compressed.
pub(super) fn text_head(probe: &Probe) -> Vec<u8> {
    let head = probe.store.open(&probe.key).and_then(|object| expanded_head(object.as_ref(), HEAD));
    head.unwrap_or_else(|_| probe.head.clone())
}

/// Whether one document is a list of numbers or of series, or empty; an object is one where it could be a record.
fn document_begins_with_a_series(head: &[u8]) -> bool {
    let text = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
    match text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start) {
        None => begins_with_a_series(text),
        // What begins with a number is one series, with a list or an object several.
        Some(inside) => match inside.first() {
            None | Some(b']') => true,
            Some(b'[') => {
                begins_with_a_series(inside) || inside.starts_with(b"[[") || inside.starts_with(b"[]")
            }
            // A key of an object may hold the series.
            Some(b'{') => memchr_iter(b'[', inside).any(|at| {
                let numbers =
                    inside[at..].iter().find(|byte| !matches!(byte, b'[' | b' ' | b'\t' | b'\r' | b'\n'));
                numbers.is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'N' | b'I' | b']'))
            }),
            Some(other) => other.is_ascii_digit() || matches!(other, b'-' | b'N' | b'I' | b'n' | b't' | b'f'),
        },
    }
}

/// Records with one of these are texts, whatever numbers are beside them.
const TEXTS: [&str; 8] =
    ["text", "content", "messages", "conversations", "prompt", "completion", "instruction", "response"];
/// A longer text is not a name or time of a series.
const LONG: usize = 200;

/// Whether the first value is a list of numbers or of lists of numbers, or an object with such a `sequence`, or one whose
/// only list of numbers is a series by its name or its fractions; seen from its beginning alone. A series without values
/// leaves it to the next line.
pub(super) fn begins_with_a_series(head: &[u8]) -> bool {
    let mut text = head.strip_prefix(BOM).unwrap_or(head);
    loop {
        let mut probe = Beginning::default();
        // Ends with an error as soon as it is decided, or where the head ends.
        let is_whole = Scan::new(text, 0, "").value(&mut probe).is_ok();
        let next = memchr(b'\n', text).map(|end| &text[end + 1..]);
        match next.filter(|_| is_whole && probe.is_list && !probe.is_series) {
            Some(rest) => text = rest,
            None => return probe.is_series || probe.has_series(),
        }
    }
}

/// Finds numbers that would be values of a series, and ends where it is clear that they are none.
#[derive(Default)]
struct Beginning {
    /// Lists that are open, outside of other keys.
    lists: usize,
    dicts: usize,
    is_sequence: bool,
    /// There is a list where a series would be.
    is_list: bool,
    is_series: bool,
    /// Lists and objects that are open in an object.
    depth: usize,
    /// Of its open key: what it is called, and whether there are numbers, fractions and other things in its list.
    key: String,
    numbers: bool,
    fractions: bool,
    others: bool,
    /// Keys before it that hold lists of numbers, and whether the last one of them is a series.
    lists_of_numbers: usize,
    named: bool,
    /// It has what GluonTS calls the time and the values of a series.
    has_start: bool,
    has_target: bool,
    /// It has `sequence`, or is a text.
    is_decided: bool,
}

impl Beginning {
    /// Whether a list of numbers of an object is a series: that of GluonTS, with covariates beside it where it has a start, or the
    /// only one, of fractions. Whole numbers are IDs.
    fn has_series(mut self) -> bool {
        self.end_of_key();
        let is_row = self.has_start && self.has_target;
        !self.is_decided && (is_row || self.lists_of_numbers == 1 && self.named)
    }

    fn end_of_key(&mut self) {
        if self.numbers && !self.others {
            self.lists_of_numbers += 1;
            self.named = self.key == TARGET || self.fractions;
            self.has_target |= self.key == TARGET;
        }
        (self.numbers, self.fractions, self.others) = (false, false, false);
    }

    // What an object holds under other keys than `sequence`.
    fn told(&mut self, event: &Event<'_>) {
        match event {
            Event::Dict if self.dicts == 0 => {}
            Event::Key(key) if self.depth == 0 => {
                self.end_of_key();
                self.is_decided |= *key == "sequence" || TEXTS.contains(key);
                self.key = key.to_string();
            }
            Event::List | Event::Dict => {
                self.others |= self.depth >= 2 || matches!(event, Event::Dict);
                self.depth += 1;
            }
            Event::ListEnd | Event::DictEnd => self.depth = self.depth.saturating_sub(1),
            Event::Bool(_) if self.key != TARGET => self.others |= self.depth > 0,
            Event::Int(_) | Event::Big(_) | Event::Bool(_) => self.numbers |= self.depth > 0,
            Event::Float(_) | Event::Overflow(_) => {
                self.numbers |= self.depth > 0;
                self.fractions |= self.depth > 0;
            }
            Event::Text(text) if self.depth > 0 && self.key == TARGET && word_of_target(text).is_some() => {
                self.numbers = true;
            }
            Event::Text(text) => {
                self.others |= self.depth > 0;
                self.has_start |= self.depth == 0 && self.key == START;
                self.is_decided |= text.len() > LONG;
            }
            _ => {}
        }
    }
}

impl Sink for Beginning {
    fn event(&mut self, event: Event<'_>, _byte: Option<u64>) -> Result<()> {
        let stop = || Err(Error::corrupt("decided"));
        if self.dicts > 0 || event == Event::Dict {
            self.told(&event);
        }
        // Whether this is among the values of what would be a series.
        let is_among = self.lists > 0 && (self.dicts == 0 || self.dicts == 1 && self.is_sequence);
        if is_among && matches!(event, Event::Text(_) | Event::Dict) {
            (self.is_series, self.is_decided) = (false, true);
            return stop();
        }
        match event {
            Event::Dict => self.dicts += 1,
            Event::DictEnd => self.dicts = self.dicts.saturating_sub(1),
            Event::Key(key) if self.dicts == 1 && self.lists == 0 => self.is_sequence = key == "sequence",
            Event::List if self.dicts <= 1 => {
                self.lists += 1;
                self.is_list |= self.dicts == 0 || self.is_sequence;
            }
            Event::ListEnd if self.dicts <= 1 => self.lists = self.lists.saturating_sub(1),
            Event::Int(_) | Event::Float(_) | Event::Overflow(_) | Event::Bool(_) | Event::Big(_) => {
                self.is_series |= is_among && self.lists <= 2;
            }
            _ => {}
        }
        // A null among numbers is a gap: the error that names it helps more than a record of text.
        let is_other = self.dicts == 0 && self.lists == 0 && matches!(event, Event::Text(_) | Event::Null);
        if is_other || self.lists > 0 && self.dicts > 1 {
            self.is_decided = true;
            stop()
        } else {
            Ok(())
        }
    }
}

fn without_bom(bytes: &[u8]) -> (&[u8], u64) {
    match bytes.strip_prefix(BOM) {
        Some(text) => (text, BOM.len() as u64),
        None => (bytes, 0),
    }
}

fn parse_whole(bytes: &[u8], shapes: &mut Shapes<'_>) -> Result<()> {
    let (text, base) = without_bom(bytes);
    let file = shapes.file().to_string();
    let mut scan = Scan::new(text, base, &file);
    scan.value(shapes).and_then(|()| scan.end()).map_err(|e| shapes.placed(e))
}

/// Tells the record of a line.
pub(super) fn parse_line(line: &[u8], start: u64, shapes: &mut Shapes<'_>) -> Result<()> {
    let (text, base) = if start == 0 { without_bom(line) } else { (line, start) };
    let file = shapes.file().to_string();
    shapes.each_is_a_record();
    // A mark alone.
    if text.is_empty() {
        return Ok(());
    }
    let record = shapes.record();
    let named = |e: Error| e.field(format!("line {}", record + 1));
    if text.trim_ascii().is_empty() {
        return Err(named(shapes.error("expected a series, found a blank line", Some(base)))
            .hint("delete blank lines: every line is a series"));
    }
    let mut scan = Scan::new(text, base, &file);
    scan.value(shapes).and_then(|()| scan.end()).map_err(|e| named(e.record(record)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_known_by_its_beginning() {
        for yes in [
            "[1, 2",
            " [[1.5",
            "[NaN",
            "[true]",
            "[null, null, 1",
            "[[null, 1]",
            "{\"id\": \"a\", \"x\": {\"sequence\": []}, \"sequence\": [0",
            "{\"tags\": [1, 2], \"sequence\": [[1, 2]]}",
            "\u{feff}[-Infinity]",
            "[]\n\n[1.5]",
            "{\"sequence\": []}\n{\"sequence\": [[]]}\r\n{\"sequence\": [1]}",
            "{\"start\": \"2021-01-01 00:00:00\", \"target\": [1, 2], \"item_id\": \"T1\", \"feat_static_cat\": 3}",
            "{\"target\": [[1, 2], [3",
            "{\"start\": \"2024-01-01\", \"target\": [1, 2], \"feat_static_cat\": [3], \"feat_dynamic_real\": [[0.5, 1.5]]}",
            "{\"feat_static_cat\": [3], \"start\": \"2024-01-01\", \"target\": [1, 2",
            "{\"start\": \"2021-01-01\", \"target\": [\"NaN\", 2]}",
            "{\"id\": 7, \"values\": [1, null, 2.5], \"tags\": [\"a\"], \"more\": {\"x\": [1]}}",
        ] {
            assert!(begins_with_a_series(yes.as_bytes()), "{yes}");
        }
        for no in [
            "",
            "1",
            "\"text\"",
            "[\"a\", 1]",
            "null",
            "[null]",
            "[null, \"a\"]",
            "[[[1]]]",
            "{\"text\": \"a\"}",
            "{\"sequence\": \"ACGT\"}",
            "{\"sequence\": {\"a\": [1]}}",
            "{\"a\": {\"sequence\": [1]}}",
            "{\"a\": [{\"sequence\": [1]}]}",
            "{\"ids\": [1, 2, 3]}",
            "[{\"sequence\": [1]}]",
            "[]",
            "[]\n[]\n",
            "[]\n{\"text\": \"a\"}\n[1]",
            "{\"ids\": [1]}\n[1]",
            "{\"text\": \"a\", \"embedding\": [0.5, 1.5]}",
            "{\"target\": [1, 2], \"feat_dynamic_real\": [[0.5, 1.5]]}",
            "{\"target\": \"a\", \"label\": [1]}",
            "{\"start\": 5, \"target\": [1, 2], \"label\": [1]}",
            "{\"start\": \"2024-01-01\", \"target\": [1, 2], \"x\": [1], \"text\": \"a\"}",
            "{\"target\": [\"a\", 1]}",
            "{\"a\": [1, -2.5e3, true, null]}",
            "{\"values\": [0.5, {\"a\": 1}], \"other\": [0.5]}",
            "x",
        ] {
            assert!(!begins_with_a_series(no.as_bytes()), "{no}");
        }
    }
}
