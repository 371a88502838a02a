//! Conversations for windrow: a chat template turns messages into the text that a model sees, and says which of it is learned.
//!
//! * A [`Chat`] is a Jinja template with the special tokens that it names: that of a tokenizer's folder, of a file, or a
//!   [built-in one](NAMES). It renders what `apply_chat_template` of transformers renders; nothing is downloaded.
//! * A [`Conversation`] is a record's messages, with `role` and `content` or as ShareGPT has them, and its tools.
//! * What is learned is what `{% generation %}` encloses; of a template without it, what an assistant's message adds to the
//!   text of the messages before it.
//!
//! ```
//! use windrow_chat::{Chat, Conversation};
//!
//! let chat = Chat::load(Some("chatml"), None, None, None)?;
//! let record = r#"{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}"#;
//! let rendered = chat.render(&Conversation::of(record, None)?)?;
//! assert!(rendered.text.starts_with("<|im_start|>user\nHi<|im_end|>\n"));
//! assert_eq!(&rendered.text[rendered.learned[0].clone()], "Hello<|im_end|>");
//! # Ok::<(), windrow_core::Error>(())
//! ```

mod builtin;
mod case;
mod chat;
mod conversation;
mod dumps;
mod engine;
mod exact;
mod expression;
mod found;
mod indent;
mod iterated;
mod literal;
mod markup;
mod methods;
mod record;
mod source;
mod space;
mod template;
mod tokens;
mod written;

pub use builtin::NAMES;
pub use chat::{Chat, Rendered};
pub use conversation::{Conversation, FIELDS, TOOLS};
