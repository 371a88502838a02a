//! How fast a loader is here, from Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::bench::{BenchOptions, bench};
use windrow::dev::threads;

use crate::loader::Loader;
use crate::python::error::OrRaise;
use crate::python::given::given;
use crate::python::json;
use crate::python::options::{Count, size_of};
use crate::python::waiting::wait_while;

given! {
    struct Measured<'py> {
        num_threads: Option<Count>,
        seconds: Option<f64>,
        rate: Option<f64>,
        nodes: Option<Count>,
        epochs: Option<Count>,
        network: Option<Bound<'py, PyAny>>,
        get_rate: Option<f64>,
        get_price: Option<f64>,
        node_price: Option<f64>,
    }
}

/// Measures a loader like this one; what was found as a dict.
#[pyfunction]
pub(crate) fn _bench<'py>(
    py: Python<'py>,
    loader: &Bound<'py, Loader>,
    given: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut builder = loader.get().running().builder(py)?;
    let asked = Measured::of(given)?;
    if let Some(n) = asked.num_threads.map(Count::size) {
        threads::check(Some(n), 1).or_raise(py)?;
        builder = builder.num_threads(Some(n));
    }
    let options = BenchOptions {
        seconds: asked.seconds,
        rate: asked.rate,
        nodes: asked.nodes.map(|n| n.0),
        epochs: asked.epochs.map(|n| n.0),
        network: asked.network.map(|bytes| size_of(&bytes, "network")).transpose()?,
        get_rate: asked.get_rate,
        get_price: asked.get_price,
        node_price: asked.node_price,
    };
    let found = wait_while(py, move |is_wanted| bench(&builder, &options, &|| !is_wanted()))?;
    json::plain(py, &found)
}
