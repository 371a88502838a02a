//! The strings in which tokenizers are known to differ, and the question whether two engines agree on all of them.

use windrow_core::{Error, Result};

use crate::definition::Added;

const STRINGS: &str = include_str!("../assets/hard_strings.json");

const MOST_ADDED: usize = 2_000;

/// The built-in strings, and further ones around every token that the tokenizer matches in the text.
///
/// # Errors
/// None that a build which passed its tests can give: the strings are built in.
pub(crate) fn strings(added: &[Added]) -> Result<Vec<String>> {
    let mut strings: Vec<String> = serde_json::from_str(STRINGS)
        .map_err(|e| Error::corrupt("the built-in hard strings cannot be read").caused_by(e))?;
    // Together too: what stands at the start or the end of a text is treated apart by some tokenizers.
    strings.push(strings.join("\n"));
    strings.push(strings.concat());
    for Added { content, .. } in added.iter().take(MOST_ADDED) {
        strings.push(content.clone());
        strings.push(format!("a{content}b {content}  {content}{content}\n{content} c"));
    }
    Ok(strings)
}

/// The first string, but the empty one, to which `fast` does not give the reference's answer; a refusal is an answer.
pub(crate) fn first_difference<'s>(
    strings: &'s [String],
    reference: &[Option<Vec<u32>>],
    fast: impl Fn(&str) -> Option<Vec<u32>>,
) -> Option<&'s str> {
    let differs = |(text, want): &(&String, &Option<Vec<u32>>)| !text.is_empty() && fast(text) != **want;
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
