//! How to tokenise, and what follows from it for every ID.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windrow_core::collate::LOSS_MASK_TRACK;
use windrow_core::format::write::WriteFormat;
use windrow_core::{DType, Error, Result, threads};

use crate::encode::{Encode, Rules};

/// What to do with the tokens at the very end that do not fill a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remainder {
    /// They are left out, and counted in [`crate::Report::dropped_tokens`].
    #[default]
    Drop,
    /// They are filled up with this id.
    Pad(i64),
}

/// A byte beside every token, such as a loss mask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    /// Its name in `sample_schema.json`.
    pub name: String,
    /// Its value beside the end-of-sequence id that the task appends.
    pub eos: u8,
    /// Its value beside padding.
    pub pad: u8,
}

/// How to tokenise.
#[derive(Clone, Debug)]
pub struct TokenizeOptions {
    /// What to write, with the options of that format.
    pub to: Arc<dyn WriteFormat>,
    /// Tokens per sample, documents packed one after the other; `None` makes each document a record.
    pub sample_size: Option<u64>,
    /// The ID to write after each document, where documents are packed or joined: with a sample size, or in a stream; where each
    /// document is a record, if `append_eos` is set.
    pub eos: Option<i64>,
    /// Appends `eos` to documents of variable length too.
    pub append_eos: bool,
    /// dtype of a stored token ID; `None` takes the first of the format's dtypes that holds the vocabulary.
    pub dtype: Option<DType>,
    /// What to do with the tokens at the end that do not fill a sample.
    pub remainder: Remainder,
    /// Bytes beside the tokens; stored after a sample's tokens, by name.
    pub tracks: Vec<Track>,
    /// Replace an existing output.
    pub overwrite: bool,
    /// Bring everything to the disk before it becomes visible.
    pub fsync: bool,
    /// Encoding threads, 1 to 1024; `None` takes as many as the machine has.
    pub num_threads: Option<usize>,
    /// Input bytes between checkpoints.
    pub checkpoint_bytes: u64,
    /// No input at all gives an empty output instead of an error.
    pub allow_empty: bool,
    /// Of folders that hold several splits, the one of this name; of files those whose names say it.
    pub split: Option<String>,
    /// Damaged records (not JSON, not UTF-8, without a text, a conversation that its template refuses) are left out, up to this
    /// share of all, 0 to 1; `None`: the first one is an error. A damaged or truncated file is one in any case.
    pub max_skipped: Option<f64>,
}

/// Input bytes between checkpoints by default.
pub const CHECKPOINT_BYTES: u64 = 64 << 20;

impl TokenizeOptions {
    /// The usual ones.
    pub fn new(to: Arc<dyn WriteFormat>) -> Self {
        TokenizeOptions {
            to,
            sample_size: None,
            eos: None,
            append_eos: false,
            dtype: None,
            remainder: Remainder::Drop,
            tracks: Vec::new(),
            overwrite: false,
            fsync: true,
            num_threads: None,
            checkpoint_bytes: CHECKPOINT_BYTES,
            allow_empty: false,
            split: None,
            max_skipped: None,
        }
    }

    /// Those that decide what is written, with those of the format.
    pub(super) fn describe(&self) -> Map<String, Value> {
        let said = [
            ("layout", json!(self.to.name())),
            ("sample_size", json!(self.sample_size)),
            ("eos", json!(self.eos)),
            ("append_eos", json!(self.append_eos)),
            ("dtype", json!(self.dtype)),
            ("remainder", json!(self.remainder)),
            ("tracks", json!(self.tracks)),
        ];
        let shared = said.map(|(name, value)| (name.to_string(), value));
        // Said only where it is given: outputs of before are the same task.
        let split = self.split.as_ref().map(|split| ("split".to_string(), json!(split)));
        // The share decides no byte: a run that left out too many continues with another.
        let skips = self.max_skipped.map(|_| ("skip_corrupt".to_string(), json!(true)));
        shared.into_iter().chain(split).chain(skips).chain(self.to.describe()).collect()
    }
}

/// A sample of more tokens would not fit into memory anywhere.
const MOST_SAMPLE: u64 = 1 << 40;

/// Checks the options; what they, the format and the encoder say of every token ID.
pub(crate) fn rules(encode: &dyn Encode, options: &TokenizeOptions) -> Result<Rules> {
    let to = options.to.info();
    if to.id_dtypes.is_empty() {
        return Err(Error::config(format!("{} does not hold the tokens of a corpus", to.name)).field("to"));
    }
    if let Some(size) = options.sample_size.filter(|size| !(1..=MOST_SAMPLE).contains(size)) {
        return Err(Error::config(format!("sample_size is {size}; expected 1 to {MOST_SAMPLE}")));
    }
    threads::check(options.num_threads, 1)?;
    if let Some(most) = options.max_skipped.filter(|most| !(0.0..=1.0).contains(most)) {
        return Err(Error::config(format!("@the max_skipped@ is {most}; expected a share, 0 to 1"))
            .field("max_skipped"));
    }
    if options.sample_size.is_none() && options.remainder != Remainder::Drop {
        return Err(Error::config(
            "remainder is set, which is an option of sample_size: here it would change nothing",
        )
        .field("remainder"));
    }
    if to.is_stream && options.sample_size.is_some() {
        return Err(Error::config(format!("{} is one stream: it has no sample size", to.name))
            .field("sample_size")
            .hint("@pack_when_read@ cuts a stream into samples when it is read"));
    }
    if let Some(track) = options.tracks.first().filter(|_| !to.holds_tracks) {
        return Err(Error::config(format!(
            "{} has no place for a {} beside the tokens",
            to.name, track.name
        ))
        .field("to")
        .hint("token samples with an index (forager) have"));
    }
    let appends = options.sample_size.is_some() || to.is_stream || options.append_eos;
    if options.append_eos && options.eos.is_none() {
        return Err(Error::config("@append_eos=true@, but no EOS token is given"));
    }
    // It is written into the manifest, appended or not.
    if let Some(id) = options.eos.filter(|id| *id < 0) {
        return Err(Error::config(format!("eos {id} is not a token ID")).field("eos"));
    }
    let pad = match options.remainder {
        Remainder::Pad(id) => Some(id),
        Remainder::Drop => None,
    };
    // Ids that the user names belong to the vocabulary, also where the tokenizer does not know them.
    let named = options.eos.max(pad).and_then(|id| u64::try_from(id).ok()).map(|id| id.saturating_add(1));
    let vocab_size = encode.vocab_size().map(|v| v.max(named.unwrap_or(0)));
    let dtypes = to.id_dtypes;
    let dtype = match (options.dtype, vocab_size) {
        (Some(dtype), _) => dtype,
        (None, _) if dtypes.len() == 1 => dtypes[0],
        (None, Some(vocab)) => dtypes
            .iter()
            .copied()
            .find(|d| i64::try_from(vocab.saturating_sub(1)).is_ok_and(|id| d.holds(id)))
            .ok_or_else(|| Error::config(format!("no dtype for a vocabulary of {vocab} IDs")))?,
        (None, None) => {
            return Err(Error::config("the encoder does not say its vocabulary, so no dtype can be chosen")
                .field("dtype")
                .hint("give @as_dtype=uint16@ or @as_dtype=uint32@"));
        }
    };
    if !dtypes.contains(&dtype) {
        let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
        return Err(Error::config(format!("{} stores no {dtype} token IDs", to.name))
            .field("dtype")
            .hint(format!("it stores {}", names.join(", "))));
    }
    // Other numbers than the IDs themselves are not token IDs: normalised ones, for example.
    options.to.stored_dtype(dtype, Some(dtype))?;
    if !dtype.is_integer() || dtype == DType::Bool {
        return Err(Error::config(format!("token IDs cannot be stored as {dtype}")).hint("uint16 or uint32"));
    }
    let mut tracks: Vec<_> = options.tracks.iter().enumerate().collect();
    tracks.sort_by(|a, b| a.1.name.cmp(&b.1.name));
    if let Some(pair) = tracks.windows(2).find(|pair| pair[0].1.name == pair[1].1.name) {
        return Err(Error::config(format!("two tracks are called {:?}", pair[0].1.name)));
    }
    let rules = Rules {
        dtype,
        vocab_size,
        eos: options.eos.filter(|_| appends),
        largest_id: to.largest_id,
        tracks: tracks.iter().map(|(i, track)| (*i, track.eos)).collect(),
        // Padding is not learned.
        mask: tracks
            .iter()
            .find(|(_, track)| track.name == LOSS_MASK_TRACK)
            .map(|(i, track)| (*i, track.pad)),
        skips: options.max_skipped.is_some(),
    };
    for (field, id) in [("eos", rules.eos), ("remainder", pad)] {
        if let Some(id) = id {
            rules.check(id).map_err(|e| e.field(field))?;
        }
    }
    Ok(rules)
}
