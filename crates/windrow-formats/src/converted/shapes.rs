//! Which lists are records: one rule for every notation (JSON, YAML, pickles), applied value by value.
//!
//! At the top is a list of records, or numbers that are one record; or each top value is a record (lines, several
//! pickles); or the top value is the record, where that was asked for. A record is a list of numbers `[T]`, or a list of lists of
//! one width `[T, C]`, or a dict of which one key holds one of those: `sequence`, the key that was named, or the only one of
//! the first record that holds numbers. Its other keys are extras. GluonTS writes `[C, T]`: of a record with `start`, its
//! `target` is turned.

use std::fmt;

use windrow_core::format::{Axis, Options};
use windrow_core::number::Number;
use windrow_core::store::plain_name;
use windrow_core::{DType, Error, Result};

use super::event::{Event, MOST_DEPTH, START, Sink, TARGET, word_of_target};
use super::keys::{Keys, NAMED};
use super::literal::Literal;
use super::writer::Writer;

/// Bytes of JSON text that may be beside one record.
const MOST_EXTRAS: usize = 16 << 20;

const RECORD: &str = "a record is a list of numbers, a list of lists of numbers, or an object with `sequence` or the key that @column@ names";
const MISSING: &str = "write a missing value as NaN, in YAML as .nan, in Python as `float(\"nan\")`; @nan=mask@ then keeps it out of \
                       scaling and loss";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the one value of the file.
    Top,
    /// Among the records.
    Records,
    /// Among the numbers that the top list turned out to hold.
    Flat,
    /// In a record that has no value yet.
    Record,
    /// In a record `[T]`.
    Numbers,
    /// In a record `[T, C]`, between its rows.
    Rows,
    /// In a row.
    Row,
    /// In a dict, before a key.
    Dict,
    /// After the key `sequence`.
    Sequence,
    /// In an extra.
    Extra,
    /// After the one value of the file.
    Done,
}

/// What of the values is a series, where it was given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// The key whose values are the series.
    pub(super) column: Option<String>,
    /// The whole of the file is one.
    pub(super) is_one: bool,
    /// It is GluonTS's: every record says when it starts, all arrays are `[C, T]`, all numbers floats.
    pub(super) is_gluonts: bool,
    /// Records are read as float64: whole numbers beyond int64 are floats.
    pub(super) is_wide: bool,
}

impl Reading {
    /// What the options say.
    pub(super) fn of(options: &Options) -> Reading {
        Reading {
            column: options.column.clone(),
            is_one: options.axis == Some(Axis::Time),
            is_gluonts: false,
            is_wide: options.dtype == Some(DType::F64),
        }
    }

    /// Records of GluonTS, the target or another key of them.
    pub(in super::super) fn of_gluonts(options: &Options) -> Reading {
        let column = options.column.clone().unwrap_or_else(|| TARGET.to_string());
        Reading { column: Some(column), is_one: false, is_gluonts: true, is_wide: false }
    }
}

/// Part of the cache file's name.
impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(column) = &self.column {
            write!(f, " column {column:?}")?;
        }
        f.write_str(if self.is_one { " one" } else { "" })?;
        f.write_str(if self.is_wide { " float64" } else { "" })
    }
}

/// Finds the records among the values, checks them, and hands them to the writer.
pub(crate) struct Shapes<'d> {
    writer: Writer<'d>,
    size: u64,
    at: At,
    /// Every top value is a record.
    each: bool,
    /// The top value is the record.
    is_one: bool,
    is_gluonts: bool,
    /// Whole numbers beyond int64 are floats.
    has_big: bool,
    keys: Keys,
    /// The numbers per value of all records; `None` while no record had values.
    channels: Option<Option<u64>>,
    in_dict: bool,
    found_sequence: bool,
    /// The open dict says when its series starts.
    has_start: bool,
    /// Of the record: its first byte, the last of its values, how many there are, and its numbers per value.
    start: Option<u64>,
    values_end: Option<u64>,
    length: u64,
    width: Option<u64>,
    row: u64,
    /// Of the extras: JSON text, every value followed by a comma; how many lists and objects are open.
    extras: String,
    open: usize,
    /// The first number of an extra that became null, and whether a warning names it.
    nulled: Option<f64>,
    warned: bool,
}

impl<'d> Shapes<'d> {
    pub(super) fn new(mut writer: Writer<'d>, size: u64, reading: &Reading) -> Self {
        if reading.is_gluonts {
            writer.all_are_floats();
        }
        Shapes {
            is_one: reading.is_one,
            is_gluonts: reading.is_gluonts,
            has_big: reading.is_gluonts || reading.is_wide,
            keys: Keys::new(reading.column.clone()),
            writer,
            size,
            at: At::Top,
            each: false,
            channels: None,
            in_dict: false,
            found_sequence: false,
            has_start: false,
            start: None,
            values_end: None,
            length: 0,
            width: None,
            row: 0,
            extras: String::new(),
            open: 0,
            nulled: None,
            warned: false,
        }
    }

    /// From now on every top value is a record, not a list of records.
    pub(crate) fn each_is_a_record(&mut self) {
        (self.each, self.is_one) = (true, false);
        self.at = At::Records;
    }

    /// The key that holds the series, where none was named and the first record has no `sequence`: what came so far is to
    /// be told again.
    pub(super) fn only_key(&self) -> Option<String> {
        self.keys.only()
    }

    /// Number of the record that comes next, or is open.
    pub(crate) fn record(&self) -> u64 {
        self.writer.records()
    }

    /// Name of the file.
    pub(crate) fn file(&self) -> &str {
        &self.writer.file
    }

    /// An error at the record that is open.
    pub(crate) fn error(&self, what: impl Into<String>, byte: Option<u64>) -> Error {
        let error = self.placed(Error::corrupt(what));
        match byte {
            Some(byte) => error.byte(byte),
            None => error,
        }
    }

    /// Adds what an error does not say of its place: the file, and the record that is open.
    pub(crate) fn placed(&self, error: Error) -> Error {
        let error = error.or_at(&self.writer.file);
        if error.place().record.is_none() && !matches!(self.at, At::Top | At::Done) {
            error.record(self.record())
        } else {
            error
        }
    }

    /// The writer with all records, and what they have in common.
    ///
    /// # Errors
    /// `Corrupt` when a value was not ended.
    pub(super) fn finish(self) -> Result<(Writer<'d>, Option<u64>)> {
        let whole = if self.each { self.at == At::Records } else { self.at == At::Done };
        if whole {
            Ok((self.writer, self.channels.flatten()))
        } else {
            Err(self.error("expected series, found the end of the file", Some(self.size)))
        }
    }

    fn unexpected(&self, event: &Event<'_>, byte: Option<u64>) -> Error {
        let found = event.name();
        let (wanted, hint) = match self.at {
            At::Top => ("a list of series", self.hint_for_one()),
            At::Records if *event == Event::Null => {
                ("a record", "write a series without values as []; a missing value as NaN, in YAML as .nan")
            }
            At::Records => ("a record", RECORD),
            At::Flat | At::Numbers | At::Row => ("a number", hint_for_number(event)),
            At::Record | At::Rows => ("numbers or lists of numbers", hint_for_number(event)),
            At::Sequence => {
                let wanted =
                    format!("expected `{}` to be a list of numbers, found {found}", self.keys.column());
                return self.error(wanted, byte).hint(NAMED);
            }
            At::Dict | At::Extra => ("a key or a value", RECORD),
            At::Done => ("the end of the file", "several values in one file: write one a line into a .jsonl"),
        };
        self.error(format!("expected {wanted}, found {found}"), byte).hint(hint)
    }

    // What is at the top of a file has other names in other notations.
    fn hint_for_one(&self) -> &'static str {
        let plain = plain_name(self.file());
        if plain.ends_with(".json") {
            "one object alone is no list of records: put it into a list, or write one object a line into a .jsonl; \
             @format=jsonl@ reads each line as a JSON record"
        } else if plain.ends_with(".pkl") || plain.ends_with(".pickle") || plain.ends_with(".npy") {
            "one dict alone is not a list of records: pickle a list of its series, list(d.values())"
        } else {
            "one mapping alone is not a list of records: put it into a list"
        }
    }

    fn begin_record(&mut self, byte: Option<u64>) {
        self.start = byte;
        self.length = 0;
        self.width = None;
        (self.found_sequence, self.has_start) = (false, false);
        self.keys.clear();
        self.extras.clear();
    }

    fn number(&mut self, event: Event<'_>, byte: Option<u64>) -> Result<()> {
        match event {
            Event::Int(number) => self.writer.put(Number::Int(number), DType::I64),
            Event::Bool(flag) => self.writer.put(Number::Bool(flag), DType::Bool),
            // Python and torch read it as float32; its other digits are there for scalers.
            Event::Float(number) => self.writer.put_literal(number),
            Event::Overflow(number) => {
                self.writer.overflowed += 1;
                self.writer.put_literal(number)
            }
            Event::Stored(Number::Big(number), _) if self.has_big => self.writer.put_literal(number as f64),
            Event::Stored(Number::Big(number), _) => Err(self.too_big(&number.to_string(), byte)),
            Event::Stored(number, dtype) => self.writer.put(number, dtype),
            Event::Big(text) => match Literal::of(text.as_bytes()).filter(|_| self.has_big) {
                Some(literal) => self.writer.put_text(literal),
                None => Err(self.too_big(text, byte)),
            },
            _ => Err(self.unexpected(&event, byte)),
        }
    }

    fn too_big(&self, number: &str, byte: Option<u64>) -> Error {
        let shown: String = number.chars().take(40).collect();
        self.error(format!("the whole number {shown} does not fit int64"), byte)
            .hint("@dtype=float64@ of opening reads it as the float64 next to it; with a decimal point it is read as float32")
    }

    /// The numbers of the open record are all there.
    fn end_values(&mut self, byte: Option<u64>) -> Result<()> {
        self.values_end = byte;
        if self.in_dict {
            self.at = At::Dict;
            Ok(())
        } else {
            self.end_record(byte)
        }
    }

    /// Turns what GluonTS wrote `[C, T]`, unless the first axis was given as time.
    fn turn(&mut self) -> Result<()> {
        let is_target = self.has_start && self.keys.column() == TARGET && !self.is_one;
        if let Some(width) = self.width.filter(|_| is_target || self.is_gluonts) {
            self.writer.transpose(self.length, width)?;
            (self.length, self.width) = (width, Some(self.length));
        }
        Ok(())
    }

    /// Holds the shape of the open record against that of those before.
    fn check_shape(&mut self) -> Result<()> {
        // An empty record says nothing of its width.
        match self.channels.filter(|found| self.length > 0 && *found != self.width) {
            Some(found) => Err(self
                .error(
                    format!("a record {}, where those before it are {}", shape(self.width), shape(found)),
                    self.values_end,
                )
                .hint("all records of a file have one shape: [T], or [T, C] with one C")),
            None => {
                if self.length > 0 {
                    self.channels = Some(self.width);
                }
                Ok(())
            }
        }
    }

    fn too_much(&self, byte: Option<u64>) -> Error {
        self.error("the metadata of a record is too large", byte)
            .hint(format!("at most {MOST_EXTRAS} bytes as JSON, nested at most {MOST_DEPTH} deep"))
    }

    fn end_record(&mut self, byte: Option<u64>) -> Result<()> {
        self.turn()?;
        self.check_shape()?;
        let place = match (self.start, byte) {
            (Some(start), Some(last)) => start..last.saturating_add(1).min(self.size),
            // Where it is in the file is not known.
            _ => 0..self.size,
        };
        if !self.extras.is_empty() {
            self.extras.pop();
            self.extras.insert(0, '{');
            self.extras.push('}');
        }
        self.writer.end_record(&self.extras, self.length, place)?;
        self.extras.clear();
        self.in_dict = false;
        self.at = if self.is_one { At::Done } else { At::Records };
        Ok(())
    }

    fn extra(&mut self, event: Event<'_>, byte: Option<u64>) -> Result<()> {
        self.keys.told(&event, self.open);
        // It may turn out to be the series, which is as long as it is.
        let is_written = self.extras.len() <= MOST_EXTRAS || !self.keys.is_undecided();
        match event {
            Event::List | Event::Dict | Event::ListEnd | Event::DictEnd => {}
            _ if !is_written => return self.end_extra(&event, byte),
            _ => {}
        }
        match event {
            Event::List => self.extras.push('['),
            Event::Dict => self.extras.push('{'),
            Event::ListEnd | Event::DictEnd => {
                if self.extras.ends_with(',') {
                    self.extras.pop();
                }
                self.extras.push_str(if event == Event::ListEnd { "]," } else { "}," });
            }
            Event::Key(key) => self.extras.push_str(&format!("{}:", serde_json::Value::from(key))),
            Event::Int(number) | Event::Stored(Number::Int(number), _) => {
                self.extras.push_str(&format!("{number},"));
            }
            Event::Stored(Number::Big(number), _) => self.extras.push_str(&format!("{number},")),
            // What JSON cannot write is null there.
            Event::Float(number) | Event::Overflow(number) | Event::Stored(Number::Float(number), _)
                if !number.is_finite() =>
            {
                self.nulled.get_or_insert(number);
                self.warn_of_null();
                self.extras.push_str("null,");
            }
            Event::Float(number) | Event::Overflow(number) | Event::Stored(Number::Float(number), _) => {
                self.extras.push_str(&format!("{},", serde_json::Value::from(number)))
            }
            // Beyond 64 bits JSON's readers make another number of it: it stays text, with all its digits.
            Event::Big(digits) if digits.parse::<u64>().is_err() => {
                self.extras.push_str(&format!("\"{digits}\","));
            }
            Event::Big(digits) => self.extras.push_str(&format!("{digits},")),
            Event::Bool(flag) | Event::Stored(Number::Bool(flag), _) => {
                self.extras.push_str(&format!("{flag},"))
            }
            Event::Text(text) => self.extras.push_str(&format!("{},", serde_json::Value::from(text))),
            Event::Null => self.extras.push_str("null,"),
            Event::Empty(_) => return Ok(()),
        }
        self.end_extra(&event, byte)
    }

    // Once, and not while the number may turn out to be one of the series.
    fn warn_of_null(&mut self) {
        if let Some(number) = self.nulled.filter(|_| !self.warned && !self.keys.is_undecided()) {
            windrow_core::warn!("{}: {number} in the metadata of a record is read as null", self.writer.file);
            self.warned = true;
        }
    }

    // What of an extra is open after a value or an end.
    fn end_extra(&mut self, event: &Event<'_>, byte: Option<u64>) -> Result<()> {
        match event {
            Event::List | Event::Dict => self.open += 1,
            Event::ListEnd | Event::DictEnd => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        if self.open > MOST_DEPTH || self.extras.len() > MOST_EXTRAS && !self.keys.is_undecided() {
            return Err(self.too_much(byte));
        }
        if self.open == 0 && !matches!(event, Event::Key(_)) {
            self.keys.end_of_value();
            self.at = At::Dict;
        }
        Ok(())
    }

    fn begin_dict(&mut self, byte: Option<u64>) -> Result<()> {
        self.begin_record(byte);
        self.in_dict = true;
        self.at = At::Dict;
        Ok(())
    }

    // An object that is a record: its keys, and what is beside the series.
    fn event_of_dict(&mut self, event: Event<'_>, byte: Option<u64>) -> Result<()> {
        match (self.at, event) {
            (At::Dict, Event::Key(key)) if key == self.keys.column() && self.found_sequence => {
                Err(self.error(format!("`{key}` is twice in one record"), byte))
            }
            (At::Dict, Event::Key(key)) if key == self.keys.column() => {
                self.found_sequence = true;
                self.at = At::Sequence;
                Ok(())
            }
            (At::Dict, Event::Key(key)) => {
                self.has_start |= key == START;
                self.at = At::Extra;
                self.open = 0;
                self.extra(event, byte)
            }
            (At::Dict, Event::DictEnd) => {
                if !self.found_sequence {
                    self.keys.ended_without();
                    let what = format!("expected the key `{}` in a record, found none", self.keys.column());
                    Err(self.error(what, byte).hint(self.keys.hint()))
                } else if self.is_gluonts && !self.has_start {
                    Err(self
                        .error(format!("expected the key `{START}` in a record, found none"), byte)
                        .hint("rows of GluonTS have one; @format=\"series-jsonl\"@ reads rows without it"))
                } else if self.extras.len() > MOST_EXTRAS {
                    Err(self.too_much(byte))
                } else {
                    self.keys.decided();
                    self.warn_of_null();
                    self.end_record(byte)
                }
            }
            (At::Sequence, Event::List) => {
                self.at = At::Record;
                Ok(())
            }
            (At::Extra, _) => self.extra(event, byte),
            // What holds nothing: what follows says so.
            (_, Event::Empty(_)) => Ok(()),
            _ => Err(self.unexpected(&event, byte)),
        }
    }
}

impl Sink for Shapes<'_> {
    fn event(&mut self, event: Event<'_>, byte: Option<u64>) -> Result<()> {
        let event = match (self.at, event) {
            (At::Record | At::Numbers | At::Row, Event::Text(text))
                if self.in_dict && (self.is_gluonts || self.keys.column() == TARGET) =>
            {
                word_of_target(text).map_or(event, Event::Float)
            }
            // Its numbers are floats, so a gap among them is one.
            (At::Record | At::Numbers | At::Row, Event::Null) if self.is_gluonts => Event::Float(f64::NAN),
            (_, event) => event,
        };
        let is_number = event.is_number();
        match (self.at, event) {
            // The most frequent ones first.
            (At::Numbers | At::Flat, _) if is_number => {
                self.length += 1;
                self.number(event, byte)
            }
            (At::Row, _) if is_number => {
                self.row += 1;
                self.number(event, byte)
            }
            (At::Top, Event::List) if self.is_one => {
                self.begin_record(byte);
                self.at = At::Record;
                Ok(())
            }
            (At::Top, Event::Dict) if self.is_one => self.begin_dict(byte),
            (At::Top, Event::List) => {
                // Its place, should it turn out to be the record itself.
                self.begin_record(byte);
                self.at = At::Records;
                Ok(())
            }
            (At::Records, Event::List) if self.keys.is_named() => {
                let what = format!("expected an object with the key `{}`, found a list", self.keys.column());
                Err(self.error(what, byte).hint("leave column out: a list is a series by itself"))
            }
            (At::Records, Event::List) => {
                self.begin_record(byte);
                self.at = At::Record;
                Ok(())
            }
            (At::Records, Event::Dict) => self.begin_dict(byte),
            (At::Records, Event::ListEnd) if !self.each => {
                self.at = At::Done;
                Ok(())
            }
            (At::Records, _) if is_number && !self.each && self.record() == 0 => {
                self.at = At::Flat;
                self.length = 1;
                self.number(event, byte)
            }
            (At::Flat, Event::ListEnd) => {
                self.end_values(byte)?;
                self.at = At::Done;
                Ok(())
            }
            (At::Record, _) if is_number => {
                self.at = At::Numbers;
                self.length = 1;
                self.number(event, byte)
            }
            (At::Record | At::Rows, Event::List) => {
                self.at = At::Row;
                self.row = 0;
                Ok(())
            }
            (At::Record | At::Numbers | At::Rows, Event::ListEnd) => self.end_values(byte),
            (At::Row, Event::ListEnd) => {
                if self.row == 0 || self.width.is_some_and(|width| width != self.row) {
                    let wanted = self.width.map_or("at least 1".to_string(), |width| width.to_string());
                    return Err(self
                        .error(
                            format!(
                                "expected {wanted} numbers in row {} of a record [T, C], found {}",
                                self.length, self.row
                            ),
                            byte,
                        )
                        .hint("every row of a record has the same number of channels"));
                }
                self.width = Some(self.row);
                self.length += 1;
                self.at = At::Rows;
                Ok(())
            }
            (At::Dict | At::Sequence | At::Extra, event) => self.event_of_dict(event, byte),
            (At::Record, Event::Empty(dtype)) => {
                self.writer.is_of(dtype);
                Ok(())
            }
            // What holds no record, or rows of no width: what follows says so.
            (_, Event::Empty(_)) => Ok(()),
            _ => Err(self.unexpected(&event, byte)),
        }
    }
}

fn shape(width: Option<u64>) -> String {
    width.map_or("[T]".to_string(), |width| format!("[T, {width}]"))
}

fn hint_for_number(event: &Event<'_>) -> &'static str {
    match event {
        Event::Null => MISSING,
        // YAML reads NaN as text.
        Event::Text(text)
            if ["", "na", "n/a", "nan", "none", "null"].contains(&text.to_lowercase().as_str()) =>
        {
            MISSING
        }
        Event::Text(_) => "write numbers without quotes",
        Event::List | Event::ListEnd => "a record is [T] or [T, C]: no deeper, and the same throughout",
        _ => RECORD,
    }
}
