//! Texts or token IDs with a loss mask in another field, as `prepare` asks for them.

use serde_json::{Map, Value};
use windrow_core::format::masks::NOT_LEARNED;
use windrow_core::manifest::TokenizerLock;
use windrow_core::{Error, Result};
use windrow_prepare::{
    Encode, Encoded, Fields, Ids, LinePlace, Takes, TokenizeOptions, line_text, record_of, taken,
};

use crate::prepare::encode::TextEncoder;
use crate::prepare::loss_mask;

/// Takes a text, which it encodes, or token IDs as they are, from a field of each record, and what of it is learned from another.
pub struct MaskedEncoder {
    text: TextEncoder,
    text_field: String,
    mask_field: String,
    fields: Fields,
}

impl MaskedEncoder {
    /// Encodes what is in `text_field` by `text`. `mask_field` has a value for each token: 1 or true where it is learned, else 0 or
    /// false; or labels, -100 where it is not learned, else the token.
    ///
    /// # Errors
    /// `Config` where both are the same field.
    pub fn new(text: TextEncoder, text_field: &str, mask_field: &str) -> Result<MaskedEncoder> {
        if text_field == mask_field {
            return Err(Error::config(format!("text and mask are both in field {mask_field:?}"))
                .field("mask_field")
                .hint("put the mask into another field"));
        }
        let fields = MaskedEncoder::fields(text_field, mask_field);
        let [text_field, mask_field] = [text_field, mask_field].map(str::to_string);
        Ok(MaskedEncoder { text, text_field, mask_field, fields })
    }

    /// What it takes of rows and dicts.
    #[must_use]
    pub fn fields(text_field: &str, mask_field: &str) -> Fields {
        let also = vec![(mask_field.to_string(), mask_field.to_string())];
        Fields { any_of: vec![text_field.to_string()], also, option: "text_field" }
    }

    /// The options with the loss mask that it gives.
    #[must_use]
    pub fn options(options: TokenizeOptions) -> TokenizeOptions {
        TokenizeOptions { tracks: vec![loss_mask::track()], ..options }
    }

    fn take(&self, record: &mut Map<String, Value>, field: &str, option: &str) -> Result<Value> {
        taken(record, field).ok_or_else(|| {
            let error = Error::corrupt(format!("no field {field:?} in the record")).field(field);
            let keys: Vec<&str> = record.keys().map(String::as_str).take(10).collect();
            if keys.is_empty() {
                error
            } else {
                error.hint(format!("it has {}; choose one with the {option} field option", keys.join(", ")))
            }
        })
    }

    fn ids(&self, found: Value, out: &mut Encoded) -> Result<()> {
        let field = &self.text_field;
        let corrupt = |what: String| Error::corrupt(what).field(field.clone());
        let ids = match found {
            Value::String(text) => return self.text.encode_text(&text, &mut out.ids),
            Value::Array(ids) => ids,
            other => {
                let what = kind_of(&other);
                return Err(corrupt(format!(
                    "field {field:?} holds {what}; expected a text, or a list of token IDs"
                )));
            }
        };
        for (at, id) in ids.iter().enumerate() {
            let id = id.as_i64().ok_or_else(|| {
                corrupt(format!("value {at} of {field:?} is {id}; expected a token ID, a whole number"))
            })?;
            out.ids.push(id);
        }
        Ok(())
    }

    // What is learned of these IDs: a mask says it by 0 and 1, labels by -100 and the ID itself.
    fn learned(&self, found: Value, ids: &Ids) -> Result<Vec<bool>> {
        let field = &self.mask_field;
        let corrupt = |what: String| Error::corrupt(what).field(field.clone());
        let Value::Array(values) = found else {
            let what = kind_of(&found);
            return Err(corrupt(format!(
                "field {field:?} holds {what}; expected a list of 0 and 1, one for each token"
            )));
        };
        let (text, count) = (&self.text_field, ids.len());
        if values.len() != count {
            return Err(corrupt(format!(
                "{text:?} is {count} tokens, and {field:?} has {} values; expected one for each token",
                values.len()
            )));
        }
        let is_of_mask = |value: &Value| value.is_boolean() || matches!(value.as_u64(), Some(0..=1));
        let are_ids = || values.iter().zip(ids.iter()).all(|(value, id)| value.as_i64() == Some(id));
        let are_labels = values.iter().any(|value| value.as_i64() == Some(NOT_LEARNED))
            || (!values.iter().all(is_of_mask) && are_ids());
        let learned = |(at, (value, id)): (usize, (&Value, i64))| match (value.as_bool(), value.as_i64()) {
            (None, Some(NOT_LEARNED)) => Ok(false),
            (None, Some(label)) if are_labels && label == id => Ok(true),
            (None, Some(label)) if are_labels => Err(corrupt(format!(
                "value {at} of {field:?} is {label}, where the token is {id}; expected -100 or the token itself, not shifted"
            ))),
            (Some(learned), _) => Ok(learned),
            (None, Some(learned @ 0..=1)) => Ok(learned == 1),
            _ => Err(corrupt(format!(
                "value {at} of {field:?} is {value}; expected 0, 1, true or false, or labels with -100"
            ))),
        };
        values.iter().zip(ids.iter()).enumerate().map(learned).collect()
    }
}

impl Encode for MaskedEncoder {
    fn encode(&self, line: &[u8], place: &LinePlace, out: &mut Encoded) -> Result<()> {
        self.encode_text(line_text(line, place)?, out)
    }

    fn takes(&self) -> Option<Takes<'_>> {
        Some(Takes::Json(&self.fields))
    }

    fn encode_text(&self, record: &str, out: &mut Encoded) -> Result<()> {
        let mut record = record_of(record).map_err(|e| {
            Error::corrupt("the record is not a JSON object")
                .caused_by(e)
                .hint("a record is one line of JSON, which holds one object")
        })?;
        let found = self.take(&mut record, &self.text_field, "text")?;
        let mask = self.take(&mut record, &self.mask_field, "mask")?;
        let is_text = found.is_string();
        self.ids(found, out)?;
        let learned = self.learned(mask, &out.ids).map_err(|e| if is_text { e.hint(
                "the mask is one of this tokenizer's tokens, not of characters: give token IDs instead of the text, or in Python a \
                 tokenizer that gives (ids, mask)",
            ) } else { e.hint("a token ID and its value in the mask are at the same place") })?;
        for track in &mut out.tracks {
            track.extend(learned.iter().map(|is_learned| loss_mask::stored(*is_learned)));
        }
        Ok(())
    }

    fn lock(&self) -> Option<TokenizerLock> {
        self.text.lock()
    }

    fn describe(&self) -> String {
        format!("{} mask_field={}", self.text.describe(), self.mask_field)
    }

    fn vocab_size(&self) -> Option<u64> {
        Encode::vocab_size(&self.text)
    }

    fn eos(&self) -> Option<i64> {
        Encode::eos(&self.text)
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
