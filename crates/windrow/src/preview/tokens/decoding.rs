//! Tokens as text, by the tokenizer that the manifest names.

use windrow_core::Result;
use windrow_core::manifest::Manifest;
use windrow_text::NAMES;
pub use windrow_text::Tokenizer;

use crate::preview::text;

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
            windrow_core::warn!("text is not shown: {e:#}");
            Ok(None)
        }
    }
}

/// The text of token IDs, bytes of incomplete characters as `\xe0\xb4`; none where the tokenizer lacks one of them.
pub fn decoded(tokenizer: &Tokenizer, ids: &[i64]) -> Option<String> {
    let ids: Vec<u32> = ids.iter().map(|id| u32::try_from(*id)).collect::<Result<_, _>>().ok()?;
    tokenizer.decode_bytes(&ids).ok().map(|bytes| text::of_bytes(&bytes))
}

/// The text of one token between quotes, everything that is not seen as an escape; none where the tokenizer lacks it.
pub fn quoted(tokenizer: &Tokenizer, id: i64) -> Option<String> {
    let bytes = tokenizer.decode_bytes(&[u32::try_from(id).ok()?]).ok()?;
    Some(text::quoted(&bytes))
}
