//! What lies beside a tokenizer.json, as `save_pretrained` writes it: the token that ends a document.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use windrow_core::{Error, Result};

/// What the first one says counts.
const FILES: [&str; 2] = ["tokenizer_config.json", "special_tokens_map.json"];

// With their tokens they have some hundred thousand.
const MOST_BYTES: u64 = 64 << 20;

/// The token that a file names as the one that ends a document.
#[derive(Clone, Debug)]
pub(crate) struct Eos {
    token: String,
    file: PathBuf,
    /// Its ID, where the vocabulary has it.
    id: Option<u32>,
}

impl Eos {
    /// Its ID.
    ///
    /// # Errors
    /// `Config` where the vocabulary lacks it: another program may add it; here it has no ID, and any other token would be a guess.
    pub(crate) fn id(&self) -> Result<u32> {
        self.id.ok_or_else(|| {
            Error::config(format!("eos_token is {:?}, which is not a token of tokenizer.json", self.token))
                .at(&self.file)
                .field("eos_token")
                .hint("write a token of tokenizer.json there, or give @eos@: a token ID, or none")
        })
    }
}

/// The `eos_token` that the files in a folder name; `id_of` knows its ID.
///
/// # Errors
/// `Corrupt` for a file that is there and cannot be understood: another token would end the documents, unseen. `Io`.
pub(crate) fn eos(folder: &Path, id_of: impl Fn(&str) -> Option<u32>) -> Result<Option<Eos>> {
    for name in FILES {
        let file = folder.join(name);
        let fields = fields(&file)?;
        let Some(token) = fields.get("eos_token").and_then(token) else { continue };
        let (token, id) = (token.to_string(), id_of(token));
        return Ok(Some(Eos { token, file, id }));
    }
    Ok(None)
}

// A token is written as its text, or with its flags.
fn token(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content").and_then(Value::as_str))
}

// None where there is no file.
fn fields(path: &Path) -> Result<Map<String, Value>> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Map::new()),
        Err(e) => return Err(Error::io("look at what lies beside the tokenizer", path, e)),
    };
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(Error::corrupt(format!("expected a file of at most {MOST_BYTES} bytes")).at(path));
    }
    let content = fs::read(path).map_err(|e| Error::io("read what lies beside the tokenizer", path, e))?;
    serde_json::from_slice(&content)
        .map_err(|e| Error::corrupt("the file is not a JSON object").at(path).caused_by(e))
}
