//! Added tokens that the normalizer makes the same: the library would take either of them, another one from load to load.

use std::collections::BTreeMap;

use tokenizers::{AddedToken, NormalizedString, Normalizer, Tokenizer};
use windrow_core::{Error, Result};

/// Refuses a definition with two of them: the library finds them by a table in the order of a hash map.
///
/// # Errors
/// `Unsupported` naming both.
pub(crate) fn refuse(loaded: &Tokenizer) -> Result<()> {
    let tokens: BTreeMap<u32, AddedToken> = loaded.get_added_tokens_decoder().into_iter().collect();
    let mut found = BTreeMap::new();
    for (id, token) in tokens.iter().filter(|(_, token)| token.normalized) {
        let text = normal(loaded, &token.content)?;
        if let Some((first, other)) = found.insert(text.clone(), (id, &token.content)) {
            let both = format!("{other:?} ({first}) and {:?} ({id})", token.content);
            return Err(Error::unsupported(format!(
                "the added tokens {both} are both {text:?} once normalized: every load would choose one of their IDs at random"
            ))
            .field("added_tokens")
            .hint("set \"normalized\": false for them, or remove one"));
        }
    }
    Ok(())
}

fn normal(loaded: &Tokenizer, content: &str) -> Result<String> {
    let mut text = NormalizedString::from(content);
    if let Some(normalizer) = loaded.get_normalizer() {
        (normalizer.normalize(&mut text))
            .map_err(|e| Error::corrupt("the normalizer fails on an added token").caused_by(e))?;
    }
    Ok(text.get().to_string())
}
