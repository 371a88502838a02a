//! Where the samples of a wav file lie: what its chunks say of it, compared with the bytes.
//!
//! Writers that stream never learn the sizes that they promised at the beginning: what is there is a declared value, and
//! the file's end is the end of its samples. The codec reads a header made here, and the samples behind it.

use std::cell::Cell;
use std::ops::Range;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

use crate::samples::SampleFormat;

/// What ffmpeg and sox write for a length that they do not know.
const UNKNOWN: [u32; 2] = [u32::MAX, 0x7fff_f000];

/// A size from here on was put there by a writer that streamed; a file that was cut short says less.
const NEVER_FILLED_IN: u32 = 1 << 30;

/// A header that says what is there, and the samples that it speaks of.
pub(crate) struct Wav {
    pub(crate) header: Vec<u8>,
    pub(crate) samples: Range<u64>,
    /// Whether something is wrong that was allowed.
    pub(crate) is_damaged: bool,
}

/// Reads the chunks of a wav file.
///
/// # Errors
/// `Unsupported` for samples of a kind that is not read, and where a second file follows; `Corrupt` without a chunk of
/// samples, where the file was cut short, and where bytes follow the samples that are in no chunk. What `skip_corrupt`
/// allows is not an error. As reading.
pub(crate) fn open(object: &dyn Object, sound: &Range<u64>, skip_corrupt: bool) -> Result<Wav> {
    let file = File { object, end: sound.end, skip_corrupt, is_damaged: Cell::new(false) };
    let found = file.chunks(sound.start)?;
    let format = SampleFormat::of(&found.format).map_err(|e| e.at(object.name()).byte(found.format_at))?;
    let left = sound.end - found.data;
    let declared = u64::from(found.size);
    let behind = found.data.saturating_add(declared);
    let is_whole = declared > 0 && declared <= left;
    let end = if is_whole {
        file.check_rest(behind, declared)?;
        behind
    } else if declared == 0 && matches!(file.rest(behind)?, Rest::Chunks) {
        // No samples, and chunks to the end.
        behind
    } else {
        // Both sizes speak of a file that was longer, by a frame at least.
        let riff_end = sound.start + 8 + u64::from(found.riff);
        let was_longer = found.size.max(found.riff) < NEVER_FILLED_IN && riff_end >= behind;
        let frame = format.frame_size();
        if was_longer && declared / frame > left / frame {
            let what = format!("the header declares {declared} bytes of samples, the file holds {left}");
            file.allow(sound.end, what, "copy the file again, or allow what is there with skip_corrupt")?;
        }
        file.check_last_frame(left, frame)?;
        if declared > 0 && !UNKNOWN.contains(&found.size) {
            log::warn!(
                "{}: the header declares {declared} bytes of samples, the file holds {left}: these are read",
                object.name()
            );
        }
        sound.end
    };
    let is_damaged = file.is_damaged.get();
    Ok(Wav { header: header(&format, end - found.data), samples: found.data..end, is_damaged })
}

// As the codec wants it: all ones are a length that it does not know.
fn header(format: &SampleFormat, size: u64) -> Vec<u8> {
    let chunk = format.chunk();
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let mut out = b"RIFF\xff\xff\xff\xffWAVEfmt ".to_vec();
    out.extend((chunk.len() as u32).to_le_bytes());
    out.extend(chunk);
    out.extend(b"data");
    out.extend(size.to_le_bytes());
    out
}

/// What comes before the samples.
struct Found {
    /// The size of the whole that is declared.
    riff: u32,
    /// The content of the chunk that says what a sample is, and where it begins.
    format: Vec<u8>,
    format_at: u64,
    /// The first byte of the samples, and their declared size.
    data: u64,
    size: u32,
}

/// What follows the samples.
enum Rest {
    /// Nothing, chunks that are not sound, or zeros.
    Chunks,
    /// One more file, or one more chunk of samples.
    Second(u64),
    /// Bytes that are in no chunk, and what must not be taken for one.
    Loose(u64),
}

struct File<'a> {
    object: &'a dyn Object,
    end: u64,
    skip_corrupt: bool,
    is_damaged: Cell<bool>,
}

impl File<'_> {
    fn chunks(&self, start: u64) -> Result<Found> {
        // More chunks than any writer puts before the samples; the longest format that is read.
        const MOST: usize = 1_000;
        const LONGEST: u32 = 40;
        let riff = self.number(start + 4)?;
        let (mut at, mut format) = (start + 12, None);
        for _ in 0..MOST {
            if at.saturating_add(8) > self.end {
                return Err(self.ends_before_samples());
            }
            let (mut scratch, size) = (Vec::new(), self.number(at + 4)?);
            let id: [u8; 4] = self.object.read(at, 4, &mut scratch)?.try_into().unwrap_or_default();
            if &id == b"data" {
                let Some((format_at, format)) = format else {
                    return Err(self
                        .wrong(at, "the samples come before the chunk that says what they are (\"fmt \")")
                        .hint("the header may be damaged; another program may still read the file"));
                };
                return Ok(Found { riff, format, format_at, data: at + 8, size });
            }
            if u64::from(size) > self.end - at - 8 {
                return Err(self.ends_before_samples());
            }
            if &id == b"fmt " {
                let bytes = self.object.read(at + 8, size.min(LONGEST) as usize, &mut scratch)?;
                format = Some((at + 8, bytes.to_vec()));
            }
            at = self.after(at + 8, u64::from(size))?;
        }
        Err(self.wrong(at, format!("{MOST} chunks come before the samples")))
    }

    // Where the next chunk begins: at an even byte, but for writers that forget it.
    fn after(&self, start: u64, size: u64) -> Result<u64> {
        let even = start + size.next_multiple_of(2);
        if size.is_multiple_of(2) || self.is_chunk(even)? || !self.is_chunk(start + size)? {
            Ok(even)
        } else {
            Ok(start + size)
        }
    }

    // Whether a name of letters and a size that ends within the file are here.
    fn is_chunk(&self, at: u64) -> Result<bool> {
        if at.saturating_add(8) > self.end {
            return Ok(false);
        }
        let mut scratch = Vec::new();
        let is_name = self.object.read(at, 4, &mut scratch)?.iter().all(|b| (0x20..0x7f).contains(b));
        Ok(is_name && u64::from(self.number(at + 4)?) <= self.end - at - 8)
    }

    fn check_rest(&self, behind: u64, declared: u64) -> Result<()> {
        match self.rest(behind)? {
            Rest::Chunks => Ok(()),
            Rest::Second(at) => {
                Err(Error::unsupported("a second wav file, or chunk of samples, follows the first")
                    .at(self.object.name())
                    .byte(at)
                    .hint("split the file, or join the sounds themselves: sox FIRST.wav SECOND.wav OUT.wav"))
            }
            Rest::Loose(at) => {
                let n = self.end - at;
                let what = format!(
                    "the header declares {declared} bytes of samples, and {n} more follow that are in no chunk"
                );
                let hint = "if they are sound: ffmpeg -ignore_length 1 -i IN OUT.flac; else skip_corrupt leaves them out";
                self.allow(at, what, hint)
            }
        }
    }

    fn rest(&self, behind: u64) -> Result<Rest> {
        let mut scratch = Vec::new();
        let mut at = behind;
        if at % 2 == 1 && !self.is_chunk(at)? {
            at += 1;
        }
        // A few bytes hold no chunk.
        while at.saturating_add(8) <= self.end {
            let head = self.object.read(at, 4, &mut scratch)?;
            if head == b"RIFF" || head == b"data" {
                return Ok(Rest::Second(at));
            }
            // A tag of a player needs no chunk.
            if head.starts_with(b"ID3") {
                return Ok(Rest::Chunks);
            }
            if !self.is_chunk(at)? {
                return Ok(if self.is_silent(at)? { Rest::Chunks } else { Rest::Loose(at) });
            }
            at = self.after(at + 8, u64::from(self.number(at + 4)?))?;
        }
        Ok(Rest::Chunks)
    }

    fn is_silent(&self, from: u64) -> Result<bool> {
        const BLOCK: u64 = 1 << 16;
        let mut scratch = Vec::new();
        for at in (from..self.end).step_by(BLOCK as usize) {
            let size = (self.end - at).min(BLOCK) as usize;
            if self.object.read(at, size, &mut scratch)?.iter().any(|b| *b != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    // Where the header does not say how long the samples are, the last one must be whole.
    fn check_last_frame(&self, left: u64, frame: u64) -> Result<()> {
        let rest = left % frame;
        // One byte may only make the size even.
        let mut scratch = Vec::new();
        if rest == 0
            || (rest == 1
                && left.is_multiple_of(2)
                && self.object.read(self.end - 1, 1, &mut scratch)? == [0])
        {
            return Ok(());
        }
        let what = format!(
            "the file ends {rest} bytes into a frame of {frame}; its header does not say how long it is"
        );
        self.allow(self.end, what, "copy the file again, or allow what is there with skip_corrupt")
    }

    // Continues where that is allowed.
    fn allow(&self, at: u64, what: String, hint: &str) -> Result<()> {
        self.is_damaged.set(true);
        if self.skip_corrupt { Ok(()) } else { Err(self.wrong(at, what).hint(hint)) }
    }

    fn ends_before_samples(&self) -> Error {
        self.wrong(self.end, "the file ends before its samples (no chunk \"data\")")
            .hint("copy the file again, or record it again")
    }

    fn wrong(&self, at: u64, what: impl Into<String>) -> Error {
        Error::corrupt(what).at(self.object.name()).byte(at)
    }

    fn number(&self, at: u64) -> Result<u32> {
        if at.saturating_add(4) > self.end {
            return Ok(0);
        }
        let mut scratch = Vec::new();
        let bytes = self.object.read(at, 4, &mut scratch)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}
