//! Templates and special tokens where a tokenizer lies, as `save_pretrained` writes them.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};
use windrow_core::{Error, Result};

/// What a template calls the token that ends a document.
pub(crate) const EOS_TOKEN: &str = "eos_token";

/// What a template may name. transformers gives it these and no others.
const TOKENS: [&str; 7] =
    ["bos_token", EOS_TOKEN, "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

const CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";

/// The templates of a tokenizer.
#[derive(Default)]
pub(crate) struct Sources {
    pub(crate) usual: Option<String>,
    /// The one for conversations with tools, where there are two.
    pub(crate) with_tools: Option<String>,
    /// The names of all, where they are a list.
    pub(crate) names: Vec<String>,
}

/// The special tokens of the tokenizer in a folder, by their names in templates.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(crate) fn tokens(folder: &Path) -> Result<Vec<(&'static str, String)>> {
    let files = [config(folder, CONFIG)?, config(folder, "special_tokens_map.json")?];
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(token) => token.get("content").and_then(Value::as_str).map(str::to_string),
        _ => None,
    };
    let of = |name: &'static str| {
        let found = files.iter().find_map(|file| file.get(name).and_then(text));
        found.map(|token| (name, token))
    };
    Ok(TOKENS.into_iter().filter_map(of).collect())
}

/// The templates in a tokenizer's folder.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(crate) fn sources(folder: &Path) -> Result<Sources> {
    let mut found = Sources::default();
    match config(folder, CONFIG)?.remove("chat_template") {
        Some(Value::String(template)) => found.usual = Some(template),
        Some(Value::Array(named)) => {
            let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_string);
            found.names = named.iter().filter_map(|one| text(one, "name")).collect();
            for one in &named {
                match text(one, "name").as_deref() {
                    Some("default") => found.usual = text(one, "template"),
                    Some("tool_use") => found.with_tools = text(one, "template"),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    // Newer versions keep it in a file, which counts more.
    if let Some(template) = read(&folder.join(TEMPLATE))? {
        found.usual = Some(template);
    }
    if let Some(template) = read(&folder.join("additional_chat_templates").join("tool_use.jinja"))? {
        found.with_tools = Some(template);
    }
    Ok(found)
}

/// The text of a file; `None` where there is none.
///
/// # Errors
/// `Corrupt` where it is too large or no text; `Io`.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    /// Templates have a few thousand bytes, configurations with their tokens some hundred thousand.
    const MOST_BYTES: u64 = 64 << 20;
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(Error::io("look at it", path, e)),
    };
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(Error::corrupt(format!("expected a file of at most {MOST_BYTES} bytes")).at(path));
    }
    let bytes = fs::read(path).map_err(|e| Error::io("read it", path, e))?;
    String::from_utf8(bytes).map(Some).map_err(|_| Error::corrupt("the file is not UTF-8 text").at(path))
}

fn config(folder: &Path, name: &str) -> Result<Map<String, Value>> {
    let path = folder.join(name);
    let Some(text) = read(&path)? else { return Ok(Map::new()) };
    serde_json::from_str(&text)
        .map_err(|e| Error::corrupt("the file is not a JSON object").at(path).caused_by(e))
}
