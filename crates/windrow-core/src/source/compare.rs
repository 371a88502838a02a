//! One comparison of what a column holds with a number or a text, and the records for which it holds.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Memory};

use serde::{Deserialize, Serialize};

use super::cells::{Cells, no_column};
use super::{Source, whole};
use crate::array::DType;
use crate::error::{Error, Kind, Result};
use crate::row::{Array, Value};
use crate::threads::{beside, cores};

/// `column op value`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// A column, a key of JSON, or a key of what is beside numbers.
    pub column: String,
    /// How it is compared.
    pub op: Op,
    /// With what.
    pub value: Given,
}

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Op {
    /// Equal.
    #[serde(rename = "==")]
    Equal,
    /// Not equal.
    #[serde(rename = "!=")]
    NotEqual,
    /// Less.
    #[serde(rename = "<")]
    Less,
    /// Less, or equal.
    #[serde(rename = "<=")]
    LessEqual,
    /// Greater.
    #[serde(rename = ">")]
    Greater,
    /// Greater, or equal.
    #[serde(rename = ">=")]
    GreaterEqual,
}

/// What values are compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Given {
    /// A whole number.
    Whole(i64),
    /// A whole number above those.
    Large(u64),
    /// A fraction that is finite.
    Fraction(f64),
    /// A text.
    Text(String),
    /// NaN, or one of the infinities.
    Special {
        /// Which.
        fraction: Special,
    },
}

/// A fraction that is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Special {
    /// Not a number.
    #[serde(rename = "nan")]
    Nan,
    /// Positive infinity.
    #[serde(rename = "inf")]
    Infinity,
    /// Negative infinity.
    #[serde(rename = "-inf")]
    NegativeInfinity,
}

impl Op {
    /// All, by their signs.
    pub const ALL: [(&'static str, Op); 6] = [
        ("==", Op::Equal),
        ("!=", Op::NotEqual),
        ("<=", Op::LessEqual),
        (">=", Op::GreaterEqual),
        ("<", Op::Less),
        (">", Op::Greater),
    ];

    /// The one with this sign.
    ///
    /// # Errors
    /// `Config` for another sign, with those that there are.
    pub fn parse(sign: &str) -> Result<Op> {
        let found = Op::ALL.into_iter().find(|(of, _)| *of == sign);
        found.map(|(_, op)| op).ok_or_else(|| {
            let signs = Op::ALL.map(|(sign, _)| sign).join(" ");
            Error::config(format!("{sign:?} is not a comparison"))
                .field("where")
                .hint(format!("one of {signs}"))
        })
    }

    /// Its sign.
    pub fn sign(self) -> &'static str {
        Op::ALL.into_iter().find(|(_, op)| *op == self).map_or("", |(sign, _)| sign)
    }

    // `None` where neither is less and they are not equal: NaN.
    fn holds(self, found: Option<Ordering>) -> bool {
        match self {
            Op::Equal => found == Some(Ordering::Equal),
            Op::NotEqual => found != Some(Ordering::Equal),
            Op::Less => found == Some(Ordering::Less),
            Op::LessEqual => found.is_some_and(Ordering::is_le),
            Op::Greater => found == Some(Ordering::Greater),
            Op::GreaterEqual => found.is_some_and(Ordering::is_ge),
        }
    }
}

impl From<f64> for Given {
    /// Whole ones are whole numbers: 1.0 and 1 are one condition.
    fn from(fraction: f64) -> Given {
        match fraction {
            _ if fraction.is_nan() => Given::Special { fraction: Special::Nan },
            f64::INFINITY => Given::Special { fraction: Special::Infinity },
            f64::NEG_INFINITY => Given::Special { fraction: Special::NegativeInfinity },
            _ if fraction.fract() == 0.0 && fraction.abs() < TWO_63 => Given::Whole(fraction as i64),
            _ if fraction.fract() == 0.0 && (0.0..2.0 * TWO_63).contains(&fraction) => {
                Given::Large(fraction as u64)
            }
            _ => Given::Fraction(fraction),
        }
    }
}

/// 2⁶³.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// A number as it is compared.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Fraction(f64),
}

impl Number {
    fn compared(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => Some(a.cmp(&b)),
            (Number::Fraction(a), Number::Fraction(b)) => a.partial_cmp(&b),
            (Number::Whole(a), Number::Fraction(b)) => whole_with_fraction(a, b),
            (Number::Fraction(a), Number::Whole(b)) => whole_with_fraction(b, a).map(Ordering::reverse),
        }
    }
}

// Without rounding: 2⁵³ + 1 is above 2⁵³.
fn whole_with_fraction(whole: i128, fraction: f64) -> Option<Ordering> {
    /// 2¹²⁷, which is beyond all of `i128`.
    const BEYOND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if fraction.is_nan() {
        return None;
    }
    if fraction >= BEYOND {
        return Some(Ordering::Less);
    }
    if fraction < -BEYOND {
        return Some(Ordering::Greater);
    }
    let floor = fraction.floor();
    Some(whole.cmp(&(floor as i128)).then(if fraction > floor { Ordering::Less } else { Ordering::Equal }))
}

impl Given {
    fn number(&self) -> Option<Number> {
        Some(match self {
            Given::Whole(number) => Number::Whole(i128::from(*number)),
            Given::Large(number) => Number::Whole(i128::from(*number)),
            Given::Fraction(number) => Number::Fraction(*number),
            Given::Special { fraction: Special::Nan } => Number::Fraction(f64::NAN),
            Given::Special { fraction: Special::Infinity } => Number::Fraction(f64::INFINITY),
            Given::Special { fraction: Special::NegativeInfinity } => Number::Fraction(f64::NEG_INFINITY),
            Given::Text(_) => return None,
        })
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Whole(number) => write!(f, "{number}"),
            Given::Large(number) => write!(f, "{number}"),
            Given::Fraction(number) => write!(f, "{number:?}"),
            Given::Special { fraction: Special::Nan } => f.write_str("nan"),
            Given::Special { fraction: Special::Infinity } => f.write_str("inf"),
            Given::Special { fraction: Special::NegativeInfinity } => f.write_str("-inf"),
            Given::Text(text) => f.write_str(&quoted(text)),
        }
    }
}

/// As a plan says it: `score>=0.8`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
        match !self.column.is_empty() && self.column.chars().all(is_plain) {
            true => f.write_str(&self.column)?,
            false => f.write_str(&quoted(&self.column))?,
        }
        write!(f, "{}{}", self.op.sign(), self.value)
    }
}

// As JSON, without what ends a part of a plan.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace(';', "\\u003b")
}

impl Condition {
    /// Appends the numbers of the records for which it holds, of cells from record `first` on; says whether one of them is there at
    /// all.
    fn among(&self, first: u64, cells: Cells<'_>, out: &mut Vec<u64>) -> Result<bool> {
        let number = self.value.number();
        let mut add = |record: u64, found: Option<Ordering>| {
            if self.op.holds(found) {
                out.push(record);
            }
        };
        match (cells, number) {
            (Cells::Whole(cells), Some(Number::Whole(given))) => {
                (first..)
                    .zip(cells)
                    .for_each(|(record, cell)| add(record, Some(i128::from(*cell).cmp(&given))));
                Ok(!cells.is_empty())
            }
            (Cells::Whole(cells), Some(given)) => {
                let compared = |cell: &i64| Number::Whole(i128::from(*cell)).compared(given);
                (first..).zip(cells).for_each(|(record, cell)| add(record, compared(cell)));
                Ok(!cells.is_empty())
            }
            (Cells::Fractions(cells), Some(given)) => {
                let compared = |cell: &f64| Number::Fraction(*cell).compared(given);
                (first..).zip(cells).for_each(|(record, cell)| add(record, compared(cell)));
                Ok(!cells.is_empty())
            }
            (Cells::Texts(cells), None) => {
                let Given::Text(given) = &self.value else { return Ok(false) };
                let texts = (first..).zip(cells).filter_map(|(record, cell)| Some((record, (*cell)?)));
                texts.for_each(|(record, cell)| add(record, Some(cell.cmp(given))));
                Ok(cells.iter().any(Option::is_some))
            }
            (Cells::Values(cells), _) => {
                let mut is_there = false;
                for (record, cell) in (first..).zip(cells).filter(|(_, cell)| !cell.is_null()) {
                    is_there = true;
                    add(record, self.compared(cell).map_err(|e| e.record(record))?);
                }
                Ok(is_there)
            }
            (Cells::Whole([]) | Cells::Fractions([]), None) => Ok(false),
            (Cells::Texts(cells), Some(_)) => match cells.iter().position(Option::is_some) {
                Some(at) => Err(self.unlike("a text").record(first + at as u64)),
                None => Ok(false),
            },
            (Cells::Whole(_) | Cells::Fractions(_), None) => Err(self.unlike("a number").record(first)),
        }
    }

    fn compared(&self, cell: &Value) -> Result<Option<Ordering>> {
        let given = self.value.number();
        match (cell, &self.value) {
            (Value::Text(cell), Given::Text(text)) => return Ok(Some(cell.as_str().cmp(text))),
            (Value::Text(_), _) => return Err(self.unlike("a text")),
            (Value::Big(digits), _) => {
                let given = given.ok_or_else(|| self.unlike("a number"))?;
                return Ok(big_with(digits, given));
            }
            _ => {}
        }
        let number = match cell {
            Value::Bool(is) => Number::Whole(i128::from(*is)),
            Value::I64(number) => Number::Whole(i128::from(*number)),
            Value::U64(number) => Number::Whole(i128::from(*number)),
            Value::F64(number) => Number::Fraction(*number),
            Value::Array(array) if array.shape.is_empty() => {
                number_of(array).ok_or_else(|| self.unlike("an array"))?
            }
            Value::Bytes(_) => return Err(self.unlike("bytes")),
            Value::Struct(_) => return Err(self.unlike("an object")),
            _ => return Err(self.unlike("a list")),
        };
        Ok(number.compared(given.ok_or_else(|| self.unlike("a number"))?))
    }

    fn unlike(&self, found: &str) -> Error {
        let given = if matches!(self.value, Given::Text(_)) { "the text" } else { "the number" };
        Error::config(format!("{:?} is {found} here, which is not compared with {given} {}", self.column, self.value))
            .field("where")
            .hint("numbers are compared with numbers and texts with texts; for anything else select records by a mask")
    }
}

// A number alone, as arrays without axes hold it.
fn number_of(array: &Array) -> Option<Number> {
    let bytes = &array.bytes[..];
    let whole = |number: i128| Some(Number::Whole(number));
    match array.dtype {
        DType::I8 => whole(i128::from(i8::from_le_bytes(bytes.try_into().ok()?))),
        DType::U8 => whole(i128::from(u8::from_le_bytes(bytes.try_into().ok()?))),
        DType::I16 => whole(i128::from(i16::from_le_bytes(bytes.try_into().ok()?))),
        DType::U16 => whole(i128::from(u16::from_le_bytes(bytes.try_into().ok()?))),
        DType::I32 => whole(i128::from(i32::from_le_bytes(bytes.try_into().ok()?))),
        DType::U32 => whole(i128::from(u32::from_le_bytes(bytes.try_into().ok()?))),
        DType::I64 => whole(i128::from(i64::from_le_bytes(bytes.try_into().ok()?))),
        DType::U64 => whole(i128::from(u64::from_le_bytes(bytes.try_into().ok()?))),
        DType::F32 => Some(Number::Fraction(f64::from(f32::from_le_bytes(bytes.try_into().ok()?)))),
        DType::F64 => Some(Number::Fraction(f64::from_le_bytes(bytes.try_into().ok()?))),
        DType::Bool => whole(i128::from(*bytes.first()?)),
        DType::F16 => Some(Number::Fraction(half::f16::from_le_bytes(bytes.try_into().ok()?).to_f64())),
        DType::Bf16 => Some(Number::Fraction(half::bf16::from_le_bytes(bytes.try_into().ok()?).to_f64())),
    }
}

// Digits of a whole number beyond 64 bits.
fn big_with(digits: &str, given: Number) -> Option<Ordering> {
    if let Ok(whole) = digits.parse::<i128>() {
        return Number::Whole(whole).compared(given);
    }
    let (is_negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits),
    };
    let magnitude = match given {
        // Digits of a fraction that large are exact.
        Number::Fraction(given) if given.is_nan() => return None,
        Number::Fraction(given) if given.is_finite() && (given < 0.0) == is_negative => {
            let given = format!("{:.0}", given.abs().trunc());
            let digits = digits.trim_start_matches('0');
            digits.len().cmp(&given.len()).then_with(|| digits.cmp(&given))
        }
        Number::Fraction(given) if given.is_infinite() && (given < 0.0) == is_negative => Ordering::Less,
        _ => Ordering::Greater,
    };
    Some(if is_negative { magnitude.reverse() } else { magnitude })
}

/// Records that a thread takes at a time, at most and at least.
const MOST: u64 = 1 << 17;
const LEAST: u64 = 64;

/// The numbers of the records for which a comparison holds, ascending: in one pass over its column, on all cores.
///
/// # Errors
/// `Config` for a column that no record has, with those that there are, and for values of another kind, with the record; what
/// reading says; `Interrupted` when `stop` says so.
pub(super) fn matching(
    source: &dyn Source,
    condition: &Condition,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<u64>> {
    let n = source.len();
    let size = (n / (4 * cores() as u64)).clamp(LEAST, MOST);
    let (next, ended, is_there) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let found = Mutex::new(Vec::<(u64, Vec<u64>)>::new());
    let work = |stop: &dyn Fn() -> bool| -> Result<()> {
        loop {
            let first = next.fetch_add(size, Memory::Relaxed);
            if first >= n || ended.load(Memory::Relaxed) {
                return Ok(());
            }
            let part = part(source, condition, first..n.min(first + size), &|| {
                ended.load(Memory::Relaxed) || stop()
            });
            match part {
                Ok((numbers, is_one_there)) => {
                    is_there.fetch_or(is_one_there, Memory::Relaxed);
                    found.lock().unwrap_or_else(PoisonError::into_inner).push((first, numbers));
                }
                Err(error) => {
                    ended.store(true, Memory::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let threads = cores().min(usize::try_from(n.div_ceil(size)).unwrap_or(usize::MAX)).max(1);
    let mut done = beside(threads, || work(stop), || work(&|| false));
    // Those that were told to end because of another's error come after it; of several the first record's is said.
    done.sort_by_key(|done| {
        let error = done.as_ref().err();
        (error.is_none_or(|e| e.kind() == Kind::Interrupted), error.and_then(|e| e.place().record))
    });
    done.into_iter().find(Result::is_err).unwrap_or(Ok(()))?;
    if n > 0 && !is_there.into_inner() {
        refuse_absent(source, &condition.column)?;
    }
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable_by_key(|(first, _)| *first);
    Ok(found.into_iter().flat_map(|(_, numbers)| numbers).collect())
}

fn part(
    source: &dyn Source,
    condition: &Condition,
    records: Range<u64>,
    stop: &dyn Fn() -> bool,
) -> Result<(Vec<u64>, bool)> {
    whole(|| {
        let (mut numbers, mut is_there) = (Vec::new(), false);
        source.cells(&condition.column, records.clone(), &mut |first, cells| {
            if stop() {
                return Err(Error::new(Kind::Interrupted, "stopped while comparing the records"));
            }
            is_there |= condition.among(first, cells, &mut numbers)?;
            Ok(())
        })?;
        Ok((numbers, is_there))
    })
}

// A name that no record has is a slip of the pen, unless it is a column that is empty.
fn refuse_absent(source: &dyn Source, name: &str) -> Result<()> {
    const LOOKED_AT: u64 = 100;
    let schema = source.schema();
    if schema.kind == super::Kind::Rows && !schema.is_value() {
        return Ok(());
    }
    if schema.kind == super::Kind::Numbers
        && let Some(names) = &schema.beside
    {
        return match names.iter().any(|beside| beside == name) {
            true => Ok(()),
            false => Err(no_column(name, names.iter().map(String::as_str))),
        };
    }
    let mut names: Vec<String> = Vec::new();
    for record in 0..source.len().min(LOOKED_AT) {
        let row = match schema.kind {
            super::Kind::Numbers => whole(|| source.extras(record))?,
            _ => match whole(|| source.value(record, None))? {
                Value::Struct(row) => row,
                _ => continue,
            },
        };
        for found in row.names() {
            if found == name {
                return Ok(());
            }
            if !names.iter().any(|known| known == found) {
                names.push(found.to_string());
            }
        }
    }
    Err(no_column(name, names.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(cell: impl Into<Value>, op: &str, value: Given) -> bool {
        let condition = Condition { column: "x".to_string(), op: Op::parse(op).unwrap(), value };
        let mut found = Vec::new();
        condition.among(7, Cells::Values(&[cell.into()]), &mut found).unwrap();
        !found.is_empty()
    }

    #[test]
    fn whole_numbers_and_fractions_are_compared_without_rounding() {
        let large = (1i64 << 53) + 1;
        let fraction = (1i64 << 53) as f64;
        assert!(holds(Value::I64(large), ">", Given::Fraction(fraction)));
        assert!(!holds(Value::I64(large), "==", Given::Fraction(fraction)));
        assert!(holds(Value::F64(fraction), "<", Given::Whole(large)));
        assert!(holds(Value::I64(large - 1), "==", Given::Fraction(fraction)));
        assert!(holds(Value::I64(-1), "<", Given::Fraction(-0.5)));
        assert!(holds(Value::I64(0), ">", Given::Fraction(-0.5)));
        assert!(holds(Value::U64(u64::MAX), "<", Given::Fraction(2.0 * TWO_63)));
        assert!(holds(Value::U64(u64::MAX), "==", Given::Large(u64::MAX)));
        assert!(holds(Value::I64(i64::MAX), "<", Given::Large(u64::MAX)));
        assert!(holds(Value::F64(f64::INFINITY), ">", Given::Large(u64::MAX)));
        let huge = "1".to_string() + &"0".repeat(60);
        assert!(holds(Value::Big(huge.clone()), ">", Given::Fraction(9.9e59)));
        assert!(holds(Value::Big(huge.clone()), "<", Given::Fraction(1.1e60)));
        assert!(holds(Value::Big(format!("-{huge}")), "<", Given::Whole(i64::MIN)));
        assert!(holds(Value::Big(format!("-{huge}")), ">", Given::from(f64::NEG_INFINITY)));
        assert!(holds(Value::Bool(true), "==", Given::Whole(1)));
    }

    #[test]
    fn nan_is_not_equal_and_nothing_else() {
        for op in ["==", "<", "<=", ">", ">="] {
            assert!(!holds(Value::F64(f64::NAN), op, Given::Whole(0)), "{op}");
            assert!(!holds(Value::I64(0), op, Given::from(f64::NAN)), "{op}");
        }
        assert!(holds(Value::F64(f64::NAN), "!=", Given::Whole(0)));
        assert!(holds(Value::F64(f64::NAN), "!=", Given::from(f64::NAN)));
        for (op, _) in Op::ALL {
            assert!(!holds(Value::Null, op, Given::Whole(0)), "{op}");
        }
    }

    #[test]
    fn texts_are_compared_by_code_points() {
        let text = |text: &str| Given::Text(text.to_string());
        assert!(holds("Z", "<", text("a")));
        assert!(holds("\u{ffff}", "<", text("\u{10000}")));
        assert!(holds("en", "==", text("en")));
        assert!(holds("", "<", text("a")));
    }

    #[test]
    fn columns_of_numbers_are_compared_as_single_values_are() {
        let wholes = [i64::MIN, -1, 0, 1, (1 << 53) + 1, i64::MAX];
        let fractions = [f64::NEG_INFINITY, -0.5, 0.0, 1.0, (1i64 << 53) as f64, f64::NAN];
        let given = [
            Given::Whole(0),
            Given::Fraction(0.5),
            Given::from((1i64 << 53) as f64),
            Given::from(f64::NAN),
            Given::Large(u64::MAX),
        ];
        for ((_, op), value) in
            Op::ALL.into_iter().flat_map(|op| given.iter().map(move |value| (op, value.clone())))
        {
            let condition = Condition { column: "x".to_string(), op, value };
            let among = |cells: Cells<'_>| {
                let mut found = Vec::new();
                assert!(condition.among(3, cells, &mut found).unwrap());
                found
            };
            let values = wholes.map(Value::I64);
            assert_eq!(among(Cells::Whole(&wholes)), among(Cells::Values(&values)), "{condition}");
            let values = fractions.map(Value::F64);
            assert_eq!(among(Cells::Fractions(&fractions)), among(Cells::Values(&values)), "{condition}");
        }
    }

    #[test]
    fn comparisons_are_one_line_in_a_plan_and_the_same_in_json() {
        for (column, op, value, line) in [
            ("score", ">=", Given::from(0.8), "score>=0.8"),
            ("score", "==", Given::from(1.0), "score==1"),
            ("meta.lang", "!=", Given::Text("a;b\"c".to_string()), r#"meta.lang!="a\u003bb\"c""#),
            ("a;b", "<", Given::from(f64::INFINITY), r#""a\u003bb"<inf"#),
            ("n", "<", Given::from(1e300), "n<1e300"),
            ("n", "<", Given::from(2.0f64.powi(63)), "n<9223372036854775808"),
        ] {
            let condition = Condition { column: column.to_string(), op: Op::parse(op).unwrap(), value };
            assert_eq!(condition.to_string(), line);
            let json = serde_json::to_string(&condition).unwrap();
            assert_eq!(serde_json::from_str::<Condition>(&json).unwrap(), condition, "{json}");
        }
        assert!(Op::parse("=").unwrap_err().hint_text().unwrap().contains("=="));
    }
}
