//! Loss masks beside token IDs: how they are stored.

use windrow_prepare::Track;

/// The array beside the tokens that says what is learned. An EOS token that is appended is learned, padding is not.
#[must_use]
pub fn track() -> Track {
    Track { name: "loss_mask".to_string(), eos: stored(true), pad: stored(false) }
}

/// What is stored beside a token: 1 where it is not learned, as data-forager has it.
#[must_use]
pub fn stored(is_learned: bool) -> u8 {
    u8::from(!is_learned)
}
