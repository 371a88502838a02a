//! What Python says of sound: its samples by channel, and the word for a filter.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use windrow::Error;
use windrow::audio::Quality;

use crate::python::array::as_array;
use crate::python::error::raise;

/// Samples `[samples]` or `[channels, samples]`, channel by channel: floats as they are, whole numbers scaled to -1 to 1.
pub(crate) fn channels(samples: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<f32>>> {
    let py = samples.py();
    let array = as_array(samples)?;
    let (silence, full) = range(&array)?;
    let array = array.call_method1("astype", ("float32",))?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let (n_channels, n_samples) = match shape[..] {
        [samples] => (1, samples),
        [channels, samples] if channels > 0 => (channels, samples),
        _ => {
            let error = format!("samples of shape {shape:?}, expected [samples] or [channels, samples]");
            return Err(raise(py, &Error::config(error)));
        }
    };
    let flat = array.call_method1("reshape", (-1,))?;
    let mut flat = flat.cast::<PyArray1<f32>>()?.to_vec()?;
    if (silence, full) != (0.0, 1.0) {
        flat.iter_mut().for_each(|sample| *sample = (*sample - silence) / full);
    }
    Ok((0..n_channels).map(|channel| flat[channel * n_samples..][..n_samples].to_vec()).collect())
}

// The values of silence and of full scale in an array: as in wav files, whose samples of 8 bits are unsigned and others signed.
fn range(array: &Bound<'_, PyAny>) -> PyResult<(f32, f32)> {
    let dtype = array.getattr("dtype")?;
    let name: String = dtype.getattr("name")?.extract()?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    match name.as_str() {
        "int8" => Ok((0.0, 128.0)),
        "uint8" => Ok((128.0, 128.0)),
        "int16" => Ok((0.0, 32_768.0)),
        "int32" => Ok((0.0, 2_147_483_648.0)),
        _ if kind == "f" || name == "bfloat16" => Ok((0.0, 1.0)),
        _ => {
            let what = format!("samples of {name}, which does not say how loud the loudest one is");
            let error = Error::config(what).hint(
                "give floats from -1 to 1, such as (samples / full_scale).astype(\"float32\"), or int16, int32, int8 or uint8 as in sound files",
            );
            Err(raise(array.py(), &error))
        }
    }
}

/// The word for a filter.
pub(crate) fn quality_of(py: Python<'_>, quality: &str) -> PyResult<Quality> {
    match quality {
        "high" => Ok(Quality::High),
        "fast" => Ok(Quality::Fast),
        _ => {
            let error = Error::config(format!("quality={quality:?}")).hint("one of high, fast");
            Err(raise(py, &error))
        }
    }
}
