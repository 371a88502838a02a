//! Where the objects of one array lie, found in its bytes from the first to the last.

use windrow_core::store::Object;
use windrow_core::{Error, Result};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Bytes read at once.
const PART: u64 = 1 << 20;

/// First byte and number of bytes of each object of the array that a file holds.
///
/// # Errors
/// `Corrupt` naming the byte where something else is; what reading says.
pub(super) fn objects(file: &dyn Object) -> Result<Vec<(u64, u64)>> {
    let mut scan = Scan::default();
    let mut scratch = Vec::new();
    let size = file.size();
    for start in (0..size).step_by(PART as usize) {
        let part = file.read(start, (size - start).min(PART) as usize, &mut scratch)?;
        for (at, &byte) in (start..).zip(part) {
            if let Err(expected) = scan.take(at, byte) {
                let rest = &part[(at - start) as usize..];
                let found = String::from_utf8_lossy(&rest[..rest.len().min(24)]);
                return Err(Error::corrupt(format!("expected {expected}, found {found:?}"))
                    .at(file.name())
                    .record(scan.found.len() as u64)
                    .byte(at)
                    .hint("each record is an object, and nothing follows the array"));
            }
        }
    }
    match scan.expects {
        Expects::End => Ok(scan.found),
        _ => Err(Error::corrupt(format!("the array does not end: {} whole objects", scan.found.len()))
            .at(file.name())
            .byte(size)
            .hint("the copy looks unfinished")),
    }
}

#[derive(Default)]
enum Expects {
    #[default]
    Array,
    /// The first object, or none.
    First,
    /// The end of the object that begins here.
    EndOf(u64),
    CommaOrEnd,
    Object,
    End,
}

/// An array, seen up to some byte.
#[derive(Default)]
struct Scan {
    expects: Expects,
    /// What is open in an object, itself included.
    depth: u64,
    in_string: bool,
    is_escaped: bool,
    found: Vec<(u64, u64)>,
}

impl Scan {
    // Takes the byte at `at`, or says what it should have been.
    fn take(&mut self, at: u64, byte: u8) -> Result<(), &'static str> {
        if let Expects::EndOf(start) = self.expects {
            if self.is_end(byte) {
                self.found.push((start, at + 1 - start));
                self.expects = Expects::CommaOrEnd;
            }
            return Ok(());
        }
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.expects = match (&self.expects, byte) {
            _ if is_space => return Ok(()),
            (Expects::Array, b'[') => Expects::First,
            (Expects::Array, byte) if BOM.get(at as usize) == Some(&byte) => Expects::Array,
            (Expects::First | Expects::Object, b'{') => {
                self.depth = 1;
                Expects::EndOf(at)
            }
            (Expects::First | Expects::CommaOrEnd, b']') => Expects::End,
            (Expects::CommaOrEnd, b',') => Expects::Object,
            (Expects::Array, _) => return Err("an array of objects"),
            (Expects::CommaOrEnd, _) => return Err("',' or ']'"),
            (Expects::End, _) => return Err("nothing more"),
            _ => return Err("an object"),
        };
        Ok(())
    }

    // Whether the object ends with this byte. Which bracket closes which is looked at where it is read.
    fn is_end(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = self.in_string,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
        self.depth == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::store::{Memory, Store};

    fn found(text: &str) -> Result<Vec<String>> {
        let store = Memory::new().with("a.json", text.as_bytes());
        let rows = objects(store.open("a.json")?.as_ref())?;
        Ok(rows.iter().map(|&(start, size)| text[start as usize..(start + size) as usize].into()).collect())
    }

    #[test]
    fn objects_are_found_whatever_stands_in_their_texts() {
        for (text, wanted) in [
            ("[]", vec![]),
            ("\u{feff} [ { } ,\n{\"a\": [1, {\"b\": 2}]}\r\n]\n", vec!["{ }", "{\"a\": [1, {\"b\": 2}]}"]),
            (r#"[{"a": "}]\"},{"}, {"\\": "[{"}]"#, vec![r#"{"a": "}]\"},{"}"#, r#"{"\\": "[{"}"#]),
        ] {
            assert_eq!(found(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_array_of_objects_is_named_by_record_and_byte() {
        for (text, record, byte) in [
            ("{}", 0, 0),
            ("[1]", 0, 1),
            ("[{}, 5]", 1, 5),
            ("[{},]", 1, 4),
            ("[{} {}]", 1, 4),
            ("[{}] [", 1, 5),
        ] {
            let error = found(text).unwrap_err();
            assert_eq!((error.place().record, error.place().byte), (Some(record), Some(byte)), "{text}");
        }
        for text in ["", "[", "[{}", "[{},", "[{\"a\": \"}]"] {
            let error = found(text).unwrap_err();
            assert!(error.message().contains("does not end"), "{error}");
            assert_eq!(error.place().byte, Some(text.len() as u64));
        }
    }
}
