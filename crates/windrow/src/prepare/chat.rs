//! Conversations as token IDs with a loss mask: a chat template and a tokenizer, as `prepare` asks for them.

use std::ops::Range;

use windrow_chat::{Chat, Conversation, FIELDS, TOOLS};
use windrow_core::manifest::TokenizerLock;
use windrow_core::{Error, Result};
use windrow_prepare::{Encode, Encoded, Fields, LinePlace, Takes, TokenizeOptions, line_text};
use windrow_text::Tokenizer;

use crate::prepare::loss_mask;

/// Renders the conversation of a record and encodes it; what an assistant says is learned.
pub struct ChatEncoder {
    tokenizer: Tokenizer,
    chat: Chat,
    field: Option<String>,
    /// What is taken of rows.
    fields: Fields,
    eos: Option<u32>,
}

impl ChatEncoder {
    /// Encodes the messages in `field` of each line, row or dict, by default in `messages`, else in `conversations`. `template` is a
    /// built-in name or a file, by default the tokenizer's own; `date` the day for templates that ask for it, by default today.
    ///
    /// # Errors
    /// As [`Chat::load`] and [`Tokenizer::eos`].
    pub fn new(
        tokenizer: Tokenizer,
        field: Option<&str>,
        template: Option<&str>,
        date: Option<&str>,
    ) -> Result<ChatEncoder> {
        // Of special tokens alone, the name in a text turns into the ID.
        let eos = tokenizer.eos()?;
        let named = eos.and_then(|id| tokenizer.special().iter().find(|(_, of)| *of == id));
        let named = named.map(|(name, _)| name.as_str());
        let chat = Chat::load(template, tokenizer.folder(), named, date)?;
        let fields = ChatEncoder::fields(field);
        Ok(ChatEncoder { tokenizer, chat, field: field.map(str::to_string), fields, eos })
    }

    /// What it takes of rows and dicts.
    #[must_use]
    pub fn fields(field: Option<&str>) -> Fields {
        let any_of = field.map_or_else(|| FIELDS.to_vec(), |field| vec![field]);
        Fields {
            any_of: any_of.into_iter().map(str::to_string).collect(),
            also: vec![(beside(field), TOOLS.to_string())],
            option: "messages_field",
        }
    }

    /// The options with the loss mask that it gives; nothing ends a conversation but its template.
    #[must_use]
    pub fn options(options: TokenizeOptions) -> TokenizeOptions {
        TokenizeOptions { eos: None, append_eos: false, tracks: vec![loss_mask::track()], ..options }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }
}

impl Encode for ChatEncoder {
    fn encode(&self, line: &[u8], place: &LinePlace, out: &mut Encoded) -> Result<()> {
        self.encode_text(line_text(line, place)?, out)
    }

    fn takes(&self) -> Option<Takes<'_>> {
        Some(Takes::Json(&self.fields))
    }

    fn encode_text(&self, record: &str, out: &mut Encoded) -> Result<()> {
        let conversation = Conversation::of(record, self.field.as_deref())?;
        let rendered = self.chat.render(&conversation)?;
        let mut places = Vec::new();
        out.ids.append(|ids| self.tokenizer.encode_places(&rendered.text, ids, &mut places))?;
        for track in &mut out.tracks {
            mask(&places, &rendered.learned, track);
        }
        Ok(())
    }

    fn lock(&self) -> Option<TokenizerLock> {
        Some(self.tokenizer.lock())
    }

    fn describe(&self) -> String {
        let lock = self.tokenizer.lock();
        let field = self.field.as_deref().unwrap_or("messages|conversations");
        format!("tokenizer={}:{} chat={field} chat_template={}", lock.name, lock.hash, self.chat.hash())
    }

    fn vocab_size(&self) -> Option<u64> {
        Some(self.tokenizer.vocab_size())
    }

    fn eos(&self) -> Option<i64> {
        self.eos.map(i64::from)
    }
}

// Where tools are: beside the messages.
fn beside(field: Option<&str>) -> String {
    match field.and_then(|field| field.rsplit_once('.')) {
        Some((before, _)) => format!("{before}.{TOOLS}"),
        None => TOOLS.to_string(),
    }
}

// A token is learned that stands for any part of what is learned, as transformers has it. Both are in order.
fn mask(places: &[Range<usize>], learned: &[Range<usize>], out: &mut Vec<u8>) {
    let mut spans = learned.iter().peekable();
    for place in places {
        while spans.next_if(|span| place.start >= span.end).is_some() {}
        out.push(loss_mask::stored(spans.peek().is_some_and(|span| place.end > span.start)));
    }
}

/// The error for an option of text that is given for a conversation.
pub fn not_of_chat(option: &'static str) -> Error {
    Error::config(format!("{option} is set, but a conversation is what its template says"))
        .field(option)
        .hint("leave it out with chat")
}
