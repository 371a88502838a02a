//! The index `.idx`: how long each sequence is, where it begins, and which sequences make a document. Read where it lies.

use std::sync::Arc;

use windrow_core::store::Object;
use windrow_core::{DType, Error, Result};

use windrow_core::format::data_files::CHECKED_AT_ONCE;

pub(crate) const MAGIC: [u8; 9] = *b"MMIDIDX\0\0";
pub(crate) const VERSION: u64 = 1;
/// Magic, version, dtype, and the counts of sequences and of document borders.
const HEADER: u64 = 34;

/// The dtypes that an index can name, each with its code.
const CODES: [(u8, DType); 8] = [
    (1, DType::U8),
    (2, DType::I8),
    (3, DType::I16),
    (4, DType::I32),
    (5, DType::I64),
    (6, DType::F64),
    (7, DType::F32),
    (8, DType::U16),
];

/// The code of a dtype, where it has one.
pub(crate) fn code(dtype: DType) -> Option<u8> {
    CODES.iter().find(|(_, known)| *known == dtype).map(|(code, _)| *code)
}

/// An index, its counts compared with its size.
pub(super) struct Index {
    object: Arc<dyn Object>,
    pub(super) dtype: DType,
    pub(super) sequences: u64,
    /// Borders between documents: one more than there are documents.
    borders: u64,
    /// Each sequence has a mode.
    has_modes: bool,
    /// Some document is not one sequence.
    has_documents: bool,
    /// Length of every sequence, where all are known to be equal.
    pub(super) uniform: Option<u64>,
}

impl Index {
    /// Reads the header. The borders of documents are not looked at where the data is to be trusted.
    ///
    /// # Errors
    /// `Corrupt` when it is not an index, or its counts do not fit its size; `Unsupported` for another version.
    pub(super) fn open(object: Arc<dyn Object>, trust: bool) -> Result<Index> {
        let wrong = |what: String| Error::corrupt(what).at(object.name());
        let unfinished =
            |e: Error| e.hint("the copy looks unfinished; @format=tokens@ reads the .bin without it");
        if object.size() < HEADER {
            let what = format!("an index of {} bytes, expected at least {HEADER}", object.size());
            return Err(unfinished(wrong(what)));
        }
        let mut scratch = Vec::new();
        let head = object.read(0, HEADER as usize, &mut scratch)?;
        if head[..9] != MAGIC {
            let found = String::from_utf8_lossy(&head[..9]).into_owned();
            return Err(wrong(format!("expected an index that starts \"MMIDIDX\", found {found:?}"))
                .byte(0)
                .hint(
                    "indexes of other kinds are written again by Megatron's preprocess_data; @format=tokens@ reads the \
                     .bin without one",
                ));
        }
        let word = |at: usize| number(&head[at..at + 8]);
        if word(9) != VERSION {
            let what = format!("an index of version {}; version {VERSION} is read", word(9));
            return Err(Error::unsupported(what).at(object.name()).byte(9));
        }
        let found = CODES.iter().find(|(code, _)| *code == head[17]);
        let Some((_, dtype)) = found else {
            return Err(wrong(format!("dtype code {}, expected 1 to 8", head[17])).byte(17));
        };
        let (sequences, borders) = (word(18), word(26));
        let without_modes = sequences
            .checked_mul(12)
            .and_then(|size| size.checked_add(borders.checked_mul(8)?)?.checked_add(HEADER));
        let has_modes = match without_modes {
            Some(size) if size == object.size() => false,
            Some(size) if size.checked_add(sequences) == Some(object.size()) => true,
            _ => {
                return Err(unfinished(wrong(format!(
                    "the index has {} bytes, which does not fit {sequences} sequences and {borders} borders of documents",
                    object.size()
                ))));
            }
        };
        let mut index = Index {
            dtype: *dtype,
            sequences,
            borders,
            has_modes,
            has_documents: borders.checked_sub(1) != Some(sequences),
            uniform: None,
            object: object.clone(),
        };
        if !trust {
            index.check_borders()?;
        }
        Ok(index)
    }

    // Borders begin with 0, end with the number of sequences, and never go back.
    fn check_borders(&mut self) -> Result<()> {
        let wrong = |border: u64, found: u64, expected: String| {
            Error::corrupt(format!(
                "border {border} of the documents is at sequence {found}, expected {expected}"
            ))
            .at(self.object.name())
            .byte(self.border_at(border))
            .hint("@trust=true@ reads the sequences without their documents' borders")
        };
        if self.borders == 0 {
            return match self.sequences {
                0 => Ok(()),
                n => Err(Error::corrupt(format!("{n} sequences, but no borders of documents"))
                    .at(self.object.name())),
            };
        }
        let last = self.borders - 1;
        for (border, expected) in [(0, 0), (last, self.sequences)] {
            match self.border(border)? {
                found if found == expected => {}
                found => return Err(wrong(border, found, expected.to_string())),
            }
        }
        if self.borders > CHECKED_AT_ONCE {
            return Ok(());
        }
        let (mut before, mut is_plain) = (0, !self.has_documents);
        for border in 0..self.borders {
            let found = self.border(border)?;
            if found < before || found > self.sequences {
                return Err(wrong(border, found, format!("{before} to {}", self.sequences)));
            }
            is_plain &= found == border;
            before = found;
        }
        self.has_documents = !is_plain;
        Ok(())
    }

    /// Checks the place of every sequence of a small index in a file of `size` bytes; those of a large one are checked
    /// when they are read.
    ///
    /// # Errors
    /// As [`Index::place`].
    pub(super) fn check_places(&mut self, size: u64) -> Result<()> {
        if self.sequences > CHECKED_AT_ONCE {
            return Ok(());
        }
        let mut all = None;
        for sequence in 0..self.sequences {
            let length = self.place(sequence, size)?.1;
            all = Some(if all.is_none_or(|all| all == Some(length)) { Some(length) } else { None });
        }
        self.uniform = all.flatten();
        Ok(())
    }

    /// A sequence's first byte in a file of `size` bytes, and how many numbers it has.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` when it leaves the file.
    pub(super) fn place(&self, sequence: u64, size: u64) -> Result<(u64, u64)> {
        let length = self.length(sequence)?;
        let at = HEADER + self.sequences * 4 + sequence * 8;
        let mut scratch = Vec::new();
        let start = number(self.object.read(at, 8, &mut scratch)?);
        let end = length.checked_mul(self.dtype.size() as u64).and_then(|bytes| start.checked_add(bytes));
        match end {
            Some(end) if end <= size => Ok((start, length)),
            _ => Err(Error::corrupt(format!(
                "{length} {} numbers from byte {}, but the file ends at byte {size}",
                self.dtype, start as i64
            ))
            .at(self.object.name())
            .record(sequence)
            .byte(at)
            .hint("index and data do not belong together, or the copy looks unfinished")),
        }
    }

    /// How many numbers a sequence has.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` for less than none.
    pub(super) fn length(&self, sequence: u64) -> Result<u64> {
        let mut length = [0];
        self.lengths(sequence, &mut length)?;
        Ok(length[0])
    }

    /// The lengths of consecutive sequences.
    ///
    /// # Errors
    /// As [`Index::length`].
    pub(super) fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        if first.checked_add(out.len() as u64).is_none_or(|end| end > self.sequences) {
            return Err(Error::out_of_range("record", first.max(self.sequences), self.sequences));
        }
        let at = HEADER + first * 4;
        let mut scratch = Vec::new();
        let bytes = self.object.read(at, out.len() * 4, &mut scratch)?;
        let mut all = 0;
        for (length, stored) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *length = u32::from_le_bytes(*stored).into();
            all |= *length;
        }
        if all > i32::MAX as u64 {
            let bad = out.iter().zip(first..).find(|(length, _)| **length > i32::MAX as u64);
            let (length, sequence) = bad.map_or((0, first), |(length, sequence)| (*length, sequence));
            Err(Error::corrupt(format!("a sequence of {} numbers", length as u32 as i32))
                .at(self.object.name())
                .record(sequence)
                .byte(HEADER + sequence * 4))
        } else {
            Ok(())
        }
    }

    /// The document that a sequence belongs to, where some document is not one sequence.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn document(&self, sequence: u64) -> Result<Option<u64>> {
        if !self.has_documents || self.borders == 0 {
            return Ok(None);
        }
        // The last border at or before the sequence: documents without a sequence have their border there, too.
        let (mut low, mut high) = (0, self.borders);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.border(middle)? <= sequence { low = middle } else { high = middle }
        }
        Ok(Some(low))
    }

    /// A sequence's mode, where sequences have one.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn mode(&self, sequence: u64) -> Result<Option<i8>> {
        if !self.has_modes {
            return Ok(None);
        }
        let mut scratch = Vec::new();
        let at = self.border_at(self.borders) + sequence;
        Ok(self.object.read(at, 1, &mut scratch)?.first().map(|byte| *byte as i8))
    }

    fn border_at(&self, border: u64) -> u64 {
        HEADER + self.sequences * 12 + border * 8
    }

    fn border(&self, border: u64) -> Result<u64> {
        let mut scratch = Vec::new();
        Ok(number(self.object.read(self.border_at(border), 8, &mut scratch)?))
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
