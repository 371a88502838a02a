//! The strings in which tokenizers are known to differ, and those that a definition itself gives.

use std::iter::once;

use tokenizers::normalizers::{NFC, NFD, NFKC, NFKD};
use tokenizers::{NormalizedString, Normalizer, Tokenizer};
use windrow_core::{Error, Result};

use crate::definition::Added;
use crate::fast;

const STRINGS: &str = include_str!("../assets/hard_strings.json");

const MOST_ADDED: usize = 2_000;

/// The built-in strings, and further ones around every token that the tokenizer matches in the text.
///
/// # Errors
/// None that a build which passed its tests can give: the strings are built in.
pub(crate) fn strings(added: &[Added]) -> Result<Vec<String>> {
    let mut strings: Vec<String> = serde_json::from_str(STRINGS)
        .map_err(|e| Error::corrupt("the built-in hard strings cannot be read").caused_by(e))?;
    // Together too: what is at the start or the end of a text is treated apart by some tokenizers.
    strings.push(strings.join("\n"));
    strings.push(strings.concat());
    for Added { content, .. } in added.iter().take(MOST_ADDED) {
        strings.push(content.clone());
        strings.push(format!("a{content}b {content}  {content}{content}\n{content} c"));
    }
    Ok(strings)
}

/// Further ones, without end to speak of: every added token in each case and normal form, broken up and in company, then
/// the tokens of the vocabulary, several at once.
pub(crate) fn of_definition<'d>(
    added: &'d [Added],
    loaded: &'d Tokenizer,
) -> impl Iterator<Item = String> + 'd {
    let added = added.iter().flat_map(|token| spellings(&token.content)).flat_map(|spelling| {
        ["", "a", " ", "\u{200d}", "\u{301}"].map(|beside| format!("{beside}{spelling}{beside}{spelling} x"))
    });
    let n = loaded.get_vocab_size(true) as u32;
    // Far from each other, each once.
    let places = n.next_power_of_two();
    let ids = (0..places).map(move |i| i.wrapping_mul(0x9e37_79b1) & (places - 1));
    let token =
        |id: u32| loaded.id_to_token(id).map(|token| fast::text_of(loaded, &token)).unwrap_or_default();
    let mut ids = ids.filter(move |&id| id < n);
    let words = std::iter::from_fn(move || {
        let some: Vec<String> = ids.by_ref().take(16).map(token).collect();
        (!some.is_empty()).then(|| format!("{}\n{}", some.concat(), some.join(" ")))
    });
    added.chain(words)
}

// A token's text as other texts write it.
fn spellings(token: &str) -> Vec<String> {
    let normal = |normalizer: &dyn Fn(&mut NormalizedString) -> tokenizers::Result<()>| {
        let mut text = NormalizedString::from(token);
        let _ = normalizer(&mut text);
        text.get().to_string()
    };
    let wide = |c: char| match c {
        '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c),
        c => c,
    };
    let swapped =
        |c: char| if c.is_lowercase() { c.to_uppercase().to_string() } else { c.to_lowercase().to_string() };
    let chars: Vec<String> = token.chars().map(String::from).collect();
    let mut all: Vec<String> = once(token.to_string())
        .chain([token.to_lowercase(), token.to_uppercase(), token.chars().map(swapped).collect()])
        .chain([normal(&|t| NFC.normalize(t)), normal(&|t| NFD.normalize(t))])
        .chain([
            normal(&|t| NFKC.normalize(t)),
            normal(&|t| NFKD.normalize(t)),
            token.chars().map(wide).collect(),
        ])
        .chain(["\u{200d}", "\u{ad}", "\u{301}", " "].map(|joiner| chars.join(joiner)))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The first string to which `fast` does not give the reference's answer; a refusal is an answer.
pub(crate) fn first_difference<'s>(
    strings: &'s [String],
    reference: &[Option<Vec<u32>>],
    fast: impl Fn(&str) -> Option<Vec<u32>>,
) -> Option<&'s str> {
    let differs = |(text, want): &(&String, &Option<Vec<u32>>)| fast(text) != **want;
    strings.iter().zip(reference).find(differs).map(|(text, _)| text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_sixty_and_they_reach_the_hard_places() {
        let strings = strings(&[]).unwrap();
        assert!(strings.len() >= 60, "{}", strings.len());
        let all = strings.concat();
        for c in
            ['\0', '\t', '\r', '\u{200d}', '\u{301}', '\u{fffd}', '\u{feff}', '\u{e000}', '\u{20000}', '’']
        {
            assert!(all.contains(c), "{c:?}");
        }
        assert!(strings.iter().any(|s| s.is_empty()));
        assert!(strings.iter().any(|s| s.contains("<|endoftext|>")));
    }
}
