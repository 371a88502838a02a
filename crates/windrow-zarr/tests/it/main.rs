//! flat-tokens: what others wrote is read equal, what is written others read, and what is wrong is named.
#![allow(clippy::unwrap_used, missing_docs)]

mod golden;
mod hostile;
mod stores;
mod writer;
#[cfg(test)]
mod writing;
