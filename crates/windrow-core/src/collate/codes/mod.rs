//! Batches of audio codes and their prompts, as a codec language model is trained: delayed channels between special values,
//! text as bytes, masks. One pass from the page cache to the batch.

mod delay;
mod layout;
mod text;

use std::sync::Arc;

pub use self::delay::{Delays, Undelayed};
use self::delay::{Special, StoredCodes, Written};
pub use self::layout::{CodesLayout, Masks};
pub use self::text::{Tags, TextCut};
use self::text::{cut, is_unconditional, with_tags};
use super::{Batch, Collate, Field, Row, Sample, Scratch};
use crate::array::{Buffer, DType, Element};
use crate::error::{Error, Result};
use crate::record::{Decode, Draw, Piece, Values};
use crate::source::{Kind, MOST_CODEBOOKS, Schema};
use crate::values::{Cast, copy_values};

/// Assembles codes `[T, C]` and their texts. Per row, with S text tokens, L frames, and T the most frames of a row in the batch:
///
/// * `src_tokens` `[S]`: the text's UTF-8 bytes, then padding;
/// * `src_positions` `[S]` int64: 0, 1, …;
/// * `enc_self_attn_mask` `[1, S, S]` bool: true where both are text;
/// * `tgt_tokens` `[T + 2, C]`: a frame of BOS, the delayed codes, EOS in every channel, then padding;
/// * `tgt_positions` `[T + 2]` int64: 0, 1, …;
/// * `dec_self_attn_mask` `[1, T + 2, T + 2]` bool: true where both are frames, the second not after the first;
/// * `dec_cross_attn_mask` `[1, T + 2, S]` bool: true where the frame is one and the token text;
/// * `src_lens` int64: text tokens, with [`Masks::Lengths`] and instead of the masks;
/// * `seq_lens` int64: L; `tgt_lens` int64: L + 2.
///
/// A frame is one that is not padding in every channel; a token is text that is not the padding value. With `keep_tail`
/// there are as many frames more as the longest delay has: each channel has all its codes and its own EOS after them.
#[derive(Clone, Debug)]
pub struct Codes {
    layout: CodesLayout,
    dtype: DType,
    channels: usize,
    delays: Delays,
    text_length: usize,
    length: usize,
}

/// Codes and their text from anywhere, to be assembled without a source.
#[derive(Clone, Copy, Debug)]
pub struct Example<'a> {
    /// `[L, C]`.
    pub codes: Values<'a>,
    /// The prompt.
    pub text: &'a str,
    /// Draws its tags.
    pub draw: Draw,
}

/// More values of one row than this make no batch.
const MOST: u64 = 1 << 40;

impl Codes {
    /// For crops of at most `length` frames from records of this schema.
    ///
    /// # Errors
    /// `Config` when the records are not codes of as many channels or of half of them, a special value does not fit the
    /// dtype, a fraction is not between 0 and 1, or a length is 0 or too large.
    pub fn new(schema: &Schema, length: u64, layout: &CodesLayout, dtype: Option<DType>) -> Result<Codes> {
        if schema.kind == Kind::Rows {
            schema.need_numbers()?;
        }
        if schema.kind == Kind::Json || !schema.element.dtype.is_integer() {
            let what = if schema.kind == Kind::Json { "JSON texts" } else { schema.element.dtype.name() };
            return Err(Error::config(format!("the records are {what}, and codes are whole numbers"))
                .hint("open a folder of pre-encoded tracks, or shards of them"));
        }
        let dtype = dtype.unwrap_or(DType::I64);
        if !matches!(dtype, DType::I64 | DType::I32 | DType::I16) {
            return Err(Error::config(format!("tokens of codes are not stored as {dtype}"))
                .hint("choose int64, int32 or int16"));
        }
        let stored = schema.channels.unwrap_or(1);
        if stored as u64 > MOST_CODEBOOKS {
            return Err(Error::config(format!(
                "records of {stored} codebooks, expected at most {MOST_CODEBOOKS} codebooks"
            ))
            .hint("codes are [frames, codebooks]: transpose those of a codec before they are written"));
        }
        let channels = match layout.channels {
            None => stored,
            Some(channels) if channels == stored as u64 || channels == 2 * stored as u64 => channels as usize,
            Some(channels) => {
                return Err(Error::config(format!("{channels} channels, where the codes have {stored}"))
                    .field("channels")
                    .hint(
                        "codes are assembled with the channels they have, or doubled from mono to stereo",
                    ));
            }
        };
        for (name, value) in [
            ("text_pad_value", layout.text_pad_value),
            ("audio_eos_value", layout.audio_eos_value),
            ("audio_pad_value", layout.audio_pad_value),
            ("audio_bos_value", layout.audio_bos_value),
        ] {
            if !dtype.holds(value) {
                return Err(Error::config(format!("{name} {value} does not fit {dtype}")).field(name));
            }
        }
        let dropout = layout.tags.map_or(0.0, |tags| tags.dropout);
        for (name, fraction) in [("unconditional", layout.unconditional), ("tag_dropout", dropout)] {
            if !(0.0..=1.0).contains(&fraction) {
                return Err(Error::config(format!("{name} {fraction}, expected 0 to 1")).field(name));
            }
        }
        let usual;
        let pattern = match &layout.delay_pattern {
            Some(pattern) => pattern,
            None => {
                usual = Delays::usual(channels);
                &usual
            }
        };
        let delays = Delays::new(pattern, channels)?;
        let longest = length.saturating_add(2 + delays.most() as u64);
        let wide = longest.max(layout.text_length).max(channels as u64);
        if length == 0 || layout.text_length == 0 || wide.checked_mul(wide).is_none_or(|n| n > MOST) {
            return Err(Error::config(format!(
                "rows of {length} frames and {} text tokens: expected at least 1, and what memory holds",
                layout.text_length
            ))
            .field(if length == 0 { "length" } else { "text_length" }));
        }
        let text_length = layout.text_length as usize;
        Ok(Codes { layout: layout.clone(), dtype, channels, delays, text_length, length: length as usize })
    }

    /// Assembles examples that come from no source.
    ///
    /// # Errors
    /// `Mismatch` for more frames than the length, and naming the example (as record) whose channels are others; `Corrupt` for one outside the codebook.
    pub fn batch(&self, examples: &[Example<'_>]) -> Result<Batch> {
        let frames = examples.iter().map(|example| {
            let Values { bytes, element, channels, .. } = example.codes;
            bytes.len() / element.size().max(1) / channels.max(1)
        });
        let longest = self.checked(frames.max().unwrap_or(0) as u64)?;
        let mut batch = Batch::new(self.fields_of(longest), examples.len(), None)?;
        let mut more = Vec::new();
        for (i, example) in examples.iter().enumerate() {
            let mut row = batch.row(i)?;
            self.write_row(Some((&example.codes, 0)), example.text, example.draw, &mut row, &mut more)
                .map_err(|e| e.record(i as u64))?;
        }
        Ok(batch)
    }

    // A mask grows with the square of the frames: there are no more than was declared.
    fn checked(&self, frames: u64) -> Result<usize> {
        match usize::try_from(frames) {
            Ok(frames) if frames <= self.length => Ok(frames),
            _ => Err(Error::mismatch(format!("{frames} frames in a batch of at most {}", self.length))
                .hint("cut the codes first")),
        }
    }

    // Positions of a row of this many frames: BOS and EOS are two.
    fn row_of(&self, frames: usize) -> usize {
        frames + 2 + if self.layout.keep_tail { self.delays.most() } else { 0 }
    }

    fn fields_of(&self, frames: usize) -> Arc<[Field]> {
        let rows = self.row_of(frames);
        let text = self.text_length;
        let dense = |field| (self.layout.masks == Masks::Dense).then_some(field);
        let lengths = |field| (self.layout.masks == Masks::Lengths).then_some(field);
        let number = |name| Field::new(name, DType::I64, []);
        let all = [
            Some(Field::new("src_tokens", self.dtype, [text])),
            Some(Field::new("src_positions", DType::I64, [text])),
            dense(Field::new("enc_self_attn_mask", DType::Bool, [1, text, text])),
            Some(Field::new("tgt_tokens", self.dtype, [rows, self.channels])),
            Some(Field::new("tgt_positions", DType::I64, [rows])),
            dense(Field::new("dec_self_attn_mask", DType::Bool, [1, rows, rows])),
            dense(Field::new("dec_cross_attn_mask", DType::Bool, [1, rows, text])),
            lengths(number("src_lens")),
            Some(number("seq_lens")),
            Some(number("tgt_lens")),
        ];
        all.into_iter().flatten().collect()
    }

    // Writes one row: the fields in the order of `fields_of`. With the codes comes the number of their first frame in the record.
    fn write_row(
        &self,
        codes: Option<(&Values<'_>, u64)>,
        text: &str,
        draw: Draw,
        row: &mut Row<'_>,
        more: &mut Vec<u8>,
    ) -> Result<()> {
        let is_dense = self.layout.masks == Masks::Dense;
        let [src, src_at, enc] = [0, 1, 2];
        let [tgt, tgt_at, dec, cross] = if is_dense { [3, 4, 5, 6] } else { [2, 3, 0, 0] };
        let lens = if is_dense { 7 } else { 4 };
        // A byte order mark is of the file that the text was in.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let drawn;
        let text = match (is_unconditional(self.layout.unconditional, draw), self.layout.tags) {
            (true, _) => "",
            (false, None) => text,
            (false, Some(tags)) => {
                drawn = with_tags(text, tags, draw);
                &drawn
            }
        };
        let text = cut(text, self.text_length, self.layout.cut);
        let frames = match codes {
            None => 0,
            Some((codes, _)) => self.frames(codes)?,
        };
        match self.dtype {
            DType::I16 => self.tokens::<i16>(text, codes, row, [src, tgt], more)?,
            DType::I32 => self.tokens::<i32>(text, codes, row, [src, tgt], more)?,
            _ => self.tokens::<i64>(text, codes, row, [src, tgt], more)?,
        }
        for field in [src_at, tgt_at] {
            row.numbers::<i64>(field).iter_mut().zip(0..).for_each(|(place, at)| *place = at);
        }
        if is_dense {
            let (is_text, is_frame) = match self.dtype {
                DType::I16 => self.valid::<i16>(row, [src, tgt]),
                DType::I32 => self.valid::<i32>(row, [src, tgt]),
                _ => self.valid::<i64>(row, [src, tgt]),
            };
            each_row(row.bytes(enc), &is_text, |_, out| out.copy_from_slice(&is_text), &is_text);
            let causal = |t: usize, out: &mut [u8]| {
                let (before, after) = out.split_at_mut(t + 1);
                before.copy_from_slice(&is_frame[..=t]);
                after.fill(0);
            };
            each_row(row.bytes(dec), &is_frame, causal, &is_frame);
            each_row(row.bytes(cross), &is_frame, |_, out| out.copy_from_slice(&is_text), &is_text);
        }
        let mut lens = lens;
        if self.layout.masks == Masks::Lengths {
            row.numbers::<i64>(lens)[0] = text.len() as i64;
            lens += 1;
        }
        let tail = if self.layout.keep_tail { self.delays.most() } else { 0 };
        row.numbers::<i64>(lens)[0] = frames as i64;
        row.numbers::<i64>(lens + 1)[0] = (frames + tail + 2) as i64;
        row.note((frames + tail + 2, tgt), (text.len(), src));
        Ok(())
    }

    // How many frames the codes have, if they can be delayed.
    fn frames(&self, codes: &Values<'_>) -> Result<usize> {
        let Values { bytes, element, channels, .. } = *codes;
        if channels != self.channels && channels * 2 != self.channels {
            return Err(Error::mismatch(format!(
                "codes of {channels} channels in a batch of {}",
                self.channels
            ))
            .hint("one batch has one number of codebooks, or half of it where a track is mono"));
        }
        Ok(bytes.len() / (element.size() * channels))
    }

    fn tokens<T>(
        &self,
        text: &[u8],
        codes: Option<(&Values<'_>, u64)>,
        row: &mut Row<'_>,
        [src, tgt]: [usize; 2],
        more: &mut Vec<u8>,
    ) -> Result<()>
    where
        T: bytemuck::Pod + TryFrom<i64>,
        u8: Cast<T>,
        i16: Cast<T>,
        u16: Cast<T>,
        i32: Cast<T>,
        i64: Cast<T>,
    {
        let special = |value: i64| {
            T::try_from(value).map_err(|_| Error::config(format!("{value} does not fit {}", self.dtype)))
        };
        let (tokens, padding) = row.numbers::<T>(src).split_at_mut(text.len());
        tokens.iter_mut().zip(text).for_each(|(place, byte)| *place = Cast::<T>::cast(*byte));
        padding.fill(special(self.layout.text_pad_value)?);
        let special = Special {
            bos: special(self.layout.audio_bos_value)?,
            eos: special(self.layout.audio_eos_value)?,
            pad: special(self.layout.audio_pad_value)?,
        };
        let most = self.layout.codebook_size.map_or(u64::MAX, |size| size.saturating_sub(1));
        let (keep_tail, out) = (self.layout.keep_tail, row.numbers::<T>(tgt));
        let nothing = Values {
            bytes: &[],
            element: Element::little(DType::I16),
            channels: self.channels,
            decode: Decode::Plain,
        };
        let (codes, first) = codes.unwrap_or((&nothing, 0));
        let stored = StoredCodes { bytes: codes.bytes, channels: codes.channels, most };
        let is_plain = codes.decode == Decode::Plain && !codes.element.big_endian;
        let written = match codes.element.dtype {
            DType::I16 if is_plain => self.delays.write::<i16, T>(stored, special, keep_tail, out),
            DType::U16 if is_plain => self.delays.write::<u16, T>(stored, special, keep_tail, out),
            DType::I32 if is_plain => self.delays.write::<i32, T>(stored, special, keep_tail, out),
            DType::I64 if is_plain => self.delays.write::<i64, T>(stored, special, keep_tail, out),
            DType::U8 if is_plain => self.delays.write::<u8, T>(stored, special, keep_tail, out),
            // Rare types take a pass more.
            _ => {
                let mut wide = Buffer::zeroed(codes.bytes.len() / codes.element.size() * 8);
                copy_values(codes, 0, wide.bytes_mut(), DType::I64)?;
                more.clear();
                more.extend_from_slice(wide.bytes());
                let stored = StoredCodes { bytes: more, ..stored };
                self.delays.write::<i64, T>(stored, special, keep_tail, out)
            }
        };
        match written {
            Written::Yes => Ok(()),
            Written::Outside => {
                let code = named(codes, first, |code| code as u64 > most)?;
                Err(Error::corrupt(format!("{code} is outside the codebook: expected 0 to {most}"))
                    .hint("@codebook_size@ takes other codebooks, @codebook_size=none@ checks none"))
            }
            Written::TooLarge => {
                let code = named(codes, first, |code| T::try_from(code).is_err())?;
                Err(Error::corrupt(format!("{code} does not fit {}", self.dtype))
                    .hint("choose a wider @as_dtype@"))
            }
        }
    }

    // Which tokens are text, and which frames are not padding in every channel.
    fn valid<T: bytemuck::Pod + TryFrom<i64> + PartialEq>(
        &self,
        row: &mut Row<'_>,
        [src, tgt]: [usize; 2],
    ) -> (Vec<u8>, Vec<u8>) {
        // They fit, which was checked: nothing is equal to a value that does not.
        let [text_pad, pad] =
            [self.layout.text_pad_value, self.layout.audio_pad_value].map(|value| T::try_from(value).ok());
        let is_text = row.numbers::<T>(src).iter().map(|token| u8::from(Some(*token) != text_pad)).collect();
        let frames = row.numbers::<T>(tgt).chunks_exact(self.channels);
        let is_frame = frames.map(|frame| u8::from(frame.iter().any(|code| Some(*code) != pad))).collect();
        (is_text, is_frame)
    }
}

// The first code that is wrong, by its value and place; the codes begin at frame `first` of their record.
fn named(codes: &Values<'_>, first: u64, is_wrong: impl Fn(i64) -> bool) -> Result<String> {
    let mut wide = Buffer::zeroed(codes.bytes.len() / codes.element.size() * 8);
    copy_values(codes, 0, wide.bytes_mut(), DType::I64)?;
    let numbers: &[i64] = bytemuck::cast_slice(wide.bytes());
    let at = numbers.iter().position(|code| is_wrong(*code)).unwrap_or(0);
    let (frame, channel) = (first + (at / codes.channels) as u64, at % codes.channels);
    Ok(format!("code {} at frame {frame}, channel {channel}", numbers[at]))
}

// Fills the rows of a mask that are valid by `fill`, the others with false. A row has the same number of places as `across`.
fn each_row(mask: &mut [u8], valid: &[u8], fill: impl Fn(usize, &mut [u8]), across: &[u8]) {
    for ((i, out), valid) in mask.chunks_exact_mut(across.len()).enumerate().zip(valid) {
        if *valid == 1 { fill(i, out) } else { out.fill(0) }
    }
}

impl Collate for Codes {
    fn fields(&self, samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        let frames = |sample: Sample<'_>| sample.pieces.iter().map(Piece::len).max().unwrap_or(0);
        Ok(self.fields_of(self.checked(samples.map(frames).max().unwrap_or(0))?))
    }

    fn row_length(&self, values: u64) -> Option<u64> {
        usize::try_from(values).ok().map(|frames| self.row_of(frames) as u64)
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let Some(Piece::Read(span)) = sample.pieces.first() else {
            return self.write_row(None, "", sample.draw, row, &mut scratch.more);
        };
        let text = sample.source.text(span.record, &mut scratch.text)?;
        let codes = sample.source.read(*span, &mut scratch.bytes)?;
        let written = self.write_row(Some((&codes, span.start)), text, sample.draw, row, &mut scratch.more);
        written.map_err(|e| e.record(span.record))
    }

    fn describe(&self) -> String {
        // A plain struct with string keys: serialising cannot fail.
        let layout = serde_json::to_string(&self.layout).unwrap_or_default();
        format!("codes(channels={},dtype={},{layout})", self.channels, self.dtype)
    }
}
