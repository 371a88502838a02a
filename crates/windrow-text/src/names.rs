//! The names of the tokenizers that come with windrow.

/// The built-in tokenizers, by name.
pub const NAMES: &[&str] = &["bytes", "cl100k_base", "deepseek_v3", "gpt2", "llama3", "o200k_base"];
