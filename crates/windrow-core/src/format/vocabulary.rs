//! Ids against a vocabulary: every id of a source below its size, made by the tokenizer that is meant.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::SideFile;
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Span, Values};
use crate::source::Source;

/// Values that a thread looks at before it takes the next part.
const PART: u64 = 1 << 20;

/// Checks that every id of a source is in `0..vocab_size`, on as many threads as there are cores.
///
/// # Errors
/// `Corrupt` naming file, record, byte and id; what reading says.
pub(super) fn check_ids(source: &dyn Source, vocab_size: u64) -> Result<()> {
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let work = || {
        let mut scratch = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let record = next.fetch_add(1, Ordering::Relaxed);
            if record >= source.len() {
                break;
            }
            let checked = check_record(source, record, vocab_size, &mut scratch);
            if checked.is_err() {
                stop.store(true, Ordering::Relaxed);
                return checked;
            }
        }
        Ok(())
    };
    // One stream of many gigabytes is the usual case: its parts are shared out instead of its records.
    if source.len() < 64 {
        return (0..source.len()).try_for_each(|record| check_long(source, record, vocab_size));
    }
    on_all_cores(&work)
}

fn check_long(source: &dyn Source, record: u64, vocab_size: u64) -> Result<()> {
    let length = source.length(record)?;
    let next = AtomicU64::new(0);
    let work = || {
        let mut scratch = Vec::new();
        loop {
            let start = next.fetch_add(PART, Ordering::Relaxed);
            if start >= length {
                return Ok(());
            }
            let span = Span { record, start, len: PART.min(length - start) };
            check_span_ids(source, span, vocab_size, &mut scratch)?;
        }
    };
    on_all_cores(&work)
}

// Scoped threads: none outlives the call.
fn on_all_cores(work: &(impl Fn() -> Result<()> + Sync)) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut found = work();
        for other in others {
            let theirs = other
                .join()
                .unwrap_or_else(|_| Err(Error::corrupt("a thread panicked while it checked ids")));
            found = found.and(theirs);
        }
        found
    })
}

fn check_record(source: &dyn Source, record: u64, vocab_size: u64, scratch: &mut Vec<u8>) -> Result<()> {
    let length = source.length(record)?;
    let mut start = 0;
    while start < length {
        let span = Span { record, start, len: PART.min(length - start) };
        check_span_ids(source, span, vocab_size, scratch)?;
        start += span.len;
    }
    Ok(())
}

fn check_span_ids(source: &dyn Source, span: Span, vocab_size: u64, scratch: &mut Vec<u8>) -> Result<()> {
    let values = source.read(span, scratch)?;
    let Some((at, id)) = first_outside(&values, vocab_size)? else { return Ok(()) };
    let one = Span { start: span.start + at as u64, len: 1, ..span };
    let mut error = Error::corrupt(format!(
        "id {id} at value {} is outside the vocabulary of {vocab_size} ids",
        one.start
    ))
    .record(span.record)
    .hint("was it made with another tokenizer, or is it of another dtype?");
    if let Some(place) = source.locate(one)?.first() {
        error = error.at(&place.file).byte(place.start);
    }
    Err(error)
}

// The first id outside the vocabulary, by its place among the values.
fn first_outside(values: &Values<'_>, vocab_size: u64) -> Result<Option<(usize, i128)>> {
    macro_rules! search {
        ($t:ty) => {{
            let number = |c: &[u8]| {
                let mut bytes = [0; size_of::<$t>()];
                bytes.copy_from_slice(c);
                let n = <$t>::from_le_bytes(bytes);
                if values.element.big_endian { n.swap_bytes() } else { n }
            };
            // A vocabulary beyond the dtype's range leaves only negative ids to find.
            let most = <$t>::try_from(vocab_size - 1).unwrap_or(<$t>::MAX);
            let chunks = || values.bytes.chunks_exact(size_of::<$t>()).map(number);
            // Without an early exit the loop runs over vectors; the exact place is looked up only when it is needed.
            #[allow(unused_comparisons, reason = "unsigned ids are never negative")]
            let all_fit = chunks().fold(true, |fit, n| fit & (n <= most) & (n >= 0));
            #[allow(unused_comparisons, reason = "unsigned ids are never negative")]
            match all_fit {
                true => None,
                false => chunks().enumerate().find(|(_, n)| *n > most || *n < 0).map(|(i, n)| (i, i128::from(n))),
            }
        }};
    }
    if vocab_size == 0 {
        return Err(Error::config("a vocabulary of 0 ids"));
    }
    Ok(match values.element.dtype {
        DType::U8 | DType::Bool => search!(u8),
        DType::U16 => search!(u16),
        DType::U32 => search!(u32),
        DType::U64 => search!(u64),
        DType::I8 => search!(i8),
        DType::I16 => search!(i16),
        DType::I32 => search!(i32),
        DType::I64 => search!(i64),
        dtype => {
            return Err(Error::config(format!("{dtype} values are no ids: there is no vocabulary to check")));
        }
    })
}

/// Refuses tokens of another tokenizer than the one with this hash.
///
/// # Errors
/// `Mismatch`.
pub(super) fn tokenizer_must_be(side: Option<&SideFile>, hash: Option<&str>, path: &str) -> Result<()> {
    let Some(hash) = hash else { return Ok(()) };
    let found = match side.and_then(|s| s.tokenizer.as_ref()) {
        Some(lock) if lock.hash == hash => return Ok(()),
        Some(lock) => format!("the tokens were made by {} ({})", lock.name, lock.hash),
        None => "nothing says which tokenizer made the tokens".to_string(),
    };
    Err(Error::mismatch(format!("a tokenizer with hash {hash} was asked for, but {found}"))
        .at(path)
        .hint("tokenise the text again with the tokenizer you train with, or leave tokenizer= out"))
}
