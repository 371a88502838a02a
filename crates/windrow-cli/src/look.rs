//! What stands beside records: the tokenizer that the side file names.

use windrow::Result;
use windrow::manifest::SideFile;
use windrow::source::{Kind, Source};
use windrow::text::{NAMES, Tokenizer};

/// The tokenizer asked for, or the built-in one that the side file names. One that did not make the data is refused
/// when asked for, and left out otherwise.
pub(crate) fn tokenizer(asked: Option<&str>, side: Option<&SideFile>) -> Result<Option<Tokenizer>> {
    let lock = side.and_then(|s| s.tokenizer.as_ref());
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

/// Whether its whole numbers are ids of tokens, not measurements: the layouts made for tokens say so.
pub(crate) fn is_tokens(source: &dyn Source) -> bool {
    let schema = source.schema();
    let made_for_tokens = ["tokens", "forager", "megatron", "flat-tokens"].contains(&source.format());
    let is_whole = schema.kind == Kind::Numbers && schema.element.dtype.is_integer();
    is_whole && (made_for_tokens || schema.vocab_size.is_some())
}
