//! Keys of JSON objects, kept from record to record.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::python::json_strings::{Stop, Strings};

const N_KEYS: usize = 512;
const MOST_KEY_BYTES: usize = 40;

/// Keys seen before: records repeat them, and a string made once has its hash.
pub(crate) struct Keys(Vec<Option<Key>>);

struct Key {
    bytes: Box<[u8]>,
    made: Py<PyString>,
}

impl Default for Keys {
    fn default() -> Self {
        Keys((0..N_KEYS).map(|_| None).collect())
    }
}

impl Keys {
    /// The key as a Python string.
    pub(crate) fn get<'py>(
        &mut self,
        py: Python<'py>,
        key: &[u8],
        strings: &mut Strings,
    ) -> Result<Bound<'py, PyString>, Stop> {
        if key.len() > MOST_KEY_BYTES {
            return strings.make(py, key);
        }
        // FNV-1a: keys are a few bytes long.
        let hash = key
            .iter()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
        let place = (hash >> 32) as usize % N_KEYS;
        if let Some(Key { bytes, made }) = &self.0[place]
            && **bytes == *key
        {
            return Ok(made.bind(py).clone());
        }
        let made = strings.make(py, key)?;
        // The one that is replaced dies after the cache is whole again: its end may run other code.
        let old = self.0[place].replace(Key { bytes: key.into(), made: made.clone().unbind() });
        drop(old);
        Ok(made)
    }
}
