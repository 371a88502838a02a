//! The delay pattern: each channel of codes begins some frames later, so that a model makes one code of each at a time.

use crate::error::{Error, Result};
use crate::values::Cast;

/// Frames by which each channel is delayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays {
    pattern: Vec<usize>,
    most: usize,
}

/// What to do with the end when a delay is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Undelayed {
    /// Only frames of which every channel is there: fewer than were given, by the longest delay.
    Cut,
    /// As many frames as were given; where a channel has ended, its last code is repeated.
    Repeat,
}

/// A delay of more frames than this is a mistake.
const MOST_DELAY: u64 = 1 << 20;

impl Delays {
    /// One delay per channel.
    ///
    /// # Errors
    /// `Config` when they are not as many as `channels`, or one is beyond 2^20.
    pub fn new(pattern: &[u64], channels: usize) -> Result<Delays> {
        if pattern.len() != channels {
            return Err(Error::config(format!(
                "a delay pattern of {} channels, where the codes have {channels}",
                pattern.len()
            ))
            .field("delay_pattern")
            .hint("give one delay per channel; two sides of stereo have the pattern twice"));
        }
        if let Some(delay) = pattern.iter().find(|delay| **delay > MOST_DELAY) {
            return Err(Error::config(format!("a delay of {delay} frames, expected at most {MOST_DELAY}"))
                .field("delay_pattern"));
        }
        let pattern: Vec<usize> = pattern.iter().map(|delay| *delay as usize).collect();
        let most = pattern.iter().copied().max().unwrap_or(0);
        Ok(Delays { pattern, most })
    }

    /// The usual pattern: 0, 1, 2, … frames, and for the 18 channels of stereo 0 to 8 for either side.
    pub fn usual(channels: usize) -> Vec<u64> {
        let manifest = if channels == 18 { 9 } else { channels.max(1) };
        (0..channels).map(|channel| (channel % manifest) as u64).collect()
    }

    /// The longest.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Codes `[T, C]`, delayed: `[T, C]` with `bos` where a channel has not begun. The last codes of a delayed channel are
    /// lost; with `keep_tail` there are [`Delays::most`] frames more, with `end` where a channel is over.
    ///
    /// # Errors
    /// `Config` when the codes are not whole frames.
    pub fn apply(&self, codes: &[i64], bos: i64, keep_tail: Option<i64>) -> Result<Vec<i64>> {
        let frames = self.frames(codes)?;
        let channels = self.pattern.len();
        let n = frames + if keep_tail.is_some() && frames > 0 { self.most } else { 0 };
        let mut out = Vec::with_capacity(n * channels);
        for t in 0..n {
            out.extend(self.pattern.iter().enumerate().map(|(c, delay)| match t.checked_sub(*delay) {
                None => bos,
                Some(t) if t < frames => codes[t * channels + c],
                // Only with a tail: without one, t is below the number of frames.
                Some(_) => keep_tail.unwrap_or(bos),
            }));
        }
        Ok(out)
    }

    /// The inverse: delayed codes `[T, C]` back into frames.
    ///
    /// # Errors
    /// `Config` when the codes are not whole frames.
    ///
    /// ```
    /// # use windrow_core::collate::{Delays, Undelayed};
    /// let delays = Delays::new(&[0, 1], 2)?;
    /// let delayed = delays.apply(&[1, 2, 3, 4], 99, Some(98))?;
    /// assert_eq!(delayed, [1, 99, 3, 2, 98, 4]);
    /// assert_eq!(delays.undo(&delayed, Undelayed::Cut)?, [1, 2, 3, 4]);
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    pub fn undo(&self, delayed: &[i64], tail: Undelayed) -> Result<Vec<i64>> {
        let frames = self.frames(delayed)?;
        let channels = self.pattern.len();
        let n = match tail {
            Undelayed::Cut => frames.saturating_sub(self.most),
            Undelayed::Repeat => frames,
        };
        let mut out = Vec::with_capacity(n * channels);
        for t in 0..n {
            let code = |(c, delay): (usize, &usize)| delayed[(t + delay).min(frames - 1) * channels + c];
            out.extend(self.pattern.iter().enumerate().map(code));
        }
        Ok(out)
    }

    fn frames(&self, codes: &[i64]) -> Result<usize> {
        let channels = self.pattern.len();
        if channels > 0 && codes.len().is_multiple_of(channels) {
            Ok(codes.len() / channels)
        } else {
            Err(Error::config(format!("{} codes are not whole frames of {channels} channels", codes.len())))
        }
    }
}

/// The values that stand for no code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Special<T> {
    pub(super) bos: T,
    pub(super) eos: T,
    pub(super) pad: T,
}

/// Stored codes: little-endian numbers, frame by frame, of the same number of channels as there are or of half of them.
#[derive(Clone, Copy)]
pub(super) struct StoredCodes<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) channels: usize,
    /// Codes are at most this.
    pub(super) most: u64,
}

/// Whether all codes were what they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Yes,
    /// One is beyond the codebook.
    Outside,
    /// One does not fit the batch's dtype.
    TooLarge,
}

impl Delays {
    /// Writes the targets of one row: a frame of `bos`, the delayed codes, `eos`, then `pad`.
    ///
    /// Without `keep_tail` the delayed codes are cut where the undelayed ones end and one frame of `eos` follows; with it
    /// every channel has all its codes, and its own `eos` after them.
    pub(super) fn write<S: Cast<T> + Into<i64>, T: bytemuck::Pod>(
        &self,
        codes: StoredCodes<'_>,
        special: Special<T>,
        keep_tail: bool,
        out: &mut [T],
    ) -> Written {
        let channels = self.pattern.len();
        let stored = codes.bytes.len() / S::SIZE;
        let frames = stored / codes.channels;
        let (first, rest) = out.split_at_mut(channels);
        first.fill(special.bos);
        let n = if keep_tail { frames + self.most } else { frames };
        let (rows, rest) = rest.split_at_mut(n * channels);
        let mut outside = false;
        let mut fits = true;
        let mut code = |at: usize| -> T {
            let number = S::little(&codes.bytes[at * S::SIZE..][..S::SIZE]);
            let wide: i64 = number.into();
            // Below 0 becomes very large.
            outside |= wide as u64 > codes.most;
            fits &= !S::MAY_NOT_FIT || number.fits();
            number.cast()
        };
        let is_full = |t: usize| t >= self.most && t < frames;
        for (t, row) in rows.chunks_exact_mut(channels).enumerate() {
            if is_full(t) {
                continue;
            }
            for (c, (place, delay)) in row.iter_mut().zip(&self.pattern).enumerate() {
                *place = match t.checked_sub(*delay) {
                    None => special.bos,
                    Some(t) if t < frames => code(t * codes.channels + c % codes.channels),
                    Some(t) if t == frames => special.eos,
                    Some(_) => special.pad,
                };
            }
        }
        if frames > self.most {
            // Of the frames between, every code is there: the same places in a window that moves on by a frame.
            let places: Vec<usize> = self
                .pattern
                .iter()
                .enumerate()
                .map(|(c, delay)| (self.most - delay) * codes.channels + c % codes.channels)
                .collect();
            let width = (self.most + 1) * codes.channels;
            let full = &mut rows[self.most * channels..frames * channels];
            let found = windows::<S, T>(codes, width, &places, full);
            outside |= found.0;
            fits &= found.1;
        }
        let mut ends = rest.chunks_exact_mut(channels);
        if let Some(end) = ends.next() {
            for (place, delay) in end.iter_mut().zip(&self.pattern) {
                *place = if !keep_tail || *delay == self.most { special.eos } else { special.pad };
            }
        }
        ends.for_each(|row| row.fill(special.pad));
        match (outside, fits) {
            (true, _) => Written::Outside,
            (false, false) => Written::TooLarge,
            (false, true) => Written::Yes,
        }
    }
}

// Frame t of `out` takes from the window of stored numbers that begins at frame t the ones at `places`. Gives whether one
// was outside, and whether all fit.
#[inline]
fn windows<S: Cast<T> + Into<i64>, T: bytemuck::Pod>(
    codes: StoredCodes<'_>,
    width: usize,
    places: &[usize],
    out: &mut [T],
) -> (bool, bool) {
    let (mut outside, mut fits) = (false, true);
    let step = codes.channels * S::SIZE;
    let windows = codes.bytes.windows(width * S::SIZE).step_by(step);
    for (row, window) in out.chunks_exact_mut(places.len()).zip(windows) {
        for (place, at) in row.iter_mut().zip(places) {
            let number = S::little(&window[at * S::SIZE..][..S::SIZE]);
            let wide: i64 = number.into();
            outside |= wide as u64 > codes.most;
            fits &= !S::MAY_NOT_FIT || number.fits();
            *place = number.cast();
        }
    }
    (outside, fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delayed(codes: &[i16], channels: usize, pattern: &[u64], keep_tail: bool, rows: usize) -> Vec<i64> {
        let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
        let stored = StoredCodes { bytes: &bytes, channels, most: 9 };
        let special = Special { bos: 90, eos: 91, pad: 92 };
        let mut out = vec![7; rows * pattern.len()];
        let delays = Delays::new(pattern, pattern.len()).unwrap();
        assert_eq!(delays.write::<i16, i64>(stored, special, keep_tail, &mut out), Written::Yes);
        out
    }

    #[test]
    fn channels_begin_later_and_end_together_or_each_on_its_own() {
        let codes = [1, 2, 3, 4, 5, 6];
        assert_eq!(delayed(&codes, 2, &[0, 1], false, 6), [90, 90, 1, 90, 3, 2, 5, 4, 91, 91, 92, 92]);
        assert_eq!(delayed(&codes, 2, &[0, 1], true, 6), [90, 90, 1, 90, 3, 2, 5, 4, 91, 6, 92, 91]);
        assert_eq!(delayed(&codes, 2, &[2, 0], true, 7), [90, 90, 90, 2, 90, 4, 1, 6, 3, 91, 5, 92, 91, 92]);
    }

    #[test]
    fn fewer_frames_than_the_delay_and_none() {
        assert_eq!(delayed(&[1, 2], 2, &[0, 3], false, 3), [90, 90, 1, 90, 91, 91]);
        assert_eq!(delayed(&[1, 2], 2, &[0, 3], true, 6), [90, 90, 1, 90, 91, 90, 92, 90, 92, 2, 92, 91]);
        assert_eq!(delayed(&[], 2, &[0, 1], false, 3), [90, 90, 91, 91, 92, 92]);
    }

    #[test]
    fn one_channel_is_used_for_two() {
        assert_eq!(delayed(&[1, 2, 3], 1, &[0, 1], false, 5), [90, 90, 1, 90, 2, 1, 3, 2, 91, 91]);
    }

    #[test]
    fn a_code_outside_is_told_in_the_ramp_and_after_it() {
        let delays = Delays::new(&[0, 1], 2).unwrap();
        let special = Special { bos: 0i64, eos: 0, pad: 0 };
        for at in 0..8 {
            for wrong in [-1i16, 10] {
                let mut codes = [1i16; 8];
                codes[at] = wrong;
                let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
                let stored = StoredCodes { bytes: &bytes, channels: 2, most: 9 };
                // The last code of the delayed channel is lost.
                let expected = if at == 7 { Written::Yes } else { Written::Outside };
                assert_eq!(delays.write::<i16, i64>(stored, special, false, &mut [0; 12]), expected, "{at}");
            }
        }
    }
}
