//! The lines of a `.tsf` file: what is declared, then a series a line, its attributes and its values between colons.

use serde_json::{Map, Value};
use windrow_core::store::{Draft, Object};
use windrow_core::{Error, Result};

use super::attributes::{Attribute, Holds};
use crate::converted::{Literal, Parts, Writer};

/// Bytes of a line before `@data`, and of an attribute.
const MOST: usize = 1 << 20;
/// Bytes of a value: float64 needs 1,100 digits at most.
const MOST_OF_VALUE: usize = 4096;
/// Attributes that a series may have.
const MOST_ATTRIBUTES: usize = 4096;
/// Characters of a text that an error shows.
const SHOWN: usize = 80;

/// A byte order mark, which no Latin-1 begins with.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// How a missing value is written.
const GAP: &[u8] = b"?";

/// Writes all series of a file.
///
/// # Errors
/// `Corrupt` for what is not declared so, a line with another number of attributes, a value that is not a number.
pub(super) fn convert(object: &dyn Object, draft: &mut Draft, limit: u64) -> Result<()> {
    let mut lines = Lines { parts: Parts::new(object), line: 1, start: 0, text: Vec::new() };
    if lines.parts.ahead()?.starts_with(MARK) {
        lines.parts.consume(MARK.len());
    }
    let (attributes, freq) = lines.declared()?;
    let mut writer = Writer::new(draft, object.name(), limit)?;
    while lines.next_line()? {
        lines.series(&attributes, freq, &mut writer).map_err(|error| error.record(writer.records()))?;
    }
    if writer.records() == 0 {
        return Err(lines
            .wrong("expected series behind `@data`, found none")
            .hint("the copy looks unfinished"));
    }
    writer.finish(None, lines.parts.hash())
}

struct Lines<'o> {
    parts: Parts<'o>,
    line: u64,
    /// Where the text begins that was read last, and the text.
    start: u64,
    text: Vec<u8>,
}

impl Lines<'_> {
    /// The attributes that are declared before `@data`, and what pandas calls the frequency.
    fn declared(&mut self) -> Result<(Vec<Attribute>, Option<&'static str>)> {
        let (mut attributes, mut freq) = (Vec::<Attribute>::new(), None);
        loop {
            if !self.next_line()? {
                return Err(self
                    .wrong("expected `@data`, found the end of the file")
                    .hint("the copy looks unfinished"));
            }
            self.take([b'\n'; 3], MOST)?;
            let text = latin_1(self.text.trim_ascii());
            let mut words = text.split_ascii_whitespace();
            match (
                words.next().map(str::to_ascii_lowercase).as_deref(),
                words.next(),
                words.next(),
                words.next(),
            ) {
                (Some("@data"), None, ..) => {
                    self.line += 1;
                    return Ok((attributes, freq));
                }
                (Some("@attribute"), Some(name), Some(holds), None) => {
                    let Some(holds) = Holds::named(holds) else {
                        let what = format!("expected string, numeric or date, found {:?}", shown(holds));
                        return Err(self.wrong(what));
                    };
                    if attributes.iter().any(|known| known.name == name) {
                        return Err(self.wrong(format!("the attribute {name:?} is declared twice")));
                    }
                    if attributes.len() == MOST_ATTRIBUTES {
                        return Err(self.wrong(format!("more than {MOST_ATTRIBUTES} attributes")));
                    }
                    attributes.push(Attribute { name: name.to_string(), holds });
                }
                (Some("@attribute"), ..) => {
                    return Err(
                        self.wrong(format!("expected @attribute NAME TYPE, found {:?}", shown(&text)))
                    );
                }
                (Some("@frequency"), Some(name), None, None) if frequency(name).is_some() => {
                    freq = frequency(name);
                }
                (Some("@frequency"), ..) => windrow_core::warn!(
                    "{}: {:?} in line {} is no frequency of the archive: series have no freq beside them, @freq@ of windows says it",
                    self.parts.object().name(),
                    shown(&text),
                    self.line
                ),
                // Of the horizon and others nothing is needed.
                (Some(word), ..) if word.starts_with('@') => {}
                _ => {
                    let what = format!("expected a line that begins with `@`, found {:?}", shown(&text));
                    return Err(self.wrong(what).hint("series follow behind `@data`"));
                }
            }
            self.line += 1;
        }
    }

    /// Reads the series of a line.
    fn series(
        &mut self,
        attributes: &[Attribute],
        freq: Option<&str>,
        writer: &mut Writer<'_>,
    ) -> Result<()> {
        let start = self.parts.place();
        let mut extras = Map::new();
        for (found, attribute) in attributes.iter().enumerate() {
            if self.take([b':', b'\n', b'\n'], MOST)? != Some(b':') {
                return Err(self.miscounted(attributes.len(), &found.to_string()));
            }
            let text = latin_1(&self.text);
            let Some(value) = attribute.holds.value(&text) else {
                let (name, wanted) = (&attribute.name, attribute.holds.expected());
                return Err(self.wrong(format!("expected {wanted} as {name:?}, found {:?}", shown(&text))));
            };
            extras.insert(attribute.name.clone(), value);
        }
        let mut count = 0u64;
        loop {
            let end = self.take([b',', b':', b'\n'], MOST_OF_VALUE)?;
            if end == Some(b':') {
                return Err(self.miscounted(attributes.len(), "more"));
            }
            let text = self.text.trim_ascii();
            let literal = if text == GAP { Some(Literal::GAP) } else { Literal::of(text) };
            let Some(literal) = literal else {
                let found = match text {
                    [] => "nothing".to_string(),
                    text => format!("{:?}", shown(&latin_1(text))),
                };
                return Err(self
                    .wrong(format!("expected a number as value {count}, found {found}"))
                    .hint("a missing value is written as ?"));
            };
            writer.put_text(literal)?;
            count += 1;
            if end != Some(b',') {
                let text = |extras: &Map<String, Value>| {
                    if extras.is_empty() { String::new() } else { Value::Object(extras.clone()).to_string() }
                };
                let known = text(&extras).len() as u64;
                add_times(&mut extras, freq);
                writer.end_record_known(&text(&extras), known, count, start..self.parts.place())?;
                self.line += u64::from(end.is_some());
                return Ok(());
            }
        }
    }

    /// Goes to the first character of the next line that is neither blank nor a comment; `false` where there is none.
    fn next_line(&mut self) -> Result<bool> {
        loop {
            let ahead = self.parts.ahead()?;
            match ahead.first() {
                None => return Ok(false),
                Some(b'#') => {
                    let end = memchr::memchr(b'\n', ahead);
                    // The rest of a long comment may begin with anything.
                    let size = end.unwrap_or(ahead.len());
                    self.parts.consume(size);
                    while self.parts.ahead()?.first().is_some_and(|byte| *byte != b'\n') {
                        let ahead = self.parts.ahead()?;
                        let size = memchr::memchr(b'\n', ahead).unwrap_or(ahead.len());
                        self.parts.consume(size);
                    }
                }
                Some(space) if space.is_ascii_whitespace() => {
                    self.line += u64::from(*space == b'\n');
                    self.parts.consume(1);
                }
                Some(_) => return Ok(true),
            }
        }
    }

    fn take(&mut self, ends: [u8; 3], most: usize) -> Result<Option<u8>> {
        self.start = self.parts.place();
        let taken = self.parts.until(ends, most, &mut self.text);
        taken.map_err(|error| error.field(format!("line {}", self.line)))
    }

    fn miscounted(&self, wanted: usize, found: &str) -> Error {
        self.wrong(format!(
            "expected {wanted} attributes and values, each behind a `:`, found {found} attributes"
        ))
        .hint("the lines that begin with @attribute say how many there are")
    }

    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::corrupt(what)
            .at(self.parts.object().name())
            .byte(self.start)
            .field(format!("line {}", self.line))
    }
}

// As GluonTS's series have them, beside the attributes that say so; an attribute of the same name stays.
fn add_times(extras: &mut Map<String, Value>, freq: Option<&str>) {
    if let Some(start) = extras.get("start_timestamp").filter(|start| start.is_string()).cloned() {
        extras.entry("start").or_insert(start);
        if let Some(freq) = freq {
            extras.entry("freq").or_insert(freq.into());
        }
    }
}

// What pandas calls a frequency of the archive; weeks end on any day.
fn frequency(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "secondly" | "seconds" => "s",
        "4_seconds" => "4s",
        "10_seconds" => "10s",
        "minutely" => "min",
        "5_minutes" => "5min",
        "10_minutes" => "10min",
        "15_minutes" => "15min",
        "half_hourly" => "30min",
        "hourly" => "h",
        "daily" => "D",
        "weekly" => "W",
        "monthly" => "M",
        "quarterly" => "Q",
        "yearly" => "Y",
        _ => return None,
    })
}

// Every byte is a character.
fn latin_1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}
