//! `windrow.Codec`: sound as codes, and back.

use std::path::PathBuf;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyType;
use windrow::Error;
use windrow::dac::{self, Codes, Options};

use crate::python::dtype::numpy_ready;
use crate::python::error::{OrRaise, raise};
use crate::python::options::Count;
use crate::python::waiting::wait_for;
use crate::sound::codes::grid;
use crate::sound::samples::channels;

/// The Descript Audio Codec with its weights: sound as codes, and back. On the processor.
///
/// Args:
///     weights: ``.pth`` of descript-audio-codec, or ``.safetensors``. They do not come with windrow.
///     threads: of each call; None: one for each core.
///     chunk: about how many samples go through the network at once, 262,144 by default: memory grows with it. The
///         codes do not depend on it.
///
/// Raises:
///     NotFoundError: no such file.
///     MismatchError: weights of another model; names the first tensor that does not fit.
///     CorruptError, UnsupportedError: a damaged file, or a pickle that is more than data.
#[pyclass(frozen, module = "windrow", name = "Codec")]
pub(crate) struct Codec {
    pub(crate) inner: dac::Codec,
    weights: PathBuf,
    threads: Option<u64>,
    chunk: Option<u64>,
}

#[pymethods]
impl Codec {
    #[new]
    #[pyo3(signature = (weights, num_threads=None, chunk=None))]
    fn new(
        py: Python<'_>,
        weights: PathBuf,
        num_threads: Option<Count>,
        chunk: Option<Count>,
    ) -> PyResult<Codec> {
        let mut options = Options::default().num_threads(num_threads.map_or(0, Count::size));
        if let Some(chunk) = chunk {
            options = options.chunk(chunk.size());
        }
        let inner = py.detach(|| dac::Codec::open(&weights, &options)).or_raise(py)?;
        Ok(Codec { inner, weights, threads: num_threads.map(|n| n.0), chunk: chunk.map(|n| n.0) })
    }

    /// Samples per second of what it encodes and decodes.
    #[getter]
    fn sample_rate(&self) -> u32 {
        self.inner.sample_rate()
    }

    /// Samples in one frame.
    #[getter]
    fn hop_length(&self) -> usize {
        self.inner.hop_length()
    }

    /// Codes of a frame of one channel.
    #[getter]
    fn codebooks(&self) -> usize {
        self.inner.codebooks()
    }

    /// Codes of a codebook: each is less.
    #[getter]
    fn codebook_size(&self) -> usize {
        self.inner.codebook_size()
    }

    /// Sound as codes.
    ///
    /// Args:
    ///     samples: ``[samples]`` or ``[channels, samples]`` at ``sample_rate``: floats, full scale from -1 to 1; or whole numbers,
    ///         scaled by the range of their dtype as a wav file's are: int8, int16, int32, and uint8 with 128 for silence.
    ///
    /// Returns:
    ///     An int16 array ``[frames, channels * codebooks]``, the first channel's codes first; ``ceil(samples / hop_length)``
    ///     frames.
    ///
    /// Raises:
    ///     ConfigError: an array of another shape or dtype.
    ///     CorruptError: a sample that is not a number.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        samples: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<i16>>> {
        let channels = channels(samples)?;
        let n = self.inner.codebooks();
        let codec = self.inner.clone();
        let sides: Vec<Codes> = wait_for(py, move || {
            channels.iter().map(|samples| codec.encode(samples)).collect::<windrow::Result<_>>()
        })?;
        let frames = sides.first().map_or(0, Codes::frames);
        let mut codes = Vec::with_capacity(frames * n * sides.len());
        for frame in 0..frames {
            // Codes of a codebook are below 32,768.
            let of_side =
                |side: &Codes| side.values()[frame * n..][..n].iter().map(|c| *c as i16).collect::<Vec<_>>();
            codes.extend(sides.iter().flat_map(of_side));
        }
        numpy_ready(py)?;
        PyArray1::from_vec(py, codes).reshape([frames, n * sides.len()])
    }

    /// Codes as sound.
    ///
    /// Args:
    ///     codes: whole numbers ``[frames, channels * codebooks]``, as ``encode`` gives them.
    ///
    /// Returns:
    ///     A float32 array ``[channels, samples]``.
    ///
    /// Raises:
    ///     MismatchError: frames of another number of codes.
    ///     OutOfRangeError: a code outside its codebook; take out the frames of begin, end and padding.
    fn decode<'py>(&self, py: Python<'py>, codes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (shape, codes) = grid(codes)?;
        let n = self.inner.codebooks();
        let width = match shape[..] {
            [_, width] if width > 0 && width % n == 0 => width,
            _ => {
                let error = format!("codes of shape {shape:?}, expected [frames, channels * {n}]");
                return Err(raise(py, &Error::mismatch(error)));
            }
        };
        let size = self.inner.codebook_size() as u64;
        if let Some(at) = codes.iter().position(|code| *code as u64 >= size) {
            let (frame, codebook, side) = (at / width, at % width % n, at % width / n);
            let error = Error::out_of_range("code", codes[at], size)
                .field(format!("frame {frame}, codebook {codebook}, side {side}"))
                .hint("codes beyond the codebook mark begin, end and padding: take those frames out");
            return Err(raise(py, &error));
        }
        // Compared above: none is larger.
        let code = |code: &i64| *code as u16;
        let codec = self.inner.clone();
        let channels = wait_for(py, move || {
            (0..width / n)
                .map(|side| {
                    let frames = codes.chunks_exact(width);
                    let own = frames.flat_map(|frame| frame[side * n..][..n].iter().map(code)).collect();
                    codec.decode(&Codes::new(own, n)?)
                })
                .collect::<windrow::Result<Vec<_>>>()
        })?;
        let shape = [channels.len(), channels.first().map_or(0, Vec::len)];
        numpy_ready(py)?;
        PyArray1::from_vec(py, channels.concat()).reshape(shape)
    }

    fn __repr__(&self) -> String {
        let (rate, books) = (self.inner.sample_rate(), self.inner.codebooks());
        format!("Codec({}, sample_rate={rate}, codebooks={books})", self.weights.display())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, Arguments) {
        (py.get_type::<Codec>(), (self.weights.clone(), self.threads, self.chunk))
    }
}

/// What a codec is made of again.
type Arguments = (PathBuf, Option<u64>, Option<u64>);
