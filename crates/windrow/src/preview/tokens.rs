//! Tokens as text: the tokenizer that the manifest names, and whether there are tokens at all.

use windrow_core::Result;
use windrow_core::manifest::Manifest;
use windrow_core::source::{Kind, Source};
use windrow_text::{NAMES, Tokenizer};

use crate::formats::format_info;

/// The tokenizer asked for, or the built-in one that the manifest names. One that did not make the data is refused when
/// asked for, and left out with a warning otherwise.
///
/// # Errors
/// Those of [`Tokenizer::load`] and [`Tokenizer::check_lock`] for the one asked for.
pub fn tokenizer(asked: Option<&str>, manifest: Option<&Manifest>) -> Result<Option<Tokenizer>> {
    let lock = manifest.and_then(|s| s.tokenizer.as_ref());
    if let Some(name) = asked {
        let tokenizer = Tokenizer::load(name)?;
        lock.map_or(Ok(()), |lock| tokenizer.check_lock(lock))?;
        return Ok(Some(tokenizer));
    }
    let Some(lock) = lock.filter(|lock| NAMES.contains(&lock.name.as_str())) else { return Ok(None) };
    let loaded = Tokenizer::load(&lock.name).and_then(|t| t.check_lock(lock).map(|()| t));
    match loaded {
        Ok(tokenizer) => Ok(Some(tokenizer)),
        Err(e) => {
            log::warn!("text is not shown: {e}");
            Ok(None)
        }
    }
}

/// What the records are, where they cannot be token IDs: `JSON`, `float32`.
pub fn not_ids(source: &dyn Source) -> Option<String> {
    let schema = source.schema();
    match schema.kind {
        Kind::Json => Some("JSON".to_string()),
        Kind::Rows => Some("rows of columns".to_string()),
        Kind::Numbers if schema.element.dtype.is_integer() => None,
        Kind::Numbers => Some(schema.element.dtype.to_string()),
    }
}

/// Whether its whole numbers are token IDs, not measurements: the formats made for tokens say so.
pub fn is_tokens(source: &dyn Source) -> bool {
    let schema = source.schema();
    let made_for_tokens = format_info(source.format()).is_some_and(|info| info.is_for_tokens());
    let is_whole = schema.kind == Kind::Numbers && schema.element.dtype.is_integer();
    is_whole && (made_for_tokens || schema.vocab_size.is_some())
}

/// The text of token IDs; none where the tokenizer lacks one of them.
pub fn decoded(tokenizer: &Tokenizer, ids: &[i64]) -> Option<String> {
    let ids: Vec<u32> = ids.iter().map(|id| u32::try_from(*id)).collect::<Result<_, _>>().ok()?;
    tokenizer.decode(&ids).ok()
}
