//! What is in each file: kind, rate, channels, how long it lasts, how loud it is.

use std::sync::Arc;

use windrow::Result;
use windrow::audio::{Decoder, Options, Sound};
use windrow::dev::store::Object;
use windrow::prepare::Watch;

use crate::watch::check;

/// A file as its header says.
pub(crate) struct Header {
    pub(crate) sound: Sound,
    /// How long it says that it lasts.
    pub(crate) seconds: Option<f64>,
}

/// What was decoded of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Levels {
    pub(crate) seconds: f64,
    /// Decoded to its end.
    pub(crate) is_whole: bool,
    /// The largest magnitude of a sample, full scale being 1.
    pub(crate) peak: f64,
    squares: f64,
    n: u64,
}

impl Levels {
    /// Root of the mean square of all samples of all channels.
    pub(crate) fn rms(&self) -> f64 {
        (self.squares / self.n.max(1) as f64).sqrt()
    }

    fn add(&mut self, channels: &[Vec<f32>]) {
        for sample in channels.iter().flatten() {
            let sample = f64::from(*sample);
            self.peak = self.peak.max(sample.abs());
            self.squares += sample * sample;
            self.n += 1;
        }
    }
}

/// Decibels of a magnitude, full scale being 0; `None` for silence.
pub(crate) fn db(magnitude: f64) -> Option<f64> {
    (magnitude > 0.0).then(|| 20.0 * magnitude.log10())
}

/// The samples as they are: the rate of the file, nothing skipped.
pub(crate) const AS_IT_IS: Options =
    Options { sample_rate_hz: None, quality: windrow::audio::Quality::High, skip_corrupt: false };

/// # Errors
/// Those of [`Decoder::new`].
pub(crate) fn header(object: Arc<dyn Object>) -> Result<Header> {
    let decoder = Decoder::new(object, &AS_IT_IS)?;
    let sound = decoder.sound();
    let seconds = sound.n_samples.map(|n| n as f64 / f64::from(sound.sample_rate_hz.max(1)));
    Ok(Header { sound, seconds })
}

/// Decodes at most about `most` seconds.
///
/// # Errors
/// Those of [`Decoder`]; `Interrupted`.
pub(crate) fn levels(object: Arc<dyn Object>, most: f64, watch: &dyn Watch) -> Result<Levels> {
    let mut levels = Levels::default();
    let mut samples = 0u64;
    let mut decoder = Decoder::new(object, &AS_IT_IS)?;
    let rate = f64::from(decoder.sample_rate_hz().max(1));
    while levels.seconds < most {
        check(watch)?;
        let Some(block) = decoder.next().transpose()? else {
            levels.is_whole = true;
            break;
        };
        samples += block.n_samples() as u64;
        levels.seconds = samples as f64 / rate;
        levels.add(&block.channels);
    }
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_wave_at_full_scale_has_zero_decibels_and_a_sine_three_less() {
        let mut square = Levels::default();
        square.add(&[vec![1.0, -1.0], vec![-1.0, 1.0]]);
        assert_eq!((db(square.peak), db(square.rms())), (Some(0.0), Some(0.0)));
        let sine = (0..1000).map(|i| (i as f32 / 1000.0 * std::f32::consts::TAU).sin()).collect();
        let mut levels = Levels::default();
        levels.add(&[sine]);
        assert!((db(levels.rms()).unwrap() + 3.0103).abs() < 1e-3);
        assert_eq!((db(Levels::default().peak), db(Levels::default().rms())), (None, None));
    }
}
