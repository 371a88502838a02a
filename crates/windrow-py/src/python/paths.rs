//! Paths as Python has them: a path, or a list of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use windrow::Paths;
use windrow::dev::store::at_home;

use crate::python::interrupt::Attempt;
use crate::python::said::class_of;

/// A path that was given, or a list or tuple of them.
pub(crate) struct AnyPaths(pub(crate) Paths);

impl<'py> FromPyObject<'_, 'py> for AnyPaths {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Some(path) = given.extract::<PathBuf>().attempt(given.py())? {
            return Ok(AnyPaths(path.into()));
        }
        // What gives paths in an order of its own, such as a set or a folder's listing, would shuffle the records.
        let refused = |given: &Bound<'_, PyAny>| {
            let class = class_of(given)?;
            Err(PyTypeError::new_err(format!("expected a path or a list of paths, found {class}")))
        };
        let in_order =
            given.is_instance_of::<pyo3::types::PyList>() || given.is_instance_of::<pyo3::types::PyTuple>();
        if !in_order {
            return refused(&given);
        }
        let mut paths = Vec::new();
        for path in given.try_iter()? {
            let path = path?;
            match path.extract::<PathBuf>().attempt(given.py())? {
                Some(path) => paths.push(path),
                None => return refused(&path),
            }
        }
        Ok(AnyPaths(Paths::list(paths)))
    }
}

impl AnyPaths {
    /// As they are found from anywhere: a view is opened again in a process that may be elsewhere.
    pub(crate) fn absolute(&self) -> Paths {
        let absolute = |path: &Path| {
            Ok::<_, std::convert::Infallible>(if path.to_string_lossy().contains("://") {
                path.to_path_buf()
            } else {
                std::path::absolute(at_home(path)).unwrap_or_else(|_| path.to_path_buf())
            })
        };
        let Ok(paths) = self.0.try_map(absolute);
        paths
    }
}

/// One path as text, another number of them as a list.
#[derive(IntoPyObject)]
pub(crate) enum Given {
    One(OsString),
    List(Vec<OsString>),
}

impl Given {
    /// The paths as they were given.
    pub(crate) fn of(paths: &Paths) -> Given {
        match paths.only() {
            Some(path) => Given::One(path.into()),
            None => Given::List(paths.iter().map(OsString::from).collect()),
        }
    }
}
