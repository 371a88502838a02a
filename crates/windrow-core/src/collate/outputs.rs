//! The fields of a batch as a trainer wants them: by other names, of other dtypes, some left out, some made of others.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::batch::Staging;
use super::derived::Derived;
use super::{Batch, Field, Pool, Row};
use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::near::nearest;
use crate::number::{Number, number};
use crate::record::{Decode, Values};
use crate::values::copy_values;

/// What the fields of a batch are called, and their dtypes, where these are not the layout's. They decide no plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// What a field is called; `None` leaves it out. Three are made where they are named here and the layout has none of that name:
    /// `loss_masks` `[T]`, 1 where `labels` are not what a loss ignores; `segments` `[T]`, `segment_ids` from 1 on, 0 in padding;
    /// `seq_lens`, the differences of `cu_seqlens`, zeros behind. All int32.
    pub names: Vec<(String, Option<String>)>,
    /// The dtype of a field, called as the layout calls it.
    pub dtypes: Vec<(String, DType)>,
}

/// How the fields of a layout leave.
#[derive(Clone, Debug)]
pub(crate) struct Outputs {
    options: OutputOptions,
    // The label of what is not learned, where labels say it.
    ignored: Option<i64>,
    n_filled: usize,
    // Each with what it is made of; they come after what the layout fills.
    derived: Vec<(Derived, usize)>,
    // Fields of another dtype, and the fields of the batch that are made of them.
    casts: Vec<(usize, usize)>,
    staging: Arc<Staging>,
}

impl OutputOptions {
    /// Whether all fields leave as they are.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.dtypes.is_empty()
    }

    // What a field is called; None where it is left out.
    fn name<'a>(&'a self, field: &'a Field) -> Option<Cow<'static, str>> {
        match self.names.iter().find(|(ours, _)| *ours == field.name) {
            Some((_, name)) => name.clone().map(Cow::Owned),
            None => Some(field.name.clone()),
        }
    }

    fn dtype(&self, field: &Field) -> DType {
        let found = self.dtypes.iter().find(|(ours, _)| *ours == field.name);
        found.map_or(field.dtype, |(_, dtype)| *dtype)
    }

    // The fields that are made, and the numbers of what they are made of.
    fn derived(&self, fields: &[Field], ignored: Option<i64>) -> Result<Vec<(Derived, usize)>> {
        let is_there = |name: &str| fields.iter().any(|field| field.name == name);
        let made = self.names.iter().filter(|(ours, name)| name.is_some() && !is_there(ours));
        let made =
            made.filter_map(|(ours, _)| Derived::ALL.into_iter().find(|derived| derived.name() == ours));
        made.map(|derived| Ok((derived, source(derived, fields, ignored)?))).collect()
    }

    // Refuses what these fields cannot be called, and dtypes that they cannot have.
    fn check(&self, fields: &[Field]) -> Result<()> {
        let field = |name: &str| fields.iter().find(|field| field.name == name);
        for (at, (ours, _)) in self.names.iter().enumerate() {
            if field(ours).is_none() {
                return Err(unknown(ours, fields).field("names"));
            }
            if self.names[..at].iter().any(|(other, _)| other == ours) {
                return Err(Error::config(format!("@names@ has {ours} twice")).field("names"));
            }
        }
        for (ours, dtype) in &self.dtypes {
            let Some(field) = field(ours) else { return Err(unknown(ours, fields).field("dtypes")) };
            if self.name(field).is_none() {
                return Err(
                    Error::config(format!("@dtypes@ has {ours}, which @names@ leaves out")).field("dtypes")
                );
            }
            if dtype.is_integer() && !field.dtype.is_integer() {
                let (stored, hint) = (field.dtype, "choose a dtype of floats, as float32");
                return Err(Error::config(format!(
                    "{ours} holds {stored}, and {dtype} holds whole numbers only"
                ))
                .field("dtypes")
                .hint(hint));
            }
        }
        self.check_leaving(fields)
    }

    fn check_leaving(&self, fields: &[Field]) -> Result<()> {
        let leaving: Vec<_> =
            fields.iter().filter_map(|field| Some((self.name(field)?, &field.name))).collect();
        if leaving.is_empty() {
            return Err(Error::config("@names@ leaves out every field").field("names"));
        }
        for (at, (name, ours)) in leaving.iter().enumerate() {
            if let Some((_, other)) = leaving[..at].iter().find(|(other, _)| other == name) {
                return Err(Error::config(format!("{other} and {ours} are both called {name:?}"))
                    .field("names")
                    .hint("give one of them another name in @names@, or None to leave it out"));
            }
        }
        Ok(())
    }
}

// The number of the field that one is made of.
fn source(derived: Derived, fields: &[Field], ignored: Option<i64>) -> Result<usize> {
    let (name, source) = (derived.name(), derived.source());
    let refused = |why: String, hint: &str| Err(Error::config(why).field("names").hint(hint));
    match fields.iter().position(|field| field.name == source) {
        None => refused(
            format!("{name} is made of {source}, which the view does not have: it has {}", listed(fields)),
            "labels are there without @labels=none@; pack with @documents=true@, bins and segments have segment_ids and cu_seqlens, \
             all of them as far as @fields@ names them",
        ),
        Some(_) if derived == Derived::Masks && ignored.is_none() => refused(
            format!("{name} cannot be made of these labels: they do not say which positions are padding"),
            "the view has loss_masks itself: name them in its @fields@",
        ),
        Some(number) => Ok(number),
    }
}

fn unknown(name: &str, fields: &[Field]) -> Error {
    let derived =
        Derived::ALL.into_iter().filter(|derived| fields.iter().all(|field| field.name != derived.name()));
    let derived: Vec<&str> = derived.map(Derived::name).collect();
    if derived.contains(&name) {
        return Error::config(format!("{name} is only there where @names@ gives it a name"))
            .hint(format!("the view has {}", listed(fields)));
    }
    let names = fields.iter().map(|field| &*field.name).chain(derived.iter().copied());
    let near = nearest(name, names).map_or(String::new(), |near| format!("did you mean {near}? "));
    let made = if derived.is_empty() {
        String::new()
    } else {
        format!("; made of them, where they can be: {}", derived.join(", "))
    };
    Error::config(format!("no field {name:?} in the batches of this view"))
        .hint(format!("{near}It has {}{made}", listed(fields)))
}

fn listed(fields: &[Field]) -> String {
    fields.iter().map(|field| &*field.name).collect::<Vec<_>>().join(", ")
}

impl Outputs {
    /// For a layout that fills these fields; `ignored` is the label of what is not learned, where labels say it.
    ///
    /// # Errors
    /// `Config` for names that it does not have, that two fields would have, and dtypes that fields cannot have.
    pub(crate) fn new(options: OutputOptions, fields: &[Field], ignored: Option<i64>) -> Result<Outputs> {
        let derived = options.derived(fields, ignored)?;
        let outputs = Outputs::of(options, derived, fields, ignored);
        outputs.options.check(&outputs.staging.filled)?;
        Ok(outputs)
    }

    fn of(
        options: OutputOptions,
        derived: Vec<(Derived, usize)>,
        fields: &[Field],
        ignored: Option<i64>,
    ) -> Outputs {
        let made = derived.iter().map(|(derived, source)| derived.field(&fields[*source]));
        let filled: Arc<[Field]> = fields.iter().cloned().chain(made).collect();
        let (mut leaving, mut casts, mut own) = (Vec::new(), Vec::new(), Vec::new());
        for (number, field) in filled.iter().enumerate() {
            let (name, dtype) = (options.name(field), options.dtype(field));
            own.push((name.is_some() && dtype == field.dtype).then_some(leaving.len()));
            let Some(name) = name else { continue };
            if dtype != field.dtype {
                casts.push((number, leaving.len()));
            }
            leaving.push(Field { name, dtype, shape: field.shape.clone() });
        }
        let staging = Arc::new(Staging { filled, own, fields: leaving.into() });
        Outputs { options, ignored, n_filled: fields.len(), derived, casts, staging }
    }

    /// How these fields of the layout leave, which may have another length in each batch.
    pub(crate) fn fitting(&self, fields: &[Field]) -> Cow<'_, Outputs> {
        if self.staging.filled[..self.n_filled] == *fields {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Outputs::of(self.options.clone(), self.derived.clone(), fields, self.ignored))
    }

    /// Memory for `rows` rows; as [`Batch::new`].
    ///
    /// # Errors
    /// `Memory` when there is not so much.
    pub(crate) fn batch(&self, rows: usize, pool: Option<&Pool>) -> Result<Batch> {
        Batch::staged(&self.staging, rows, pool)
    }

    /// Makes what leaves of a row that the layout has filled.
    ///
    /// # Errors
    /// `Corrupt` that names field, row and value, where a dtype cannot hold one.
    pub(crate) fn finish(&self, row: &mut Row<'_>) -> Result<()> {
        for (number, (derived, source)) in (self.n_filled..).zip(&self.derived) {
            derived.fill(row, [*source, number], self.ignored);
        }
        for (number, leaving) in &self.casts {
            let (stored, dtype) = (&self.staging.filled[*number], self.staging.fields[*leaving].dtype);
            let row_number = row.number();
            let [from, out] = row.staged(*number, *leaving);
            if !cast(from, stored.dtype, out, dtype) {
                return Err(misfit(from, stored, out, dtype, row_number));
            }
        }
        Ok(())
    }
}

/// The fields that leave: `tokens int64, loss_mask float32`.
impl fmt::Display for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.staging.fields.iter().map(|field| format!("{} {}", field.name, field.dtype));
        f.write_str(&fields.collect::<Vec<_>>().join(", "))
    }
}

fn native(dtype: DType) -> Element {
    Element { dtype, big_endian: cfg!(target_endian = "big") }
}

// Writes the numbers as another dtype, and says whether that holds them.
fn cast(bytes: &[u8], stored: DType, out: &mut [u8], dtype: DType) -> bool {
    let values = Values { bytes, element: native(stored), channels: 1, decode: Decode::Plain };
    match dtype {
        // A byte of 0 or 1.
        DType::Bool => copy_values(&values, 0, out, DType::U8).is_ok() && out.iter().all(|flag| *flag <= 1),
        dtype => copy_values(&values, 0, out, dtype).is_ok(),
    }
}

// Names the first number that does not fit.
fn misfit(bytes: &[u8], stored: &Field, out: &mut [u8], dtype: DType, row: usize) -> Error {
    let mut numbers = bytes.chunks_exact(stored.dtype.size()).zip(out.chunks_exact_mut(dtype.size()));
    let wrong = numbers.find_map(|(one, out)| (!cast(one, stored.dtype, out, dtype)).then_some(one));
    let shown = match wrong.and_then(|one| number(one, native(stored.dtype))) {
        Some(Number::Int(number)) => number.to_string(),
        Some(Number::Big(number)) => number.to_string(),
        Some(Number::Float(number)) => number.to_string(),
        Some(Number::Bool(_)) | None => String::new(),
    };
    Error::corrupt(format!(
        "{} of row {row} of the batch: the number {shown} does not fit {dtype}",
        stored.name
    ))
    .field(&*stored.name)
    .hint(format!("choose another dtype for {} in @dtypes@", stored.name))
}
