//! The core of windrow: reads training data as it lies on disk and assembles batches of it.
//!
//! **The batch at step k is a pure function of (plan, seed, k).** Nothing else is kept: no iterator state, no shuffle
//! buffer, no per-worker cursor.
//!
//! The modules, in the order in which a value passes through them:
//!
//! * `store`: bytes by name and range;
//! * `manifest`: what is known of the data, in a file beside it, and its block checksums;
//! * `output`: what writers rest on: whole files or none, locks, checkpoints;
//! * `values`: the one copy of numbers;
//! * `format`: what an on-disk layout is: it opens as a source, may write, may verify;
//! * `source`: records by number;
//! * `view`: which spans of which records make sample i;
//! * `sampler`: (epoch, position) → sample;
//! * `collate`: assembles samples into named tensors;
//! * `plan`: the pure function, its identity, and its inverse;
//! * `loader`: runs a plan ahead of time.

pub mod array;
pub mod collate;
mod error;
pub mod format;
pub mod loader;
pub mod manifest;
pub mod number;
pub mod output;
mod panics;
mod per_process;
pub mod plan;
pub mod record;
pub mod row;
pub mod sampler;
mod secrets;
pub mod source;
pub mod spelling;
pub mod stop;
pub mod store;
pub mod threads;
mod touch;
pub mod values;
pub mod view;
mod watch;

#[doc(hidden)]
pub use log;

pub use array::{Buffer, DType, Element};
pub use error::{Error, Kind, Place, Result};
pub use panics::{caught, hide_caught_panics};
pub use per_process::PerProcess;
pub use record::{Decode, Draw, Lengths, Piece, Span, Values};
pub use row::{Array, Row, Value};
pub use touch::touch;
pub use watch::{Progress, Watch, check};
