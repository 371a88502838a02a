//! What Python says of sound: its samples by channel, and the word for a filter.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use windrow::Error;
use windrow::audio::Quality;

use crate::error::raise;

/// Samples `[samples]` or `[channels, samples]`, channel by channel.
pub(crate) fn channels(samples: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<f32>>> {
    let py = samples.py();
    let array = py.import("numpy")?.call_method1("asarray", (samples, "float32"))?;
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
    let flat = flat.cast::<PyArray1<f32>>()?.to_vec()?;
    Ok((0..n_channels).map(|channel| flat[channel * n_samples..][..n_samples].to_vec()).collect())
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
