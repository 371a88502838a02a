//! Functions of Python among options that are texts, as those of stores are: each by a name that finds it again.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::python::interrupt::Attempt;
use crate::python::said::said;

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

/// The function of a name; `None` for one of another process.
pub(crate) fn named<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match name.split_once(':') {
        Some(("function", number)) => {
            let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
            let known = number.parse::<usize>().ok().and_then(|number| own.get(number));
            Ok(known.map(|function| function.bind(py).clone()))
        }
        Some((module, name)) => find(py, module, name).map(Some),
        None => Ok(None),
    }
}
