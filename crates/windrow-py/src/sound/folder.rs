//! Folders of sound into data sets of codes.

use std::path::PathBuf;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::DType;
use windrow::sound::{self, EncodeOptions, FolderOptions, Reading, Skip};

use crate::prepare::callback::Watcher;
use crate::python::dtype::{AnyDType, numpy_ready};
use crate::python::error::OrRaise;
use crate::python::json;
use crate::python::near::none_left;
use crate::python::options::{Count, choice};
use crate::python::store_options::{StoreOptions, stores};
use crate::python::waiting::wait_for;
use crate::sound::codec::Codec;
use crate::sound::samples::quality_of;

/// Encodes a folder of sound files into a data set of codes ``[T, 2 * codebooks]`` with their prompts.
///
/// Files are encoded side by side, and the codes of each are kept in the cache, so that a run that was stopped continues with
/// the next file. The output appears at the end, whole. A file that cannot be encoded, sound of a kind that is not read, and
/// sound in folders below is left out and told of in ``failed``.
///
/// Args:
///     audio_dir: ``.wav``, ``.flac``, ``.mp3``, ``.m4a``, ``.mp4``, ``.aac``, ``.ogg`` and ``.oga`` directly in it; or one file.
///     out: the folder to write.
///     codec: a ``Codec``. Each file takes its threads, so that ``Codec(weights, threads=1)`` suits a folder of many.
///     prompts: a folder of prompts, or several: the prompt of ``song.mp3`` is the first of ``song.txt`` beside it, and
///         ``song.txt`` and ``song_prompt.txt`` in each of them. None: ``audio_prompts`` beside the folder, if it is there.
///     to: ``"codes"``, ``encoded_audio/NAME.pt`` and ``metadata.json``; or ``"shards"``, one file of frames to be mapped.
///     dtype: of a stored code: int16 or int64.
///     skip_tags: files whose prompt contains one of these texts are left out, whatever their case.
///     skip_vocals: so are those with the word "vocals".
///     prompt_from_name: the prompt of a file without one is its name.
///     quality: of the filter where the rate of a file is not the codec's: ``"high"`` or ``"fast"``.
///     skip_corrupt: continue where part of a file cannot be read, as ``read_audio`` does.
///     threads: files that are encoded at a time; None: one for each core.
///     overwrite: replace an existing output.
///     durable: bring everything to the disk before it becomes visible.
///     progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
///     store_options, timeout: of URLs, as for ``open``.
///
/// Returns:
///     A dict: ``report`` (unchanged, output, records, …), ``failed`` (a list of ``file`` and ``error``), ``seconds`` of sound.
///
/// Raises:
///     NotFoundError: no sound file.
///     ConfigError: two files of one name, or none that is left; a file's own error where none can be encoded.
///     ExistsError: another output is there, and no ``overwrite``.
#[pyfunction]
#[pyo3(signature = (audio_dir, out, codec, *, prompts=None, to="codes", dtype=None, skip_tags=Vec::new(), skip_vocals=false, prompt_from_name=false, quality="high", skip_corrupt=false, threads=None, overwrite=false, durable=true, progress=None, store_options=None, timeout=None, **unknown),
       text_signature = "(audio_dir, out, codec, *, prompts=None, to='codes', dtype=None, skip_tags=(), skip_vocals=False, prompt_from_name=False, quality='high', skip_corrupt=False, threads=None, overwrite=False, durable=True, progress=None, store_options=None, timeout=None)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn encode<'py>(
    py: Python<'py>,
    audio_dir: PathBuf,
    out: PathBuf,
    codec: PyRef<'py, Codec>,
    prompts: Option<Prompts>,
    to: &str,
    dtype: Option<AnyDType>,
    skip_tags: Vec<String>,
    skip_vocals: bool,
    prompt_from_name: bool,
    quality: &str,
    skip_corrupt: bool,
    threads: Option<Count>,
    overwrite: bool,
    durable: bool,
    progress: Option<Py<PyAny>>,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "encode", unknown)?;
    let stores = stores(py, store_options, timeout)?;
    let to: String = choice(py, "to", to, &["codes", "shards"])?;
    let to = windrow::writer(&to, &serde_json::Map::new()).or_raise(py)?;
    let words = skip_vocals.then(|| "vocals".to_string()).into_iter().collect();
    let folder = FolderOptions {
        prompts: prompts.map_or(Vec::new(), Prompts::paths),
        skip: Skip { texts: skip_tags, words },
        prompt_from_name,
    };
    let options = EncodeOptions {
        to,
        dtype: dtype.map_or(DType::I16, |dtype| dtype.0),
        reading: Reading { quality: quality_of(py, quality)?, skip_corrupt },
        threads: threads.map(Count::size),
        overwrite,
        durable,
    };
    let codec = codec.inner.clone();
    let watcher = Watcher::new(py, progress)?;
    let done = py.detach(|| {
        let files = sound::sound_files(&audio_dir, &folder)?;
        sound::encode_with(&files, &codec, &out, &options, &stores, &watcher)
    });
    json::plain(py, &watcher.finish(py, done)?)
}

/// Writes ``metadata.json`` of a folder of pre-encoded tracks anew: ``text``, ``length`` and ``channels`` of each.
///
/// The prompt of ``song.pt`` is the first of ``song.txt`` and ``song_prompt.txt`` in each of the ``prompts`` folders,
/// ``song.txt`` beside it, the same two in ``prompts/`` of the folder, and what the old description says. Other fields of that
/// are kept.
///
/// Args:
///     path: the folder, with ``encoded_audio/*.pt`` or ``*.pt``.
///     prompts: a folder of prompts, or several.
///     dry_run: write nothing.
///
/// Returns:
///     A dict: tracks, prompts, changed, absent (names without a file), failed (files that cannot be read, and why).
///
/// Raises:
///     NotFoundError: no ``.pt`` file.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> np.save(folder / "codes.npy", np.zeros((1, 5, 2), np.int16))
/// >>> _ = wr.convert(folder / "codes.npy", folder / "tracks", to="codes")
/// >>> track = next((folder / "tracks" / "encoded_audio").iterdir())
/// >>> (folder / f"{track.stem}.txt").write_text("slow, quiet")
/// 11
/// >>> _ = wr.rebuild_metadata(folder / "tracks", prompts=folder)
/// >>> wr.open(folder / "tracks").extras(0)["text"]
/// 'slow, quiet'
#[pyfunction]
#[pyo3(signature = (path, prompts=None, *, dry_run=false, **unknown), text_signature = "(path, prompts=None, *, dry_run=False)")]
pub(crate) fn rebuild_metadata<'py>(
    py: Python<'py>,
    path: PathBuf,
    prompts: Option<Prompts>,
    dry_run: bool,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "rebuild_metadata", unknown)?;
    let prompts = prompts.map_or(Vec::new(), Prompts::paths);
    let rebuilt = py.detach(|| windrow::rebuild_metadata(&path, &prompts, dry_run)).or_raise(py)?;
    json::plain(py, &rebuilt)
}

/// The codes ``[T, 2 * codebooks]`` of a sound file, int16: from the cache, or made now and kept there.
#[pyfunction]
pub(crate) fn _track<'py>(
    py: Python<'py>,
    path: PathBuf,
    codec: PyRef<'py, Codec>,
) -> PyResult<Bound<'py, PyArray2<i16>>> {
    let codec = codec.inner.clone();
    let made = wait_for(py, move || {
        let track = sound::codes_of(&path, &codec, &Reading::default(), &mut |_, _| true)?;
        let mut scratch = Vec::new();
        let bytes = track.bytes(&mut scratch)?;
        let codes: Vec<i16> = bytes.chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect();
        Ok((codes, [track.n_frames() as usize, track.n_codes()]))
    });
    let (codes, shape) = made?;
    numpy_ready(py)?;
    PyArray1::from_vec(py, codes).reshape(shape)
}

/// Folders of prompts: one path, or several.
#[derive(FromPyObject)]
pub(crate) enum Prompts {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

impl Prompts {
    fn paths(self) -> Vec<PathBuf> {
        match self {
            Prompts::One(path) => vec![path],
            Prompts::Several(paths) => paths,
        }
    }
}
