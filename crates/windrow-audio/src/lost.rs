//! How many samples a reader of flac left out: it passes over frames that do not have their checksum, and says nothing.
//!
//! A frame says which sample it begins with, and the header how many there are. Neither is believed beyond what the bytes
//! could hold that were passed over.

use std::ops::Range;
use std::sync::Arc;

use symphonia::core::packet::Packet;
use windrow_core::Result;
use windrow_core::store::Object;

use crate::window::Window;

/// Bytes of the smallest frame: a header, one value for all samples, and a checksum.
const LEAST_FRAME: u64 = 10;

/// Frames are found again by their first bytes: the header, which has the frame's number and a checksum, and what follows.
const MARK: usize = 16;

/// The frames of a flac file, as they were given so far.
pub(crate) struct Lost {
    file: Window,
    /// Where the next frame begins where none is passed over, and its first sample.
    at: u64,
    sample: u64,
    /// Samples of the longest frame.
    longest: u64,
    /// Of the frames that were given.
    n_bytes: u64,
    n_samples: u64,
}

impl Lost {
    /// In front of the first frame.
    ///
    /// # Errors
    /// What reading says.
    pub(crate) fn of(object: Arc<dyn Object>, sound: &Range<u64>) -> Result<Self> {
        let mut file = Window::new(object, sound.end);
        // The mark "fLaC", then blocks; the first one holds the lengths of the shortest frame and of the longest.
        let mut at = sound.start + 4;
        let longest = match *file.get(at + 6, 2)? {
            [high, low] => u64::from(u16::from_be_bytes([high, low])),
            _ => 0,
        };
        while let [kind, a, b, c] = *file.get(at, 4)? {
            at += 4 + u64::from(u32::from_be_bytes([0, a, b, c]));
            if kind & 0x80 != 0 {
                break;
            }
        }
        Ok(Lost { file, at, sample: 0, longest, n_bytes: 0, n_samples: 0 })
    }

    /// Samples that were left out before this frame, the next one; `None` where no bytes were passed over.
    ///
    /// # Errors
    /// What reading says.
    pub(crate) fn before(&mut self, frame: &Packet) -> Result<Option<u64>> {
        let sample = u64::try_from(frame.pts.get()).unwrap_or(0);
        let (size, n_samples) = (frame.data.len() as u64, frame.dur.get());
        let gap = sample.saturating_sub(self.sample);
        let is_first = self.n_bytes == 0;
        self.sample = sample.saturating_add(n_samples);
        self.n_bytes += size;
        self.n_samples += n_samples;
        let start = if gap > 0 { self.find(&frame.data[..frame.data.len().min(MARK)])? } else { self.at };
        let n_passed_over = start - self.at;
        self.at = start + size;
        // A recorder may have begun anywhere; between two frames the numbers of both say the same.
        let n_lost =
            if is_first { self.likely(gap, n_passed_over) } else { self.possible(gap, n_passed_over) };
        Ok((n_passed_over > 0).then_some(n_lost))
    }

    /// Samples that were left out at the end, of those that are missing there: none where the file was cut short.
    pub(crate) fn at_end(&self, n_missing: u64) -> u64 {
        self.likely(n_missing, self.file.end().saturating_sub(self.at))
    }

    // As many as the bytes could hold.
    fn possible(&self, n_samples: u64, n_bytes: u64) -> u64 {
        n_samples.min(n_bytes / LEAST_FRAME * self.longest)
    }

    // All or none: those of one frame, or of bytes that hold about the same number as others do.
    fn likely(&self, n_samples: u64, n_bytes: u64) -> u64 {
        let as_others = 2 * u128::from(n_bytes) * u128::from(self.n_samples);
        let is_likely =
            n_samples <= self.longest || u128::from(n_samples) * u128::from(self.n_bytes) <= as_others;
        if is_likely && n_samples <= self.possible(n_samples, n_bytes) { n_samples } else { 0 }
    }

    // Where these bytes are, at or behind the place of the next frame; that place where they are nowhere.
    fn find(&mut self, mark: &[u8]) -> Result<u64> {
        let mut at = self.at;
        loop {
            let bytes = self.file.get(at, 1 << 15)?;
            if bytes.len() < mark.len().max(1) {
                return Ok(self.at);
            }
            if let Some(found) = bytes.windows(mark.len().max(1)).position(|w| w == mark) {
                return Ok(at + found as u64);
            }
            at += (bytes.len() - mark.len() + 1) as u64;
        }
    }
}
