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
use crate::python::given::{given, stores};
use crate::python::json;
use crate::python::near::none_left;
use crate::python::options::{Count, choice};
use crate::python::waiting::wait_for;
use crate::sound::codec::Codec;
use crate::sound::samples::quality_of;

given! {
    struct Given<'py> {
        audio_dir: PathBuf,
        out: PathBuf,
        codec: PyRef<'py, Codec>,
        prompts: Option<Prompts>,
        to: String,
        dtype: Option<AnyDType>,
        skip_tags: Vec<String>,
        skip_vocals: bool,
        prompt_from_name: bool,
        quality: String,
        skip_corrupt: bool,
        num_threads: Option<Count>,
        overwrite: bool,
        fsync: bool,
    }
}

/// Encodes a folder of sound; what was done as a dict.
#[pyfunction]
pub(crate) fn _encode<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let (stores, watcher) = (stores(given)?, Watcher::of(given)?);
    let given = Given::of(given)?;
    let to: String = choice(py, "to", &given.to, &["codes", "shards"])?;
    let to = windrow::writer(&to, &serde_json::Map::new()).or_raise(py)?;
    let words = given.skip_vocals.then(|| "vocals".to_string()).into_iter().collect();
    let folder = FolderOptions {
        prompts: given.prompts.map_or(Vec::new(), Prompts::paths),
        skip: Skip { texts: given.skip_tags, words },
        prompt_from_name: given.prompt_from_name,
    };
    let options = EncodeOptions {
        to,
        dtype: given.dtype.map_or(DType::I16, |dtype| dtype.0),
        reading: Reading { quality: quality_of(py, &given.quality)?, skip_corrupt: given.skip_corrupt },
        num_threads: given.num_threads.map(Count::size),
        overwrite: given.overwrite,
        fsync: given.fsync,
    };
    let (codec, audio_dir, out) = (given.codec.inner.clone(), given.audio_dir, given.out);
    let done = py.detach(|| {
        let files = sound::sound_files(&audio_dir, &folder)?;
        sound::encode_with(&files, &codec, &out, &options, &stores, &watcher)
    });
    json::plain(py, &watcher.finish(py, done)?)
}

/// Rebuilds ``metadata.json`` of a folder of pre-encoded tracks: ``text``, ``length`` and ``channels`` of each.
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
