//! `windrow.Tokenizer`: text to IDs and back.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::dev::store::at_home;
use windrow::text::{self, NAMES};

use crate::python::error::OrRaise;
use crate::python::near::none_left;
use crate::python::options::Id;

/// Text to IDs and back: a built-in tokenizer by name, or a ``tokenizer.json``.
///
/// Names: ``bytes``, ``cl100k_base``, ``o200k_base``, ``gpt2``, ``deepseek_v3``, and ``llama3`` where the build has its
/// vocabulary. Nothing is downloaded.
///
/// Raises:
///     NotFoundError: neither a name nor a path.
///     CorruptError: the file cannot be understood.
///     UnsupportedError: this build has no such vocabulary.
///
/// >>> import windrow as wr
/// >>> tokenizer = wr.Tokenizer("bytes")
/// >>> tokenizer.encode("hi"), tokenizer.decode([104, 105]), tokenizer.vocab_size, tokenizer.eos
/// ([104, 105], 'hi', 257, 256)
#[pyclass(frozen, module = "windrow", name = "Tokenizer")]
pub(crate) struct Tokenizer {
    inner: text::Tokenizer,
    /// A built-in name, or a path that is found from any folder: pickles and jobs go elsewhere.
    given: String,
}

fn absolute(path: &Path) -> String {
    std::path::absolute(at_home(path)).unwrap_or_else(|_| path.to_path_buf()).to_string_lossy().into_owned()
}

impl Tokenizer {
    /// The loaded tokenizer, for a task of its own.
    pub(crate) fn loaded(&self) -> text::Tokenizer {
        self.inner.clone()
    }
}

#[pymethods]
impl Tokenizer {
    #[new]
    fn new(py: Python<'_>, name_or_path: PathBuf) -> PyResult<Tokenizer> {
        let given = name_or_path.to_string_lossy().into_owned();
        let inner = py.detach(|| text::Tokenizer::load(&given)).or_raise(py)?;
        let given = if NAMES.contains(&given.as_str()) { given } else { absolute(&name_or_path) };
        Ok(Tokenizer { inner, given })
    }

    /// The IDs of a text. Special tokens that are in it are text, unless ``special_tokens``.
    ///
    /// >>> import windrow as wr
    /// >>> wr.Tokenizer("gpt2").encode("Hello world")
    /// [15496, 995]
    #[pyo3(signature = (text, *, special_tokens=false, **unknown), text_signature = "($self, text, *, special_tokens=False)")]
    fn encode(
        &self,
        py: Python<'_>,
        text: &str,
        special_tokens: bool,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<u32>> {
        none_left(py, "Tokenizer.encode", unknown)?;
        let mut ids = Vec::new();
        py.detach(|| {
            if special_tokens {
                self.inner.encode_special(text, &mut ids)
            } else {
                self.inner.encode(text, &mut ids)
            }
        })
        .or_raise(py)?;
        Ok(ids)
    }

    /// The text of IDs; a character whose IDs were cut apart becomes U+FFFD.
    ///
    /// Raises:
    ///     OutOfRangeError: an ID that no token has.
    ///     ConfigError: a negative number, or one beyond 32 bits; says its place.
    ///
    /// >>> import windrow as wr
    /// >>> wr.Tokenizer("gpt2").decode([15496, 995])
    /// 'Hello world'
    fn decode(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<String> {
        let list = if ids.hasattr("tolist")? { ids.call_method0("tolist")? } else { ids.clone() };
        let given: Vec<Id> = list.extract()?;
        let ids =
            given.into_iter().enumerate().map(|(i, id)| id.token(py, i)).collect::<PyResult<Vec<u32>>>()?;
        py.detach(|| self.inner.decode(&ids)).or_raise(py)
    }

    /// Ids are below this.
    #[getter]
    fn vocab_size(&self) -> u64 {
        self.inner.vocab_size()
    }

    /// The ID that ends a document: that of ``eos_token`` in a ``tokenizer_config.json`` or ``special_tokens_map.json`` beside a
    /// ``tokenizer.json``, else of a token with one of the well-known names; or None. One that the vocabulary lacks is a ConfigError.
    #[getter]
    fn eos(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.inner.eos().or_raise(py)
    }

    /// The built-in name, or the file's name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The hash of its definition, 16 hexadecimal digits: what the manifest of tokens made with it records.
    #[getter]
    fn hash(&self) -> String {
        self.inner.lock().hash
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer({:?}, vocab_size={})", self.given, self.inner.vocab_size())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, pyo3::types::PyType>, (String,)) {
        (py.get_type::<Tokenizer>(), (self.given.clone(),))
    }
}
