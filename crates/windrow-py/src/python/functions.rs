//! Functions of Python among options that are texts, as those of stores are: each by a name that finds it again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use windrow::{Error, Result};

use crate::python::interrupt::Attempt;
use crate::python::said::{said, text_of};
use crate::python::store_options::StoreOptions;

/// Those that no module holds, in the order in which they were given: known to this process, and to the children of a fork.
static OWN: Mutex<Vec<Py<PyAny>>> = Mutex::new(Vec::new());

/// The name of a function: `module:name`, by which other processes find it too, or a number.
pub(crate) fn name(function: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = function.py();
    let attribute = |of: &str| function.getattr(of).and_then(|name| said(&name)).attempt(py);
    if let (Some(module), Some(name)) = (attribute("__module__")?, attribute("__qualname__")?)
        && module != "__main__"
        && let Some(found) = find(py, &module, &name).attempt(py)?
        && found.is(function)
    {
        return Ok(format!("{module}:{name}"));
    }
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = own.iter().position(|known| known.is(function));
    let number = known.unwrap_or_else(|| {
        own.push(function.clone().unbind());
        own.len() - 1
    });
    Ok(format!("function:{number}"))
}

fn find<'py>(py: Python<'py>, module: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import(module)?.into_any();
    name.split('.').try_fold(module, |of, part| of.getattr(part))
}

/// Has stores ask Python for their credentials.
pub(crate) fn give_credentials() {
    windrow::credentials_by(|name| {
        Python::attach(|py| {
            called(py, name).map_err(|e| {
                let message = format!("the function {name} gave no credentials: {}", text_of_error(py, &e));
                Error::config(message).field("store_options")
            })
        })?
    });
}

fn text_of_error(py: Python<'_>, error: &PyErr) -> String {
    error.value(py).str().map_or_else(|_| "?".to_string(), |text| text_of(&text))
}

fn called(py: Python<'_>, name: &str) -> PyResult<Result<BTreeMap<String, String>>> {
    let elsewhere = || {
        Err(Error::config("the function that gives the credentials is one of another process")
            .field("store_options")
            .hint("define it in a module that both import, not in the script or within a function"))
    };
    let function = match name.split_once(':') {
        Some(("function", number)) => {
            let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
            match number.parse::<usize>().ok().and_then(|number| own.get(number)) {
                Some(function) => function.bind(py).clone(),
                None => return Ok(elsewhere()),
            }
        }
        Some((module, name)) => find(py, module, name)?,
        None => return Ok(elsewhere()),
    };
    Ok(Ok(function.call0()?.extract::<StoreOptions>()?.0))
}
