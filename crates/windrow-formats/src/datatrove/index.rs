//! Where the documents of `.ds` files end: u64 after u64 in `.ds.index`, in token IDs, read by position.

use windrow_core::source::Extras;
use windrow_core::store::Object;
use windrow_core::{DType, Error, Result};

use crate::data_files::{CHECKED_AT_ONCE, DataFiles};
use crate::token_runs::{Run, Runs};

/// Bytes of an end.
const WIDTH: u64 = 8;
/// Ends that are looked at in one go.
const AT_ONCE: u64 = 64 << 10;

/// The documents of some files.
pub(super) struct Documents {
    /// The indices, opened; none where a file is a record.
    indices: Vec<std::sync::Arc<dyn Object>>,
    /// The number of the first document of each file, and of all documents at the end.
    firsts: Vec<u64>,
    /// Token IDs of each file.
    tokens: Vec<u64>,
}

impl Documents {
    /// Those of `files`, whose token IDs are of this dtype.
    ///
    /// # Errors
    /// `Corrupt` when ends go back, or do not end with the file.
    pub(super) fn open(files: &DataFiles, indices: &DataFiles, dtype: DType) -> Result<Documents> {
        let mut documents = Documents { indices: Vec::new(), firsts: vec![0], tokens: Vec::new() };
        for file in 0..files.count() {
            let (size, width) = (files.get(file)?.size(), dtype.size() as u64);
            if size % width != 0 {
                return Err(Error::corrupt(format!(
                    "the file has {size} bytes: not whole {dtype} IDs of {width} bytes"
                ))
                .at(files.name(file))
                .byte(size - size % width)
                .hint("the copy looks unfinished"));
            }
            let tokens = size / width;
            let count = match indices.count() {
                0 => 1,
                _ => documents.add(indices.shared(file)?, tokens)?,
            };
            let first = documents.firsts.last().copied().unwrap_or(0);
            documents.firsts.push(first + count);
            documents.tokens.push(tokens);
        }
        Ok(documents)
    }

    // The number of documents that an index names, compared with the token IDs of its file.
    fn add(&mut self, index: std::sync::Arc<dyn Object>, tokens: u64) -> Result<u64> {
        let wrong = |what: String, byte: u64| Error::corrupt(what).at(index.name()).byte(byte);
        if !index.size().is_multiple_of(WIDTH) {
            return Err(wrong(
                format!("{} bytes are not whole ends of {WIDTH} bytes", index.size()),
                index.size() - index.size() % WIDTH,
            )
            .hint("the copy looks unfinished"));
        }
        let count = index.size() / WIDTH;
        let last = if count == 0 { 0 } else { end(index.as_ref(), count - 1)? };
        if last != tokens {
            return Err(wrong(
                format!("the last document ends at token {last}, the file has {tokens}"),
                index.size(),
            )
            .hint("the copy looks unfinished"));
        }
        if count <= CHECKED_AT_ONCE {
            let (mut before, mut scratch) = (0, Vec::new());
            for first in (0..count).step_by(AT_ONCE as usize) {
                let n = (count - first).min(AT_ONCE);
                let bytes = index.read(first * WIDTH, (n * WIDTH) as usize, &mut scratch)?;
                for (at, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
                    let end = u64::from_le_bytes(*word);
                    if end < before {
                        let byte = (first + at as u64) * WIDTH;
                        return Err(wrong(
                            format!("a document ends at token {end}, the one before at {before}"),
                            byte,
                        ));
                    }
                    before = end;
                }
            }
        }
        self.indices.push(index);
        Ok(count)
    }

    /// Token IDs of a file.
    pub(super) fn tokens(&self, file: usize) -> u64 {
        self.tokens.get(file).copied().unwrap_or(0)
    }
}

impl Runs for Documents {
    fn count(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(0)
    }

    fn run(&self, record: u64) -> Result<Run> {
        let file = self.firsts.partition_point(|first| *first <= record) - 1;
        let Some(index) = self.indices.get(file) else {
            return Ok(Run { file, start: 0, len: self.tokens(file) });
        };
        let number = record - self.firsts[file];
        let start = if number == 0 { 0 } else { end(index.as_ref(), number - 1)? };
        let end = end(index.as_ref(), number)?;
        match start <= end && end <= self.tokens(file) {
            true => Ok(Run { file, start, len: end - start }),
            false => Err(Error::corrupt(format!(
                "a document from token {start} to {end} of {}",
                self.tokens(file)
            ))
            .at(index.name())
            .byte(number * WIDTH)),
        }
    }

    fn metadata(&self, _record: u64) -> Result<Extras> {
        Ok(Extras::new())
    }
}

fn end(index: &dyn Object, number: u64) -> Result<u64> {
    let mut scratch = Vec::new();
    let bytes = index.read(number * WIDTH, WIDTH as usize, &mut scratch)?;
    let word =
        bytes.first_chunk::<8>().ok_or_else(|| Error::corrupt("an end is cut short").at(index.name()))?;
    Ok(u64::from_le_bytes(*word))
}

/// The dtype that follows from the last end and the size of the file; none where no document is in it.
///
/// # Errors
/// `Corrupt` when neither 2 nor 4 bytes a token ID fit.
pub(super) fn width(index: &dyn Object, size: u64) -> Result<Option<DType>> {
    let count = index.size() / WIDTH;
    if count == 0 {
        return Ok(None);
    }
    let last = end(index, count - 1)?;
    let is = |width: u64| last.checked_mul(width) == Some(size);
    match (is(2), is(4)) {
        (true, false) => Ok(Some(DType::U16)),
        (false, true) => Ok(Some(DType::U32)),
        (true, true) => Ok(None),
        (false, false) => {
            Err(Error::corrupt(format!("the last document ends at token {last}, the file has {size} bytes"))
                .at(index.name())
                .hint("a token ID has 2 or 4 bytes; the copy looks unfinished"))
        }
    }
}
