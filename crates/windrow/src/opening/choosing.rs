//! Which records, as they are typed: slices, files of numbers or of a mask, conditions.

use std::path::Path;

use windrow_core::format::{OptionRow, Takes};
use windrow_core::source::{Condition, Given, Numbers, Op};
use windrow_core::{DType, Error, Result, option_rows};

use crate::opening::dataset::Dataset;
use crate::opening::paths::Paths;
use crate::opening::select::Choose;

/// Options that choose records of what is opened.
pub static CHOOSING: &[OptionRow] = option_rows! {
    /// Only these records: a slice as 0:1000:2, or a .npy file of record numbers, in its order, or of a mask. Of a plan that
    /// holds only a hash of its numbers, the file with them.
    select: Takes::Each("WHICH");
    /// Only records for which a column, or a key, says so: 'score>=0.8', 'lang==en'. Where both are given, of those that are
    /// selected.
    where: Takes::Each("CONDITION");
};

impl Dataset {
    /// Records as a command line names them: some of these, then those for which all conditions hold; see [`CHOOSING`].
    ///
    /// # Errors
    /// As [`Dataset::select`] and [`Dataset::filter`]; `Config` for what is neither a slice nor a file of numbers or of a mask, and for
    /// what is not a condition; what reading the file says.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("pages.jsonl");
    /// std::fs::write(&path, "{\"score\": 0.9}\n{\"score\": 0.5}\n{\"score\": 1}\n").unwrap();
    /// let data = windrow::open(&path)?.choose(&["1:".into()], &["score >= 0.8".into()], &|| false)?;
    /// assert_eq!((data.len(), data.number(0)), (1, 2));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn choose(
        &self,
        select: &[String],
        conditions: &[String],
        stop: &dyn Fn() -> bool,
    ) -> Result<Dataset> {
        let mut chosen = self.clone();
        for which in select {
            chosen = match slice(which, chosen.len()) {
                Some(slice) => chosen.select(slice)?,
                None => {
                    let (dtype, bytes) = listed(Path::new(which))?;
                    chosen.select(match dtype {
                        DType::Bool => Choose::Mask(&bytes),
                        _ => Choose::Numbers(numbers(dtype, &bytes, chosen.len())?),
                    })?
                }
            };
        }
        for text in conditions {
            chosen = chosen.filter(condition(text)?, stop)?;
        }
        Ok(chosen)
    }
}

/// The numbers of records in a `.npy` file, to be put where a plan has only their hash.
///
/// # Errors
/// What opening the file says; `Config` where it holds something else.
pub fn numbers_in(path: &Path) -> Result<Numbers> {
    let (dtype, bytes) = listed(path)?;
    match dtype {
        DType::Bool => Numbers::of_mask(&bytes),
        _ => Ok(Numbers::list(numbers(dtype, &bytes, u64::MAX)?)),
    }
}

// The only record of a file.
fn listed(path: &Path) -> Result<(DType, Vec<u8>)> {
    let refused = |what: String| {
        Err(Error::config(format!("expected record numbers or a mask, found {what}"))
            .at(path)
            .field("select")
            .hint("give a slice as 0:1000:2, or what `np.save(\"numbers.npy\", numbers)` writes"))
    };
    let data = Paths::from(path).open(&windrow_core::format::Options::default())?;
    let schema = data.source().schema();
    if data.is_json() || data.is_rows() || schema.channels.is_some() || data.len() != 1 {
        return refused(format!("{} records", data.len()));
    }
    let element = schema.element;
    match element.dtype {
        dtype if dtype.is_integer() && !element.big_endian => Ok((dtype, data.bytes(0)?)),
        DType::Bool => Ok((DType::Bool, data.bytes(0)?)),
        dtype => refused(format!("an array of {dtype}")),
    }
}

// Whole numbers of this dtype; negative ones count from the end.
fn numbers(dtype: DType, bytes: &[u8], of: u64) -> Result<Vec<u64>> {
    let size = dtype.size();
    let is_signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let number = |bytes: &[u8]| {
        let is_negative = is_signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut whole = if is_negative { [0xff; 8] } else { [0; 8] };
        whole[..size].copy_from_slice(bytes);
        match is_negative {
            false => Ok(u64::from_le_bytes(whole)),
            true => {
                let number = i64::from_le_bytes(whole);
                let from_the_end = of.checked_sub(number.unsigned_abs());
                from_the_end.ok_or_else(|| Error::out_of_range("record", number, of))
            }
        }
    };
    bytes.chunks_exact(size).map(number).collect()
}

// `a:b` or `a:b:c` as Python reads it, of `of` records; `None` for anything else.
fn slice(text: &str, of: u64) -> Option<Choose<'static>> {
    let parts: Vec<Option<i64>> = text
        .split(':')
        .map(|part| match part.trim() {
            "" => Some(None),
            part => part.parse().ok().map(Some),
        })
        .collect::<Option<_>>()?;
    let (from, to, step) = match parts[..] {
        [from, to] => (from, to, 1),
        [from, to, step] => (from, to, step.unwrap_or(1)),
        _ => return None,
    };
    let of = i64::try_from(of).ok()?;
    // Backwards, the place before the first is a bound too.
    let (least, most) = if step > 0 { (0, of) } else { (-1, of - 1) };
    let bound = |bound: i64| (if bound < 0 { bound.saturating_add(of) } else { bound }).clamp(least, most);
    let from = from.map_or(if step > 0 { least } else { most }, bound);
    let to = to.map_or(if step > 0 { most } else { least }, bound);
    let distance = if step > 0 { to - from } else { from - to };
    let n = u64::try_from(distance).unwrap_or(0).div_ceil(step.unsigned_abs().max(1));
    (step != 0).then_some(Choose::Slice { start: from.max(0) as u64, step, n })
}

// `column op value`: a number, or a text, which may be quoted as in JSON.
fn condition(text: &str) -> Result<Condition> {
    let wrong = || {
        Error::config(format!("{text:?} is not a condition"))
            .field("where")
            .hint("a column, a comparison and a number or a text: 'score>=0.8', 'lang==en', 'title==\"a b\"'")
    };
    let found = text.char_indices().find_map(|(at, _)| {
        Op::ALL.into_iter().find(|(sign, _)| text[at..].starts_with(sign)).map(|(sign, op)| (at, sign, op))
    });
    let (at, sign, op) = found.ok_or_else(wrong)?;
    let (column, value) = (text[..at].trim(), text[at + sign.len()..].trim());
    if column.is_empty() || value.is_empty() {
        return Err(wrong());
    }
    let quoted = |text: &str| match text.starts_with('"') {
        true => serde_json::from_str::<String>(text).map_err(|e| wrong().caused_by(e)),
        false => Ok(text.to_string()),
    };
    let value = match (value.parse(), value.parse(), value.parse::<f64>()) {
        (Ok(number), ..) => Given::Whole(number),
        (_, Ok(number), _) => Given::Large(number),
        (.., Ok(number)) => Given::from(number),
        _ => Given::Text(quoted(value)?),
    };
    Ok(Condition { column: quoted(column)?, op, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_python() {
        let all: Vec<i64> = (0..7).collect();
        let of = |text: &str| {
            let Some(Choose::Slice { start, step, n }) = slice(text, 7) else { panic!("{text}") };
            (0..n as i64).map(|place| all[(start as i64 + place * step) as usize]).collect::<Vec<_>>()
        };
        for (text, expected) in [
            (":", &all[..]),
            ("2:", &[2, 3, 4, 5, 6]),
            (":-5", &[0, 1]),
            ("::3", &[0, 3, 6]),
            ("::-1", &[6, 5, 4, 3, 2, 1, 0]),
            ("5:1:-2", &[5, 3]),
            ("-2::-4", &[5, 1]),
            ("5:2", &[]),
            ("9:", &[]),
            (":99:4", &[0, 4]),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        for text in ["numbers.npy", "s3://bucket/numbers.npy", "1", "1:2:3:4", "::0", "a:b"] {
            assert!(slice(text, 7).is_none(), "{text}");
        }
    }

    #[test]
    fn conditions_are_read_as_they_are_typed() {
        for (text, shown) in [
            ("score>=0.8", "score>=0.8"),
            (" score  < 1e3 ", "score<1000"),
            ("n==9007199254740993", "n==9007199254740993"),
            ("lang==en", "lang==\"en\""),
            ("title!=\"a >= b\"", "title!=\"a >= b\""),
            ("\"a b\"==1", "\"a b\"==1"),
            ("x>-inf", "x>-inf"),
        ] {
            assert_eq!(condition(text).unwrap().to_string(), shown);
        }
        for text in ["score", "score=1", ">=1", "score>=", "lang==\"en"] {
            assert!(condition(text).unwrap_err().hint_text().unwrap().contains("score>=0.8"), "{text}");
        }
    }

    #[test]
    fn numbers_of_every_width_are_read_and_negative_ones_count_from_the_end() {
        assert_eq!(numbers(DType::I16, &[1, 0, 0xfe, 0xff], 10).unwrap(), [1, 8]);
        assert_eq!(numbers(DType::U8, &[255], 10).unwrap(), [255]);
        assert_eq!(numbers(DType::U64, &[0xff; 8], 10).unwrap(), [u64::MAX]);
        assert!(numbers(DType::I8, &[0x80], 10).is_err());
    }
}
