//! flat-tokens: a group of `encoded_tokens`, `seq_starts` and the attribute `max_token_id`; recognised and opened.

use std::sync::Arc;

use serde_json::Value;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::{Object, Store, key, open_if_there, read_small};
use windrow_core::{DType, Error, Kind, Result};

use crate::array::{Array, Wanted};
use crate::cache::Cache;
use crate::metadata::{METADATA_V2, METADATA_V3};
use crate::source::{Group, Sequences};
use crate::write::WriteFlatTokens;

/// Attributes of a group take less.
const MOST_ATTRIBUTES: u64 = 4 << 20;

pub(crate) const TOKENS: &str = "encoded_tokens";
pub(crate) const STARTS: &str = "seq_starts";
pub(crate) const MAX_ID: &str = "max_token_id";
const SPLITS: [&str; 2] = ["train", "validation"];
/// Ids are stored in 31 bits.
pub(crate) const LARGEST_ID: u64 = (1 << 31) - 1;

/// Token sequences in zarr groups, v2 or v3.
#[derive(Clone, Copy, Debug)]
pub struct FlatTokens;

impl Format for FlatTokens {
    fn name(&self) -> &'static str {
        "flat-tokens"
    }

    fn about(&self) -> FormatInfo {
        FormatInfo {
            title: "Flat tokens",
            layout: "a zarr group (v2 or v3) of `encoded_tokens`, `seq_starts` and the attribute `max_token_id`; \
                     a data set holds one in `train` and one in `validation`",
            records: "one sequence of token ids",
            written_by: "`windrow convert --to flat-tokens`, `windrow tokenize --to flat-tokens`, `wr.write`, seqax",
        }
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let store = probe.store.as_ref();
        let is_group = || tokens_name(store, &probe.key).is_some();
        match probe.is_folder && (is_group() || !self.parts(probe).is_empty()) {
            true => Confidence::Yes,
            false => Confidence::No,
        }
    }

    fn parts(&self, probe: &Probe) -> Vec<String> {
        let store = probe.store.as_ref();
        let all = SPLITS.iter().map(|split| probe.below(split));
        all.filter(|folder| tokens_name(store, folder).is_some()).collect()
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteFlatTokens::of(options)?)))
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let vocab_size = probe.manifest.as_ref().and_then(|manifest| manifest.vocab_size);
        Ok(Arc::new(Sequences::new(self.group(probe, options)?, vocab_size)))
    }
}

impl FlatTokens {
    /// The group that `probe` sees, its claims checked.
    pub(crate) fn group(&self, probe: &Probe, options: &Options) -> Result<Group> {
        let store = &probe.store;
        let Some(tokens) = tokens_name(store.as_ref(), &probe.key) else {
            let error =
                Error::not_found(format!("expected an array {TOKENS}, found none")).at(probe.display());
            return Err(match self.parts(probe).first() {
                None => error,
                Some(part) => error.hint(format!(
                    "this holds splits: open one with split=\"train\", or {}",
                    store.display(part)
                )),
            });
        };
        refuse(options, probe)?;
        if tokens != TOKENS {
            log::warn!("{}: tokens are in {tokens:?}, which should be called {TOKENS:?}", probe.display());
        }
        let (attributes, max_id) = max_token_id(store.as_ref(), &probe.key)?;
        if let Some(vocab_size) = options.vocab_size.filter(|size| *size <= max_id) {
            return Err(Error::corrupt(format!("ids go up to {max_id}, the vocabulary has {vocab_size}"))
                .at(attributes.name())
                .field(MAX_ID));
        }
        let cache = Arc::new(Cache::new(options.memory_limit));
        let array = |name: &str, dtype, number| {
            let wanted = Wanted { dtype, accepts_missing: options.fill_missing, number };
            Array::open(store, &key::below(&probe.key, name), &wanted, &cache)
        };
        let group = Group {
            tokens: array(tokens, DType::U32, 0)?,
            tokens_name: tokens,
            starts: array(STARTS, DType::U64, 1)?,
            attributes,
            max_id,
        };
        group.check_starts()?;
        Ok(group)
    }
}

// What the array of tokens is called here.
fn tokens_name(store: &dyn Store, folder: &str) -> Option<&'static str> {
    let by_another_name = || is_array(store, folder, "tokens") && is_array(store, folder, STARTS);
    match is_array(store, folder, TOKENS) {
        true => Some(TOKENS),
        false => by_another_name().then_some("tokens"),
    }
}

fn is_array(store: &dyn Store, folder: &str, name: &str) -> bool {
    let array = key::below(folder, name);
    [METADATA_V3, METADATA_V2].iter().any(|file| store.entry(&key::below(&array, file)).is_ok())
}

fn refuse(options: &Options, probe: &Probe) -> Result<()> {
    if let Some(dtype) = options.dtype.filter(|dtype| *dtype != DType::U32) {
        return Err(Error::mismatch(format!("dtype {dtype} was asked for, flat-tokens are uint32"))
            .at(probe.display())
            .field("dtype")
            .hint("leave dtype= out"));
    }
    let lock = probe.manifest.as_ref().filter(|manifest| manifest.format == FlatTokens.name());
    let lock = lock.and_then(|manifest| manifest.tokenizer.as_ref());
    if let Some((asked, lock)) = options.tokenizer.as_ref().zip(lock) {
        return match *asked == lock.hash {
            true => Ok(()),
            false => Err(Error::mismatch(format!(
                "a tokenizer with hash {asked} was asked for, but the tokens were made by {} ({})",
                lock.name, lock.hash
            ))
            .at(probe.display())
            .hint("tokenise the text again with the tokenizer you train with, or leave tokenizer= out")),
        };
    }
    if options.tokenizer.is_some() {
        return Err(Error::config("a tokenizer was given, but flat-tokens do not say which one made them")
            .at(probe.display())
            .field("tokenizer")
            .hint("check vocab_size= instead"));
    }
    Ok(())
}

/// The largest id that the group's attributes promise, and where they stand.
fn max_token_id(store: &dyn Store, folder: &str) -> Result<(Arc<dyn Object>, u64)> {
    let (object, is_v3) = match store.open(&key::below(folder, METADATA_V3)) {
        Ok(object) => (object, true),
        Err(e) if e.kind() == Kind::NotFound => match store.open(&key::below(folder, ".zattrs")) {
            Err(e) if e.kind() == Kind::NotFound => {
                return Err(Error::corrupt(format!("the group has no attribute {MAX_ID}"))
                    .at(store.display(folder))
                    .field(MAX_ID));
            }
            found => (found?, false),
        },
        Err(e) => return Err(e),
    };
    let text = read_small(object.as_ref(), MOST_ATTRIBUTES)?;
    let said = |e: Error| e.at(object.name()).field(MAX_ID);
    let all: Value = serde_json::from_slice(&text)
        .map_err(|e| Error::corrupt("no metadata of a zarr group").caused_by(e).at(object.name()))?;
    let is_known = match is_v3 {
        true => all["zarr_format"] == 3 && all["node_type"] == "group",
        false => says_version_2(store, folder)?,
    };
    if !is_known {
        return Err(Error::unsupported("no group of zarr version 2 or 3")
            .at(object.name())
            .field("zarr_format"));
    }
    let attributes = if is_v3 { &all["attributes"] } else { &all };
    match attributes.get(MAX_ID) {
        None => Err(said(Error::corrupt(format!("the group has no attribute {MAX_ID}")))),
        Some(found) => match found.as_u64().filter(|id| *id <= LARGEST_ID) {
            Some(id) => Ok((object.clone(), id)),
            None => Err(said(Error::corrupt(format!("{found}, expected a whole number in 0..=2147483647")))),
        },
    }
}

// Attributes may stand without `.zgroup`; where there is one, it says the version.
fn says_version_2(store: &dyn Store, folder: &str) -> Result<bool> {
    let Some(object) = open_if_there(store, &key::below(folder, ".zgroup"))? else { return Ok(true) };
    let text = read_small(object.as_ref(), MOST_ATTRIBUTES)?;
    Ok(serde_json::from_slice::<Value>(&text).is_ok_and(|group| group["zarr_format"] == 2))
}
