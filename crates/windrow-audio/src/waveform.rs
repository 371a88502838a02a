//! Samples of sound, channel by channel.

/// Samples of sound, planar: one list per channel, all of one length.
#[derive(Clone, Default, PartialEq)]
pub struct Waveform {
    /// Samples per second.
    pub sample_rate_hz: u32,
    /// `[channels][samples]`; full scale is -1 to 1, and lossy codecs go a little beyond.
    pub channels: Vec<Vec<f32>>,
}

impl Waveform {
    /// How many channels.
    pub fn n_channels(&self) -> usize {
        self.channels.len()
    }

    /// Samples of each channel.
    pub fn n_samples(&self) -> usize {
        self.channels.first().map_or(0, Vec::len)
    }

    /// How long it lasts.
    pub fn seconds(&self) -> f64 {
        self.n_samples() as f64 / f64::from(self.sample_rate_hz.max(1))
    }

    /// Makes two channels: one channel is copied into both, two stay as they are.
    #[must_use]
    pub fn stereo(mut self) -> Self {
        if let [only] = self.channels.as_slice() {
            let copy = only.clone();
            self.channels.push(copy);
        }
        self
    }
}

// Without the samples: a message that holds a million numbers says nothing.
impl std::fmt::Debug for Waveform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waveform")
            .field("sample_rate_hz", &self.sample_rate_hz)
            .field("n_channels", &self.n_channels())
            .field("n_samples", &self.n_samples())
            .finish()
    }
}
