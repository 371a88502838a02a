//! `map=`: a function of Python's that is called for each row, in the thread that assembles the batch.

mod calling;
mod collated;
mod generator;
mod place;
mod spent;
pub(crate) mod threads;

use std::time::{Duration, Instant};
use std::vec::IntoIter;

use pyo3::exceptions::{PyException, PyRuntimeError, PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use windrow::dev::PerProcess;
use windrow::dev::loader::{Finish, Origin};
use windrow::dev::plan::Workspace;
use windrow::dev::sampler::Turn;
use windrow::{Batch, Error, Kind, Result, Value};

use self::calling::Calling;
pub(crate) use self::collated::Made;
use self::generator::Generator;
use self::place::RowPlace;
pub(crate) use self::spent::Spent;
use self::threads::LoaderThread;
use crate::python::array::Memory;
use crate::python::error::raise;
use crate::python::interrupt::check;
use crate::python::said::class_of;
use crate::python::{framework, row};

/// A function that rows go through.
pub(crate) struct Mapped {
    function: Py<PyAny>,
    /// Its results go to `collate=` as they are.
    is_collated: bool,
    spent: PerProcess<Spent>,
}

impl Mapped {
    /// That function.
    ///
    /// # Errors
    /// `TypeError` for what cannot be called.
    pub(crate) fn new(function: Bound<'_, PyAny>, is_collated: bool) -> PyResult<Mapped> {
        if !function.is_callable() {
            return Err(PyTypeError::new_err(format!("map is a function, not {}", class_of(&function)?)));
        }
        // Imported where Ctrl-C is heard.
        function.py().import("numpy.random")?;
        Ok(Mapped { function: function.unbind(), is_collated, spent: PerProcess::default() })
    }

    /// What calls took in this process.
    pub(crate) fn spent(&self) -> &Spent {
        self.spent.get()
    }

    /// Whether this thread is in a call of the function now.
    pub(crate) fn is_calling_here(&self) -> bool {
        calling::is_here(self)
    }

    /// What the function makes of the rows of a batch, in a thread that is attached.
    ///
    /// # Errors
    /// What the function raises, as the cause; `Mismatch` for results that do not stack; `Interrupted` where nobody waits any more.
    pub(crate) fn made(
        &self,
        py: Python<'_>,
        batch: Batch,
        origin: &Origin,
        is_wanted: &dyn Fn() -> bool,
        waited: Duration,
    ) -> Result<Batch> {
        let counts = batch.counted();
        let results = self.results(py, batch, origin, is_wanted, waited)?;
        let made = if self.is_collated {
            Made::results(py, &results)
        } else {
            Made::of(py, &results, &|row| RowPlace::of(origin, row))
        };
        Ok(counts.with_made(Box::new(made.map_err(of_python)?)))
    }

    fn results<'py>(
        &self,
        py: Python<'py>,
        batch: Batch,
        origin: &Origin,
        is_wanted: &dyn Fn() -> bool,
        waited: Duration,
    ) -> Result<Vec<Bound<'py, PyAny>>> {
        let mut rows = Rows::of(py, batch).map_err(of_python)?;
        let mut generator = Generator::take(py, origin.plan.seed()).map_err(of_python)?;
        let process = std::process::id();
        let mut waited = waited;
        // Rows that are padded to the longest of their batch are as long as other rows on other ranks.
        let mut alone = origin.plan.pads().then(Workspace::default);
        let mut results = Vec::with_capacity(origin.turns.len());
        for (number, turn) in origin.turns.iter().enumerate() {
            if number > 0 {
                waited = let_others(py);
            }
            if !is_wanted() {
                return Err(Error::new(Kind::Interrupted, "nobody waits for the batch any more"));
            }
            check(py).map_err(of_python)?;
            let given = match &mut alone {
                Some(workspace) => Mapped::alone(py, origin, *turn, workspace)?,
                None => rows.next(py).map_err(of_python)?,
            };
            let result = self.call(py, (given, *turn), origin.step.epoch, &mut generator, waited);
            py.detach(threads::stay_where_python_has_ended);
            if std::process::id() != process && threads::is_one() {
                end_child(py, result.as_ref().err());
            }
            match result {
                Ok(result) => results.push(result),
                Err(error) => return Err(of_python(self.told(py, error, origin, number))),
            }
        }
        generator.keep();
        Ok(results)
    }

    fn alone<'py>(
        py: Python<'py>,
        origin: &Origin,
        turn: Turn,
        workspace: &mut Workspace,
    ) -> Result<Bound<'py, PyAny>> {
        let row = py.detach(|| origin.plan.row_alone(origin.step.epoch, turn, workspace))?;
        Rows::of(py, row).and_then(|mut row| row.next(py)).map_err(of_python)
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        (given, turn): (Bound<'py, PyAny>, Turn),
        epoch: u64,
        generator: &mut Generator,
        waited: Duration,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rng = generator.of_sample(py, epoch, turn)?;
        let _calling = Calling::begin(self);
        self.spent().time(waited, || self.function.bind(py).call1((given, rng)))
    }

    // The exception itself, with a note that says where. One that a loop would take for its end becomes another.
    fn told(&self, py: Python<'_>, error: PyErr, origin: &Origin, row: usize) -> PyErr {
        let error = if error.is_instance_of::<PyStopIteration>(py) {
            let raised = PyRuntimeError::new_err("map raised StopIteration");
            raised.set_cause(py, Some(error));
            raised
        } else {
            error
        };
        if error.is_instance_of::<PyException>(py) {
            let place = py.detach(|| RowPlace::of(origin, row));
            // One that takes no notes arrives without.
            let _ = place.note(error.value(py));
        }
        error
    }
}

impl Finish for Mapped {
    // Attached from the first batch to the last: what Python keeps for each thread, as `threading.local`, stays.
    fn around(&self, work: &(dyn Fn() + Send + Sync)) {
        Python::try_attach(|py| {
            let _thread = LoaderThread::begin(py);
            py.detach(|| {
                work();
                threads::stay_where_python_has_ended();
            });
        });
    }

    fn finish(&self, batch: Batch, origin: &Origin, is_wanted: &dyn Fn() -> bool) -> Result<Batch> {
        let asked = Instant::now();
        let made = Python::try_attach(|py| self.made(py, batch, origin, is_wanted, asked.elapsed()));
        made.unwrap_or_else(|| Err(Error::new(Kind::Interrupted, "Python is ending")))
    }
}

/// The rows of a batch, one by one, as `view[i]` gives them.
enum Rows<'py> {
    Records(IntoIter<Value>),
    Tensors(Bound<'py, Memory>, std::ops::Range<usize>),
}

impl<'py> Rows<'py> {
    fn of(py: Python<'py>, mut batch: Batch) -> PyResult<Rows<'py>> {
        match batch.take_records() {
            Some(records) => Ok(Rows::Records(records.into_iter())),
            None => {
                let rows = 0..batch.rows();
                Ok(Rows::Tensors(Memory::new(py, batch)?, rows))
            }
        }
    }

    fn next(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Rows::Records(records) => row::record(py, records.next().unwrap_or(Value::Null)),
            Rows::Tensors(memory, rows) => {
                Ok(framework::row_of(memory, rows.next().unwrap_or(0))?.into_any())
            }
        }
    }
}

// Gives the interpreter lock to whoever waits for it, and says how long it took to have it again.
fn let_others(py: Python<'_>) -> Duration {
    py.detach(Instant::now).elapsed()
}

// What Python raised comes out as it was.
fn of_python(error: PyErr) -> Error {
    Error::config("map raised an exception").caused_by(error)
}

// The child of a fork that came back from the function: it has this one thread of the program, and nothing to do in it.
fn end_child(py: Python<'_>, error: Option<&PyErr>) {
    if let Some(error) = error {
        error.display(py);
    }
    let failure = Error::config("a process that map= forked returned from the function, and was ended")
        .hint("end it in the function, with os._exit()");
    raise(py, &failure).display(py);
    if let Err(error) = py.import("os").and_then(|os| os.call_method1("_exit", (1,))) {
        error.display(py);
    }
    std::process::abort();
}
