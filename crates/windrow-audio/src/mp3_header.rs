//! The first four bytes of an MP3 frame: its rate, channels and size.

/// Bytes of a frame's header.
pub(crate) const HEADER: usize = 4;

/// What a frame says in its first four bytes. Layer III only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) rate_hz: u32,
    pub(crate) n_channels: usize,
    /// Bytes, with the header.
    pub(crate) size: u64,
    /// Samples of each channel.
    pub(crate) n_samples: u64,
    /// Whether two bytes of a checksum follow.
    pub(crate) has_checksum: bool,
}

impl Header {
    /// The header that these bytes begin with.
    pub(crate) fn of(bytes: &[u8]) -> Option<Header> {
        const KBIT_1: [u32; 14] = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
        const KBIT_2: [u32; 14] = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
        let [0xff, second, third, fourth, ..] = *bytes else { return None };
        // Eleven ones, then the layer, of which 1 is the third.
        if second & 0xe6 != 0xe2 {
            return None;
        }
        let version = (second >> 3) & 3;
        let rate_hz = *[44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
        // Version 2 and what is called 2.5 have a half and a quarter of the rates of version 1.
        let (rate_hz, n_samples, rates) = match version {
            3 => (rate_hz, 1_152, KBIT_1),
            2 => (rate_hz / 2, 576, KBIT_2),
            0 => (rate_hz / 4, 576, KBIT_2),
            _ => return None,
        };
        let kbit = *rates.get(usize::from(third >> 4).checked_sub(1)?)?;
        let size = n_samples / 8 * 1_000 * kbit / rate_hz + u32::from(third >> 1 & 1);
        Some(Header {
            rate_hz,
            n_channels: if fourth >> 6 == 3 { 1 } else { 2 },
            size: u64::from(size),
            n_samples: u64::from(n_samples),
            has_checksum: second & 1 == 0,
        })
    }

    /// Whether one decoder takes both.
    pub(crate) fn is_like(&self, other: &Header) -> bool {
        (self.rate_hz, self.n_channels, self.n_samples) == (other.rate_hz, other.n_channels, other.n_samples)
    }

    /// Bytes between the header and an encoder's tag, zeros in a frame that holds one.
    pub(crate) fn side_info(&self) -> usize {
        match (self.n_samples, self.n_channels) {
            (1_152, 1) | (576, 2) => 17,
            (1_152, _) => 32,
            _ => 9,
        }
    }
}
