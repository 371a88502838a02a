//! Sound files from and to Python: planar samples.

use std::path::PathBuf;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::audio::{Options, Waveform, decode};
use windrow::dev::output::write_whole;
use windrow::{Error, Kind};

use crate::python::dtype::numpy_ready;
use crate::python::error::{OrRaise, raise};
use crate::python::near::none_left;
use crate::python::options::Count;
use crate::python::waiting::wait_for;
use crate::sound::samples::{channels, quality_of};

/// Reads a sound file: ``.wav``, ``.flac``, ``.mp3``, ``.m4a`` (AAC-LC, ALAC), ``.aac`` or ``.ogg`` (Vorbis), recognised by content.
///
/// All samples that are there are read, whatever number the header declares; the log warns where the two differ.
///
/// Args:
///     path: the file.
///     sample_rate: samples per second of the result; None keeps the file's own.
///     quality: of the filter where the rate changes: ``"high"`` or ``"fast"``.
///     skip_corrupt: continue where part of the file cannot be read: a packet that cannot be decoded becomes silence of its
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
#[pyo3(signature = (path, *, sample_rate=Some(Count(44_100)), quality="high", skip_corrupt=false, **unknown),
       text_signature = "(path, *, sample_rate=44100, quality='high', skip_corrupt=False)")]
pub(crate) fn read_audio<'py>(
    py: Python<'py>,
    path: PathBuf,
    sample_rate: Option<Count>,
    quality: &str,
    skip_corrupt: bool,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<(Bound<'py, PyArray2<f32>>, u32)> {
    none_left(py, "read_audio", unknown)?;
    let quality = quality_of(py, quality)?;
    // What does not fit is no rate either, and the decoder says so.
    let sample_rate_hz = sample_rate.map(|rate| u32::try_from(rate.0).unwrap_or(u32::MAX));
    let options = Options { sample_rate_hz, quality, skip_corrupt };
    let (samples, shape, rate) = wait_for(py, move || {
        decode(&path, &options).map(|Waveform { sample_rate_hz, channels }| {
            let shape = [channels.len(), channels.first().map_or(0, Vec::len)];
            let mut channels = channels.into_iter();
            let mut samples = channels.next().unwrap_or_default();
            channels.for_each(|channel| samples.extend(channel));
            (samples, shape, sample_rate_hz)
        })
    })?;
    numpy_ready(py)?;
    Ok((PyArray1::from_vec(py, samples).reshape(shape)?, rate))
}

/// Writes samples as a ``.wav`` file of 16 bits; what lies beyond -1 to 1 is cut off there.
///
/// Args:
///     path: the file: ``.wav``, ``.wave`` or without a suffix.
///     samples: ``[samples]``, or ``[channels, samples]`` with one or two channels: floats, full scale from -1 to 1; or whole
///         numbers, scaled by the range of their dtype: int8, int16, int32, and uint8 with 128 for silence.
///     sample_rate: samples per second, from 1,000 to 768,000.
///     overwrite: replace an existing file.
///
/// Raises:
///     ConfigError: an array of another shape or dtype; a sample that is NaN or infinite, named by its number; another sample rate.
///     UnsupportedError: the name of another kind of file, such as ``.flac``.
///     ExistsError: the file is there, and no ``overwrite``.
///
/// >>> import windrow as wr, numpy as np, tempfile
/// >>> path = tempfile.mkdtemp() + "/half.wav"
/// >>> wr.write_audio(path, np.full(4, 0.5, "float32"), 8000)
/// >>> wr.read_audio(path, sample_rate=None)[0].tolist()
/// [[0.5, 0.5, 0.5, 0.5]]
#[pyfunction]
#[pyo3(signature = (path, samples, sample_rate, *, overwrite=false, **unknown), text_signature = "(path, samples, sample_rate, *, overwrite=False)")]
pub(crate) fn write_audio(
    py: Python<'_>,
    path: PathBuf,
    samples: &Bound<'_, PyAny>,
    sample_rate: Count,
    overwrite: bool,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    none_left(py, "write_audio", unknown)?;
    let sample_rate = u32::try_from(sample_rate.0).map_err(|_| {
        let found = format!("sample_rate={}: expected a number below 2^32", sample_rate.0);
        raise(py, &Error::config(found).field("sample_rate"))
    })?;
    Waveform::check_name(&path).or_raise(py)?;
    let sound = Waveform { sample_rate_hz: sample_rate, channels: channels(samples)? };
    py.detach(|| {
        if path.exists() && !overwrite {
            return Err(Error::new(Kind::Exists, "the output exists already")
                .at(&path)
                .hint("write elsewhere, or replace it with overwrite=True"));
        }
        write_whole(&path, &sound.to_wav()?)
    })
    .or_raise(py)
}
