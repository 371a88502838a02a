//! Sound files: decoded as others decode them, resampled without a shift, and what is wrong is named.
#![allow(clippy::unwrap_used, missing_docs)]

mod clips;
mod declared;
mod hostile;
mod logged;
mod memory;
mod rates;
mod skipped;
mod toy;
