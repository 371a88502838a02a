//! The layout of batches of codes: lengths, special values, delays, masks; also as Dia's `config.json` declares it.

use serde::{Deserialize, Serialize};

use super::text::{Tags, TextCut};
use crate::error::{Error, Result};

/// The masks in a batch, beside the tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Masks {
    /// `enc_self_attn_mask`, `dec_self_attn_mask` and `dec_cross_attn_mask`: the largest part of a batch by far.
    #[default]
    Dense,
    /// `src_lens` instead: with `tgt_lens` all that attention by lengths takes.
    Lengths,
    /// None of them.
    None,
}

/// Lengths, special values, delays and draws of a batch of codes. The defaults are Dia's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodesLayout {
    /// Text tokens of a row: UTF-8 bytes.
    pub text_length: u64,
    /// Channels of a row. `None`: those of the data. Codes of half as many channels stand for both sides.
    pub channels: Option<u64>,
    /// What fills the text.
    pub text_pad_value: i64,
    /// What follows the last frame.
    pub audio_eos_value: i64,
    /// What fills the frames.
    pub audio_pad_value: i64,
    /// What comes before the first frame.
    pub audio_bos_value: i64,
    /// Frames by which each channel is delayed. `None`: 0, 1, 2, …, for 18 channels 0 to 8 twice.
    pub delay_pattern: Option<Vec<u64>>,
    /// The masks in the batch.
    pub masks: Masks,
    /// Keeps the last codes of delayed channels: rows are longer by the longest delay.
    pub keep_tail: bool,
    /// What is done with the tags of a prompt; `None` leaves the text alone.
    pub tags: Option<Tags>,
    /// Fraction of samples that are learned without their text, drawn again each epoch.
    pub unconditional: f64,
    /// Codes must be below this; `None` checks none.
    pub codebook_size: Option<u64>,
    /// Where a text that is too long is cut.
    pub cut: TextCut,
}

impl Default for CodesLayout {
    fn default() -> Self {
        CodesLayout {
            text_length: 512,
            channels: None,
            text_pad_value: 0,
            audio_eos_value: 1024,
            audio_pad_value: 1025,
            audio_bos_value: 1026,
            delay_pattern: None,
            masks: Masks::default(),
            keep_tail: false,
            tags: None,
            unconditional: 0.0,
            codebook_size: Some(1024),
            cut: TextCut::default(),
        }
    }
}

/// The keys of `"data"` that are read; others belong to the model.
#[derive(Deserialize)]
struct Data {
    text_length: Option<u64>,
    audio_length: Option<u64>,
    channels: Option<u64>,
    text_pad_value: Option<i64>,
    audio_eos_value: Option<i64>,
    audio_pad_value: Option<i64>,
    audio_bos_value: Option<i64>,
    delay_pattern: Option<Vec<u64>>,
}

#[derive(Deserialize)]
struct Config {
    data: Data,
}

impl CodesLayout {
    /// Whether what the batch has of a text is drawn again each time.
    pub fn is_random(&self) -> bool {
        self.tags.is_some_and(|tags| tags.shuffle || tags.dropout > 0.0) || self.unconditional > 0.0
    }

    /// The layout that the text of a `config.json` of Dia says, and its `audio_length`, as it is there. What it does
    /// not say keeps its default; the codebook ends at the first special value.
    ///
    /// # Errors
    /// `Config` when it is no such text.
    ///
    /// ```
    /// # use windrow_core::collate::CodesLayout;
    /// let (layout, length) = CodesLayout::from_config(r#"{"data": {"audio_length": 600, "channels": 18}}"#)?;
    /// assert_eq!((layout.channels, length), (Some(18), Some(600)));
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    pub fn from_config(text: &str) -> Result<(CodesLayout, Option<u64>)> {
        let Config { data } = serde_json::from_str(text).map_err(|cause| {
            Error::config("a configuration that cannot be understood").caused_by(cause).hint(
                "expected {\"data\": {\"text_length\": 512, \"audio_length\": 600, \"channels\": 18, …}}",
            )
        })?;
        let usual = CodesLayout::default();
        let mut layout = CodesLayout {
            text_length: data.text_length.unwrap_or(usual.text_length),
            channels: data.channels,
            text_pad_value: data.text_pad_value.unwrap_or(usual.text_pad_value),
            audio_eos_value: data.audio_eos_value.unwrap_or(usual.audio_eos_value),
            audio_pad_value: data.audio_pad_value.unwrap_or(usual.audio_pad_value),
            audio_bos_value: data.audio_bos_value.unwrap_or(usual.audio_bos_value),
            delay_pattern: data.delay_pattern,
            ..usual
        };
        layout.codebook_size = layout.first_special();
        Ok((layout, data.audio_length))
    }

    // The lowest value that stands for no code, where it is above 0.
    fn first_special(&self) -> Option<u64> {
        let lowest = self.audio_eos_value.min(self.audio_pad_value).min(self.audio_bos_value);
        u64::try_from(lowest).ok().filter(|lowest| *lowest > 0)
    }
}
