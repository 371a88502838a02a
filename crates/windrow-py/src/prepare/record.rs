//! One record that is written, as Python gives it: checked, and handed on as its numbers and what is beside them.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use windrow::dev::source::Extras;
use windrow::format::WriteFormat;
use windrow::prepare::Writer;
use windrow::{DType, Error};
use windrow_core::{Decode, Element, Values};

use crate::python::array::as_array;
use crate::python::error::{OrRaise, raise};
use crate::python::row;
use crate::python::said::said;

/// A record of numbers.
pub(crate) struct Record<'py> {
    /// Its number.
    pub(crate) number: u64,
    // `[T]` or `[T, C]`, in the machine's byte order.
    array: Bound<'py, PyAny>,
    /// What is kept beside the numbers.
    pub(crate) extras: Extras,
    /// Numbers per value, of `[T, C]`.
    pub(crate) channels: Option<usize>,
    dtype: DType,
    // It came with that dtype; a list of Python's numbers has none.
    has_dtype: bool,
    is_empty: bool,
}

impl<'py> Record<'py> {
    /// The record of this number: an array or what numpy makes one of, or a dict that holds it as `sequence`.
    ///
    /// # Errors
    /// `ConfigError` naming the record for what is not numbers `[T]` or `[T, C]`.
    pub(crate) fn read(item: &Bound<'py, PyAny>, number: u64) -> PyResult<Record<'py>> {
        let py = item.py();
        let refused =
            |what: String, hint: &str| Err(raise(py, &Error::config(what).record(number).hint(hint)));
        let (sequence, extras) = parts(item, number)?;
        let numpy = py.import("numpy")?;
        let array = as_array(&sequence)?;
        let found = array.getattr("dtype")?;
        let kind: String = found.getattr("kind")?.extract()?;
        let is_bfloat16 = found.getattr("name")?.eq("bfloat16")?;
        if !"biuf".contains(&kind) && !is_bfloat16 {
            return refused(
                format!("a record of {}; expected numbers", said(&found)?),
                "complex numbers are two channels; times, text and None are not numbers",
            );
        }
        if numpy.getattr("ma")?.call_method1("is_masked", (&sequence,))?.is_truthy()? {
            return refused(
                "a record of which numbers are masked".to_string(),
                "fill them: record.filled(…)",
            );
        }
        let shape: Vec<usize> = array.getattr("shape")?.extract()?;
        let channels = match shape[..] {
            [_] => None,
            [_, channels] if channels > 0 => Some(channels),
            _ => {
                return refused(
                    format!("a record of shape {shape:?}; expected [T] or [T, C]"),
                    "several records are a list of them, or an array [N, T]",
                );
            }
        };
        // Longer floats than float64 are rounded to it.
        let native = if kind == "f" && found.getattr("itemsize")?.gt(8)? {
            numpy.call_method1("dtype", ("float64",))?
        } else {
            found.call_method1("newbyteorder", ("=",))?
        };
        // By its name: an error of Python's may be a Ctrl-C.
        let Ok(dtype) = DType::parse(&native.getattr("name")?.extract::<String>()?) else {
            return refused(
                format!("a record of {}; expected numbers", said(&found)?),
                "choose a dtype that NumPy has",
            );
        };
        let copy = PyDict::new(py);
        copy.set_item("copy", false)?;
        let array = array.call_method("astype", (&native,), Some(&copy))?;
        Ok(Record {
            number,
            array,
            extras,
            channels,
            dtype,
            has_dtype: sequence.hasattr("dtype")?,
            is_empty: shape.contains(&0),
        })
    }

    /// dtype that it asks for in this format, if it says one.
    pub(crate) fn usual_dtype(&self, format: &dyn WriteFormat) -> Option<DType> {
        match self.dtype {
            dtype if self.has_dtype => Some(dtype),
            _ if self.is_empty => None,
            DType::F64 => Some(DType::F32),
            dtype if dtype != DType::Bool && format.info().holds_ids() => Some(DType::U32),
            dtype => Some(dtype),
        }
    }

    /// That the format has numbers of which true and false may be some, where the record is made of these.
    ///
    /// # Errors
    /// `ConfigError` naming the record.
    pub(crate) fn check_bool(&self, py: Python<'_>, format: &dyn WriteFormat) -> PyResult<()> {
        match self.dtype {
            DType::Bool => format
                .stored_dtype(DType::Bool, None)
                .map(drop)
                .map_err(|e| e.record(self.number))
                .or_raise(py),
            _ => Ok(()),
        }
    }

    /// That the format holds such records, where it stores numbers as `stored`.
    ///
    /// # Errors
    /// `ConfigError` naming the record, of one that is not token IDs where these are stored.
    pub(crate) fn check(&self, py: Python<'_>, format: &dyn WriteFormat, stored: DType) -> PyResult<()> {
        if !format.info().holds_ids() || is_float(stored) {
            return Ok(());
        }
        let what = match self.channels {
            Some(_) => format!("of shape {}", self.array.getattr("shape")?),
            None if self.is_empty || (!is_float(self.dtype) && self.dtype != DType::Bool) => return Ok(()),
            None => format!("of {} values", self.dtype),
        };
        let error = Error::config(format!("a record {what}; {} holds token IDs", format.name()));
        Err(raise(py, &error.record(self.number).hint("a record is whole numbers [T]")))
    }

    /// Writes it; how many bytes it was. `handed` is the dtype that the writer hands on.
    ///
    /// # Errors
    /// `ConfigError` naming record and value of a number that does not fit; what the writer says.
    pub(crate) fn add_to(&self, py: Python<'_>, writer: &mut Writer, handed: DType) -> PyResult<u64> {
        let channels = self.channels.unwrap_or(1);
        let becomes_whole = is_float(self.dtype) && !is_float(handed);
        let array =
            if becomes_whole { self.array.call_method1("astype", ("float64",))? } else { self.array.clone() };
        let bytes = array.call_method0("tobytes")?;
        let bytes = bytes.cast::<PyBytes>()?.as_bytes();
        let whole;
        let (bytes, dtype) = if becomes_whole {
            // Whole numbers may come as floats; the writer takes none.
            let dtype = if handed == DType::U64 { DType::U64 } else { DType::I64 };
            whole = whole_numbers(bytes, dtype).map_err(|(at, number)| {
                let at = at / channels;
                let error = Error::config(format!("the number {number} at value {at} does not fit {handed}"));
                raise(py, &error.record(self.number).hint("choose a wider dtype; a fraction needs a float"))
            })?;
            (&whole[..], dtype)
        } else {
            (bytes, self.dtype)
        };
        let element = Element { dtype, big_endian: cfg!(target_endian = "big") };
        let values = Values { bytes, element, channels, decode: Decode::Plain };
        let extras = &self.extras;
        py.detach(|| writer.add(&values, extras)).or_raise(py)?;
        Ok(bytes.len() as u64)
    }
}

fn is_float(dtype: DType) -> bool {
    !dtype.is_integer()
}

// float64 numbers as `dtype`, which is int64 or uint64; the first that is another number then, and its place.
fn whole_numbers(bytes: &[u8], dtype: DType) -> Result<Vec<u8>, (usize, f64)> {
    const BEYOND: f64 = (1u64 << 63) as f64;
    let mut out = Vec::with_capacity(bytes.len());
    for (at, number) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let number = f64::from_ne_bytes(*number);
        let is_whole = number.fract() == 0.0;
        match dtype {
            DType::U64 if is_whole && (0.0..2.0 * BEYOND).contains(&number) => {
                out.extend((number as u64).to_ne_bytes());
            }
            DType::I64 if is_whole && (-BEYOND..BEYOND).contains(&number) => {
                out.extend((number as i64).to_ne_bytes());
            }
            _ => return Err((at, number)),
        }
    }
    Ok(out)
}

// The numbers, and what a dict has beside them.
fn parts<'py>(item: &Bound<'py, PyAny>, number: u64) -> PyResult<(Bound<'py, PyAny>, Extras)> {
    let py = item.py();
    let Ok(dict) = item.cast::<PyDict>() else { return Ok((item.clone(), Extras::new())) };
    let Some(sequence) = dict.get_item("sequence")? else {
        let error = Error::config("a dict without \"sequence\"").record(number).field("sequence");
        return Err(raise(py, &error));
    };
    let rest = dict.copy()?;
    rest.del_item("sequence")?;
    if rest.is_empty() {
        return Ok((sequence, Extras::new()));
    }
    let extras = row::of(&rest)?;
    Ok((sequence, extras))
}
