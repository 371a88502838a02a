//! The tokenizer a caller holds: a name, an engine, and what a loader must know about its special tokens.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use windrow_core::manifest::Golden;
use windrow_core::{Error, Result};

use crate::{bytes, eos, json, lock, named};

/// The built-in tokenizers, by name.
pub const NAMES: &[&str] = &["bytes", "cl100k_base", "deepseek_v3", "gpt2", "llama3", "o200k_base"];

/// Text → ids and back. Shared between threads as it is; encoding takes `&self`, and a clone is the same tokenizer.
#[derive(Clone)]
pub struct Tokenizer {
    name: String,
    engine: Arc<dyn Engine>,
    special: Vec<(String, u32)>,
    golden: Vec<Golden>,
    hash: String,
}

/// What turns text into ids. An engine applies no template, never truncates and never pads.
pub(crate) trait Engine: Send + Sync {
    fn backend(&self) -> &'static str;

    /// Ids are below this.
    fn vocab_size(&self) -> u64;

    /// Special tokens, by id.
    fn special(&self) -> Vec<(String, u32)>;

    /// Adds the ids of `text`, special tokens in it being text.
    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<()>;

    /// Adds the ids of `text`, special tokens in it being special.
    fn encode_special(&self, text: &str, out: &mut Vec<u32>) -> Result<()>;

    fn decode(&self, ids: &[u32]) -> Result<String>;

    fn id_of(&self, token: &str) -> Option<u32>;
}

impl Tokenizer {
    /// Loads a built-in tokenizer by its name (see [`NAMES`]), or the `tokenizer.json` at a path or in a folder.
    ///
    /// Names are looked at first; `./gpt2` is a path. `bytes` gives each byte its own value and ends a document with
    /// 256.
    ///
    /// # Errors
    /// `NotFound` when it is neither a name nor a path; `Corrupt` when the file cannot be understood; `Unsupported`
    /// when it would give other ids from run to run, or when this build was made without the vocabulary.
    pub fn load(name_or_path: &str) -> Result<Tokenizer> {
        if NAMES.contains(&name_or_path) {
            let engine: Arc<dyn Engine> = match name_or_path {
                "bytes" => Arc::new(bytes::Bytes),
                "gpt2" => Arc::new(json::gpt2()?),
                name => Arc::new(named::Named::load(name)?),
            };
            let golden = lock::golden(engine.as_ref());
            let hash = lock::hash_of_builtin(name_or_path, engine.vocab_size(), &golden);
            return Ok(Self::new(name_or_path, engine, golden, hash));
        }
        let (path, content) = json::read(Path::new(name_or_path))?;
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let engine = json::Json::new(&name, &content).map_err(|e| e.or_at(&path))?;
        let golden = lock::golden(&engine);
        Ok(Self::new(&name, Arc::new(engine), golden, lock::hash_of(&content)))
    }

    /// Adds the ids of `text` to `out`. Special tokens that stand in the text are text.
    ///
    /// # Errors
    /// `Corrupt` when the tokenizer.json has no token for a character and no token for unknown ones.
    pub fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        self.engine.encode(text, out)
    }

    /// Adds the ids of `text` to `out`. A special token that stands in the text becomes its own id.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_special(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        self.engine.encode_special(text, out)
    }

    /// The text of `ids`, special tokens written out. A character whose ids were cut apart becomes U+FFFD.
    ///
    /// # Errors
    /// `OutOfRange` for an id that no token has.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.engine.decode(ids)
    }

    /// Ids are below this: the largest id plus one.
    pub fn vocab_size(&self) -> u64 {
        self.engine.vocab_size()
    }

    /// The built-in name, or the file name of the tokenizer.json.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The special tokens and their ids, by id.
    pub fn special(&self) -> &[(String, u32)] {
        &self.special
    }

    /// The id that ends a document, where the tokenizer has a token with one of the well-known names.
    pub fn eos(&self) -> Option<u32> {
        eos::well_known(self)
    }

    /// The id that ends a document: `auto` takes the well-known one, `none` none; else an id or the name of a token.
    ///
    /// # Errors
    /// `Config` when there is no such token, the id is not in the vocabulary, or `auto` finds none; the hint lists
    /// the special tokens.
    pub fn resolve_eos(&self, spec: &str) -> Result<Option<u32>> {
        eos::resolve(self, spec)
    }

    /// The id of a token by its name, special ones first.
    pub fn id_of(&self, token: &str) -> Option<u32> {
        let special = self.special.iter().find(|(name, _)| name == token);
        special.map(|&(_, id)| id).or_else(|| self.engine.id_of(token))
    }

    /// What encodes: `splintr` (named vocabularies), `windrow` (the fast way of a tokenizer.json), `tokenizers` (the library
    /// that defines it) or `bytes`.
    pub fn backend(&self) -> &'static str {
        self.engine.backend()
    }

    /// XXH3-64 of the definition, 16 hexadecimal digits.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// Strings and the ids they give.
    pub(crate) fn golden(&self) -> &[Golden] {
        &self.golden
    }

    fn new(name: &str, engine: Arc<dyn Engine>, golden: Vec<Golden>, hash: String) -> Tokenizer {
        Tokenizer { name: name.to_string(), special: engine.special(), engine, golden, hash }
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("name", &self.name)
            .field("backend", &self.backend())
            .field("vocab_size", &self.vocab_size())
            .finish_non_exhaustive()
    }
}

/// Adds ids to those that are there; where there are none, they become them and nothing is copied.
pub(crate) fn add(ids: Vec<u32>, out: &mut Vec<u32>) {
    match out.is_empty() {
        true => *out = ids,
        false => out.extend(ids),
    }
}

/// The error for an id that no token has.
pub(crate) fn no_such_id(id: u32, vocab_size: u64) -> Error {
    Error::out_of_range("token id", id, vocab_size)
        .hint("other data, or another tokenizer than the one that made it?")
}
