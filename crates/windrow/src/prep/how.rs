//! How a job tokenises: what a worker makes the encoder and the options of.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windrow_core::{DType, Error, Result};
use windrow_text::{NAMES, Tokenizer};

use crate::chat::{ChatEncoder, not_of_chat};
use crate::encode::TextEncoder;
use crate::masked::MaskedEncoder;
use crate::prepare::{Remainder, TokenizeOptions};

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
            to: crate::TOKENIZE_TO.to_string(),
            own: Map::new(),
            sample_size: None,
            dtype: None,
            remainder: Remainder::Drop,
            split: None,
            chat: None,
        }
    }
}

impl Tokenizing {
    /// The encoder and the options that it says.
    ///
    /// # Errors
    /// `NotFound` without the tokenizer; `Config` for an option that cannot be.
    pub fn make(&self) -> Result<(Encoder, TokenizeOptions)> {
        let to = crate::writer(&self.to, &self.own)?;
        let options = TokenizeOptions {
            sample_size: self.sample_size,
            append_eos: self.append_eos,
            dtype: self.dtype,
            remainder: self.remainder,
            split: self.split.clone(),
            ..TokenizeOptions::new(to)
        };
        if let Some(chat) = &self.chat {
            self.check_chat()?;
            let tokenizer = Tokenizer::load(&self.tokenizer)?;
            let [field, template, date] =
                [&chat.messages_field, &chat.template, &chat.date].map(|given| given.as_deref());
            let encoder = ChatEncoder::new(tokenizer, field, template, date)?;
            return Ok((Box::new(encoder), ChatEncoder::options(options)));
        }
        let encoder = TextEncoder::new(Tokenizer::load(&self.tokenizer)?, &self.text_field, &self.eos)?
            .special_tokens(self.special_tokens);
        let eos = windrow_prepare::Encode::eos(&encoder);
        let options = TokenizeOptions { eos, ..options };
        if let Some(mask_field) = &self.mask_field {
            let encoder = MaskedEncoder::new(encoder, &self.text_field, mask_field)?;
            return Ok((Box::new(encoder), MaskedEncoder::options(options)));
        }
        Ok((Box::new(encoder), options))
    }

    // What a template decides is not said twice.
    fn check_chat(&self) -> Result<()> {
        let given = [
            ("eos", !["auto", "none"].contains(&self.eos.as_str())),
            ("append_eos", self.append_eos),
            ("text_field", self.text_field != Tokenizing::default().text_field),
            ("mask_field", self.mask_field.is_some()),
            ("special_tokens", self.special_tokens),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(not_of_chat(option)),
            None => Ok(()),
        }
    }

    // A tokenizer.json, or its folder, is named so that it is found from any folder. Built-in names are looked at first.
    pub(super) fn to_json(&self) -> Value {
        let path = std::path::Path::new(&self.tokenizer);
        let tokenizer = match !NAMES.contains(&self.tokenizer.as_str()) && path.exists() {
            true => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string(),
            false => self.tokenizer.clone(),
        };
        serde_json::to_value(Tokenizing { tokenizer, ..self.clone() }).unwrap_or_default()
    }

    pub(super) fn of_json(settings: &Value) -> Result<Tokenizing> {
        serde_json::from_value(settings.clone()).map_err(|e| {
            Error::corrupt("the settings of the job cannot be understood").field("settings").caused_by(e)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokenizer_that_is_a_folder_is_found_from_any_other() {
        let kept = |tokenizer: &str| {
            let how = Tokenizing { tokenizer: tokenizer.to_string(), ..Tokenizing::default() };
            how.to_json()["tokenizer"].as_str().map(str::to_string)
        };
        // Tests run in the folder of the crate.
        let folder = std::path::absolute("src").unwrap().display().to_string();
        assert_eq!(kept("src"), Some(folder.clone()));
        assert_eq!(kept("src/lib.rs"), Some(format!("{folder}/lib.rs")));
        assert_eq!(kept("gpt2"), Some("gpt2".to_string()));
    }
}
