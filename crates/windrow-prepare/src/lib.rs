//! Turns inputs into a format, in tasks that can be killed and repeated.
//!
//! What a task writes becomes visible by renames at its very end, the manifest last: a reader sees a whole data set or
//! none. A task that was stopped leaves a hidden work folder (`.<task>.tmp-<hash>`), from which the same task continues.
//!
//! # Modules
//!
//! * `tokenize`: text to token samples: options, output place, inputs, encoding, publishing;
//! * `write`: records into any format that windrow writes, one by one or from a whole source;
//! * `prep`: a job in tasks over many workers: plan, task, part, status, merge, join;
//! * `verify`: compares every declared value of a manifest and an index with the bytes;
//! * `index`: the byte-offset index of JSON Lines;
//! * `dummy`: random tokens to try things with;
//! * `encode`: the trait that an encoder implements, and checks of what it returns;
//! * `ids`: the token IDs that an encoder returns;
//! * `fields`: which text an encoder takes of a record;
//! * `input`: one input file, plain or compressed, as a stream of bytes;
//! * `text_input`: one input of texts: lines or rows;
//! * `chunks`: inputs as chunks of whole records;
//! * `lines`: line ends in bytes that arrive in pieces;
//! * `ordinary`: fast path: the string in a field of an ordinary JSON line, in one pass;
//! * `text`: the text of one field of a JSON line, borrowed where possible;
//! * `rows`: one input of rows: which columns are taken;
//! * `handed`: texts that a program hands over one by one;
//! * `seen`: what is known of handed-over texts;
//! * `skipped`: damaged records that are left out: count, list, limit;
//! * `pipeline`: reads and encodes on several threads, takes results in order, in bounded memory;
//! * `fed`: workers that the calling thread feeds, for texts from one thread only;
//! * `pack`: packs encoded documents into samples, with checkpoints;
//! * `names`: one output name per input;
//! * `places`: where inputs are: local paths and URLs.

mod chunks;
mod dummy;
mod encode;
mod fed;
mod fields;
mod handed;
mod ids;
mod index;
mod input;
mod lines;
mod names;
mod ordinary;
mod pack;
mod pipeline;
mod places;
pub mod prep;
mod rows;
mod seen;
mod skipped;
mod text;
mod text_input;
mod tokenize;
mod verify;
mod write;

use std::path::{Path, PathBuf};

pub use dummy::{create_dummy_data, dummy, dummy_blocks};
pub use encode::{Encode, Encoded, LinePlace};
pub use fields::{Fields, Takes};
pub use ids::Ids;
pub use index::{IndexOptions, index, index_from};
pub use places::{NoStores, Stores};
pub use skipped::{MAX_SKIPPED, Skipped, SkippedRecord};
pub use text::{line_text, record_of, taken, text_of};
pub use tokenize::{
    CHECKPOINT_BYTES, Remainder, TokenizeOptions, Track, tokenize, tokenize_from, tokenize_texts,
};
pub use verify::{VerifyOptions, verify, verify_from};
pub use windrow_core::format::verify::{Findings, Problem, State, Verified};
pub use windrow_core::{Progress, Watch};
pub use write::{Writer, convert, manifest_of, refuse_inputs};

// A path that is not text is shown as far as it is: serde refuses it.
fn shown<S: serde::Serializer>(path: &Path, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// What a task did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Report {
    /// The output was there already, from the same inputs and options; nothing was written.
    pub unchanged: bool,
    /// What to open: the base folder, or the file.
    #[serde(serialize_with = "shown")]
    pub output: PathBuf,
    /// Data files written or indexed.
    pub files: u64,
    /// Records.
    pub records: u64,
    /// Documents read, when tokenising.
    pub documents: u64,
    /// Tokens written.
    pub tokens: u64,
    /// Tokens at the very end that fill no sample and were left out.
    pub dropped_tokens: u64,
    /// Tokens added to fill the last sample.
    pub padded_tokens: u64,
    /// Documents of which nothing is learned, when tokenising with a loss mask.
    #[serde(default)]
    pub unlearned_documents: u64,
    /// Damaged records that were left out, when tokenising.
    #[serde(default)]
    pub skipped: Skipped,
    /// Size of the inputs as they are stored.
    pub input_bytes: u64,
    /// Size of the data files written.
    pub output_bytes: u64,
    /// Input bytes that an earlier, stopped run had done.
    pub resumed_bytes: u64,
}

/// The statistic of a manifest that counts documents of which nothing is learned.
pub const UNLEARNED: &str = "unlearned_documents";
