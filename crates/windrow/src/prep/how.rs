//! How a job tokenises: what a worker makes the encoder and the options of.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windrow_core::format::{OptionRow, Takes};
use windrow_core::{DType, Error, Result, option_rows};

use crate::prepare::write::{TOKENIZE_TO, write_options, writer};
use crate::prepare::{MAX_SKIPPED, Remainder, TokenizeOptions};

/// What tokenising takes, beside what the format that is written has of its own.
pub static TOKENIZING: &[OptionRow] = option_rows! {
    /// A tokenizer.json, or bytes, cl100k_base, deepseek_v3, gpt2, llama3, o200k_base.
    tokenizer: Takes::Text("T");
    /// What to write.
    to: Takes::Text("FORMAT"), or TOKENIZE_TO;
    /// Pack documents into samples of N tokens; without it, each document is a record.
    sample_size: Takes::Number("N");
    /// The ID to write after each document, where documents are packed or joined: auto is the tokenizer's own; or an ID, a
    /// token's name, none; append is auto with append_eos.
    eos: Takes::Text("auto|append|ID|none"), or "auto";
    /// End documents with it where each is a record, too.
    append_eos: Takes::On;
    /// Key of the text, or its column: meta.text is the key text in the column meta; of WebDataset a suffix, as txt.
    text_field: Takes::Text("KEY"), or "text";
    /// Key of a loss mask beside the text, or its column: a list with 1 for each token that is learned, else 0. The text may
    /// be a list of token IDs then.
    mask_field: Takes::Text("KEY");
    /// Of folders that hold several splits, the one to read; of files those whose names say it; all joins them.
    split: Takes::Text("SPLIT");
    /// Special tokens that are in the text become their IDs; by default text is text.
    special_tokens: Takes::On;
    /// Each record is a conversation: the chat template makes its text, and what the assistant says is learned.
    chat: Takes::On;
    /// With chat: key of the messages; by default messages, else conversations.
    messages_field: Takes::Text("KEY");
    /// With chat: a file with a Jinja template, or chatml, gemma, llama3, zephyr; by default the tokenizer's own.
    chat_template: Takes::Text("FILE|NAME");
    /// With chat: the day for templates that ask for it; by default today.
    chat_date: Takes::Text("YYYY-MM-DD");
    /// dtype of a stored ID; by default the smaller of uint16 and uint32 that holds the vocabulary (int32 for Megatron;
    /// flat-tokens are uint32).
    dtype: Takes::DType;
    /// With samples of one size: what to do with the tokens at the end that fill no sample.
    remainder: Takes::Words(&["drop", "pad"]), or "drop";
    /// Where the last sample is padded: the ID to fill with, by default the one that ends a document.
    pad_value: Takes::Id("ID");
    /// Leave damaged records out, and count them: not JSON, not UTF-8, without a text, a conversation that its template
    /// refuses.
    skip_corrupt: Takes::On;
    /// With skip_corrupt: the share of all records that may be left out; more of them are an error.
    max_skipped: Takes::Fraction, or MAX_SKIPPED;
};

/// What turns lines, or texts, into token IDs.
pub type Encoder = Box<dyn windrow_prepare::Encode + Send>;

/// How to tokenise, in words that a file can hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tokenizing {
    /// A built-in name, or the path of a tokenizer.json, which every worker sees.
    pub tokenizer: String,
    /// Key of the text in a line, or its column.
    pub text_field: String,
    /// Key of the loss mask beside it, or its column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_field: Option<String>,
    /// Special tokens that are in the text become their IDs.
    pub special_tokens: bool,
    /// What ends a document: `auto`, `none`, an ID or a token's name.
    pub eos: String,
    /// Ends documents with it where each is a record, too.
    pub append_eos: bool,
    /// The format of the files that [`Prep::join`](super::Prep::join) writes.
    pub to: String,
    /// Options of its own.
    pub own: Map<String, Value>,
    /// Tokens per sample of these files.
    pub sample_size: Option<u64>,
    /// dtype of a stored ID.
    pub dtype: Option<DType>,
    /// What to do with the tokens at the end that fill no sample; to be padded with this ID.
    pub remainder: Remainder,
    /// They are padded with what ends a document.
    #[serde(skip)]
    pub pads: bool,
    /// Of folders that hold several splits, the one to read.
    pub split: Option<String>,
    /// Inputs without any text are planned too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_empty: bool,
    /// Damaged records are left out, up to this share of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_skipped: Option<f64>,
    /// Each record is a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<Chatting>,
}

/// How conversations become token IDs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Chatting {
    /// Key of the messages; by default `messages`, else `conversations`.
    pub messages_field: Option<String>,
    /// A built-in chat template, or a file; by default the tokenizer's own.
    pub template: Option<String>,
    /// The day for templates that ask for it; by default today.
    pub date: Option<String>,
}

impl Default for Tokenizing {
    fn default() -> Self {
        Tokenizing {
            tokenizer: String::new(),
            text_field: "text".to_string(),
            mask_field: None,
            special_tokens: false,
            eos: "auto".to_string(),
            append_eos: false,
            to: TOKENIZE_TO.to_string(),
            own: Map::new(),
            sample_size: None,
            dtype: None,
            remainder: Remainder::Drop,
            pads: false,
            split: None,
            allow_empty: false,
            max_skipped: None,
            chat: None,
        }
    }
}

impl Tokenizing {
    /// Of options by name, as front ends have them: those of [`TOKENIZING`], and those that the format has of its own. What is null
    /// is not given.
    ///
    /// ```
    /// use serde_json::json;
    /// use windrow::prep::Tokenizing;
    ///
    /// let given = json!({ "tokenizer": "gpt2", "to": "shards", "max_shard_bytes": "64MiB" });
    /// let how = Tokenizing::of(given.as_object().cloned().unwrap_or_default())?;
    /// assert_eq!((how.tokenizer.as_str(), how.own.len()), ("gpt2", 1));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Config` for an unknown option, a value that an option cannot have, and one that would have no effect.
    pub fn of(given: Map<String, Value>) -> Result<Tokenizing> {
        let (mut how, mut own) = (Map::new(), Map::new());
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            match TOKENIZING.iter().find(|row| row.name == name) {
                Some(row) => drop(how.insert(name, row.read(value)?)),
                None => drop(own.insert(name, value)),
            }
        }
        let to = how.get("to").and_then(Value::as_str).unwrap_or(TOKENIZE_TO).to_string();
        if writer(&to, &Map::new()).is_ok()
            && let Some(name) = own.keys().find(|name| !write_options(&to).contains(&name.as_str()))
        {
            return Err(
                Error::config(format!("@the {name}@ is not an option of this task")).field(name.clone())
            );
        }
        if how.get("eos").is_some_and(|eos| eos == "append") {
            how.insert("eos".to_string(), "auto".into());
            how.insert("append_eos".to_string(), true.into());
        }
        chatting(&mut how)?;
        skipping(&mut how)?;
        let pads = pads(&mut how)?;
        how.insert("own".to_string(), own.into());
        let how: Tokenizing = serde_json::from_value(how.into())
            .map_err(|e| Error::config("the options of tokenising cannot be understood").caused_by(e))?;
        Ok(Tokenizing { pads, ..how })
    }

    /// What is the same whatever makes the token IDs; what ends a document is not among it.
    ///
    /// # Errors
    /// `Config` for an option that the format does not have.
    pub fn options(&self) -> Result<TokenizeOptions> {
        let to = writer(&self.to, &self.own)?;
        Ok(TokenizeOptions {
            sample_size: self.sample_size,
            append_eos: self.append_eos,
            dtype: self.dtype,
            remainder: self.remainder,
            split: self.split.clone(),
            allow_empty: self.allow_empty,
            max_skipped: self.max_skipped,
            ..TokenizeOptions::new(to)
        })
    }

    /// What to do with the tokens at the end, where documents end with `eos`.
    ///
    /// # Errors
    /// `Config` where there is no ID to pad with.
    pub fn remainder(&self, eos: Option<i64>) -> Result<Remainder> {
        match (self.pads, eos) {
            (false, _) => Ok(self.remainder),
            (true, Some(id)) => Ok(Remainder::Pad(id)),
            // Any other ID is a token that nobody wrote.
            (true, None) => Err(Error::config("remainder is \"pad\", but no token ends a document")
                .field("pad_value")
                .hint("pass @pad_value@, the token ID to pad with")),
        }
    }
}

// Puts the options of conversations together, where there are any.
fn chatting(how: &mut Map<String, Value>) -> Result<()> {
    let is_chat = how.remove("chat").is_some_and(|chat| chat == true);
    let mut chat = Map::new();
    for (option, field) in
        [("messages_field", "messages_field"), ("chat_template", "template"), ("chat_date", "date")]
    {
        match how.remove(option) {
            Some(_) if !is_chat => {
                let what = "is set, but the records are not conversations: pass @chat=true@";
                return Err(Error::config(format!("@the {option}@ {what}")).field(option));
            }
            Some(value) => drop(chat.insert(field.to_string(), value)),
            None => {}
        }
    }
    if is_chat {
        how.insert("chat".to_string(), chat.into());
    }
    Ok(())
}

// The share that may be left out, where something may.
fn skipping(how: &mut Map<String, Value>) -> Result<()> {
    let skips = how.remove("skip_corrupt").is_some_and(|skips| skips == true);
    let share = how.remove("max_skipped");
    match (skips, share.as_ref().and_then(Value::as_f64).unwrap_or(MAX_SKIPPED)) {
        (true, share) => drop(how.insert("max_skipped".to_string(), share.into())),
        (false, share) if share != MAX_SKIPPED => {
            let what = "@the max_skipped@ is set, but nothing is left out: pass @skip_corrupt=true@";
            return Err(Error::config(what).field("max_skipped"));
        }
        (false, _) => {}
    }
    Ok(())
}

// Whether the end is padded with what ends a document; an ID of its own is put where the recipe has it.
fn pads(how: &mut Map<String, Value>) -> Result<bool> {
    let pads = how.remove("remainder").is_some_and(|remainder| remainder == "pad");
    let Some(value) = how.remove("pad_value") else { return Ok(pads) };
    match value.as_i64() {
        Some(id) if id >= 0 && pads => {
            how.insert("remainder".to_string(), json!(Remainder::Pad(id)));
            Ok(false)
        }
        Some(id) if id >= 0 => Err(Error::config("@the pad_value@ is set, but nothing is padded")
            .field("pad_value")
            .hint("pass @remainder=pad@")),
        Some(id) => Err(Error::config(format!("@the pad_value@ {id} is not a token ID")).field("pad_value")),
        None => {
            Err(Error::config(format!("@the pad_value@ is {value}, expected a token ID, a whole number"))
                .field("pad_value"))
        }
    }
}
