//! IDs against a vocabulary: every ID of a source below its size, made by the tokenizer that is meant.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::array::DType;
use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::record::{Span, Values};
use crate::source::Source;
use crate::threads::{beside, cores};

/// Values that a thread looks at before it takes the next part.
const PART: u64 = 1 << 20;
/// Records that a thread looks at before it takes the next part, where there are many.
const MOST_RECORDS: u64 = 4096;
/// With fewer records than this, the values of each are shared out instead of the records.
const FEW_RECORDS: u64 = 64;

/// Checks that every ID of a source is in `0..vocab_size`, on the same number of threads as there are cores.
///
/// # Errors
/// `Corrupt` naming file, record, byte and id of the first one outside; what reading says; `Config` for a vocabulary
/// of 0 IDs, or for values that are not IDs.
pub fn check_ids(source: &dyn Source, vocab_size: u64) -> Result<()> {
    let dtype = source.schema().element.dtype;
    if vocab_size == 0 {
        return Err(Error::config("a vocabulary of 0 token IDs; expected at least 1").field("vocab_size"));
    }
    if !dtype.is_integer() {
        return Err(Error::config(format!(
            "{dtype} values are not token IDs: there is no vocabulary to check"
        ))
        .field("vocab_size"));
    }
    let records = source.len();
    if records < FEW_RECORDS {
        return (0..records).try_for_each(|record| {
            let length = source.length(record)?;
            first_error(length.div_ceil(PART), &|part, scratch| {
                let start = part * PART;
                check_span(source, Span { record, start, len: PART.min(length - start) }, vocab_size, scratch)
            })
        });
    }
    let step = (records / FEW_RECORDS).clamp(1, MOST_RECORDS);
    first_error(records.div_ceil(step), &|part, scratch| {
        (part * step..records.min((part + 1) * step))
            .try_for_each(|record| check_record(source, record, vocab_size, scratch))
    })
}

/// Checks IDs against the vocabulary that is asked for, where it is smaller than the one that is `known`, or none is known.
///
/// # Errors
/// As [`check_ids`].
pub fn check_asked(source: &dyn Source, asked: Option<u64>, known: Option<u64>) -> Result<()> {
    match asked.filter(|asked| known.is_none_or(|known| known > *asked)) {
        Some(asked) => check_ids(source, asked),
        None => Ok(()),
    }
}

/// Checks parts `0..count` on all cores and gives the error of the first part that has one: the same at every run.
/// The threads end before this returns.
fn first_error(count: u64, check: &(impl Fn(u64, &mut Vec<u8>) -> Result<()> + Sync)) -> Result<()> {
    let next = AtomicU64::new(0);
    let worst = AtomicU64::new(u64::MAX);
    let work = || -> std::result::Result<(), (u64, Error)> {
        let mut scratch = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            // Parts before one that is known to be bad are still looked at: they may be bad too.
            if part >= count || part > worst.load(Ordering::Relaxed) {
                return Ok(());
            }
            check(part, &mut scratch).map_err(|error| {
                worst.fetch_min(part, Ordering::Relaxed);
                (part, error)
            })?;
        }
    };
    let threads = count.min(cores() as u64) as usize;
    let found = beside(threads, work, work).into_iter().filter_map(|found| found.err());
    found.min_by_key(|f| f.0).map_or(Ok(()), |f| Err(f.1))
}

fn check_record(source: &dyn Source, record: u64, vocab_size: u64, scratch: &mut Vec<u8>) -> Result<()> {
    let length = source.length(record)?;
    let mut start = 0;
    while start < length {
        let span = Span { record, start, len: PART.min(length - start) };
        check_span(source, span, vocab_size, scratch)?;
        start += span.len;
    }
    Ok(())
}

fn check_span(source: &dyn Source, span: Span, vocab_size: u64, scratch: &mut Vec<u8>) -> Result<()> {
    let values = source.read(span, scratch)?;
    let Some((at, id)) = first_outside(&values, vocab_size) else { return Ok(()) };
    // A value may have several numbers.
    let one = Span { start: span.start + (at / values.channels.max(1)) as u64, len: 1, ..span };
    let mut error = Error::corrupt(format!(
        "id {id} at value {} is outside the vocabulary of {vocab_size} IDs",
        one.start
    ))
    .record(span.record)
    .hint("was it made with another tokenizer, or is it of another dtype?");
    if let Some(place) = source.locate(one)?.first() {
        error = error.at(&place.file).byte(place.start);
    }
    Err(error)
}

/// The first id outside the vocabulary, by its place among the values; floats have none.
pub fn first_outside(values: &Values<'_>, vocab_size: u64) -> Option<(usize, i128)> {
    // A negative id is read as an unsigned number beyond every positive one: one comparison finds both.
    macro_rules! search {
        ($signed:ty as $unsigned:ty) => {{
            let number = |c: &[u8]| {
                let mut bytes = [0; size_of::<$unsigned>()];
                bytes.copy_from_slice(c);
                let n = <$unsigned>::from_le_bytes(bytes);
                if values.element.big_endian { n.swap_bytes() } else { n }
            };
            // A vocabulary beyond the dtype's range leaves only negative IDs to find.
            let last = <$signed>::try_from(vocab_size - 1).unwrap_or(<$signed>::MAX) as $unsigned;
            let numbers = || values.bytes.chunks_exact(size_of::<$unsigned>()).map(number);
            // Without an early exit the loop runs over vectors; the exact place is looked up only when it is needed.
            if numbers().fold(true, |fit, n| fit & (n <= last)) { None } else {
                    numbers().enumerate().find(|(_, n)| *n > last).map(|(i, n)| (i, i128::from(n as $signed)))
                }
        }};
    }
    match values.element.dtype {
        DType::U8 | DType::Bool => search!(u8 as u8),
        DType::U16 => search!(u16 as u16),
        DType::U32 => search!(u32 as u32),
        DType::U64 => search!(u64 as u64),
        DType::I8 => search!(i8 as u8),
        DType::I16 => search!(i16 as u16),
        DType::I32 => search!(i32 as u32),
        DType::I64 => search!(i64 as u64),
        DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => None,
    }
}

/// Refuses tokens of another tokenizer than the one with this hash.
///
/// # Errors
/// `Mismatch`.
pub fn tokenizer_must_be(manifest: Option<&Manifest>, hash: Option<&str>, path: &str) -> Result<()> {
    let Some(hash) = hash else { return Ok(()) };
    let found = match manifest.and_then(|s| s.tokenizer.as_ref()) {
        Some(lock) if lock.hash == hash => return Ok(()),
        Some(lock) => format!("the tokens were made by {} ({})", lock.name, lock.hash),
        None => "nothing says which tokenizer made the tokens".to_string(),
    };
    Err(Error::mismatch(format!("a tokenizer with hash {hash} was asked for, but {found}"))
        .at(path)
        .hint("tokenise the text again with the tokenizer you train with, or leave @tokenizer@ out"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Element;
    use crate::error::Kind;
    use crate::record::{Decode, Lengths};
    use crate::source::{FileInfo, Location, Schema};

    /// Records one after the other in one file.
    struct Ids {
        schema: Schema,
        lengths: Vec<u64>,
        bytes: Vec<u8>,
    }

    fn source(dtype: DType, big_endian: bool, records: &[&[i64]]) -> Ids {
        let width = dtype.size();
        let mut bytes = Vec::new();
        for id in records.concat() {
            let number = id.to_le_bytes();
            if big_endian {
                bytes.extend(number[..width].iter().rev())
            } else {
                bytes.extend(&number[..width])
            }
        }
        Ids {
            schema: Schema::numbers(Element { dtype, big_endian }),
            lengths: records.iter().map(|r| r.len() as u64).collect(),
            bytes,
        }
    }

    impl Ids {
        fn place(&self, span: Span) -> Location {
            let before: u64 = self.lengths[..span.record as usize].iter().sum();
            let width = self.schema.element.size() as u64;
            Location { file: "ids".into(), start: (before + span.start) * width, size: span.len * width }
        }
    }

    impl Lengths for Ids {
        fn len(&self) -> u64 {
            self.lengths.len() as u64
        }
        fn length(&self, record: u64) -> Result<u64> {
            self.lengths.length(record)
        }
    }

    impl Source for Ids {
        fn schema(&self) -> &Schema {
            &self.schema
        }
        fn read<'a>(&'a self, span: Span, _: &'a mut Vec<u8>) -> Result<Values<'a>> {
            let at = self.place(span);
            let bytes = &self.bytes[at.start as usize..(at.start + at.size) as usize];
            Ok(Values { bytes, element: self.schema.element, channels: 1, decode: Decode::Plain })
        }
        fn locate(&self, span: Span) -> Result<Vec<Location>> {
            Ok(vec![self.place(span)])
        }
        fn files(&self) -> Vec<FileInfo> {
            Vec::new()
        }
        fn fingerprint(&self) -> Result<u64> {
            Ok(0)
        }
        fn format(&self) -> &'static str {
            "ids"
        }
    }

    fn refuses(source: &Ids, vocab_size: u64, id: i64, record: u64, value: u64) {
        let error = check_ids(source, vocab_size).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt);
        let says = format!("id {id} at value {value} is outside the vocabulary of {vocab_size} IDs");
        assert_eq!(error.message(), says);
        let place = error.place();
        let byte = source.place(Span { record, start: value, len: 1 }).start;
        assert_eq!(
            (place.file.as_deref(), place.record, place.byte),
            (Some("ids"), Some(record), Some(byte))
        );
    }

    const UNSIGNED: [DType; 4] = [DType::U8, DType::U16, DType::U32, DType::U64];
    const SIGNED: [DType; 4] = [DType::I8, DType::I16, DType::I32, DType::I64];

    #[test]
    fn the_last_id_of_a_vocabulary_is_in_and_the_next_is_out() {
        for dtype in UNSIGNED.into_iter().chain(SIGNED) {
            for big_endian in [false, true] {
                let ids = source(dtype, big_endian, &[&[0, 99, 1], &[98, 100, 5]]);
                check_ids(&ids, 101).unwrap();
                refuses(&ids, 100, 100, 1, 1);
                refuses(&ids, 1, 99, 0, 1);
            }
        }
    }

    #[test]
    fn negative_ids_are_outside_every_vocabulary() {
        for dtype in SIGNED {
            for big_endian in [false, true] {
                let ids = source(dtype, big_endian, &[&[3, 2], &[1, 0, -1]]);
                for vocab_size in [4, 128, 1 << 40, u64::MAX] {
                    refuses(&ids, vocab_size, -1, 1, 2);
                }
            }
        }
        refuses(&source(DType::I64, false, &[&[i64::MIN]]), u64::MAX, i64::MIN, 0, 0);
    }

    #[test]
    fn a_vocabulary_beyond_the_dtype_holds_all_its_ids() {
        for (dtype, last) in UNSIGNED.into_iter().zip([0xff, 0xffff, 0xffff_ffff, i64::MAX]) {
            for vocab_size in [last as u64 + 1, last as u64 + 2, u64::MAX] {
                check_ids(&source(dtype, false, &[&[0, last]]), vocab_size).unwrap();
            }
            refuses(&source(dtype, false, &[&[0, last]]), last as u64, last, 0, 1);
        }
    }

    #[test]
    fn the_first_bad_id_of_many_records_is_named_at_every_run() {
        let mut rows: Vec<Vec<i64>> = (0..10_000).map(|r| vec![r % 50; (r % 4) as usize]).collect();
        rows[7_003] = vec![1, 2, 60];
        rows[9_999] = vec![70];
        let rows: Vec<&[i64]> = rows.iter().map(Vec::as_slice).collect();
        let ids = source(DType::U16, false, &rows);
        check_ids(&ids, 71).unwrap();
        for _ in 0..20 {
            refuses(&ids, 60, 60, 7_003, 2);
        }
    }

    #[test]
    fn the_first_bad_id_of_a_long_stream_is_named_at_every_run() {
        let length = 3 * PART + 5;
        for bad in [0, PART - 1, PART, 2 * PART, length - 1] {
            let mut ids = source(DType::U8, false, &[]);
            ids.lengths = vec![length];
            ids.bytes = vec![9; length as usize];
            check_ids(&ids, 10).unwrap();
            ids.bytes[length as usize - 1] = 11;
            ids.bytes[bad as usize] = 10;
            refuses(&ids, 10, 10, 0, bad);
        }
    }

    #[test]
    fn no_record_no_error() {
        check_ids(&source(DType::U8, false, &[]), 1).unwrap();
        check_ids(&source(DType::U8, false, &[&[], &[]]), 1).unwrap();
    }

    #[test]
    fn no_vocabulary_and_no_ids_are_refused() {
        for (dtype, vocab_size, says) in
            [(DType::U8, 0, "a vocabulary of 0 token IDs"), (DType::F32, 5, "float32")]
        {
            let error = check_ids(&source(dtype, false, &[]), vocab_size).unwrap_err();
            assert_eq!(error.kind(), Kind::Config);
            assert!(error.message().contains(says), "{error}");
        }
    }
}
