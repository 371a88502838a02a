//! Pickles hold where data lies, not the data: what is there when one is read again must be the same.

use pyo3::prelude::*;
use windrow::{Error, Paths};
use windrow_core::Kind;
use windrow_core::source::SharedSource;
use windrow_core::store::whole;

use crate::python::error::raise;
use crate::python::waiting::wait_for;

/// What distinguishes these records from others in their place.
pub(crate) fn fingerprint(py: Python<'_>, source: &SharedSource) -> PyResult<u64> {
    let source = source.clone();
    wait_for(py, move || whole(|| source.fingerprint()))
}

/// Refuses data in the place of a pickled data set when it is another one: its samples would be taken for the first one's.
pub(crate) fn check(py: Python<'_>, source: &SharedSource, expected: u64, paths: &Paths) -> PyResult<()> {
    if fingerprint(py, source)? == expected {
        Ok(())
    } else {
        Err(raise(
            py,
            &Error::new(Kind::Stale, "the data is not what it was when it was pickled")
                .at(paths.to_string())
                .hint("open it again, and hand the new one on"),
        ))
    }
}
