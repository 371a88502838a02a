//! The encoder of a job: of texts, of texts with a mask, or of conversations.

use serde_json::Value;
use windrow_core::Result;
use windrow_prepare::Encode as _;
use windrow_text::{NAMES, Tokenizer};

use super::how::{Encoder, Tokenizing};
use crate::prepare::chat::{ChatEncoder, not_of_chat};
use crate::prepare::encode::TextEncoder;
use crate::prepare::masked::MaskedEncoder;
use crate::prepare::{Remainder, TokenizeOptions};

impl Tokenizing {
    /// The encoder and the options that it says.
    ///
    /// # Errors
    /// `NotFound` without the tokenizer; `Config` for an option that cannot be; `Unsupported` without the feature `text`.
    pub fn make(&self) -> Result<(Encoder, TokenizeOptions)> {
        let options = self.options()?;
        self.check_chat()?;
        self.make_by(Tokenizer::load(&self.tokenizer)?, options)
    }

    /// As [`Tokenizing::make`], by a tokenizer that was loaded before.
    ///
    /// # Errors
    /// `Config` for an option that cannot be.
    pub fn make_by(
        &self,
        tokenizer: Tokenizer,
        options: TokenizeOptions,
    ) -> Result<(Encoder, TokenizeOptions)> {
        if let Some(chat) = &self.chat {
            self.check_chat()?;
            let [field, template, date] =
                [&chat.messages_field, &chat.template, &chat.date].map(|given| given.as_deref());
            let encoder = ChatEncoder::new(tokenizer, field, template, date)?;
            let remainder = self.remainder(encoder.eos())?;
            let options = ChatEncoder::options(TokenizeOptions { remainder, ..options });
            return Ok((Box::new(encoder), options));
        }
        let encoder = TextEncoder::new(tokenizer, &self.text_field, &self.eos)?;
        let encoder = encoder.special_tokens(self.special_tokens);
        let eos = encoder.eos();
        let options = TokenizeOptions { eos, remainder: self.remainder(eos)?, ..options };
        if let Some(mask_field) = &self.mask_field {
            let encoder = MaskedEncoder::new(encoder, &self.text_field, mask_field)?;
            return Ok((Box::new(encoder), MaskedEncoder::options(options)));
        }
        Ok((Box::new(encoder), options))
    }

    // What a template decides is not given twice.
    fn check_chat(&self) -> Result<()> {
        if self.chat.is_none() {
            return Ok(());
        }
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

    // A tokenizer.json, or its folder, is named so that it is found from any folder. Built-in names are looked at first. A job
    // names the ID that pads, which only the tokenizer knows where none is given.
    pub(super) fn to_json(&self, remainder: Remainder) -> Value {
        let path = std::path::Path::new(&self.tokenizer);
        let tokenizer = if !NAMES.contains(&self.tokenizer.as_str()) && path.exists() {
            std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string()
        } else {
            self.tokenizer.clone()
        };
        serde_json::to_value(Tokenizing { tokenizer, remainder, ..self.clone() }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokenizer_that_is_a_folder_is_found_from_any_other() {
        let kept = |tokenizer: &str| {
            let how = Tokenizing { tokenizer: tokenizer.to_string(), ..Tokenizing::default() };
            how.to_json(how.remainder)["tokenizer"].as_str().map(str::to_string)
        };
        // Tests run in the folder of the crate.
        let folder = std::path::absolute("src").unwrap().display().to_string();
        assert_eq!(kept("src"), Some(folder.clone()));
        assert_eq!(kept("src/lib.rs"), Some(format!("{folder}/lib.rs")));
        assert_eq!(kept("gpt2"), Some("gpt2".to_string()));
    }
}
