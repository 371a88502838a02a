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
//!
//! # Modules
//!
//! * `chat`: a template and its tokens: renders a conversation, says which text is learned;
//! * `conversation`: messages and tools of a record, also in the ShareGPT layout;
//! * `builtin`: templates that come with windrow;
//! * `found`: templates and special tokens beside a tokenizer;
//! * `template`: one Jinja template, compiled as transformers compiles it;
//! * `source`: rewrites the source of a template for the engine: tags, raw blocks, `{% generation %}`;
//! * `tokens`: the code in a tag, as tokens;
//! * `expression`: operators and loops that differ between Jinja and the engine;
//! * `literal`: string literals with the escapes of Python;
//! * `engine`: filters that differ from those of Jinja for some values;
//! * `methods`: string methods as Python has them;
//! * `case`: `str.title` and the filter `title`;
//! * `space`: white space as Python defines it;
//! * `indent`: the filter `indent`;
//! * `iterated`: what loops and filters iterate over;
//! * `markup`: strings from `safe` and `escape`;
//! * `written`: values as Python's `str` and `repr` write them;
//! * `dumps`: JSON as `json.dumps` writes it;
//! * `exact`: JSON as template values, whole numbers with all digits;
//! * `record`: the keys of a record, and the JSON text of each.

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
