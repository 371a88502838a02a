//! What is Python's on both sides: arguments, arrays, errors, Ctrl-C, text, long waits.

pub(crate) mod array;
pub(crate) mod credentials;
pub(crate) mod dtype;
pub(crate) mod error;
pub(crate) mod framework;
pub(crate) mod function;
pub(crate) mod functions;
pub(crate) mod given;
pub(crate) mod in_memory;
pub(crate) mod index;
pub(crate) mod interrupt;
pub(crate) mod json;
pub(crate) mod json_strings;
pub(crate) mod keys;
pub(crate) mod logging;
pub(crate) mod mapping;
pub(crate) mod near;
pub(crate) mod options;
pub(crate) mod paths;
pub(crate) mod pickled;
pub(crate) mod row;
pub(crate) mod rows;
pub(crate) mod said;
pub(crate) mod shown;
pub(crate) mod store_options;
pub(crate) mod waiting;
