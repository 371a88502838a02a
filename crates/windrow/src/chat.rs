//! Conversations as token IDs with a loss mask: a chat template and a tokenizer, as `prepare` asks for them.

use std::ops::Range;

use windrow_chat::{Chat, Conversation};
use windrow_core::manifest::TokenizerLock;
use windrow_core::{Error, Result};
use windrow_prepare::{Encode, Encoded, LinePlace, TokenizeOptions, Track, line_text};
use windrow_text::Tokenizer;

/// The array beside the tokens: 1 where a token is not learned.
const TRACK: &str = "loss_mask";

/// Renders the conversation of a line and encodes it; what an assistant says is learned.
pub struct ChatEncoder {
    tokenizer: Tokenizer,
    chat: Chat,
    field: Option<String>,
}

impl ChatEncoder {
    /// Encodes the messages in `field` of each line, by default in `messages`, else in `conversations`. `template` is a
    /// built-in name or a file, by default the tokenizer's own; `date` the day for templates that ask for it, by default today.
    ///
    /// # Errors
    /// As [`Chat::load`].
    pub fn new(
        tokenizer: Tokenizer,
        field: Option<&str>,
        template: Option<&str>,
        date: Option<&str>,
    ) -> Result<ChatEncoder> {
        let chat = Chat::load(template, tokenizer.folder(), date)?;
        Ok(ChatEncoder { tokenizer, chat, field: field.map(str::to_string) })
    }

    /// The options with the loss mask that it gives; nothing ends a conversation but its template.
    #[must_use]
    pub fn options(options: TokenizeOptions) -> TokenizeOptions {
        let track = Track { name: TRACK.to_string(), eos: 1, pad: 1 };
        TokenizeOptions { eos: None, append_eos: false, tracks: vec![track], ..options }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }
}

impl Encode for ChatEncoder {
    fn encode(&self, line: &[u8], place: &LinePlace, out: &mut Encoded) -> Result<()> {
        let conversation = Conversation::of(line_text(line, place)?, self.field.as_deref())?;
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
        self.tokenizer.eos().map(i64::from)
    }
}

// 0 for each token that stands for a part of what is learned, as transformers has it, and 1 for the others. Both are in order.
fn mask(places: &[Range<usize>], learned: &[Range<usize>], out: &mut Vec<u8>) {
    let mut spans = learned.iter().peekable();
    for place in places {
        while spans.next_if(|span| place.start >= span.end).is_some() {}
        out.push(u8::from(spans.peek().is_none_or(|span| place.end <= span.start)));
    }
}

/// The error for an option of text that is given for a conversation.
pub fn not_of_chat(option: &'static str) -> Error {
    Error::config(format!("{option} is set, but a conversation is what its template says"))
        .field(option)
        .hint("leave it out with chat")
}
