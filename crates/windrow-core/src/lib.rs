//! The core of windrow: reads training data as it lies on disk and assembles batches of it.
//!
//! **The batch at step k is a pure function of (plan, seed, k).** Nothing else is kept: no iterator state, no shuffle
//! buffer, no per-worker cursor.
//!
//! # Modules
//!
//! What all modules may use comes first; then the modules in the order in which a value passes through them.
//!
//! * `error`: errors that say what, where and how to fix it, with a kind that a program can act on;
//! * `array`: dtypes, byte order, and memory aligned for numbers;
//! * `near`: how near two names are;
//! * `number`: one number of any dtype, read from bytes and written as another dtype;
//! * `record`: spans, pieces and random draws: what a sample takes of which record;
//! * `row`: one value of a named column, and a row of such values;
//! * `secrets`: URLs as they may be shown and stored, without credentials;
//! * `watch`: progress of a task, and whether to stop it;
//! * `stop`: Ctrl-C during a wait for another machine;
//! * `threads`: thread limits, the number of cores, parallel work on one task;
//! * `panics`: catches panics of libraries about the bytes of a file;
//! * `permutation`: a keyed bijection and its inverse, behind every order;
//! * `per_process`: values that every process makes for itself, also after a fork;
//! * `spelling`: option names in messages, as Rust, Python or the command line spells them;
//! * `touch`: asks the processor for memory that is read soon;
//! * `store`: bytes by name and range: local files, maps, memory, globs, compression, the cache;
//! * `manifest`: `windrow.json` beside the data: file rows, block checksums, the tokenizer lock, listings;
//! * `output`: what every writer uses: whole files or none, locks, checkpoints, fsync, which file becomes visible last;
//! * `values`: the one copy of numbers between the page cache and the batch;
//! * `format`: the contracts of a format (open, write, verify), its options as rows, and what formats share;
//! * `source`: records by number, and the sources that wrap another one: concat, subset (by numbers, a mask or what a
//!   column holds), period (up to a border), apart (each channel), scale, folder_columns, transform;
//! * `view`: which spans of which records make sample i: pack, records, windows, crop, bins, segments, cursor, rows;
//! * `sampler`: (epoch, position) → sample: sequential, shuffle, blocks, mix, skipping, budget; and the rows of a rank;
//! * `collate`: assembles samples into named tensors: inputs, labels, masks, positions, codes, covariates;
//! * `plan`: the pure function, its identity, its state, its inverse (trace), and how two plans differ;
//! * `loader`: runs a plan ahead of time: threads, a bounded queue, reading ahead.
//!
//! # Traits
//!
//! The required methods are few; the others have defaults.
//!
//! * [`store::Store`]: open, entry, walk, display; [`store::Object`]: size, name, modified_ns, read. One object per key is
//!   opened, so that reads look nothing up.
//! * [`format::Format`]: info (data: names of files, options), recognise, open; `writer`, `verifier`, `parts`,
//!   `open_files` and `line_index` where a format has them. A writer hands out a `RecordWriter`, which deals with neither the lock nor the
//!   rename: every format is written through `prepare::Writer` or `tokenize`.
//! * [`Lengths`]: len, length. A trait of its own, so that `view` does not depend on `source`; asked per record, never copied.
//! * [`source::Source`]: schema, read, locate, files, fingerprint, format. Wrappers forward all other methods
//!   (`deny(clippy::missing_trait_methods)`).
//! * [`view::View`]: len, pieces, samples_of, positions, coverage, describe.
//! * [`sampler::Sampler`]: len, turn, position, describe. A *turn* is a sample and a pass, because a mixture may use a small
//!   part several times in one epoch, with other random draws each time. The rows of a rank are a contiguous part of the
//!   global batch, or those that cost as much as any other rank's: together, the batches of all ranks are the batch of one.
//! * [`collate::Collate`]: fields(samples), fill(sample, row), describe. `fields` sees all samples before memory is
//!   allocated, so a batch can be as long as its longest sample.
//!
//! They were designed for five kinds of data: time series (a window is a span, and scaling happens in the copy), raw tokens
//! (one endless stream; documents are a source that wraps it), flat-tokens in zarr (a flag that the copy removes, chunks
//! that are decoded into a bounded cache), byte-offset indexes (JSON is a kind of schema; a loss mask is a track: the same
//! span of another array) and audio codes (crops take their random numbers from [`Draw`]; prompts are `extras`).

pub mod array;
pub mod collate;
mod error;
pub mod format;
pub mod loader;
pub mod manifest;
pub mod near;
pub mod number;
pub mod output;
mod panics;
mod per_process;
mod permutation;
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
pub use record::{Decode, Draw, Lengths, Pass, Piece, Span, Values};
pub use row::{Array, Row, Value};
pub use touch::touch;
pub use watch::{Progress, Watch, check};
