//! One test binary: batches as burn tensors.

#[cfg(test)]
mod values;
