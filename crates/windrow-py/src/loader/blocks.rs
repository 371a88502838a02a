//! `windrow.Blocks`: a shuffle that reads neighbours together, and what else `shuffle=` takes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use windrow::{Error, Shuffle};

use crate::python::error::raise;
use crate::python::near::none_left;
use crate::python::options::{Count, size_of};
use crate::python::said::{said, shown};

/// A shuffle that reads neighbours together, for data in a slow store: ``Loader(view, shuffle=wr.Blocks())``.
///
/// Blocks of ``size`` samples are dealt to ``lanes`` lanes, the same in every epoch. A lane goes through its blocks in a random
/// order and mixes ``pool`` of them at a time; lanes take turns of ``rows`` rows. So a rank reads its own lanes' blocks whole,
/// each once an epoch, but for the last batches of an epoch: what lanes have left when one of them ends, fewer than
/// ``lanes * (2 * size + rows)`` samples, is mixed among all ranks. Every sample comes once an epoch, in another order each
/// time.
///
/// What is not given is chosen for the data and the global batch, logged once, and part of the plan: a run that changes its
/// batch size passes the old numbers, which the ``MismatchError`` prints. In a mixture each part has its own; a dict of names
/// and ``Blocks`` gives them part by part.
///
/// Args:
///     size: samples of a block; None takes those that are ``bytes``.
///     lanes: None takes the largest power of two up to 256 that divides the global batch and leaves each lane 8 blocks; 1 if none.
///     rows: None takes the global batch over the lanes.
///     pool: blocks that a lane mixes; None takes the number with which all lanes mix 4 times the global batch, at most a
///         quarter of a lane's blocks, at least 2.
///     bytes: of a block, by the mean size of a sample; a number, or a text as ``"8MiB"``.
///
/// Raises:
///     ConfigError: a number is 0, or ``bytes`` is not a size.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(8001, dtype=np.uint16).tofile(path)
/// >>> view = wr.open(path, dtype="uint16").pack(8)
/// >>> loader = wr.Loader(view, global_batch_size=32, shuffle=wr.Blocks(size=10))
/// >>> loader.recipe()["shuffle"]
/// {'blocks': {'size': 10, 'lanes': 8, 'rows': 4, 'pool': 3}}
/// >>> wr.Blocks(size=10)
/// Blocks(size=10)
#[pyclass(frozen, eq, hash, module = "windrow", name = "Blocks")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Blocks {
    blocks: windrow::Blocks,
}

#[pymethods]
impl Blocks {
    #[new]
    #[pyo3(signature = (*, size=None, lanes=None, rows=None, pool=None, bytes=None, **unknown),
           text_signature = "(*, size=None, lanes=None, rows=None, pool=None, bytes='8MiB')")]
    fn new(
        py: Python<'_>,
        size: Option<Count>,
        lanes: Option<Count>,
        rows: Option<Count>,
        pool: Option<Count>,
        bytes: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Blocks> {
        none_left(py, "Blocks", unknown)?;
        let bytes = bytes.map(|bytes| size_of(bytes, "bytes").map(Count)).transpose()?;
        let given = [("size", size), ("lanes", lanes), ("rows", rows), ("pool", pool), ("bytes", bytes)];
        if let Some((name, _)) = given.iter().find(|(_, number)| *number == Some(Count(0))) {
            let error = Error::config(format!("Blocks({name}=0): expected 1 or more")).field(*name);
            return Err(raise(py, &error));
        }
        let [size, lanes, rows, pool, bytes] = given.map(|(_, number)| number.map(|number| number.0));
        let bytes = bytes.filter(|bytes| *bytes != windrow::Blocks::BYTES);
        Ok(Blocks { blocks: windrow::Blocks { size, lanes, rows, pool, bytes } })
    }

    /// Samples of a block; None: those that are ``bytes``.
    #[getter]
    fn size(&self) -> Option<u64> {
        self.blocks.size
    }

    /// Lanes; None: chosen for the batch.
    #[getter]
    fn lanes(&self) -> Option<u64> {
        self.blocks.lanes
    }

    /// Rows of a lane in each of its turns; None: chosen for the batch.
    #[getter]
    fn rows(&self) -> Option<u64> {
        self.blocks.rows
    }

    /// Blocks that a lane mixes at a time; None: chosen for the batch.
    #[getter]
    fn pool(&self) -> Option<u64> {
        self.blocks.pool
    }

    /// Bytes of a block where its size is not given.
    #[getter]
    fn bytes(&self) -> u64 {
        self.blocks.bytes.unwrap_or(windrow::Blocks::BYTES)
    }

    fn __repr__(&self) -> String {
        format!("Blocks({})", self.blocks.to_string().replace(',', ", "))
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let windrow::Blocks { size, lanes, rows, pool, bytes } = self.blocks;
        let named = PyDict::new(py);
        for (name, number) in
            [("size", size), ("lanes", lanes), ("rows", rows), ("pool", pool), ("bytes", bytes)]
        {
            if let Some(number) = number {
                named.set_item(name, number)?;
            }
        }
        Ok((PyTuple::empty(py), named))
    }
}

/// What `shuffle=` says, for a view or for a mixture of parts of these names: a bool, `Blocks`, or a dict of name and `Blocks`.
///
/// # Errors
/// `TypeError` if it is not an order; `ConfigError` if a name is not that of a part.
pub(crate) fn shuffle(given: &Bound<'_, PyAny>, names: &[String]) -> PyResult<Shuffle> {
    if let Ok(blocks) = given.cast::<Blocks>() {
        return Ok(blocks.get().blocks.into());
    }
    if let Ok(parts) = given.cast::<PyDict>() {
        return of_parts(parts, names);
    }
    match given.extract::<bool>() {
        Ok(shuffle) => Ok(shuffle.into()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "shuffle: expected True, False, wr.Blocks() or for a mix a dict of its parts' Blocks, found {}",
            shown(given)?
        ))),
    }
}

fn of_parts(given: &Bound<'_, PyDict>, names: &[String]) -> PyResult<Shuffle> {
    let py = given.py();
    let refused = |message: String| {
        let hint = if names.is_empty() {
            "a view takes one: shuffle=wr.Blocks()".to_string()
        } else {
            format!("name every part: {}", names.join(", "))
        };
        raise(py, &Error::config(message).field("shuffle").hint(hint))
    };
    for name in given.keys() {
        let name = said(&name)?;
        if !names.contains(&name) {
            return Err(refused(format!("shuffle names {name:?}, which is not a part")));
        }
    }
    let mut parts = Vec::with_capacity(names.len());
    for name in names {
        let Some(blocks) = given.get_item(name)? else {
            return Err(refused(format!("shuffle has no Blocks for {name:?}")));
        };
        let blocks = blocks.cast::<Blocks>().map_err(|_| {
            PyTypeError::new_err(format!("shuffle[{name:?}]: expected wr.Blocks(), found {blocks}"))
        })?;
        parts.push(blocks.get().blocks);
    }
    Ok(Shuffle::Parts(parts))
}
