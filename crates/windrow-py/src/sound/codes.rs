//! Views over audio codes, delays and their inverse, and batches of codes that are in Python's memory.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use windrow::dev::collate::{Codes, CodesLayout, Delays, Example, Undelayed};
use windrow::dev::source::Schema;
use windrow::{DType, Error};
use windrow_core::{Decode, Draw, Element, Values};

use crate::python::array::as_array;
use crate::python::error::{OrRaise, raise};
use crate::python::framework::Framework;
use crate::python::near::none_left;
use crate::python::options::{Count, Id, choice};

/// Codes ``[T, C]``, delayed: channel ``c`` begins ``delay_pattern[c]`` frames later, and ``bos`` is there before.
///
/// The last codes of a delayed channel are lost, unless ``eos`` is given: then there are as many frames more as the longest
/// delay has, with ``eos`` where a channel is over.
///
/// Args:
///     codes: whole numbers ``[T, C]`` or ``[B, T, C]``.
///     delay_pattern: one delay per channel; None: 0, 1, 2, …, for 18 channels 0 to 8 twice.
///
/// Returns:
///     An int64 array.
///
/// Raises:
///     ConfigError: a pattern of another number of channels, or codes of another shape.
///
/// >>> import windrow as wr
/// >>> wr.delay([[1, 2], [3, 4], [5, 6]], [0, 1], bos=0).tolist()
/// [[1, 0], [3, 2], [5, 4]]
#[pyfunction]
#[pyo3(signature = (codes, delay_pattern=None, *, bos=Id::of(1026), eos=None, **unknown),
       text_signature = "(codes, delay_pattern=None, *, bos=1026, eos=None)")]
pub(crate) fn delay<'py>(
    py: Python<'py>,
    codes: &Bound<'py, PyAny>,
    delay_pattern: Option<Vec<Count>>,
    bos: Id,
    eos: Option<Id>,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "delay", unknown)?;
    let bos = bos.named(py, "bos")?;
    let eos = eos.map(|id| id.named(py, "eos")).transpose()?;
    each_grid(py, codes, delay_pattern, |delays, grid| delays.apply(grid, bos, eos))
}

/// The inverse of ``delay``: delayed codes back into frames, as a decoder takes them.
///
/// Args:
///     codes: whole numbers ``[T, C]`` or ``[B, T, C]``, without the frame of BOS before them.
///     delay_pattern: as for ``delay``.
///     tail: ``"cut"`` gives the frames of which every channel is there: fewer, by the longest delay. ``"repeat"`` gives T
///         frames, where a channel that has ended repeats its last code, as Dia does it.
///
/// Returns:
///     An int64 array.
///
/// Raises:
///     ConfigError: a pattern of another number of channels, or codes of another shape.
///
/// >>> import windrow as wr
/// >>> delayed = wr.delay([[1, 2], [3, 4]], [0, 1], eos=1024)
/// >>> delayed.tolist(), wr.undelay(delayed, [0, 1]).tolist()
/// ([[1, 1026], [3, 2], [1024, 4]], [[1, 2], [3, 4]])
#[pyfunction]
#[pyo3(signature = (codes, delay_pattern=None, *, tail="cut", **unknown), text_signature = "(codes, delay_pattern=None, *, tail='cut')")]
pub(crate) fn undelay<'py>(
    py: Python<'py>,
    codes: &Bound<'py, PyAny>,
    delay_pattern: Option<Vec<Count>>,
    tail: &str,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "undelay", unknown)?;
    let tail: Undelayed = choice(py, "tail", tail, &["cut", "repeat"])?;
    each_grid(py, codes, delay_pattern, |delays, grid| delays.undo(grid, tail))
}

fn each_grid<'py>(
    py: Python<'py>,
    codes: &Bound<'py, PyAny>,
    pattern: Option<Vec<Count>>,
    work: impl Fn(&Delays, &[i64]) -> windrow::Result<Vec<i64>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (shape, codes) = grid(codes)?;
    let (batch, frames, channels) = match shape[..] {
        [frames, channels] => (1, frames, channels),
        [batch, frames, channels] => (batch, frames, channels),
        _ => {
            let error = Error::config(format!("codes of shape {shape:?}, expected [T, C] or [B, T, C]"));
            return Err(raise(py, &error));
        }
    };
    let pattern = match pattern {
        Some(pattern) => pattern.into_iter().map(|n| n.0).collect(),
        None => Delays::usual(channels),
    };
    let delays = Delays::new(&pattern, channels).or_raise(py)?;
    let mut out = Vec::new();
    for row in 0..batch {
        let own = &codes[row * frames * channels..][..frames * channels];
        out.extend(work(&delays, own).or_raise(py)?);
    }
    let frames = out.len() / (batch * channels).max(1);
    let mut dims = vec![frames, channels];
    if shape.len() == 3 {
        dims.insert(0, batch);
    }
    let bytes: Vec<u8> = out.iter().flat_map(|code| code.to_ne_bytes()).collect();
    let array = py.import("numpy")?.call_method1("frombuffer", (PyBytes::new(py, &bytes), "int64"))?;
    array.call_method1("reshape", (dims,))?.call_method0("copy")
}

// Whole numbers as int64 in the machine's order, and their shape.
pub(crate) fn grid(codes: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<i64>)> {
    let py = codes.py();
    let array = as_array(codes)?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let is_empty = array.getattr("size")?.extract::<usize>()? == 0;
    if kind != "i" && kind != "u" && !is_empty {
        let error = Error::config(format!("codes of {}, expected whole numbers", array.getattr("dtype")?));
        return Err(raise(py, &error));
    }
    if kind == "u" && !is_empty && array.call_method0("max")?.gt(i64::MAX)? {
        let error = format!("code {} does not fit int64", array.call_method0("max")?);
        return Err(raise(py, &Error::config(error)));
    }
    let bytes = array.call_method1("astype", ("int64",))?.call_method0("tobytes")?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    let number = |bytes: &[u8]| {
        let mut number = [0; 8];
        number.copy_from_slice(bytes);
        i64::from_ne_bytes(number)
    };
    Ok((shape, bytes.chunks_exact(8).map(number).collect()))
}

// What a sample's draws are keyed by: seed, epoch, pass, sample.
type Key = (u64, u64, u64, u64);

/// A number in `0..n` of a sample's draws: where a crop begins.
#[pyfunction]
pub(crate) fn _draw_below(key: Key, n: u64) -> u64 {
    Draw::new(key.0, key.1, key.2, key.3).below(n, 0)
}

/// Assembles codes and texts from Python's memory: what `windrow.compat.dia.collate_fn` is made of. `items`: (text, codes
/// `[T, C]`, key of the draws); `layout`: a `CodesLayout` as JSON. Tensors of torch.
#[pyfunction]
pub(crate) fn _assemble_codes<'py>(
    py: Python<'py>,
    items: Vec<(Bound<'py, PyString>, Bound<'py, PyAny>, Key)>,
    layout: &str,
    length: u64,
    random: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let layout: CodesLayout = serde_json::from_str(layout)
        .map_err(|e| raise(py, &Error::config("this is not a layout of codes").caused_by(e)))?;
    let mut given = Vec::with_capacity(items.len());
    for (number, (text, codes, key)) in items.into_iter().enumerate() {
        let (shape, codes) = grid(&codes)?;
        let [frames, channels] = shape[..] else {
            let error = Error::config(format!("codes of shape {shape:?}, expected [T, C]"));
            return Err(raise(py, &error.record(number as u64)));
        };
        let draw = Draw::new(key.0, key.1, key.2, key.3);
        // The same place that a view of crops would take for this sample.
        let most = usize::try_from(length).unwrap_or(usize::MAX);
        let start =
            if random && frames > most { draw.below((frames - most) as u64 + 1, 0) as usize } else { 0 };
        let end = start.saturating_add(most).min(frames);
        let bytes: Vec<u8> =
            codes[start * channels..end * channels].iter().flat_map(|code| code.to_le_bytes()).collect();
        given.push((text.to_str()?.to_string(), bytes, channels, draw));
    }
    let Some(widest) = given.iter().map(|item| item.2).max() else {
        return Err(PyTypeError::new_err("a batch without samples"));
    };
    let schema = Schema { channels: Some(widest), ..Schema::numbers(Element::little(DType::I64)) };
    let examples: Vec<Example<'_>> = given
        .iter()
        .map(|(text, bytes, channels, draw)| Example {
            codes: Values {
                bytes,
                element: Element::little(DType::I64),
                channels: *channels,
                decode: Decode::Plain,
            },
            text,
            draw: *draw,
        })
        .collect();
    let batch = py
        .detach(|| Codes::new(&schema, length, &layout, None).and_then(|codes| codes.batch(&examples)))
        .or_raise(py)?;
    Framework::named(py, "torch")?.batch(py, batch)
}
