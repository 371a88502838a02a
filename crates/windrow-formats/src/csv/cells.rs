//! The cells of a table, one after the other: quotes, line ends and byte order mark are csv-core's, which always finds some
//! reading; what has none is refused here.

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};
use windrow_core::{Error, Result};

use super::times::Wrong;
use crate::converted::Parts;

/// What mends text in another encoding.
pub(super) const NOT_UTF8: &str =
    "convert it, from Latin-1 for example: iconv -f ISO-8859-1 -t UTF-8 OLD > NEW";
/// Bytes of one cell: a quote that nobody closed makes one of all that follows.
const MOST: usize = 16 << 20;

/// Reads cells.
pub(super) struct Cells<'o> {
    parts: Parts<'o>,
    reader: Reader,
    /// The cell that was read last.
    cell: Vec<u8>,
    size: usize,
    start: u64,
    is_first: bool,
    ends_line: bool,
    /// The file has ended, and a line end was added to it.
    has_ended: bool,
}

impl<'o> Cells<'o> {
    pub(super) fn new(parts: Parts<'o>, delimiter: u8) -> Self {
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        Cells {
            parts,
            reader,
            cell: vec![0; 256],
            size: 0,
            start: 0,
            is_first: true,
            ends_line: true,
            has_ended: false,
        }
    }

    /// Reads the next cell, and says whether it is the last one of its line; `None` behind the last line. Blank lines have
    /// none.
    ///
    /// # Errors
    /// `Corrupt` for a quote that is not closed, or a cell beyond any size; what reading says.
    pub(super) fn next(&mut self) -> Result<Option<bool>> {
        (self.start, self.is_first) = (self.parts.place(), self.ends_line);
        self.size = 0;
        loop {
            let ahead = self.parts.ahead()?;
            let is_end = ahead.is_empty();
            // With a line end behind it, a file ends between two lines, or in a quote.
            let input = if !is_end {
                ahead
            } else if self.has_ended {
                &b""[..]
            } else {
                b"\n"
            };
            let (result, read, written) = self.reader.read_field(input, &mut self.cell[self.size..]);
            self.size += written;
            if !is_end {
                self.parts.consume(read);
            }
            match result {
                ReadFieldResult::InputEmpty => self.has_ended = is_end,
                ReadFieldResult::OutputFull if self.cell.len() >= MOST => {
                    return Err(self.wrong(
                        format!("a cell of more than {MOST} bytes"),
                        "a quote in it may not be closed",
                    ));
                }
                ReadFieldResult::OutputFull => self.cell.resize(self.cell.len() * 2, 0),
                ReadFieldResult::Field { .. } if is_end && self.has_ended => {
                    return Err(self.wrong(
                        "a quote is open at the end of the file",
                        "the copy looks unfinished, or the quote should be doubled",
                    ));
                }
                ReadFieldResult::Field { record_end } => {
                    (self.has_ended, self.ends_line) = (is_end, record_end);
                    return Ok(Some(record_end));
                }
                ReadFieldResult::End => return Ok(None),
            }
        }
    }

    /// What it holds.
    pub(super) fn cell(&self) -> &[u8] {
        &self.cell[..self.size]
    }

    /// What a person calls the file.
    pub(super) fn file(&self) -> &str {
        self.parts.object().name()
    }

    /// The number of the line that it begins in.
    pub(super) fn line(&self) -> u64 {
        self.begin(self.start, self.is_first).map_or(0, |(line, _)| line)
    }

    /// The byte at which it begins; of the first one of a line what is between the lines comes before it.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// The error of a line.
    pub(super) fn wrong_line(&self, wrong: Wrong) -> Error {
        let other = wrong.other.and_then(|start| self.begin(start, true).ok());
        let other = other.map_or(String::new(), |(line, _)| format!(" (line {line})"));
        let what = format!("{}{other}", wrong.what);
        let error = if wrong.is_corrupt { Error::corrupt(what) } else { Error::config(what) };
        let error = error.at(self.file()).hint(wrong.hint);
        match self.begin(wrong.place, true) {
            Ok((line, byte)) => error.byte(byte).field(format!("line {line}")),
            Err(_) => error.byte(wrong.place),
        }
    }

    /// The error that something is wrong with the cell that was read last.
    pub(super) fn wrong(&self, what: impl Into<String>, hint: &str) -> Error {
        let error = Error::corrupt(what).at(self.file()).hint(hint);
        match self.begin(self.start, self.is_first) {
            Ok((line, byte)) => error.byte(byte).field(format!("line {line}")),
            Err(_) => error.byte(self.start),
        }
    }

    /// The hash of the file, where all of it was read.
    pub(super) fn hash(&self) -> u64 {
        self.parts.hash()
    }

    // The line in which the cell begins, and its first byte: of the first one of a line, what is between the lines was read
    // with it.
    fn begin(&self, start: u64, is_first: bool) -> Result<(u64, u64)> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let object = self.parts.object();
        let (mut line, mut before, mut at) = (1, 0, 0);
        let mut scratch = Vec::new();
        while at < object.size() {
            let size = (object.size() - at).min(64 << 10) as usize;
            for (place, byte) in (at..).zip(object.read(at, size, &mut scratch)?) {
                let is_mark = place < 3 && MARK.get(place as usize) == Some(byte);
                let is_between = is_first && (is_mark || matches!(byte, b'\r' | b'\n'));
                if place >= start && !is_between {
                    return Ok((line, place));
                }
                line += u64::from(*byte == b'\r' || *byte == b'\n' && before != b'\r');
                before = *byte;
            }
            at += size as u64;
        }
        Ok((line, start))
    }
}
