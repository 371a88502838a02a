//! Sound files: decoded as others decode them, resampled without a shift, and what is wrong is named.
#![allow(clippy::unwrap_used, missing_docs)]

mod clips;
mod hostile;
mod memory;
mod rates;
mod toy;
