//! Prompts as a codec language model reads them: tags drawn for every sample, then UTF-8 bytes.

use serde::{Deserialize, Serialize};

use crate::record::Draw;

/// What is done with the comma-separated tags of a prompt, drawn by the sample's own numbers. Tags are trimmed, empty
/// ones left out, and the rest is joined by `", "`; a text without any stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tags {
    /// Puts them into a random order.
    pub shuffle: bool,
    /// Leaves each out with this probability, but never all of them.
    pub dropout: f64,
    /// Keeps at most this number; of shuffled ones another choice each time.
    pub limit: Option<u64>,
}

impl Default for Tags {
    fn default() -> Self {
        Tags { shuffle: true, dropout: 0.0, limit: None }
    }
}

/// Where a prompt that is too long is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TextCut {
    /// Before the character that does not fit whole.
    #[default]
    Character,
    /// At the byte, which may be within a character: as Dia does it.
    Byte,
}

/// Streams of a sample's draws; the crop has stream 0.
const DROP: u64 = 1 << 32;
const KEEP: u64 = 2 << 32;
const SHUFFLE: u64 = 3 << 32;
const UNCONDITIONAL: u64 = 4 << 32;

/// Whether a sample is learned without its text, where a fraction of them is.
pub(super) fn is_unconditional(fraction: f64, draw: Draw) -> bool {
    fraction > 0.0 && unit(draw, UNCONDITIONAL) < fraction
}

/// The text with its tags as drawn.
pub(super) fn with_tags(text: &str, tags: Tags, draw: Draw) -> String {
    let all: Vec<&str> = text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
    if all.is_empty() {
        return text.to_string();
    }
    let mut kept = all.clone();
    if tags.dropout > 0.0 {
        let mut number = DROP;
        kept.retain(|_| {
            number += 1;
            unit(draw, number) > tags.dropout
        });
        if kept.is_empty() {
            kept.push(all[draw.below(all.len() as u64, KEEP) as usize]);
        }
    }
    if tags.shuffle {
        for last in (1..kept.len()).rev() {
            kept.swap(last, draw.below(last as u64 + 1, SHUFFLE + last as u64) as usize);
        }
    }
    if let Some(limit) = tags.limit {
        kept.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    kept.join(", ")
}

/// The first bytes of a text that fit.
pub(super) fn cut(text: &str, most: usize, at: TextCut) -> &[u8] {
    let mut end = text.len().min(most);
    while at == TextCut::Character && !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

// A number from 0 to below 1.
fn unit(draw: Draw, stream: u64) -> f64 {
    const STEPS: u64 = 1 << 53;
    draw.below(STEPS, stream) as f64 / STEPS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws() -> impl Iterator<Item = Draw> {
        (0..2_000).map(|sample| Draw::new(3, 1, 0, sample))
    }

    #[test]
    fn tags_are_rewritten_even_where_nothing_is_drawn() {
        let plain = Tags { shuffle: false, ..Tags::default() };
        let draw = Draw::new(0, 0, 0, 0);
        assert_eq!(with_tags(" a,b ,, c d ", plain, draw), "a, b, c d");
        assert_eq!(with_tags(" , ,", plain, draw), " , ,");
        assert_eq!(with_tags("", plain, draw), "");
        assert_eq!(with_tags("a,b,c", Tags { limit: Some(2), ..plain }, draw), "a, b");
    }

    #[test]
    fn every_order_comes_equally_often() {
        let mut counts = std::collections::BTreeMap::new();
        for draw in draws() {
            *counts.entry(with_tags("a,b,c", Tags::default(), draw)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|n| (250..420).contains(n)), "{counts:?}");
    }

    #[test]
    fn dropout_keeps_its_share_and_never_nothing() {
        let tags = Tags { shuffle: false, dropout: 0.5, limit: None };
        let kept: Vec<String> = draws().map(|draw| with_tags("a,b", tags, draw)).collect();
        let share = |text: &str| kept.iter().filter(|k| *k == text).count();
        assert!((400..600).contains(&share("a, b")), "{}", share("a, b"));
        // A quarter keeps it alone, and of the quarter without any it is half.
        assert!((650..850).contains(&share("a")), "{}", share("a"));
        assert_eq!(share("a, b") + share("a") + share("b"), 2_000);
        let all = Tags { shuffle: false, dropout: 1.0, limit: None };
        assert!(draws().all(|draw| ["a", "b"].contains(&with_tags("a,b", all, draw).as_str())));
    }

    #[test]
    fn a_text_is_cut_before_a_character_or_within_it() {
        assert_eq!(cut("aéz", 2, TextCut::Character), b"a");
        assert_eq!(cut("aéz", 2, TextCut::Byte), b"a\xc3");
        assert_eq!(cut("aéz", 3, TextCut::Character), "aé".as_bytes());
        assert_eq!(cut("aéz", 9, TextCut::Byte), "aéz".as_bytes());
    }

    #[test]
    fn the_unconditional_share_is_what_was_asked_for() {
        let count = draws().filter(|draw| is_unconditional(0.15, *draw)).count();
        assert!((240..360).contains(&count), "{count}");
        assert!(draws().all(|draw| !is_unconditional(0.0, draw) && is_unconditional(1.0, draw)));
    }
}
