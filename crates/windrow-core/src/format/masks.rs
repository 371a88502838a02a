//! Which tokens are learned, as columns beside them say: masks of 0 and 1, and labels.

use std::sync::Arc;

use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::format::Options;
use crate::record::{Decode, Lengths, Span, Values};
use crate::row::{Array, Row, Value};
use crate::source::{
    Extras, FileInfo, InMemory, Kind, Location, Rows, Schema, SharedSource, Source, Stored, Track,
};
use crate::store::Object;
use crate::values::copy_values;

/// Columns that say which tokens are learned, unless [`Options::mask_column`] says otherwise.
pub const MASK_COLUMNS: [&str; 5] = ["loss_mask", "loss", "assistant_masks", "completion_mask", "labels"];

/// The one that holds labels: -100, or the token beside it.
const LABELS: &str = "labels";
/// 0 for padding: it says what is a token, not what is learned.
const ATTENTION: &str = "attention_mask";
/// The label of a token that is not learned.
pub const NOT_LEARNED: i64 = -100;

/// Whether a column of this name is read together with the numbers of `column=`.
pub fn is_read_beside(options: &Options, name: &str) -> bool {
    let is_known = MASK_COLUMNS.contains(&stem(name)) || stem(name) == ATTENTION;
    match &options.mask_column {
        None => is_known,
        Some(names) if names.is_empty() => false,
        Some(names) => stem(name) == ATTENTION || names.iter().any(|asked| asked == name),
    }
}

/// The source with the mask that its columns say, where there are such.
///
/// # Errors
/// `Config` for a column that is not there, or beside no numbers, and for labels that are of the record, not of its tokens.
pub fn learned(source: SharedSource, options: &Options) -> Result<SharedSource> {
    let asked = options.mask_column.as_deref();
    let schema = source.schema();
    if schema.kind != Kind::Numbers {
        return match asked {
            None | Some([]) => Ok(source),
            Some(_) => Err(Error::config("@the mask_column@ was given, but the records are not numbers")
                .field("mask_column")
                .hint("@column@ chooses the token IDs that it is beside")),
        };
    }
    if !schema.tracks.is_empty() {
        return stored(source, asked);
    }
    let are_ids = schema.channels.is_none() && schema.element.dtype.is_integer();
    match asked {
        Some([]) => Ok(source),
        None if !are_ids || source.is_empty() => Ok(source),
        None => {
            let (columns, absent) = found(source.as_ref());
            Ok(Masked::over(source, columns, absent, options))
        }
        Some(names) => {
            check_names(source.as_ref(), names)?;
            Ok(Masked::over(source, names.to_vec(), Vec::new(), options))
        }
    }
}

/// The columns beside one record that say by their names which of its tokens are learned.
pub fn masks_beside(extras: &Extras) -> Vec<String> {
    let is_mask =
        |(name, value): &(&str, &Value)| MASK_COLUMNS.contains(&stem(name)) && may_be_mask(name, value);
    extras.iter().filter(is_mask).map(|(name, _)| name.to_string()).collect()
}

/// Which tokens of one record are learned, as these columns beside it say: 1 for each that is, 0 for the others.
///
/// # Errors
/// `Config` naming the column that is no mask of them.
pub fn learned_of(values: &Values<'_>, extras: &Extras, columns: &[String]) -> Result<Vec<u8>> {
    let (element, held) = (values.element, Arc::new(values.bytes.to_vec()));
    let record = InMemory::new("records", element, None, vec![(held, extras.clone())])?;
    let whole = Span { record: 0, start: 0, len: record.length(0)? };
    let masked = Masked::over(Arc::new(record), columns.to_vec(), Vec::new(), &Options::default());
    let mut scratch = Vec::new();
    let learned = masked.read_track(0, whole, &mut scratch)?.bytes.to_vec();
    Ok(learned)
}

// A format that stores its mask itself: it is taken as it is, or left out.
fn stored(source: SharedSource, asked: Option<&[String]>) -> Result<SharedSource> {
    match asked {
        None => Ok(source),
        Some([]) => Ok(Masked::over(source, Vec::new(), Vec::new(), &Options::default())),
        Some(names) => {
            let tracks = &source.schema().tracks;
            let other = names.iter().find(|name| tracks.iter().all(|track| track.name != **name));
            match other {
                None => Ok(source),
                Some(name) => Err(no_column(name, tracks.iter().map(|track| track.name.as_str()))),
            }
        }
    }
}

// The columns that say by their names which tokens are learned, and those of such names that say nothing of the tokens of
// the first record: another one's may.
fn found(source: &dyn Source) -> (Vec<String>, Vec<String>) {
    let known: Vec<String> = match &source.schema().beside {
        Some(names) => names.iter().filter(|name| MASK_COLUMNS.contains(&stem(name))).cloned().collect(),
        None => MASK_COLUMNS.map(str::to_string).to_vec(),
    };
    if known.is_empty() {
        return (known, Vec::new());
    }
    let Ok(first) = source.beside(0, &known) else {
        // What cannot be read is an error of that record, when it is read.
        let are_there = source.schema().beside.is_some();
        return if are_there { (known, Vec::new()) } else { (Vec::new(), known) };
    };
    known.into_iter().partition(|name| first.get(name).is_some_and(|value| may_be_mask(name, value)))
}

// A number or a text of the whole record says nothing of its tokens; labels that do not are not overlooked. Bytes are a
// mask of one byte each. Null is not there.
fn may_be_mask(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(array) => !array.shape.is_empty() || stem(name) == LABELS,
        Value::List(_) | Value::Bytes(_) => true,
        _ => stem(name) == LABELS,
    }
}

fn check_names(source: &dyn Source, names: &[String]) -> Result<()> {
    let first = match (&source.schema().beside, source.is_empty()) {
        (_, true) => return Ok(()),
        (Some(known), false) => known.clone(),
        (None, false) => source.extras(0)?.names().map(str::to_string).collect(),
    };
    match names.iter().find(|name| !first.contains(name)) {
        None => Ok(()),
        Some(name) => Err(no_column(name, first.iter().map(String::as_str))),
    }
}

fn no_column<'n>(name: &str, there: impl Iterator<Item = &'n str>) -> Error {
    let there: Vec<&str> = there.collect();
    let error = Error::config(format!("no column beside the tokens is called {name:?}")).field("mask_column");
    if there.is_empty() {
        error.hint("there is none; @mask_column=none@ trains on all tokens")
    } else {
        error.hint(format!("columns: {}", there.join(", ")))
    }
}

// A name without what says how it is stored, as in `labels.npy`.
fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Records with a track that is made of columns beside them.
struct Masked {
    inner: SharedSource,
    schema: Schema,
    /// The columns, all of which must say that a token is learned.
    columns: Vec<String>,
    /// Columns that are no part of the mask and looked at in each record: padding, and those of which the first record says
    /// nothing.
    watched: Vec<String>,
    /// dtype of a column of bytes.
    dtype: Option<DType>,
}

impl Masked {
    fn over(
        inner: SharedSource,
        columns: Vec<String>,
        absent: Vec<String>,
        options: &Options,
    ) -> SharedSource {
        let has_stored = !inner.schema().tracks.is_empty();
        let is_padding = |name: &&String| stem(name) == ATTENTION && !columns.contains(name);
        let attention = ATTENTION.to_string();
        let named: &[String] = match &inner.schema().beside {
            _ if has_stored => &[],
            Some(names) => names,
            None => std::slice::from_ref(&attention),
        };
        let watched: Vec<String> =
            absent.into_iter().chain(named.iter().filter(is_padding).cloned()).collect();
        if columns.is_empty() && watched.is_empty() && !has_stored {
            return inner;
        }
        let track = Some(Track::made_of(columns.clone()));
        let tracks = track.filter(|track| !track.made_of.is_empty()).into_iter().collect();
        let schema = Schema { tracks, ..inner.schema().clone() };
        Arc::new(Masked { inner, schema, columns, watched, dtype: options.dtype })
    }

    // Refuses a record with padding among its tokens, and one that says more than the first one did.
    fn check(&self, record: u64) -> Result<()> {
        if self.watched.is_empty() {
            return Ok(());
        }
        let beside = self.inner.beside(record, &self.watched)?;
        for (name, value) in beside.iter() {
            if stem(name) != ATTENTION && may_be_mask(name, value) {
                return Err(self.wrong(record, name, "is beside this record, but not beside the first one").hint(
                    "@mask_column@ names the mask that all records have; @mask_column=none@ trains on all tokens",
                ));
            }
            if stem(name) == ATTENTION {
                self.check_attention(record, name, value)?;
            }
        }
        Ok(())
    }

    fn check_attention(&self, record: u64, name: &str, value: &Value) -> Result<()> {
        let Some(at) = self.first_zero(value, self.inner.length(record)?) else { return Ok(()) };
        Err(self.wrong(record, name, format!("holds 0 at value {at}: padding would be read as tokens")).hint(
            "tokenise without padding: views pad; named in @mask_column@ beside the masks it keeps padding out of the loss, \
             @mask_column=none@ reads all as it is",
        ))
    }

    // Of whatever shape and length: null and other values are not padding.
    fn first_zero(&self, value: &Value, len: u64) -> Option<usize> {
        match value {
            Value::List(values) => values.iter().position(|value| self.first_zero(value, len).is_some()),
            Value::Array(array) => floats(array)?.iter().position(|number| *number == 0.0),
            Value::Bytes(bytes) => self.of_bytes(bytes, len)?.iter().position(|number| *number == 0),
            other => (whole_number(other) == Some(0)).then_some(0),
        }
    }

    fn wrong(&self, record: u64, name: &str, what: impl std::fmt::Display) -> Error {
        let error = Error::config(format!("the column {name:?} {what}")).record(record).field(name);
        let whole = self.inner.length(record).map(|len| Span { record, start: 0, len });
        match whole.and_then(|span| self.inner.locate(span)) {
            Ok(places) if !places.is_empty() => error.at(&places[0].file),
            _ => error,
        }
    }

    // The numbers of a column, one for each token of the record.
    fn numbers(&self, record: u64, name: &str, value: &Value) -> Result<Vec<i64>> {
        let len = self.inner.length(record)?;
        let numbers = match value {
            Value::Array(array) => of_array(array),
            Value::List(values) => values.iter().map(whole_number).collect(),
            Value::Bytes(bytes) => self.of_bytes(bytes, len),
            _ => None,
        };
        let hint = match stem(name) {
            LABELS => LABELS_HINT,
            _ => "a mask has a whole number for each token; @mask_column=none@ trains on all tokens",
        };
        match numbers {
            Some(numbers) if numbers.len() as u64 == len => Ok(numbers),
            Some(numbers) => Err(self
                .wrong(record, name, format!("holds {} values beside {len} tokens", numbers.len()))
                .hint(hint)),
            None => {
                let shown: String = value.shown().to_string().chars().take(80).collect();
                let what = format!("holds {shown}, expected a whole number for each token");
                Err(self.wrong(record, name, what).hint(hint))
            }
        }
    }

    // Bytes are numbers of the dtype that was given, or one each.
    fn of_bytes(&self, bytes: &[u8], len: u64) -> Option<Vec<i64>> {
        let is_wide = |dtype: &DType| bytes.len() as u64 == len.saturating_mul(dtype.size() as u64);
        let dtype = self.dtype.filter(is_wide).unwrap_or(DType::U8);
        let shape = vec![bytes.len() as u64 / dtype.size() as u64];
        of_array(&Array { dtype, shape, bytes: bytes.to_vec() })
    }

    // Takes out the tokens of a span that a column does not learn.
    fn mask(&self, span: Span, name: &str, beside: &Row, learned: &mut [u8]) -> Result<()> {
        let value = beside.get(name).unwrap_or(&Value::Null);
        let numbers = self.numbers(span.record, name, value)?;
        let are_labels = stem(name) == LABELS || numbers.iter().any(|number| !(0..=1).contains(number));
        // Within the record, whose numbers these are.
        let numbers = &numbers[span.start as usize..][..learned.len()];
        if !are_labels {
            learned.iter_mut().zip(numbers).for_each(|(learned, number)| *learned &= *number as u8);
            return Ok(());
        }
        let tokens = self.tokens(span)?;
        for (at, (label, token)) in numbers.iter().zip(&tokens).enumerate() {
            match (*label == NOT_LEARNED, label == token) {
                (true, _) => learned[at] = 0,
                (false, true) => {}
                (false, false) => {
                    let at = span.start + at as u64;
                    let what = format!("holds {label} at value {at}, where the token is {token}");
                    return Err(self.wrong(span.record, name, what).hint(LABELS_HINT));
                }
            }
        }
        Ok(())
    }

    // The token IDs of a span.
    fn tokens(&self, span: Span) -> Result<Vec<i64>> {
        let mut scratch = Vec::new();
        let values = self.inner.read(span, &mut scratch)?;
        let mut tokens = vec![0i64; values.bytes.len() / values.element.size()];
        copy_values(&values, 0, bytemuck::cast_slice_mut(&mut tokens), DType::I64)?;
        Ok(tokens)
    }
}

const LABELS_HINT: &str = "a mask is 0 and 1; labels are -100 or the token beside them, not shifted; other labels are read with @columns@ and \
                           @rows_view@; @mask_column=none@ trains on all tokens";

fn of_array(array: &Array) -> Option<Vec<i64>> {
    if array.shape.len() != 1 {
        return None;
    }
    if !array.dtype.is_integer() {
        return floats(array)?.into_iter().map(whole_float).collect();
    }
    let mut numbers = vec![0i64; array.bytes.len() / array.dtype.size()];
    copy_values(&flat(array), 0, bytemuck::cast_slice_mut(&mut numbers), DType::I64).ok()?;
    Some(numbers)
}

fn floats(array: &Array) -> Option<Vec<f64>> {
    let mut floats = vec![0f64; array.bytes.len() / array.dtype.size()];
    copy_values(&flat(array), 0, bytemuck::cast_slice_mut(&mut floats), DType::F64).ok()?;
    Some(floats)
}

fn flat(array: &Array) -> Values<'_> {
    Values { bytes: &array.bytes, element: Element::little(array.dtype), channels: 1, decode: Decode::Plain }
}

fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(is_learned) => Some(i64::from(*is_learned)),
        Value::F64(number) => whole_float(*number),
        other => other.as_i64(),
    }
}

// Within 32 bits a float is a whole number, or is not one.
fn whole_float(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= f64::from(u32::MAX)).then_some(number as i64)
}

#[deny(clippy::missing_trait_methods)]
impl Lengths for Masked {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.inner.length(record)
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        self.inner.lengths(first, out)
    }

    fn uniform(&self) -> Option<u64> {
        self.inner.uniform()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[deny(clippy::missing_trait_methods)]
impl Source for Masked {
    crate::source::forward! { inner: row value rows_from extras beside text prefetch touch decode_ahead locate files fingerprint format object word cells }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.check(span.record)?;
        self.inner.read(span, scratch)
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.check(record)?;
        self.inner.read_whole(record, scratch)
    }

    fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let Some(made) = self.schema.tracks.get(track) else {
            return Err(Error::out_of_range("track", track, self.schema.tracks.len() as u64));
        };
        crate::source::check_span(span, self.inner.length(span.record)?)?;
        let beside = self.inner.beside(span.record, &self.columns)?;
        scratch.clear();
        scratch.resize(span.len as usize, 1);
        self.columns.iter().try_for_each(|name| self.mask(span, name, &beside, scratch))?;
        Ok(Values { bytes: scratch, element: made.element, channels: 1, decode: Decode::Plain })
    }

    // Each record is read with what is beside it.
    fn stored(&self, _record: u64) -> Result<Option<Stored>> {
        Ok(None)
    }

    fn joined(&self) -> Option<SharedSource> {
        None
    }

    fn treatment(&self) -> Option<String> {
        let inner = self.inner.treatment();
        if self.columns.is_empty() {
            return inner;
        }
        let own = format!("mask={}", self.columns.join("+"));
        Some(inner.map_or(own.clone(), |inner| format!("{inner},{own}")))
    }
}
