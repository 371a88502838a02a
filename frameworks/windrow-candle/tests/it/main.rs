//! Tensors hold what batches hold, at the price that the documentation names.

#[cfg(test)]
mod copies;
#[cfg(test)]
mod values;
