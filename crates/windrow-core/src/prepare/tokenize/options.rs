//! How to tokenise, and what follows from it for every id.

use serde::{Deserialize, Serialize};

use crate::array::DType;
use crate::error::{Error, Result};
use crate::format;
use crate::prepare::documents::DocumentLayout;
use crate::prepare::encode::{Encode, Rules};
use crate::prepare::index::check_folder_name;
use crate::threads;

/// What [`super::tokenize`] writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenLayout {
    /// Samples in one `.bin` per input, and a byte-offset index of them, as data-forager does.
    #[default]
    Forager,
    /// One stream of all documents without a header: `tokens.bin`.
    Tokens,
    /// A sequence and a document per document: `tokens.bin` and `tokens.idx`.
    Megatron,
    /// A record per document in `data-<i>-of-<n>.bin` and `meta.json`.
    Shards,
}

/// What becomes of the tokens at the very end that do not fill a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remainder {
    /// They are left out, and counted in [`crate::prepare::Report::dropped_tokens`].
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenizeOptions {
    /// What to write.
    pub layout: TokenLayout,
    /// Tokens per sample, documents packed one after the other; `None` makes each document a record.
    pub sample_size: Option<u64>,
    /// The id appended to each document: with a sample size, in the tokens layout, and else, where each document is a
    /// record, if `append_eos` is set.
    pub eos: Option<i64>,
    /// Appends `eos` to documents of variable length too.
    pub append_eos: bool,
    /// dtype of a stored id; `None` takes the smaller of uint16 and uint32 that holds the vocabulary.
    pub dtype: Option<DType>,
    /// What becomes of the tokens at the end that do not fill a sample.
    pub remainder: Remainder,
    /// Bytes beside the tokens; stored after a sample's tokens, by name.
    pub tracks: Vec<Track>,
    /// Name of the folder of samples.
    pub samples_folder: String,
    /// What follows the input's name in the name of its samples.
    pub postfix: String,
    /// Name of the index folder.
    pub index_folder: String,
    /// Most bytes of a shard.
    pub max_shard_bytes: u64,
    /// Keep a sum of every block of 4 KiB of samples or of `tokens.bin`, by which [`format::Verify::Always`] sees damage
    /// where it is read.
    pub block_sums: bool,
    /// Replace an existing output.
    pub overwrite: bool,
    /// Bring everything to the disk before it becomes visible.
    pub durable: bool,
    /// Encoding threads, 1 to 1024; `None` takes as many as the machine has.
    pub threads: Option<usize>,
    /// Input bytes between restart points.
    pub checkpoint_bytes: u64,
    /// No input at all gives an empty output instead of an error.
    pub allow_empty: bool,
}

impl Default for TokenizeOptions {
    fn default() -> Self {
        TokenizeOptions {
            layout: TokenLayout::Forager,
            sample_size: None,
            eos: None,
            append_eos: false,
            dtype: None,
            remainder: Remainder::Drop,
            tracks: Vec::new(),
            samples_folder: "tokenized-samples".to_string(),
            postfix: "tokenized-samples".to_string(),
            index_folder: format::INDEX_FOLDER.to_string(),
            max_shard_bytes: 5 << 30,
            block_sums: true,
            overwrite: false,
            durable: true,
            threads: None,
            checkpoint_bytes: 64 << 20,
            allow_empty: false,
        }
    }
}

/// Options that do not decide what is written; a layout says itself how long its shards are.
pub(super) const RUN_ONLY: [&str; 6] =
    ["overwrite", "durable", "threads", "checkpoint_bytes", "allow_empty", "max_shard_bytes"];

/// A sample of more tokens would not fit into memory anywhere.
const MOST_SAMPLE: u64 = 1 << 40;

/// An option that is set although nothing of what is written depends on it, and what it is an option of.
fn idle(options: &TokenizeOptions, is_by_document: bool) -> Option<(&'static str, &'static str)> {
    const SAMPLES: &str = "samples with an index, the forager layout";
    let usual = TokenizeOptions::default();
    let is_samples = options.layout == TokenLayout::Forager && !is_by_document;
    let is_files = is_samples || (options.layout == TokenLayout::Tokens && !is_by_document);
    let is_shards = options.layout == TokenLayout::Shards;
    [
        ("samples_folder", SAMPLES, is_samples || options.samples_folder == usual.samples_folder),
        ("postfix", SAMPLES, is_samples || options.postfix == usual.postfix),
        ("index_folder", SAMPLES, is_samples || options.index_folder == usual.index_folder),
        (
            "block_sums",
            "samples and tokens.bin; the other layouts keep them always, or never",
            is_files || options.block_sums,
        ),
        ("max_shard_bytes", "shards", is_shards || options.max_shard_bytes == usual.max_shard_bytes),
        ("remainder", "sample_size", options.sample_size.is_some() || options.remainder == usual.remainder),
    ]
    .into_iter()
    .find_map(|(option, of, is_used)| (!is_used).then_some((option, of)))
}

/// Checks the options; what they, the layout of documents and the encoder say of every id.
pub(super) fn rules(
    encode: &dyn Encode,
    options: &TokenizeOptions,
    layout: Option<&dyn DocumentLayout>,
) -> Result<Rules> {
    check_folder_name("samples_folder", &options.samples_folder)?;
    check_folder_name("index_folder", &options.index_folder)?;
    check_folder_name("postfix", &options.postfix)?;
    if options.samples_folder == options.index_folder {
        return Err(Error::config("samples_folder and index_folder are the same"));
    }
    if let Some(size) = options.sample_size.filter(|size| !(1..=MOST_SAMPLE).contains(size)) {
        return Err(Error::config(format!("sample_size is {size}; expected 1 to {MOST_SAMPLE}")));
    }
    threads::check(options.threads, 1)?;
    if let Some((option, of)) = idle(options, layout.is_some()) {
        return Err(Error::config(format!(
            "{option} is set, which is an option of {of}: here it would change nothing"
        ))
        .field(option));
    }
    let is_stream = layout.is_none() && options.layout == TokenLayout::Tokens;
    if (is_stream || layout.is_some()) && (options.sample_size.is_some() || !options.tracks.is_empty()) {
        return Err(Error::config(match layout {
            None => "the tokens layout is one stream: it has neither a sample size nor tracks".to_string(),
            Some(layout) => {
                format!(
                    "{} holds a record per document: it has neither a sample size nor tracks",
                    layout.format()
                )
            }
        })
        .hint("samples are written by the forager layout"));
    }
    if options.sample_size.is_none() && !options.tracks.is_empty() {
        return Err(Error::config("tracks need a sample size"));
    }
    let appends = options.sample_size.is_some() || is_stream || options.append_eos;
    if options.append_eos && options.eos.is_none() {
        return Err(Error::config("append_eos is set, but no end-of-sequence id is given"));
    }
    // It is written into the manifest, appended or not.
    if let Some(id) = options.eos.filter(|id| *id < 0) {
        return Err(Error::config(format!("eos {id} is no id")).field("eos"));
    }
    let pad = match options.remainder {
        Remainder::Pad(id) => Some(id),
        Remainder::Drop => None,
    };
    // Ids that the user names belong to the vocabulary, also where the tokenizer does not know them.
    let named = options.eos.max(pad).and_then(|id| u64::try_from(id).ok()).map(|id| id.saturating_add(1));
    let vocab_size = encode.vocab_size().map(|v| v.max(named.unwrap_or(0)));
    let dtypes = layout.map_or(&[DType::U16, DType::U32][..], DocumentLayout::dtypes);
    let dtype = match (options.dtype, vocab_size) {
        (Some(dtype), _) => dtype,
        (None, _) if dtypes.len() == 1 => dtypes[0],
        (None, Some(vocab)) => dtypes
            .iter()
            .copied()
            .find(|d| i64::try_from(vocab.saturating_sub(1)).is_ok_and(|id| d.holds(id)))
            .ok_or_else(|| Error::config(format!("no dtype for a vocabulary of {vocab} ids")))?,
        (None, None) => {
            return Err(Error::config("the encoder does not say its vocabulary, so no dtype can be chosen")
                .field("dtype")
                .hint("give dtype=\"uint16\" or dtype=\"uint32\""));
        }
    };
    if let Some(layout) = layout.filter(|layout| !layout.dtypes().contains(&dtype)) {
        let names: Vec<_> = layout.dtypes().iter().map(|d| d.name()).collect();
        return Err(Error::config(format!("{} stores no {dtype} ids", layout.format()))
            .field("dtype")
            .hint(format!("it stores {}", names.join(", "))));
    }
    if !dtype.is_integer() || dtype == DType::Bool {
        return Err(Error::config(format!("token ids cannot be stored as {dtype}")).hint("uint16 or uint32"));
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
        largest_id: layout.and_then(DocumentLayout::largest_id),
        tracks: tracks.iter().map(|(i, track)| (*i, track.eos)).collect(),
    };
    for (field, id) in [("eos", rules.eos), ("remainder", pad)] {
        if let Some(id) = id {
            rules.check(id).map_err(|e| e.field(field))?;
        }
    }
    Ok(rules)
}
