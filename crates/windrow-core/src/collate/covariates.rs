//! What is known beside series, from the metadata of their records: times, and features that are static or go on in time.

use super::calendar::{Frequency, agree, seconds_of};
use super::moments::{FREQ, START, WHERE_TIMES_COME_FROM};
use super::{Field, Row};
use crate::array::{Buffer, DType, Element};
use crate::error::{Error, Result};
use crate::record::{Decode, Span, Values};
use crate::row::{Array, Value};
use crate::source::Extras;
use crate::values::copy_values;

/// A covariate of series, by the names that GluonTS has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covariate {
    /// Of each time, float32 `[width, features]`; see [`Frequency::features`](super::Frequency::features).
    TimeFeatures,
    /// Of each series, int64 `[features]`.
    StaticCat,
    /// Of each series, float32 `[features]`.
    StaticReal,
    /// Of each time, int64 `[width, features]`, from `[features, T]`.
    DynamicCat,
    /// Of each time, float32 `[width, features]`.
    DynamicReal,
    /// Numbers of the past alone.
    PastDynamicReal,
}

impl Covariate {
    /// All of them.
    pub const ALL: [Covariate; 6] = [
        Covariate::TimeFeatures,
        Covariate::StaticCat,
        Covariate::StaticReal,
        Covariate::DynamicCat,
        Covariate::DynamicReal,
        Covariate::PastDynamicReal,
    ];

    /// The name of the field, and of the metadata that it comes from.
    pub fn name(self) -> &'static str {
        match self {
            Covariate::TimeFeatures => "time_features",
            Covariate::StaticCat => "feat_static_cat",
            Covariate::StaticReal => "feat_static_real",
            Covariate::DynamicCat => "feat_dynamic_cat",
            Covariate::DynamicReal => "feat_dynamic_real",
            Covariate::PastDynamicReal => "past_feat_dynamic_real",
        }
    }

    fn is_static(self) -> bool {
        matches!(self, Covariate::StaticCat | Covariate::StaticReal)
    }

    fn is_category(self) -> bool {
        matches!(self, Covariate::StaticCat | Covariate::DynamicCat)
    }
}

/// The covariates of all records of a source, in memory: 8 bytes a record for times, 4 or 8 for each number of a feature.
#[derive(Debug, Default)]
pub struct Covariates {
    columns: Vec<(Covariate, Column)>,
    /// What comes before each record's first value, where a record is a part of a series in time.
    before: Vec<u64>,
    freq: Option<String>,
}

#[derive(Debug)]
enum Column {
    /// The period in which each series begins.
    Times(Frequency, Vec<(Frequency, i64)>),
    Categories(Table<i64>),
    Reals(Table<f32>),
}

/// Rows of numbers: one of each series, or one of each of its times.
#[derive(Debug)]
struct Table<T> {
    width: usize,
    /// The row after each series.
    ends: Vec<usize>,
    numbers: Vec<T>,
}

/// A record as its covariates see it.
pub struct OfSeries {
    /// What is beside its values.
    pub extras: Extras,
    /// Values of the whole series.
    pub length: u64,
    /// Those of them that come before the record's first, where it is a part of the series in time.
    pub before: u64,
}

impl Covariates {
    /// Those that are wanted, of all records. `freq` is a frequency that is not beside the record, or as long as the one that is.
    ///
    /// # Errors
    /// `Config` naming the record for metadata that is not there, of another frequency or of another shape than that of the first record; what
    /// `records` says.
    pub fn read(
        wanted: &[Covariate],
        freq: Option<&str>,
        records: impl Iterator<Item = Result<OfSeries>>,
    ) -> Result<Covariates> {
        let given = freq.map(|freq| Ok::<_, Error>((freq, Frequency::parse(freq)?))).transpose()?;
        let mut columns: Vec<(Covariate, Column)> = Vec::new();
        let mut before = Vec::new();
        for (record, found) in (0..).zip(records) {
            let series = found?;
            before.push(series.before);
            for (number, &covariate) in wanted.iter().enumerate() {
                let known = columns.get_mut(number).map(|(_, column)| column);
                let added = match covariate {
                    Covariate::TimeFeatures => add_time(known, &series.extras, given),
                    _ => add_features(known, &series, covariate),
                };
                let new = added.map_err(|e| e.record(record))?;
                columns.extend(new.map(|column| (covariate, column)));
            }
        }
        Ok(Covariates { columns, before, freq: freq.map(str::to_string) })
    }

    /// What decides times besides the records: the frequency that was given.
    pub(super) fn describe(&self) -> String {
        self.freq.as_ref().map_or(String::new(), |freq| format!(",freq={freq}"))
    }

    /// The tensor of covariate `number` among those that were wanted, of windows of `length` values.
    pub(super) fn field(&self, number: usize, covariate: Covariate, length: usize) -> Field {
        let (dtype, width) = match self.columns.get(number).map(|(_, column)| column) {
            Some(Column::Times(first, _)) => (DType::F32, first.features().len()),
            Some(Column::Categories(table)) => (DType::I64, table.width),
            Some(Column::Reals(table)) => (DType::F32, table.width),
            // Without records there are no rows.
            None => (if covariate.is_category() { DType::I64 } else { DType::F32 }, 0),
        };
        if covariate.is_static() {
            Field::new(covariate.name(), dtype, [width])
        } else {
            Field::new(covariate.name(), dtype, [length, width])
        }
    }

    /// Writes covariate `number`, beside the values of a window, into its field. Times continue after a series that is
    /// shorter; features are 0 there.
    pub(super) fn write(&self, number: usize, span: Span, row: &mut Row<'_>, field: usize) -> Result<()> {
        let record = span.record as usize;
        let (Some((covariate, column)), Some(before)) = (self.columns.get(number), self.before.get(record))
        else {
            return Err(Error::out_of_range("record", span.record, self.before.len() as u64));
        };
        let first = if covariate.is_static() { 0 } else { before + span.start };
        match column {
            Column::Times(_, starts) => {
                let (frequency, start) = starts[record];
                frequency.write(start, first, row.numbers::<f32>(field));
            }
            Column::Categories(table) => table.write(record, first, row.numbers::<i64>(field)),
            Column::Reals(table) => table.write(record, first, row.numbers::<f32>(field)),
        }
        Ok(())
    }
}

fn add_time(
    known: Option<&mut Column>,
    extras: &Extras,
    given: Option<(&str, Frequency)>,
) -> Result<Option<Column>> {
    let no_times = |what: &str| {
        Error::config(format!("time_features of a record without {what}"))
            .field("fields")
            .hint(WHERE_TIMES_COME_FROM)
    };
    let Some(Value::Text(start)) = extras.get(START) else { return Err(no_times("a start in time")) };
    let frequency = match (given, extras.get(FREQ)) {
        (Some((said, _)), Some(Value::Text(found))) if agree(said, found) == Some(false) => {
            return Err(Error::config(format!("@freq={said:?}@, found times of the frequency {found:?}"))
                .field(FREQ)
                .hint("leave @freq@ out: the frequency of these times is known"));
        }
        (Some((_, given)), _) => given,
        (None, Some(Value::Text(freq))) => Frequency::parse(freq)?,
        (None, _) => return Err(no_times("a frequency")),
    };
    let period = frequency.period_of(seconds_of(start)?);
    match known {
        None => Ok(Some(Column::Times(frequency, vec![(frequency, period)]))),
        Some(Column::Times(first, starts)) if first.is_as_long_as(frequency) => {
            starts.push((frequency, period));
            Ok(None)
        }
        Some(_) => Err(Error::config("time_features of series of several frequencies")
            .field(FREQ)
            .hint(
                "they have other features, which no batch can hold together: train on the series of each frequency by themselves, or leave \
                 time_features out of fields",
            )),
    }
}

fn add_features(
    known: Option<&mut Column>,
    series: &OfSeries,
    covariate: Covariate,
) -> Result<Option<Column>> {
    let (name, extras) = (covariate.name(), &series.extras);
    let Some(found) = extras.get(name) else {
        let names: Vec<&str> = extras.names().collect();
        return Err(Error::config(format!("a record without {name}")).field("fields").hint(
            if names.is_empty() {
                "nothing is beside its values".to_string()
            } else {
                format!("beside its values are {}", names.join(", "))
            },
        ));
    };
    let refused = |what: String, hint: &'static str| Error::config(what).field(name).hint(hint);
    let rows = if covariate.is_static() {
        numbers(found).map(|features| (features.len(), vec![features]))
    } else {
        features_in_time(found)
    };
    let expected = if covariate.is_static() { "numbers [features]" } else { "numbers [features, T]" };
    let (width, rows) = rows.ok_or_else(|| {
        refused(
            format!("{name} is not {expected}"),
            "store it as lists of numbers of that shape, in every record, or leave it out of fields",
        )
    })?;
    if !covariate.is_static() && (rows.len() as u64) < series.length {
        return Err(refused(
            format!("{name} has {} times, its series {} values", rows.len(), series.length),
            "give a number for each time of the series",
        ));
    }
    let is_category = |x: &f64| x.fract() == 0.0 && x.abs() < 2f64.powi(53);
    if covariate.is_category()
        && let Some(other) = rows.iter().flatten().find(|x| !is_category(x))
    {
        return Err(refused(
            format!("{name} holds {other}, expected whole numbers"),
            "number the categories, from 0 on; what is missing has a number too",
        ));
    }
    let new = match (known, covariate.is_category()) {
        (Some(Column::Categories(table)), _) => return table.add(&rows, |x| x as i64, name).map(|()| None),
        (Some(Column::Reals(table)), _) => return table.add(&rows, |x| x as f32, name).map(|()| None),
        (_, true) => Column::Categories(Table::first(width, &rows, |x| x as i64, name)?),
        (_, false) => Column::Reals(Table::first(width, &rows, |x| x as f32, name)?),
    };
    Ok(Some(new))
}

impl<T: Copy + Default> Table<T> {
    fn first(width: usize, rows: &[Vec<f64>], of: impl Fn(f64) -> T, name: &'static str) -> Result<Table<T>> {
        let mut table = Table { width, ends: Vec::new(), numbers: Vec::new() };
        table.add(rows, of, name)?;
        Ok(table)
    }

    fn add(&mut self, rows: &[Vec<f64>], of: impl Fn(f64) -> T, name: &'static str) -> Result<()> {
        for row in rows {
            if row.len() != self.width {
                return Err(Error::config(format!(
                    "{} features, the first record has {}",
                    row.len(),
                    self.width
                ))
                .field(name)
                .hint("all series of a data set have the same number of features"));
            }
            self.numbers.extend(row.iter().map(|x| of(*x)));
        }
        self.ends.push(self.numbers.len() / self.width.max(1));
        Ok(())
    }

    fn write(&self, record: usize, first: u64, out: &mut [T]) {
        let start = record.checked_sub(1).map_or(0, |before| self.ends[before]) * self.width;
        let all = &self.numbers[start..self.ends[record] * self.width];
        let first = usize::try_from(first).ok().and_then(|first| first.checked_mul(self.width));
        let rest = first.and_then(|first| all.get(first..)).unwrap_or_default();
        let n = rest.len().min(out.len());
        out[..n].copy_from_slice(&rest[..n]);
        out[n..].fill(T::default());
    }
}

// A list of numbers, where it is one; what is missing is NaN.
fn numbers(value: &Value) -> Option<Vec<f64>> {
    match value {
        Value::List(values) => values.iter().map(number).collect(),
        Value::Array(array) if array.shape.len() == 1 => numbers_of(array),
        _ => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::I64(x) => Some(*x as f64),
        Value::U64(x) => Some(*x as f64),
        Value::F64(x) => Some(*x),
        Value::Bool(x) => Some(f64::from(*x)),
        Value::Null => Some(f64::NAN),
        // As GluonTS writes it.
        Value::Text(text) if text.eq_ignore_ascii_case("nan") => Some(f64::NAN),
        _ => None,
    }
}

fn numbers_of(array: &Array) -> Option<Vec<f64>> {
    let element = Element::little(array.dtype);
    let values = Values { bytes: &array.bytes, element, channels: 1, decode: Decode::Plain };
    let mut out = Buffer::zeroed(array.bytes.len() / element.size() * size_of::<f64>());
    copy_values(&values, 0, out.bytes_mut(), DType::F64).ok()?;
    Some(bytemuck::cast_slice(out.bytes()).to_vec())
}

// The number of features, and a row of them for each time, from a list for each feature.
fn features_in_time(value: &Value) -> Option<(usize, Vec<Vec<f64>>)> {
    let lists: Vec<Vec<f64>> = match value {
        Value::List(lists) => lists.iter().map(numbers).collect::<Option<_>>()?,
        Value::Array(array) if array.shape.len() == 2 => {
            let length = usize::try_from(array.shape[1]).ok()?.max(1);
            numbers_of(array)?.chunks(length).map(<[f64]>::to_vec).collect()
        }
        _ => return None,
    };
    let length = lists.first().map_or(0, Vec::len);
    let is_even = lists.iter().all(|list| list.len() == length);
    let rows = || (0..length).map(|at| lists.iter().map(|list| list[at]).collect()).collect();
    is_even.then(|| (lists.len(), rows()))
}
