//! A Hugging Face tokenizer.json: the fast way where the definition has one, else the tokenizers library, the reference.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokenizers::PostProcessor;
use windrow_core::{Error, Result, caught};

use crate::definition::Definition;
use crate::engine::{Engine, add, no_such_id};
use crate::fast::Fast;
use crate::names::hint_of;
use crate::{coinciding, hard, incomplete, scores};

const GPT2: &[u8] = include_bytes!("../assets/gpt2/tokenizer.json.zst");

const FILE_NAME: &str = "tokenizer.json";

/// Files that are a tokenizer to other programs.
const OTHERS: [&str; 9] = [
    "merges.txt",
    "vocab.json",
    "vocab.txt",
    "tokenizer.model",
    "tekken.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
    "qwen.tiktoken",
];

/// A key that every tokenizer.json has.
const MODEL: &[u8] = b"\"model\":";

/// How long the fast way is compared with the reference, at each load, on strings made of the definition itself.
const COMPARED_FOR: Duration = Duration::from_millis(100);

// The largest known one has 35 MB.
const MOST_BYTES: u64 = 512 << 20;

/// A loaded tokenizer.json.
pub(crate) struct Json {
    vocab_size: u64,
    // Special tokens are text to this one; it decodes too, also where the fast one encodes.
    reference: tokenizers::Tokenizer,
    // The same with special tokens that are special.
    reference_special: tokenizers::Tokenizer,
    // What the library does to places after all else; it adds nothing here.
    after: Option<tokenizers::PostProcessorWrapper>,
    fast: Option<Fast>,
}

/// The built-in GPT-2 tokenizer.
pub(crate) fn gpt2() -> Result<Json> {
    let mut content = Vec::new();
    zstd::Decoder::new(GPT2)
        .and_then(|decoder| decoder.take(MOST_BYTES).read_to_end(&mut content))
        .map_err(|e| Error::corrupt("the built-in gpt2 tokenizer cannot be unpacked").caused_by(e))?;
    Json::new("gpt2", &content)
}

/// The path and the content of the tokenizer.json at `given`, or in the folder that it is.
///
/// # Errors
/// `NotFound`, `Corrupt` when it is too large, `Io`.
pub(crate) fn read(given: &Path) -> Result<(PathBuf, Vec<u8>)> {
    let meant = || hint_of(&given.to_string_lossy());
    let mut path = given.to_path_buf();
    if path.is_dir() {
        if let Some(other) =
            OTHERS.into_iter().find(|name| !path.join(FILE_NAME).exists() && path.join(name).exists())
        {
            return Err(of_another_kind(&path, other));
        }
        path.push(FILE_NAME);
    }
    let about = std::fs::metadata(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::not_found("there is no tokenizer of this name or at this path").at(&path).hint(meant())
        }
        _ => Error::io("look at the tokenizer", &path, e),
    })?;
    if !about.is_file() {
        return Err(Error::config("a tokenizer is a file").at(&path).hint(meant()));
    }
    if about.len() > MOST_BYTES {
        return Err(Error::corrupt(format!(
            "{} bytes are not a tokenizer.json: at most {MOST_BYTES} are read",
            about.len()
        ))
        .at(&path));
    }
    let content = std::fs::read(&path).map_err(|e| Error::io("read the tokenizer", &path, e))?;
    // A tokenizer.json may be called otherwise.
    let has_model = || content.windows(MODEL.len()).any(|part| part == MODEL);
    match OTHERS.into_iter().find(|name| path.ends_with(name) && !has_model()) {
        Some(other) => Err(of_another_kind(path.parent().unwrap_or(Path::new("")), other)),
        None => Ok((path, content)),
    }
}

fn of_another_kind(folder: &Path, file: &str) -> Error {
    Error::unsupported(format!("a tokenizer in {file}, without a {FILE_NAME}")).at(folder.join(file)).hint(format!(
        "make a {FILE_NAME} with transformers: AutoTokenizer.from_pretrained({:?}).save_pretrained(OUT), and name OUT",
        folder.display().to_string()
    ))
}

impl Json {
    /// Loads a definition and decides which engine encodes.
    ///
    /// # Errors
    /// What [`Definition::read`] and [`coinciding::refuse`] say; `Corrupt` when the reference refuses it.
    pub(crate) fn new(name: &str, content: &[u8]) -> Result<Json> {
        let definition = Definition::read(content)?;
        let (reference, after) = reference(content)?;
        guarded(|| coinciding::refuse(&reference))??;
        let mut reference_special = reference.clone();
        reference_special.set_encode_special_tokens(false);
        let vocab_size = definition.vocab_size;
        let mut json = Json { vocab_size, reference, reference_special, after, fast: None };
        match json.agreeing(content, &definition)? {
            Ok(fast) => json.fast = Some(fast),
            Err(why) => {
                windrow_core::warn!("{name}: {why}; it is encoded by the tokenizers library, which is slower")
            }
        }
        Ok(json)
    }

    // The fast way, or why there is none. It is the reference's by what it is made of; that is compared here once more.
    fn agreeing(&self, content: &[u8], definition: &Definition) -> Result<Result<Fast, String>> {
        let strings = hard::strings(&definition.added)?;
        // A reference that breaks on one of them is of no use to anybody.
        let references = [&self.reference, &self.reference_special];
        let known = [answers(references[0], &strings)?, answers(references[1], &strings)?];
        let fast = match guarded(|| Fast::of(&self.reference, content))? {
            Ok(fast) => fast,
            Err(why) => return Ok(Err(why)),
        };
        let encode = |with: &tokenizers::Tokenizer, text: &str| {
            let mut ids = Vec::new();
            let fits = guarded(|| fast.encode(with, text, &mut ids)).ok()?;
            if fits { Some(ids) } else { ids_of(with, text).ok() }
        };
        let mut other = None;
        for (with, known) in references.iter().zip(&known) {
            other = other.or_else(|| hard::first_difference(&strings, known, |text| encode(with, text)));
        }
        let until = Instant::now() + COMPARED_FOR;
        let further = || {
            let differs = |text: &String| {
                let answer =
                    |with| answers(with, std::slice::from_ref(text)).ok().map(|mut all| all.remove(0));
                references.iter().any(|with| answer(with) != Some(encode(with, text)))
            };
            let strings = hard::of_definition(&definition.added, &self.reference);
            strings.take_while(|_| Instant::now() < until).find(differs)
        };
        Ok(match other.map(str::to_string).or_else(further) {
            Some(text) => {
                let start: String = text.chars().take(60).collect();
                Err(format!("the fast way gives other IDs for {start:?}"))
            }
            None => Ok(fast),
        })
    }

    fn encode_with(&self, with: &tokenizers::Tokenizer, text: &str, out: &mut Vec<u32>) -> Result<()> {
        let before = out.len();
        if let Some(fast) = &self.fast {
            if guarded(|| fast.encode(with, text, out))? {
                return Ok(());
            }
            out.truncate(before);
        }
        add(ids_of(with, text)?, out);
        Ok(())
    }
}

impl Engine for Json {
    fn backend(&self) -> &'static str {
        if self.fast.is_some() { "windrow" } else { "tokenizers" }
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
        self.encode_with(&self.reference, text, out)
    }

    fn encode_special(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        self.encode_with(&self.reference_special, text, out)
    }

    fn encode_places(&self, text: &str, out: &mut Vec<u32>, places: &mut Vec<Range<usize>>) -> Result<()> {
        let encoding = guarded(|| {
            let encoding = self.reference_special.encode(text, false)?;
            match &self.after {
                Some(after) => after.process(encoding, None, false),
                None => Ok(encoding),
            }
        })?;
        let encoding = encoding.map_err(|e| not_encoded().caused_by(e))?;
        out.extend_from_slice(encoding.get_ids());
        places.extend(encoding.get_offsets().iter().map(|&(start, end)| start..end));
        Ok(())
    }

    fn decode(&self, ids: &[u32]) -> Result<String> {
        if let Some(&id) = ids.iter().find(|&&id| self.reference.id_to_token(id).is_none()) {
            return Err(no_such_id(id, self.vocab_size));
        }
        let text = guarded(|| self.reference.decode(ids, false))?;
        text.map_err(|e| Error::corrupt("the IDs cannot be decoded").caused_by(e))
    }

    fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
        let text = self.decode(ids)?;
        if !text.contains(char::REPLACEMENT_CHARACTER) {
            return Ok(text.into_bytes());
        }
        let tokens: Vec<String> = ids.iter().filter_map(|&id| self.reference.id_to_token(id)).collect();
        Ok(incomplete::bytes(&tokens, &text).unwrap_or(text.into_bytes()))
    }

    fn id_of(&self, token: &str) -> Option<u32> {
        self.reference.token_to_id(token)
    }
}

fn reference(content: &[u8]) -> Result<(tokenizers::Tokenizer, Option<tokenizers::PostProcessorWrapper>)> {
    let wrong = || Error::corrupt("the tokenizer cannot be loaded");
    let mut loaded =
        guarded(|| tokenizers::Tokenizer::from_bytes(content))?.map_err(|e| wrong().caused_by(e))?;
    // A document is never cut, padded or framed here, whatever a saved inference setting says.
    loaded.with_truncation(None).map_err(|e| wrong().caused_by(e))?;
    loaded.with_padding(None);
    if let Some(model) = scores::as_in_python(content, loaded.get_model()) {
        loaded.with_model(model);
    }
    let after = loaded.get_post_processor().cloned();
    loaded.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
    loaded.set_encode_special_tokens(true);
    Ok((loaded, after))
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
    caught(work)
        .map_err(|_| Error::corrupt("the tokenizer's definition contradicts itself").field("tokenizer"))
}
