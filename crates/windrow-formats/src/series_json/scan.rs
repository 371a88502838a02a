//! JSON as a stream of values, without a tree: what Python's reader accepts, so NaN and Infinity too. Strings are left
//! to serde_json; it takes no NaN, and says no byte, so numbers and brackets are read here.

use std::borrow::Cow;

use windrow_core::{Error, Result};

use crate::converted::{Event, MOST_DEPTH, Sink};

/// A text and a place in it.
pub(crate) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    /// Where the text begins in its file.
    base: u64,
    file: &'a str,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a [u8], base: u64, file: &'a str) -> Self {
        Scan { text, at: 0, base, file }
    }

    /// Tells one value, with all it holds.
    ///
    /// # Errors
    /// `Corrupt` naming the byte that is not JSON, or what the sink says.
    pub(crate) fn value(&mut self, sink: &mut impl Sink) -> Result<()> {
        // What is open: an object, or a list.
        let mut open: Vec<bool> = Vec::new();
        loop {
            self.space();
            let start = self.place();
            match self.peek() {
                Some(bracket @ (b'[' | b'{')) => {
                    if open.len() == MOST_DEPTH {
                        return Err(self
                            .wrong("a value that nests less")
                            .hint(format!("at most {MOST_DEPTH} deep")));
                    }
                    let is_dict = bracket == b'{';
                    self.at += 1;
                    sink.event(if is_dict { Event::Dict } else { Event::List }, start)?;
                    open.push(is_dict);
                    self.space();
                    let empty = self.peek() == Some(if is_dict { b'}' } else { b']' });
                    if !empty {
                        if is_dict {
                            self.key(sink)?;
                        }
                        continue;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.number(sink)?,
                Some(b'"') => {
                    let text = self.string()?;
                    sink.event(Event::Text(&text), start)?;
                }
                _ => {
                    let event = self.word()?;
                    sink.event(event, start)?;
                }
            }
            // A value has ended: so may what it is in.
            loop {
                self.space();
                let Some(&is_dict) = open.last() else { return Ok(()) };
                let place = self.place();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if is_dict {
                            self.space();
                            self.key(sink)?;
                        }
                        break;
                    }
                    Some(b'}') if is_dict => sink.event(Event::DictEnd, place)?,
                    Some(b']') if !is_dict => sink.event(Event::ListEnd, place)?,
                    _ => return Err(self.wrong(if is_dict { "',' or '}'" } else { "',' or ']'" })),
                }
                self.at += 1;
                open.pop();
            }
        }
    }

    /// Checks that nothing but space follows.
    ///
    /// # Errors
    /// `Corrupt` naming the byte that does.
    pub(super) fn end(&mut self) -> Result<()> {
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self
                .wrong("nothing more")
                .hint("several values in one file: write one a line into a .jsonl")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn place(&self) -> Option<u64> {
        Some(self.base + self.at as u64)
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn wrong(&self, wanted: &str) -> Error {
        let rest = self.rest();
        let found = match rest {
            [] => "the end of the text".to_string(),
            _ => format!("{:?}", String::from_utf8_lossy(&rest[..rest.len().min(24)])),
        };
        Error::corrupt(format!("expected {wanted}, found {found}"))
            .at(self.file)
            .byte(self.base + self.at as u64)
            .hint(if rest.is_empty() { "the copy looks unfinished" } else { "it is not JSON" })
    }

    fn key(&mut self, sink: &mut impl Sink) -> Result<()> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a key in quotes"));
        }
        let place = self.place();
        let key = self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.wrong("':'"));
        }
        self.at += 1;
        sink.event(Event::Key(&key), place)
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        let rest = self.rest();
        let mut end = 1;
        loop {
            match memchr::memchr2(b'"', b'\\', rest.get(end..).unwrap_or_default()) {
                None => return Err(self.wrong("a string with an end")),
                Some(at) if rest.get(end + at) == Some(&b'"') => {
                    end += at + 1;
                    break;
                }
                Some(at) => end += at + 2,
            }
        }
        let quoted = &rest[..end];
        #[derive(serde::Deserialize)]
        struct Text<'t>(#[serde(borrow)] Cow<'t, str>);
        let Text(text) =
            serde_json::from_slice(quoted).map_err(|cause| self.wrong("a string").caused_by(cause))?;
        self.at += end;
        Ok(text)
    }

    fn word(&mut self) -> Result<Event<'static>> {
        let words: [(&[u8], Event<'static>); 5] = [
            (b"true", Event::Bool(true)),
            (b"false", Event::Bool(false)),
            (b"null", Event::Null),
            (b"NaN", Event::Float(f64::NAN)),
            (b"Infinity", Event::Float(f64::INFINITY)),
        ];
        let rest = self.rest();
        match words.iter().find(|(word, _)| rest.starts_with(word)) {
            Some((word, event)) => {
                self.at += word.len();
                Ok(*event)
            }
            None => Err(self.wrong("a value")),
        }
    }

    fn number(&mut self, sink: &mut impl Sink) -> Result<()> {
        let rest = self.rest();
        let place = self.place();
        if rest.starts_with(b"-Infinity") {
            self.at += b"-Infinity".len();
            return sink.event(Event::Float(f64::NEG_INFINITY), place);
        }
        let Some((size, is_whole)) = shape(rest) else { return Err(self.wrong("a number")) };
        // Digits, signs, a point, an e: ASCII.
        let text =
            std::str::from_utf8(&rest[..size]).map_err(|cause| self.wrong("a number").caused_by(cause))?;
        let event = if is_whole {
            text.parse().map_or(Event::Big(text), Event::Int)
        } else {
            match text.parse::<f64>().map_err(|_| self.wrong("a number"))? {
                number if number.is_infinite() => Event::Overflow(number),
                number => Event::Float(number),
            }
        };
        self.at += size;
        sink.event(event, place)
    }
}

/// Bytes of the number that a text begins with, and whether it is written as a whole one.
fn shape(text: &[u8]) -> Option<(usize, bool)> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len())
    };
    let start = usize::from(text.first() == Some(&b'-'));
    let mut end = digits(start);
    let leading_zero = text.get(start) == Some(&b'0') && end > start + 1;
    if end == start || leading_zero {
        return None;
    }
    let mut is_whole = true;
    if text.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        (fraction > end + 1).then_some(())?;
        (end, is_whole) = (fraction, false);
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        (exponent > end + 1 + sign).then_some(())?;
        (end, is_whole) = (exponent, false);
    }
    Some((end, is_whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Told(String);

    impl Sink for Told {
        fn event(&mut self, event: Event<'_>, _byte: Option<u64>) -> Result<()> {
            self.0 += &match event {
                Event::List => "[ ".to_string(),
                Event::ListEnd => "] ".to_string(),
                Event::Dict => "{ ".to_string(),
                Event::DictEnd => "} ".to_string(),
                Event::Key(key) => format!("{key}: "),
                Event::Int(number) => format!("{number} "),
                Event::Float(number) => format!("{number:?} "),
                Event::Overflow(number) => format!("beyond {number} "),
                Event::Big(text) => format!("big {text} "),
                Event::Bool(flag) => format!("{flag} "),
                Event::Text(text) => format!("{text:?} "),
                Event::Null => "null ".to_string(),
                Event::Stored(..) | Event::Empty(_) => panic!("numbers in JSON have no dtype"),
            };
            Ok(())
        }
    }

    fn told(text: &str) -> Result<String> {
        let mut told = Told(String::new());
        let mut scan = Scan::new(text.as_bytes(), 100, "f");
        scan.value(&mut told)?;
        scan.end()?;
        Ok(told.0.trim_end().to_string())
    }

    #[test]
    fn values_are_told_in_order() {
        for (text, wanted) in [
            ("[1, -2,3.5 , 1e3]", "[ 1 -2 3.5 1000.0 ]"),
            ("[]", "[ ]"),
            ("{}", "{ }"),
            (" [ [ ] , { } ] ", "[ [ ] { } ]"),
            (
                r#"{"a":1,"b":[true,null],"c":{"d":"x\n\u00e9"}}"#,
                "{ a: 1 b: [ true null ] c: { d: \"x\\né\" } }",
            ),
            ("[NaN, Infinity, -Infinity]", "[ NaN inf -inf ]"),
            (
                "[9223372036854775807, 9223372036854775808, -0]",
                "[ 9223372036854775807 big 9223372036854775808 0 ]",
            ),
            ("[1E+2, 0.5e-1, 0]", "[ 100.0 0.05 0 ]"),
            ("[1e400, -1e400, 1e308]", "[ beyond inf beyond -inf 1e308 ]"),
        ] {
            assert_eq!(told(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_named_by_its_byte() {
        for (text, byte) in [
            ("", 0),
            ("[", 1),
            ("[1", 2),
            ("[1,", 3),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("[1}", 2),
            ("{1: 2}", 1),
            ("{\"a\" 1}", 5),
            ("{\"a\": 1,}", 8),
            ("[\"a]", 1),
            ("[\"\\x\"]", 1),
            ("[01]", 1),
            ("[1.]", 1),
            ("[.5]", 1),
            ("[1e]", 1),
            ("[-]", 1),
            ("[+1]", 1),
            ("[nan]", 1),
            ("[1]]", 3),
            ("[1] x", 4),
        ] {
            let error = told(text).unwrap_err();
            assert_eq!(error.place().byte, Some(100 + byte), "{text}: {error}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(told(&deep).unwrap_err().place().byte, Some(100 + MOST_DEPTH as u64));
    }
}
