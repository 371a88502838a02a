//! The beginning of a sound file: to see as a wave, and to play.

use std::sync::Arc;

use windrow::Result;
use windrow::audio::{Decoder, Options, Waveform};
use windrow::dev::store::Object;
use windrow::prepare::Watch;

use super::levels::AS_IT_IS;
use crate::watch::check;

/// Seconds of a file that are played at most.
pub(crate) const MOST_SECONDS: f64 = 15.0;
/// Bytes of samples in a player at most, so that the page stays small.
const MOST_BYTES: usize = 1_500_000;
/// Players gain nothing from more.
const MOST_RATE_HZ: u32 = 48_000;
/// Parts of a wave.
const PARTS: usize = 800;

/// # Errors
/// Those of [`Decoder`]; `Interrupted`.
pub(crate) fn clip(object: Arc<dyn Object>, own_rate_hz: u32, watch: &dyn Watch) -> Result<Waveform> {
    let sample_rate_hz = (own_rate_hz > MOST_RATE_HZ).then_some(MOST_RATE_HZ);
    let decoder = Decoder::new(object, &Options { sample_rate_hz, ..AS_IT_IS })?;
    let (rate, n_channels) = (decoder.sample_rate_hz(), decoder.n_channels());
    let fit = MOST_BYTES / 2 / n_channels.max(1);
    let most = ((MOST_SECONDS * f64::from(rate)) as usize).min(fit);
    let mut clip = Waveform { sample_rate_hz: rate, channels: vec![Vec::new(); n_channels] };
    for block in decoder {
        check(watch)?;
        for (all, block) in clip.channels.iter_mut().zip(&block?.channels) {
            all.extend_from_slice(&block[..block.len().min(most - all.len())]);
        }
        if clip.n_samples() >= most {
            break;
        }
    }
    Ok(clip)
}

/// The lowest and the highest sample of equal parts.
pub(crate) fn parts(samples: &[f32]) -> Vec<(f32, f32)> {
    let n = samples.len().min(PARTS);
    (0..n)
        .map(|i| {
            let part = &samples[i * samples.len() / n..(i + 1) * samples.len() / n];
            part.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_in_a_part_of_the_wave() {
        assert_eq!(parts(&[0.5, -0.5]), [(0.5, 0.5), (-0.5, -0.5)]);
        let samples: Vec<f32> = (0..2_001).map(|i| i as f32).collect();
        let parts = parts(&samples);
        assert_eq!((parts.len(), parts[0].0, parts[799].1), (800, 0.0, 2_000.0));
        assert!(parts.windows(2).all(|two| two[0].1 + 1.0 == two[1].0));
    }
}
