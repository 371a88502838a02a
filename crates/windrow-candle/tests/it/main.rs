//! Tensors hold what batches hold, at the price that the documentation names.

mod copies;
mod values;
