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

impl Tokenizer {
    /// The ID that ends a document: that of the `eos_token` which a file beside its tokenizer.json names, else of a token with
    /// one of the well-known names, where it has one.
    ///
    /// # Errors
    /// `Config` where that file names a token that the vocabulary lacks.
    pub fn eos(&self) -> Result<Option<u32>> {
        if let Some(beside) = self.eos_beside() {
            return beside.id().map(Some);
        }
        // Among the special tokens first, else in the vocabulary.
        let special = |name: &&str| self.special().iter().find(|(token, _)| token == *name).map(|s| s.1);
        let found = WELL_KNOWN.iter().find_map(special);
        Ok(found.or_else(|| WELL_KNOWN.iter().find_map(|name| self.id_of(name))))
    }

    /// The ID that ends a document: `auto` takes [its own](Tokenizer::eos), `none` none; else an ID or the name of a special
    /// token. A word that is one token of the vocabulary is not one that ends documents: it takes its ID to mean it.
    ///
    /// # Errors
    /// `Config` when there is no such special token, the ID is not in the vocabulary, or `auto` finds none or one that the
    /// vocabulary lacks; the hint lists the special tokens.
    pub fn resolve_eos(&self, spec: &str) -> Result<Option<u32>> {
        let wrong = |what: String| Error::config(what).field("eos").hint(list(self));
        match spec {
            "none" => return Ok(None),
            "auto" => {
                return self.eos()?.map(Some).ok_or_else(|| {
                    wrong(format!("{} has no token that is known to end a document", self.name()))
                });
            }
            _ => {}
        }
        if !spec.is_empty() && spec.bytes().all(|b| b.is_ascii_digit()) {
            let id = spec.parse::<u32>().ok().filter(|&id| u64::from(id) < self.vocab_size());
            return id.map(Some).ok_or_else(|| {
                wrong(format!("eos {spec} is not in the vocabulary: IDs are below {}", self.vocab_size()))
            });
        }
        if spec.parse::<i64>().is_ok() {
            return Err(wrong(format!("eos {spec} is not a token ID")));
        }
        let special = self.special().iter().find(|(token, _)| token == spec).map(|(_, id)| *id);
        let well_known = || WELL_KNOWN.contains(&spec).then(|| self.id_of(spec)).flatten();
        match (special.or_else(well_known), self.id_of(spec)) {
            (Some(id), _) => Ok(Some(id)),
            (None, Some(id)) => {
                let what = format!("{spec:?} is a token of {}, but not a special one", self.name());
                Err(Error::config(what)
                    .field("eos")
                    .hint(format!("to end documents with it say its ID, {id}; {}", list(self))))
            }
            (None, None) => Err(wrong(format!("{} has no token {spec:?}", self.name()))),
        }
    }
}

fn list(tokenizer: &Tokenizer) -> String {
    let special = tokenizer.special();
    let named: Vec<String> =
        special.iter().take(MOST_LISTED).map(|(token, id)| format!("{token} = {id}")).collect();
    let more = if special.len() > MOST_LISTED { ", …" } else { "" };
    if named.is_empty() {
        "it has no special tokens: say `none`, or the token ID that ends a document".to_string()
    } else {
        format!("`none`, an ID, or a token; special ones: {}{more}", named.join(", "))
    }
}
