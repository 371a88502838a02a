//! The frame that an encoder of mp3 puts first and fills in last: how many frames follow, and which samples are padding.
//!
//! Layouts: "Xing VBR Header" (Xing), "MP3 Info Tag, revision 1" (LAME), "VBRI header" (Fraunhofer).

use crate::mp3_header::{HEADER, Header};

/// Samples by which a decoder comes later than its encoder.
const DECODER_DELAY: u64 = 528 + 1;

/// What the tag declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Frames that follow.
    pub(crate) n_frames: Option<u64>,
    /// Bytes of the tag and of all frames that follow.
    pub(crate) n_bytes: Option<u64>,
    /// Samples before the sound.
    pub(crate) delay: u64,
    /// Samples behind it.
    pub(crate) padding: u64,
    /// Whether the encoder is one that counts exactly, and what it wrote is as it was.
    pub(crate) is_exact: bool,
    /// Whether the part about padding has a checksum, and another one than it should.
    pub(crate) is_damaged: bool,
}

impl Tag {
    /// The tag that a frame holds; `None` for a frame of sound.
    pub(crate) fn of(frame: &[u8], header: &Header) -> Option<Tag> {
        Tag::xing(frame, header).or_else(|| Tag::vbri(frame, header))
    }

    fn xing(frame: &[u8], header: &Header) -> Option<Tag> {
        let at = HEADER + header.side_info();
        let id = frame.get(at..at + 4)?;
        if (id != b"Xing" && id != b"Info") || !is_empty(frame, header, at) {
            return None;
        }
        let flags = number(frame, at + 4)?;
        let mut tag = Tag::default();
        let mut at = at + 8;
        // Frames, bytes, a table for seeking, quality.
        for (flag, size) in [(1, 4), (2, 4), (4, 100), (8, 4)] {
            if flags & flag != 0 {
                match flag {
                    1 => tag.n_frames = Some(u64::from(number(frame, at)?)),
                    2 => tag.n_bytes = Some(u64::from(number(frame, at)?)),
                    _ => {}
                }
                at += size;
            }
        }
        tag.lame(frame, at, header);
        Some(tag)
    }

    // The part that LAME, and ffmpeg after it, put behind.
    fn lame(&mut self, frame: &[u8], at: usize, header: &Header) {
        let Some(part) = frame.get(at..at + 24) else { return };
        let is_lame = part.starts_with(b"LAME");
        if !is_lame && !part.starts_with(b"Lavf") && !part.starts_with(b"Lavc") {
            return;
        }
        if let Some(kept) = frame.get(at + 34..at + 36)
            && (is_lame || header.has_checksum)
        {
            let kept = u16::from_be_bytes([kept[0], kept[1]]);
            self.is_damaged = kept != 0 && kept != checksum(&frame[..at + 34]);
        }
        self.is_exact = !self.is_damaged;
        if self.is_exact {
            let both = u64::from(part[21]) << 16 | u64::from(part[22]) << 8 | u64::from(part[23]);
            self.delay = (both >> 12) + DECODER_DELAY;
            self.padding = (both & 0xfff).saturating_sub(DECODER_DELAY);
        }
    }

    fn vbri(frame: &[u8], header: &Header) -> Option<Tag> {
        let at = HEADER + 32;
        let is_tag = frame.get(at..at + 6)? == b"VBRI\0\x01" && is_empty(frame, header, at);
        let (n_bytes, n_frames) = (number(frame, at + 10)?, number(frame, at + 14)?);
        is_tag.then(|| Tag {
            n_frames: Some(u64::from(n_frames)),
            n_bytes: Some(u64::from(n_bytes)),
            ..Tag::default()
        })
    }
}

// Where sound would say how it is coded, a tag has zeros.
fn is_empty(frame: &[u8], header: &Header, end: usize) -> bool {
    let start = HEADER + if header.has_checksum { 2 } else { 0 };
    frame[start..end].iter().all(|b| *b == 0)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

// CRC-16 with the polynomial 0x8005, lowest bit first.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xa001 } else { crc >> 1 })
    })
}
