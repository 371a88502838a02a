//! How a job tokenises: what a worker makes the encoder and the options of.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windrow_core::{DType, Error, Result};

use crate::prepare::Remainder;

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
    /// What becomes of the tokens at the end that fill no sample; to be padded with this ID.
    pub remainder: Remainder,
    /// Of folders that hold several splits, the one to read.
    pub split: Option<String>,
    /// Inputs without any text are planned too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_empty: bool,
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
            to: crate::prepare::write::TOKENIZE_TO.to_string(),
            own: Map::new(),
            sample_size: None,
            dtype: None,
            remainder: Remainder::Drop,
            split: None,
            allow_empty: false,
            chat: None,
        }
    }
}

impl Tokenizing {
    pub(super) fn of_json(settings: &Value) -> Result<Tokenizing> {
        serde_json::from_value(settings.clone()).map_err(|e| {
            Error::corrupt("the settings of the job cannot be understood").field("settings").caused_by(e)
        })
    }
}
