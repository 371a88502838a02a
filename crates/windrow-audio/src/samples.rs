//! What a sample of a wav file is, as its chunk "fmt " says.

use windrow_core::{Error, Result};

const PCM: u16 = 1;
const FLOAT: u16 = 3;
const A_LAW: u16 = 6;
const MU_LAW: u16 = 7;
const EXTENSIBLE: u16 = 0xfffe;

/// Kinds that are not read, by the number of their format.
const OTHERS: &[(u16, &str)] = &[
    (0x02, "Microsoft ADPCM"),
    (0x11, "IMA ADPCM"),
    (0x31, "GSM 6.10"),
    (0x50, "MPEG layer II"),
    (0x55, "MP3"),
    (0xff, "AAC"),
    (0x161, "WMA"),
    (0x2000, "AC-3"),
];

/// A format that is read.
pub(crate) struct SampleFormat {
    kind: u16,
    n_channels: u16,
    rate_hz: u32,
    /// Bits that a sample takes in the file.
    bits: u16,
    /// What follows the first 16 bytes, in the long form.
    extension: Vec<u8>,
}

impl SampleFormat {
    /// Reads the content of the chunk.
    ///
    /// # Errors
    /// `Corrupt` where it is too short, `Unsupported` for other kinds, and for samples that are not packed.
    pub(crate) fn of(chunk: &[u8]) -> Result<Self> {
        let too_short = || {
            Error::corrupt(format!(
                "the chunk \"fmt \" holds {} bytes, too few to say what a sample is",
                chunk.len()
            ))
            .hint("the header may be damaged; another program may still read the file")
        };
        if chunk.len() < 16 {
            return Err(too_short());
        }
        let short = |at: usize| u16::from_le_bytes([chunk[at], chunk[at + 1]]);
        let (kind, n_channels, frame, bits) = (short(0), short(2), short(12), short(14));
        let long = |at: usize| u32::from_le_bytes([chunk[at], chunk[at + 1], chunk[at + 2], chunk[at + 3]]);
        let (rate_hz, byte_rate) = (long(4), long(8));
        let mut found = SampleFormat { kind, n_channels, rate_hz, bits, extension: Vec::new() };
        match kind {
            // 12 bits are in the upper ones of 16, 20 in those of 24.
            PCM if (1..=32).contains(&bits)
                && (bits.is_multiple_of(8) || frame == n_channels.saturating_mul(bits.div_ceil(8))) =>
            {
                found.bits = bits.next_multiple_of(8);
            }
            FLOAT if bits == 32 || bits == 64 => {}
            A_LAW | MU_LAW => found.bits = 8,
            EXTENSIBLE if chunk.len() < 40 => return Err(too_short()),
            EXTENSIBLE if bits.is_multiple_of(8) => found.extension = chunk[16..40].to_vec(),
            PCM | FLOAT | EXTENSIBLE => {
                return Err(Error::unsupported(format!(
                    "samples of {bits} bits in frames of {frame} bytes; 1 to 32 bits, and floats of 32 and 64, are read"
                ))
                .hint("convert it: ffmpeg -i IN OUT.flac"));
            }
            _ => {
                let name = OTHERS.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name);
                let what = name.map_or_else(|| format!("sound of the format {kind:#06x}"), str::to_string);
                return Err(Error::unsupported(format!("{what} in wav is not read"))
                    .hint("convert it: ffmpeg -i IN OUT.flac"));
            }
        }
        if found.is_in_wider_slots(frame, byte_rate) { Err(found.refused_slots(frame)) } else { Ok(found) }
    }

    // Whether both sizes of the header agree that a sample takes other bytes than its bits fill: where in them the bits are
    // is then up to the writer. One size alone that is different is a slip, and the samples are packed.
    fn is_in_wider_slots(&self, frame: u16, byte_rate: u32) -> bool {
        let has_slots =
            !matches!(self.kind, A_LAW | MU_LAW) && frame > 0 && frame.is_multiple_of(self.n_channels);
        let agrees = u64::from(self.rate_hz) * u64::from(frame) == u64::from(byte_rate);
        has_slots && agrees && u64::from(frame) != self.frame_size()
    }

    fn refused_slots(&self, frame: u16) -> Error {
        let (bits, packed) = (self.bits, self.frame_size());
        let n = if self.n_channels == 1 {
            "one channel".to_string()
        } else {
            format!("{} channels", self.n_channels)
        };
        Error::unsupported(format!(
            "samples of {bits} bits in frames of {frame} bytes are not read; those of {n} take {packed}"
        ))
        .hint("export it again with packed samples: 16, 24 or 32 bits, floats, or flac")
    }

    /// Bytes of a sample of all channels.
    pub(crate) fn frame_size(&self) -> u64 {
        (u64::from(self.n_channels) * u64::from(self.bits / 8)).max(1)
    }

    /// The chunk in the form that the codec reads.
    pub(crate) fn chunk(&self) -> Vec<u8> {
        let frame = self.frame_size() as u16;
        let mut out = Vec::with_capacity(40);
        out.extend(self.kind.to_le_bytes());
        out.extend(self.n_channels.to_le_bytes());
        out.extend(self.rate_hz.to_le_bytes());
        out.extend(self.rate_hz.saturating_mul(u32::from(frame)).to_le_bytes());
        out.extend(frame.to_le_bytes());
        out.extend(self.bits.to_le_bytes());
        match self.kind {
            EXTENSIBLE => out.extend(&self.extension),
            A_LAW | MU_LAW => out.extend([0; 2]),
            _ => {}
        }
        out
    }
}
