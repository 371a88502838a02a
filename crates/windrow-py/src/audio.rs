//! Sound files from Python: one call, planar samples.

use std::path::PathBuf;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use windrow::Error;
use windrow::audio::{Options, Quality, Waveform, decode};

use crate::error::{OrRaise, raise};
use crate::options::Count;

/// Reads a sound file: ``.wav``, ``.flac``, ``.mp3``, ``.m4a`` (AAC-LC, ALAC) or ``.ogg`` (Vorbis), recognised by content.
///
/// Args:
///     path: the file.
///     sample_rate: samples per second of the result; None keeps the file's own.
///     quality: of the filter where the rate changes: ``"high"`` or ``"fast"``.
///     skip_corrupt: go on where part of the file cannot be read: a packet that cannot be decoded becomes silence of its
///         length, a file that is cut short ends there. Without it each of these is an error.
///
/// Returns:
///     The samples, float32 ``[channels, samples]`` with one or two channels, and their rate. ``n`` samples of the file become
///     ``ceil(n * sample_rate / own_rate)``.
///
/// Raises:
///     NotFoundError: no such file.
///     UnrecognisedError: not a sound file.
///     UnsupportedError: another codec, or more than two channels.
///     CorruptError: cut short, damaged, empty, or with samples that are not numbers.
///
/// >>> import windrow as wr, numpy as np, tempfile, wave
/// >>> path = tempfile.mkdtemp() + "/tone.wav"
/// >>> with wave.open(path, "wb") as file:
/// ...     file.setparams((1, 2, 16000, 0, "NONE", ""))
/// ...     file.writeframes((8000 * np.sin(np.arange(16000) * 0.1)).astype("<i2").tobytes())
/// >>> samples, rate = wr.read_audio(path)
/// >>> samples.shape, samples.dtype, rate
/// ((1, 44100), dtype('float32'), 44100)
#[pyfunction]
#[pyo3(signature = (path, *, sample_rate=Some(Count(44_100)), quality="high", skip_corrupt=false),
       text_signature = "(path, *, sample_rate=44100, quality='high', skip_corrupt=False)")]
pub(crate) fn read_audio<'py>(
    py: Python<'py>,
    path: PathBuf,
    sample_rate: Option<Count>,
    quality: &str,
    skip_corrupt: bool,
) -> PyResult<(Bound<'py, PyArray2<f32>>, u32)> {
    let quality = match quality {
        "high" => Quality::High,
        "fast" => Quality::Fast,
        _ => return Err(raise(py, &Error::config(format!("quality={quality:?}")).hint("one of high, fast"))),
    };
    // What does not fit is no rate either, and the decoder says so.
    let sample_rate_hz = sample_rate.map(|rate| u32::try_from(rate.0).unwrap_or(u32::MAX));
    let options = Options { sample_rate_hz, quality, skip_corrupt };
    let (samples, shape, rate) = py
        .detach(|| {
            decode(&path, &options).map(|Waveform { sample_rate_hz, channels }| {
                let shape = [channels.len(), channels.first().map_or(0, Vec::len)];
                let mut channels = channels.into_iter();
                let mut samples = channels.next().unwrap_or_default();
                channels.for_each(|channel| samples.extend(channel));
                (samples, shape, sample_rate_hz)
            })
        })
        .or_raise(py)?;
    Ok((PyArray1::from_vec(py, samples).reshape(shape)?, rate))
}
