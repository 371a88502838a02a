//! Text for windrow: which tokenizer turns it into token IDs, that it is the right one, and where a document ends.
//!
//! A [`Tokenizer`] is loaded from a built-in name or from a Hugging Face `tokenizer.json`; nothing is ever downloaded.
//!
//! * Text is text. A document that contains `<|endoftext|>` gets the IDs of those characters; only
//!   [`Tokenizer::encode_special`] sees a special token in it. No template is applied, nothing is truncated or padded.
//! * A `tokenizer.json` gives the IDs of the tokenizers library as its Python package has them. Most have a fast way,
//!   made of parts that are the library's own or were shown to be equal; at every load it is compared with the library for
//!   a tenth of a second, on hard strings and on strings made of the definition. Others are encoded by the library, with a
//!   warning.
//! * [`Tokenizer::lock`] says which tokenizer made the IDs, [`Tokenizer::check_lock`] refuses another one.
//!
//! ```
//! use windrow_text::Tokenizer;
//!
//! let tokenizer = Tokenizer::load("cl100k_base")?;
//! let mut ids = Vec::new();
//! tokenizer.encode("Hello world", &mut ids)?;
//! assert_eq!(ids, [9906, 1917]);
//! assert_eq!(tokenizer.decode(&ids)?, "Hello world");
//! assert_eq!(tokenizer.resolve_eos("auto")?, Some(100_257));
//! # Ok::<(), windrow_text::Error>(())
//! ```
//!
//! # Modules
//!
//! * `names`: names of the built-in tokenizers, and the nearest one to a misspelt name;
//! * `tokenizer`: the type that a caller holds;
//! * `engine`: the trait of what turns text into token IDs;
//! * `bytes`: the tokenizer `bytes`;
//! * `named`: the built-in vocabularies;
//! * `json`: a Hugging Face `tokenizer.json`;
//! * `incomplete`: bytes of characters of which some are missing, as its tokens write them;
//! * `definition`: what a `tokenizer.json` declares, checked before it is used;
//! * `fast`: the fast path for most `tokenizer.json` files, equal to the tokenizers library;
//! * `pretokens`: a per-thread cache of words and their token IDs;
//! * `scores`: the scores of a unigram vocabulary;
//! * `coinciding`: added tokens that normalise to the same text;
//! * `hard`: strings in which tokenizers are known to differ;
//! * `golden`: a hash of the definition, and IDs of hard strings: what distinguishes tokenizers;
//! * `lock`: which tokenizer made the IDs, and the refusal of another one;
//! * `eos`: which ID ends a document;
//! * `beside`: the EOS token that files beside a `tokenizer.json` name.

mod names;
mod tokenizer;

mod engine;

mod bytes;
mod named;
mod pretokens;

mod coinciding;
mod definition;
mod fast;
mod hard;
mod incomplete;
mod json;
mod scores;

mod beside;
mod eos;
mod golden;
mod lock;

pub use names::NAMES;
pub use tokenizer::Tokenizer;
pub use windrow_core::{Error, Result};
