//! Where the documents of `.ds` files end: u64 after u64 in `.ds.index`, in token IDs, read by position.

use std::sync::Arc;

use windrow_core::store::Object;
use windrow_core::{DType, Error, Result};

use crate::firsts::Firsts;
use crate::token_runs::{Run, Runs};
use windrow_core::format::data_files::{CHECKED_AT_ONCE, DataFiles};

/// Bytes of an end.
const WIDTH: u64 = 8;
/// Ends that are looked at in one go.
const AT_ONCE: u64 = 64 << 10;

/// What an index says of its file as a whole.
pub(super) struct Ends {
    count: u64,
    last: u64,
}

impl Ends {
    /// Those in an index, each compared with the one before; of very many, the last one is read.
    ///
    /// # Errors
    /// `Corrupt` when ends go back.
    pub(super) fn of(indices: &DataFiles, file: usize) -> Result<Ends> {
        let wrong = |what: String, byte: u64| Error::corrupt(what).at(indices.name(file)).byte(byte);
        let size = indices.size(file)?;
        if !size.is_multiple_of(WIDTH) {
            let what = format!("{size} bytes are not whole ends of {WIDTH} bytes");
            return Err(wrong(what, size - size % WIDTH).hint("the copy looks unfinished"));
        }
        let count = size / WIDTH;
        let begin = if count <= CHECKED_AT_ONCE { 0 } else { count - 1 };
        let (mut last, mut bytes) = (0, Vec::new());
        for first in (begin..count).step_by(AT_ONCE as usize) {
            bytes.resize(((count - first).min(AT_ONCE) * WIDTH) as usize, 0);
            indices.peek(file, first * WIDTH, &mut bytes)?;
            for (at, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
                let end = u64::from_le_bytes(*word);
                if end < last {
                    let what = format!("a document ends at token {end}, the one before at {last}");
                    return Err(wrong(what, (first + at as u64) * WIDTH));
                }
                last = end;
            }
        }
        Ok(Ends { count, last })
    }
}

/// The documents of some files.
pub(super) struct Documents {
    /// None where a file is a record.
    indices: Arc<DataFiles>,
    firsts: Firsts,
    /// Token IDs of each file.
    tokens: Vec<u64>,
}

impl Documents {
    /// Those of `files`, whose token IDs are of this dtype; `ends` is what each index says.
    ///
    /// # Errors
    /// `Corrupt` when the last document does not end with its file.
    pub(super) fn open(
        files: &DataFiles,
        indices: Arc<DataFiles>,
        ends: &[Ends],
        dtype: DType,
    ) -> Result<Documents> {
        let mut documents = Documents { indices, firsts: Firsts::new(), tokens: Vec::new() };
        for file in 0..files.count() {
            let (size, width) = (files.size(file)?, dtype.size() as u64);
            if size % width != 0 {
                return Err(Error::corrupt(format!(
                    "the file has {size} bytes: not whole {dtype} IDs of {width} bytes"
                ))
                .at(files.name(file))
                .byte(size - size % width)
                .hint("the copy looks unfinished"));
            }
            let tokens = size / width;
            if let Some(Ends { last, count }) = ends.get(file).filter(|ends| ends.last != tokens) {
                return Err(Error::corrupt(format!(
                    "the last document ends at token {last}, the file has {tokens}"
                ))
                .at(documents.indices.name(file))
                .byte(count * WIDTH)
                .hint("the copy looks unfinished"));
            }
            documents.firsts.push(ends.get(file).map_or(1, |ends| ends.count));
            documents.tokens.push(tokens);
        }
        Ok(documents)
    }

    /// Token IDs of a file.
    pub(super) fn tokens(&self, file: usize) -> u64 {
        self.tokens.get(file).copied().unwrap_or(0)
    }
}

impl Runs for Documents {
    fn count(&self) -> u64 {
        self.firsts.count()
    }

    fn run(&self, record: u64) -> Result<Run> {
        let (file, number) = self.firsts.find(record)?;
        if self.indices.count() == 0 {
            return Ok(Run { file, start: 0, len: self.tokens(file) });
        }
        let index = self.indices.get(file)?;
        let start = if number == 0 { 0 } else { end(index, number - 1)? };
        let end = end(index, number)?;
        if start <= end && end <= self.tokens(file) {
            Ok(Run { file, start, len: end - start })
        } else {
            Err(Error::corrupt(format!("a document from token {start} to {end} of {}", self.tokens(file)))
                .at(index.name())
                .byte(number * WIDTH))
        }
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
pub(super) fn width(indices: &DataFiles, file: usize, ends: &Ends, size: u64) -> Result<Option<DType>> {
    let Ends { count, last } = *ends;
    if count == 0 {
        return Ok(None);
    }
    let is = |width: u64| last.checked_mul(width) == Some(size);
    match (is(2), is(4)) {
        (true, false) => Ok(Some(DType::U16)),
        (false, true) => Ok(Some(DType::U32)),
        (true, true) => Ok(None),
        (false, false) => {
            Err(Error::corrupt(format!("the last document ends at token {last}, the file has {size} bytes"))
                .at(indices.name(file))
                .hint("a token ID has 2 or 4 bytes; the copy looks unfinished"))
        }
    }
}
