//! The tokenizer a caller holds: a name, an engine, and what a loader must know about its special tokens.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::Result;
use windrow_core::manifest::Golden;
use windrow_core::store::at_home;

use crate::engine::Engine;
use crate::names::NAMES;
use crate::{beside, bytes, golden, json, named};

/// Text → IDs and back. Shared between threads as it is; encoding takes `&self`, and a clone is the same tokenizer.
#[derive(Clone)]
pub struct Tokenizer {
    name: String,
    engine: Arc<dyn Engine>,
    special: Vec<(String, u32)>,
    golden: Vec<Golden>,
    hash: String,
    folder: Option<PathBuf>,
    eos_beside: Option<Arc<beside::Eos>>,
}

impl Tokenizer {
    /// Loads a built-in tokenizer by its name (see [`NAMES`]), or the `tokenizer.json` at a path or in a folder.
    ///
    /// Names are looked at first; `./gpt2` is a path. `bytes` gives each byte its own value and ends a document with
    /// 256.
    ///
    /// # Errors
    /// `NotFound` when it is neither a name nor a path; `Corrupt` when the file, or the `tokenizer_config.json` or
    /// `special_tokens_map.json` beside it, cannot be understood; `Unsupported` when it would give other IDs from run to
    /// run, or when this build was made without the vocabulary.
    pub fn load(name_or_path: &str) -> Result<Tokenizer> {
        if NAMES.contains(&name_or_path) {
            let engine: Arc<dyn Engine> = match name_or_path {
                "bytes" => Arc::new(bytes::Bytes),
                "gpt2" => Arc::new(json::gpt2()?),
                name => Arc::new(named::Named::load(name)?),
            };
            let golden = golden::golden(engine.as_ref());
            let hash = golden::hash_of_builtin(name_or_path, engine.vocab_size(), &golden);
            return Ok(Self::new(name_or_path, engine, golden, hash));
        }
        let (path, content) = json::read(&at_home(Path::new(name_or_path)))?;
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let engine = json::Json::new(&name, &content).map_err(|e| e.or_at(&path))?;
        let golden = golden::golden(&engine);
        let loaded = Self::new(&name, Arc::new(engine), golden, golden::hash_of(&content));
        // From wherever the program is by then.
        let path = std::path::absolute(&path).unwrap_or(path);
        let folder = path.parent().map(Path::to_path_buf);
        let eos_beside = match &folder {
            Some(folder) => beside::eos(folder, |token| loaded.id_of(token))?.map(Arc::new),
            None => None,
        };
        Ok(Tokenizer { folder, eos_beside, ..loaded })
    }

    /// Adds the IDs of `text` to `out`. Special tokens that are in the text are text.
    ///
    /// # Errors
    /// `Corrupt` when the tokenizer.json has no token for a character and no token for unknown ones.
    pub fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        self.engine.encode(text, out)
    }

    /// Adds the IDs of `text` to `out`. A special token that is in the text becomes its own id.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_special(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        self.engine.encode_special(text, out)
    }

    /// As [`Tokenizer::encode_special`], with the bytes of `text` that each ID encodes, in order: where a character takes
    /// several IDs, or an ID white space that is no part of its word, as the tokenizers library says it.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_places(
        &self,
        text: &str,
        out: &mut Vec<u32>,
        places: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        self.engine.encode_places(text, out, places)
    }

    /// The folder of the tokenizer.json, where it was loaded from one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The text of `ids`, special tokens written out. A character whose IDs were cut apart becomes U+FFFD.
    ///
    /// # Errors
    /// `OutOfRange` for an ID that no token has.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.engine.decode(ids)
    }

    /// The bytes of the text of `ids`, as [`Tokenizer::decode`] gives it, also those of characters whose IDs were cut apart. A
    /// tokenizer.json whose tokens do not say their bytes gives U+FFFD for them.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    ///
    /// ```
    /// use windrow_text::Tokenizer;
    ///
    /// // The first two of the three bytes of a Malayalam letter.
    /// let tokenizer = Tokenizer::load("bytes")?;
    /// assert_eq!(tokenizer.decode(&[0xe0, 0xb4])?, "\u{fffd}");
    /// assert_eq!(tokenizer.decode_bytes(&[0xe0, 0xb4])?, b"\xe0\xb4");
    /// # Ok::<(), windrow_text::Error>(())
    /// ```
    pub fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
        self.engine.decode_bytes(ids)
    }

    /// Ids are below this: the largest id plus one.
    pub fn vocab_size(&self) -> u64 {
        self.engine.vocab_size()
    }

    /// The built-in name, or the file name of the tokenizer.json.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The special tokens and their IDs, by id.
    pub fn special(&self) -> &[(String, u32)] {
        &self.special
    }

    /// The ID of a token by its name, special ones first.
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

    /// What ends a document, where a file beside the tokenizer.json says it.
    pub(crate) fn eos_beside(&self) -> Option<&beside::Eos> {
        self.eos_beside.as_deref()
    }

    /// Strings and the IDs they give.
    pub(crate) fn golden(&self) -> &[Golden] {
        &self.golden
    }

    fn new(name: &str, engine: Arc<dyn Engine>, golden: Vec<Golden>, hash: String) -> Tokenizer {
        let (name, special) = (name.to_string(), engine.special());
        Tokenizer { name, special, engine, golden, hash, folder: None, eos_beside: None }
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
