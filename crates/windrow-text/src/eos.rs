//! Which id ends a document.

use windrow_core::{Error, Result};

use crate::tokenizer::Tokenizer;

// In the order in which they are tried: a tokenizer that has two of them ends a document with the first.
const WELL_KNOWN: &[&str] = &[
    "<|endoftext|>",
    "<|end_of_text|>",
    "<｜end▁of▁sentence｜>",
    "</s>",
    "<eos>",
    "<|eos|>",
    "[EOS]",
    "<EOS>",
];

const MOST_LISTED: usize = 40;

/// The id of the first well-known name: among the special tokens, else in the vocabulary.
pub(crate) fn well_known(tokenizer: &Tokenizer) -> Option<u32> {
    let special = |name: &&str| tokenizer.special().iter().find(|(token, _)| token == *name).map(|s| s.1);
    let found = WELL_KNOWN.iter().find_map(special);
    found.or_else(|| WELL_KNOWN.iter().find_map(|name| tokenizer.id_of(name)))
}

/// What `auto`, `none`, a number or a token's name means to this tokenizer.
pub(crate) fn resolve(tokenizer: &Tokenizer, spec: &str) -> Result<Option<u32>> {
    let wrong = |what: String| Error::config(what).field("eos").hint(list(tokenizer));
    match spec {
        "none" => return Ok(None),
        "auto" => {
            let found = tokenizer.eos();
            return found.map(Some).ok_or_else(|| {
                wrong(format!("{} has no token that is known to end a document", tokenizer.name()))
            });
        }
        _ => {}
    }
    if !spec.is_empty() && spec.bytes().all(|b| b.is_ascii_digit()) {
        let id = spec.parse::<u32>().ok().filter(|&id| u64::from(id) < tokenizer.vocab_size());
        return id.map(Some).ok_or_else(|| {
            wrong(format!("eos {spec} is not in the vocabulary: ids are below {}", tokenizer.vocab_size()))
        });
    }
    let id = tokenizer.id_of(spec);
    id.map(Some).ok_or_else(|| wrong(format!("{} has no token {spec:?}", tokenizer.name())))
}

fn list(tokenizer: &Tokenizer) -> String {
    let special = tokenizer.special();
    let named: Vec<String> =
        special.iter().take(MOST_LISTED).map(|(token, id)| format!("{token} = {id}")).collect();
    let more = if special.len() > MOST_LISTED { ", …" } else { "" };
    match named.is_empty() {
        true => "it has no special tokens: say `none`, or the id that ends a document".to_string(),
        false => format!("`none`, an id, or a token; special ones: {}{more}", named.join(", ")),
    }
}
