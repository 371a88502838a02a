//! What a caller may choose about decoding.

/// How a sound file is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples per second of what comes out; `None` keeps the file's own.
    pub sample_rate_hz: Option<u32>,
    /// How sharp the filter is where the rate changes.
    pub quality: Quality,
    /// Continues where part of a file cannot be read: a packet that cannot be decoded becomes silence of its length, a file
    /// that is cut short ends where it was cut. Without it, each of these is an error.
    pub skip_corrupt: bool,
}

impl Default for Options {
    /// 44,100 Hz, high quality, nothing skipped.
    fn default() -> Self {
        Options { sample_rate_hz: Some(44_100), quality: Quality::default(), skip_corrupt: false }
    }
}

/// How sharp the filter of a change of rate is. Its length counts samples of the lower of both rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quality {
    /// A filter of about 512 samples.
    Fast,
    /// A filter of about 2,048 samples: flat (within 0.01 dB) to 98 % of the lower rate's half.
    #[default]
    High,
}

impl Quality {
    pub(crate) fn filter_len(self) -> usize {
        match self {
            Quality::Fast => 512,
            Quality::High => 2_048,
        }
    }
}
