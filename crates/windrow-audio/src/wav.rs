//! A waveform as a `.wav` file of 16 bits.
//!
//! Layout: "Multimedia Programming Interface and Data Specifications 1.0" (IBM and Microsoft, 1991), WAVE form, PCM.

use std::path::Path;

use windrow_core::{Error, Result};

use crate::packets::RATES_HZ;
use crate::waveform::Waveform;

const HEAD: usize = 44;
/// Suffixes of files that hold what [`Waveform::to_wav`] gives, in any case; without one a name says nothing.
const SUFFIXES: [&str; 3] = ["", "wav", "wave"];

impl Waveform {
    /// Checks that the name of a file does not promise another kind of sound than [`Waveform::to_wav`] gives.
    ///
    /// # Errors
    /// `Unsupported` for a suffix other than `.wav` and `.wave`.
    ///
    /// ```
    /// # use windrow_audio::Waveform;
    /// assert!(Waveform::check_name("take.1.wav".as_ref()).is_ok());
    /// assert!(Waveform::check_name("take.flac".as_ref()).is_err());
    /// ```
    pub fn check_name(path: &Path) -> Result<()> {
        let suffix = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if SUFFIXES.contains(&suffix.as_str()) {
            Ok(())
        } else {
            Err(Error::unsupported(format!("sound is written as .wav, not as .{suffix}"))
                .at(path)
                .hint("write a .wav and convert it: ffmpeg -i IN.wav OUT.flac"))
        }
    }

    /// The bytes of a `.wav` file: 16-bit PCM, full scale from -1 to 1; what lies beyond is cut off there.
    ///
    /// # Errors
    /// `Config` without channels, for channels of different lengths, for a rate that is not read again, for a sample that is NaN or infinite, and
    /// for more than the 4 GiB that the format can hold.
    ///
    /// ```
    /// # use windrow_audio::Waveform;
    /// let sound = Waveform { sample_rate_hz: 44_100, channels: vec![vec![0.0, 0.5, 2.0]] };
    /// let file = sound.to_wav()?;
    /// assert_eq!(file.len(), 44 + 3 * 2);
    /// assert_eq!(file[48..50], i16::MAX.to_le_bytes());
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    pub fn to_wav(&self) -> Result<Vec<u8>> {
        let (n_channels, n_samples) = (self.n_channels(), self.n_samples());
        let width = n_channels as u64 * 2;
        let size = n_samples as u64 * width;
        if n_channels == 0 || n_channels > 2 || self.channels.iter().any(|c| c.len() != n_samples) {
            return Err(Error::config("a sound file has one or two channels of one length"));
        }
        let Some(data) = u32::try_from(size).ok().filter(|size| *size < u32::MAX - 36) else {
            return Err(Error::config(format!("{size} bytes of samples; a wav file holds less than 4 GiB")));
        };
        let rate = self.sample_rate_hz;
        if !RATES_HZ.contains(&rate) {
            let (least, most) = (RATES_HZ.start(), RATES_HZ.end());
            return Err(Error::config(format!("a sample rate of {rate} Hz, expected {least} to {most} Hz"))
                .field("sample_rate"));
        }
        // Rust's conversion would make silence of it.
        for (number, channel) in self.channels.iter().enumerate() {
            if let Some(at) = channel.iter().position(|sample| !sample.is_finite()) {
                return Err(Error::config(format!("sample {at} of channel {number} is {}", channel[at]))
                    .hint(
                        "a sound file of 16 bits has no NaN and no infinity: look at what made the samples",
                    ));
            }
        }
        let mut out = Vec::with_capacity(HEAD + data as usize);
        out.extend(b"RIFF");
        out.extend((data + 36).to_le_bytes());
        out.extend(b"WAVEfmt ");
        out.extend(16u32.to_le_bytes());
        // PCM.
        out.extend(1u16.to_le_bytes());
        out.extend((n_channels as u16).to_le_bytes());
        out.extend(rate.to_le_bytes());
        out.extend(rate.saturating_mul(width as u32).to_le_bytes());
        out.extend((width as u16).to_le_bytes());
        out.extend(16u16.to_le_bytes());
        out.extend(b"data");
        out.extend(data.to_le_bytes());
        for at in 0..n_samples {
            for channel in &self.channels {
                // Rust's conversion stops at the ends of the range.
                out.extend(((channel[at] * 32_768.0).round() as i16).to_le_bytes());
            }
        }
        Ok(out)
    }
}
