//! A Hugging Face tokenizer.json: the fast engine where it gives the reference's ids, else the reference.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use splintr::{Backend, SpecialMode, Tokenize};
use windrow_core::{Error, Result};

use crate::definition::Definition;
use crate::hard;
use crate::pretokens::PreTokens;
use crate::tokenizer::{Engine, NAMES, add, no_such_id};

const GPT2: &[u8] = include_bytes!("../assets/gpt2/tokenizer.json.zst");

const FILE_NAME: &str = "tokenizer.json";

// The largest known one has 35 MB.
const MOST_BYTES: u64 = 512 << 20;

/// A loaded tokenizer.json.
pub(crate) struct Json {
    vocab_size: u64,
    // Special tokens are text to this one; it decodes too, also where the fast one encodes.
    reference: Arc<tokenizers::Tokenizer>,
    // The reference with special tokens that are special, made when it is first asked for.
    reference_special: OnceLock<Arc<tokenizers::Tokenizer>>,
    fast: Option<Fast>,
}

/// The fast engine. It is never asked about an empty text: before that, it may put the space of a first word.
struct Fast {
    all: Arc<Backend>,
    // Without the special tokens: where there are special ones, which are text, and others, which are matched in it.
    others: Option<Arc<Backend>>,
    any_special: bool,
    // Where a text's ids are those of its words.
    pre_tokens: Option<PreTokens>,
}

/// The built-in GPT-2 tokenizer.
pub(crate) fn gpt2() -> Result<Json> {
    let mut content = Vec::new();
    zstd::Decoder::new(GPT2)
        .and_then(|decoder| decoder.take(MOST_BYTES).read_to_end(&mut content))
        .map_err(|e| Error::corrupt("the built-in gpt2 tokenizer cannot be unpacked").caused_by(e))?;
    Json::new("gpt2", &content)
}

/// The path and the content of the tokenizer.json at `path`, or in the folder at `path`.
///
/// # Errors
/// `NotFound`, `Corrupt` when it is too large, `Io`.
pub(crate) fn read(path: &Path) -> Result<(PathBuf, Vec<u8>)> {
    let names =
        || format!("built-in: {}; else the path of a tokenizer.json or of its folder", NAMES.join(", "));
    let mut path = path.to_path_buf();
    if path.is_dir() {
        path.push(FILE_NAME);
    }
    let about = std::fs::metadata(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::not_found("there is no tokenizer of this name or at this path").at(&path).hint(names())
        }
        _ => Error::io("look at the tokenizer", &path, e),
    })?;
    if !about.is_file() {
        return Err(Error::config("a tokenizer is a file").at(&path).hint(names()));
    }
    if about.len() > MOST_BYTES {
        return Err(Error::corrupt(format!(
            "{} bytes are no tokenizer.json: at most {MOST_BYTES} are read",
            about.len()
        ))
        .at(&path));
    }
    let content = std::fs::read(&path).map_err(|e| Error::io("read the tokenizer", &path, e))?;
    Ok((path, content))
}

impl Json {
    /// Loads a definition and decides which engine encodes.
    ///
    /// # Errors
    /// What [`Definition::read`] says; `Corrupt` when the reference refuses it.
    pub(crate) fn new(name: &str, content: &[u8]) -> Result<Json> {
        let definition = Definition::read(content)?;
        let reference = Arc::new(reference(content)?);
        let mut json = Json {
            vocab_size: definition.vocab_size,
            reference,
            reference_special: OnceLock::new(),
            fast: None,
        };
        match json.agreeing(content, &definition)? {
            Ok(fast) => json.fast = Some(fast),
            Err(why) => log::warn!("{name}: {why}; it is encoded by the reference, which is slower"),
        }
        Ok(json)
    }

    // The fast engine, or why not.
    fn agreeing(&self, content: &[u8], definition: &Definition) -> Result<Result<Fast, String>> {
        let strings = hard::strings(&definition.added)?;
        // A reference that breaks on one of them is of no use to anybody.
        let plain = answers(&self.reference, &strings)?;
        let special = answers(self.reference_special(), &strings)?;
        let compared = Fast::load(content, definition).and_then(|fast| {
            let encode = |text: &str| {
                let mut ids = Vec::new();
                fast.encode(text, &mut ids).map(|()| ids)
            };
            let other = hard::first_difference(&strings, &plain, encode)
                .or_else(|| hard::first_difference(&strings, &special, |text| fast.encode_special(text)));
            match other {
                Some(text) => {
                    let start: String = text.chars().take(60).collect();
                    Err(format!("the fast engine gives other ids for {start:?}"))
                }
                None => Ok(fast),
            }
        });
        Ok(compared)
    }

    fn reference_special(&self) -> &tokenizers::Tokenizer {
        self.reference_special.get_or_init(|| {
            let mut special = tokenizers::Tokenizer::clone(&self.reference);
            special.set_encode_special_tokens(false);
            Arc::new(special)
        })
    }
}

impl Engine for Json {
    fn backend(&self) -> &'static str {
        if self.fast.is_some() { "splintr" } else { "tokenizers" }
    }

    fn copy(&self) -> Box<dyn Engine> {
        // The reference does not gain by a copy, and its vocabulary takes the most memory.
        Box::new(Json {
            vocab_size: self.vocab_size,
            reference: self.reference.clone(),
            reference_special: self.reference_special.clone(),
            fast: self.fast.as_ref().map(Fast::copy),
        })
    }

    fn is_shared_well(&self) -> bool {
        self.fast.as_ref().is_some_and(|fast| fast.pre_tokens.is_some())
    }

    fn vocab_size(&self) -> u64 {
        self.vocab_size
    }

    fn special(&self) -> Vec<(String, u32)> {
        let added = self.reference.get_added_tokens_decoder();
        let mut special: Vec<(String, u32)> =
            added.into_iter().filter(|(_, t)| t.special).map(|(id, t)| (t.content, id)).collect();
        special.sort_by_key(|&(_, id)| id);
        special
    }

    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        match &self.fast {
            Some(fast) if !text.is_empty() => fast.encode(text, out).ok_or_else(not_encoded)?,
            _ => add(ids_of(&self.reference, text)?, out),
        }
        Ok(())
    }

    fn encode_special(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        match &self.fast {
            Some(fast) if !text.is_empty() => {
                add(fast.encode_special(text).ok_or_else(not_encoded)?, out);
            }
            _ => add(ids_of(self.reference_special(), text)?, out),
        }
        Ok(())
    }

    fn decode(&self, ids: &[u32]) -> Result<String> {
        if let Some(&id) = ids.iter().find(|&&id| self.reference.id_to_token(id).is_none()) {
            return Err(no_such_id(id, self.vocab_size));
        }
        let text = guarded(|| self.reference.decode(ids, false))?;
        text.map_err(|e| Error::corrupt("the ids cannot be decoded").caused_by(e))
    }

    fn id_of(&self, token: &str) -> Option<u32> {
        self.reference.token_to_id(token)
    }
}

impl Fast {
    fn load(content: &[u8], definition: &Definition) -> Result<Fast, String> {
        let added = &definition.added;
        let load = |content: &[u8]| match guarded(|| splintr::from_json_bytes(content)) {
            Ok(Ok(loaded)) => Ok(Arc::new(loaded.into_backend())),
            Ok(Err(e)) => Err(format!("the fast engine cannot load it ({e})")),
            Err(_) => Err("the fast engine breaks on it".to_string()),
        };
        let any_special = added.iter().any(|a| a.special);
        let both_kinds = any_special && added.iter().any(|a| !a.special);
        let others = if both_kinds { Some(load(&without_special(content)?)?) } else { None };
        let all = load(content)?;
        let is_made_of_words = !definition.normalizes && added.iter().all(|a| a.special);
        let pre_tokens = (is_made_of_words && matches!(*all, Backend::Bpe(_))).then(PreTokens::default);
        Ok(Fast { all, others, any_special, pre_tokens })
    }

    fn copy(&self) -> Fast {
        // The others keep no caches.
        let of = |engine: &Arc<Backend>| match &**engine {
            Backend::Bpe(model) => Arc::new(Backend::Bpe(model.clone())),
            _ => engine.clone(),
        };
        Fast {
            all: of(&self.all),
            others: self.others.as_ref().map(of),
            any_special: self.any_special,
            pre_tokens: self.pre_tokens.as_ref().map(|_| PreTokens::default()),
        }
    }

    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Option<()> {
        if let (Some(pre_tokens), Backend::Bpe(bpe)) = (&self.pre_tokens, &*self.all) {
            return guarded(|| pre_tokens.encode(bpe, text, out)).ok();
        }
        let ids = match &self.others {
            Some(others) => encode_without_template(others, text, &SpecialMode::All),
            None if self.any_special => encode_without_template(&self.all, text, &SpecialMode::Ordinary),
            None => self.encode_special(text),
        };
        ids.map(|ids| add(ids, out))
    }

    fn encode_special(&self, text: &str) -> Option<Vec<u32>> {
        encode_without_template(&self.all, text, &SpecialMode::All)
    }
}

// The definition in which special tokens are text.
fn without_special(content: &[u8]) -> Result<Vec<u8>, String> {
    let wrong = |e: serde_json::Error| e.to_string();
    let mut root: serde_json::Value = serde_json::from_slice(content).map_err(wrong)?;
    if let Some(added) = root.get_mut("added_tokens").and_then(serde_json::Value::as_array_mut) {
        added.retain(|token| token.get("special").and_then(serde_json::Value::as_bool) != Some(true));
    }
    // Templates name special tokens; none is applied here.
    if let Some(root) = root.as_object_mut() {
        root.remove("post_processor");
    }
    serde_json::to_vec(&root).map_err(wrong)
}

fn encode_without_template(engine: &Backend, text: &str, mode: &SpecialMode<'_>) -> Option<Vec<u32>> {
    let ids = guarded(|| match engine {
        Backend::Bpe(model) => Tokenize::encode_with(model, text, mode),
        Backend::Unigram(model) => Tokenize::encode_with(model, text, mode),
        Backend::WordPiece(model) => Tokenize::encode_with(model, text, mode),
        Backend::Spm(model) => Tokenize::encode_with(model, text, mode),
    });
    ids.ok()?.ok()
}

fn reference(content: &[u8]) -> Result<tokenizers::Tokenizer> {
    let wrong = || Error::corrupt("the tokenizer cannot be loaded");
    let mut loaded =
        guarded(|| tokenizers::Tokenizer::from_bytes(content))?.map_err(|e| wrong().caused_by(e))?;
    // A document is never cut, padded or framed here, whatever a saved inference setting says.
    loaded.with_truncation(None).map_err(|e| wrong().caused_by(e))?;
    loaded.with_padding(None);
    loaded.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
    loaded.set_encode_special_tokens(true);
    Ok(loaded)
}

// `None` where it says that it cannot encode the string; an error where it breaks on it.
fn answers(reference: &tokenizers::Tokenizer, strings: &[String]) -> Result<Vec<Option<Vec<u32>>>> {
    let answer = |text: &String| {
        let encoding = guarded(|| reference.encode_fast(text.as_str(), false))?;
        Ok(encoding.ok().map(|e| e.get_ids().to_vec()))
    };
    strings.iter().map(answer).collect()
}

fn ids_of(reference: &tokenizers::Tokenizer, text: &str) -> Result<Vec<u32>> {
    let encoding = guarded(|| reference.encode_fast(text, false))?;
    Ok(encoding.map_err(|e| not_encoded().caused_by(e))?.get_ids().to_vec())
}

fn not_encoded() -> Error {
    Error::corrupt("the tokenizer cannot encode this text")
        .hint("its vocabulary lacks a character of it and has no token for unknown ones")
}

// The engines panic on some definitions that contradict themselves; here that is an error like any other.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| Error::corrupt("the tokenizer's definition contradicts itself").field("tokenizer"))
}
