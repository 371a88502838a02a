//! How loud each frequency of a sound is, over time.

use realfft::RealFftPlanner;
use windrow::audio::Waveform;

use crate::picture::{MAGMA, Picture};

/// Pixels.
const COLUMNS: usize = 800;
const ROWS: usize = 192;
/// Seconds of sound in a frame, about: long enough for the pitch of a voice, short enough for its syllables.
const FRAME_SECONDS: f64 = 0.04;
/// Decibels of the darkest colour; the brightest is a sine at full scale.
pub(crate) const FLOOR_DB: f64 = -100.0;
/// Frequencies that are named.
const MARKS_HZ: [f64; 6] = [500.0, 1_000.0, 2_000.0, 4_000.0, 8_000.0, 16_000.0];

/// The spectrogram of all channels together, from 0 Hz at the bottom to half the rate at the top, on the mel scale.
pub(crate) fn picture(clip: &Waveform) -> Picture {
    let mono = mono(clip);
    let size = frame_len(clip.sample_rate_hz);
    let columns = mono.len().clamp(1, COLUMNS);
    let rows = rows(size, clip.sample_rate_hz);
    let window = hann(size);
    // Of a sine at full scale, half of the window's sum falls into its bin.
    let full = window.iter().sum::<f32>() / 2.0;
    let fft = RealFftPlanner::<f32>::new().plan_fft_forward(size);
    let (mut frame, mut spectrum) = (fft.make_input_vec(), fft.make_output_vec());
    let mut levels = vec![0u8; columns * ROWS];
    for column in 0..columns {
        // The middle of what the pixel shows; before the beginning and after the end is silence.
        let middle = ((column as f64 + 0.5) / columns as f64 * mono.len() as f64) as usize;
        for (i, (place, window)) in frame.iter_mut().zip(&window).enumerate() {
            let at = (middle + i).checked_sub(size / 2);
            *place = at.and_then(|at| mono.get(at)).copied().unwrap_or(0.0) * window;
        }
        // It fails where lengths differ, and these are its own.
        let _ = fft.process(&mut frame, &mut spectrum);
        for (row, bins) in rows.iter().enumerate() {
            let loudest = spectrum[bins.clone()].iter().map(|bin| bin.norm()).fold(0.0, f32::max);
            let db = 20.0 * f64::from(loudest / full).max(1e-9).log10();
            levels[row * columns + column] = Picture::level(1.0 - db / FLOOR_DB);
        }
    }
    Picture { width: columns, colours: &MAGMA, levels }
}

/// Frequencies and where they are, as shares of the height from below.
pub(crate) fn marks(rate_hz: u32) -> Vec<(f64, String)> {
    let top = f64::from(rate_hz) / 2.0;
    let said = |hz: f64| if hz < 1_000.0 { format!("{hz} Hz") } else { format!("{} kHz", hz / 1_000.0) };
    // Close to the top, the label would be clipped.
    let fit = MARKS_HZ.iter().map(|hz| (mel(*hz) / mel(top), *hz)).filter(|(share, _)| *share < 0.97);
    fit.map(|(share, hz)| (share, said(hz))).collect()
}

fn mono(clip: &Waveform) -> Vec<f32> {
    let n = clip.n_channels().max(1) as f32;
    (0..clip.n_samples()).map(|i| clip.channels.iter().map(|channel| channel[i]).sum::<f32>() / n).collect()
}

fn frame_len(rate_hz: u32) -> usize {
    ((f64::from(rate_hz) * FRAME_SECONDS) as usize).next_power_of_two().max(64)
}

fn hann(size: usize) -> Vec<f32> {
    let step = std::f64::consts::TAU / size as f64;
    (0..size).map(|i| (0.5 - 0.5 * (step * i as f64).cos()) as f32).collect()
}

// The bins of each row of pixels, from the top: at least one.
fn rows(size: usize, rate_hz: u32) -> Vec<std::ops::Range<usize>> {
    let top = f64::from(rate_hz) / 2.0;
    let bin = |share: f64| hz(share * mel(top)) / top * (size / 2) as f64;
    (0..ROWS)
        .rev()
        .map(|row| {
            let from = bin(row as f64 / ROWS as f64).round() as usize;
            let to = bin((row + 1) as f64 / ROWS as f64).round() as usize;
            from.min(size / 2)..to.max(from + 1).min(size / 2 + 1)
        })
        .collect()
}

fn mel(hz: f64) -> f64 {
    2595.0 * (1.0 + hz / 700.0).log10()
}

fn hz(mel: f64) -> f64 {
    700.0 * (10f64.powf(mel / 2595.0) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f64, level: f64, rate: u32) -> Waveform {
        let step = hz * std::f64::consts::TAU / f64::from(rate);
        let samples = (0..rate).map(|i| (level * (step * f64::from(i)).sin()) as f32).collect();
        Waveform { sample_rate_hz: rate, channels: vec![samples] }
    }

    #[test]
    fn a_tone_is_a_line_at_its_frequency_as_bright_as_it_is_loud() {
        for (hz, level, rate) in [(1_000.0, 1.0, 44_100), (3_000.0, 0.1, 16_000), (300.0, 0.01, 8_000)] {
            let picture = picture(&tone(hz, level, rate));
            let column: Vec<u8> = (0..ROWS).map(|row| picture.levels[row * picture.width + 400]).collect();
            let brightest = column.iter().max().copied().unwrap();
            let row = column.iter().position(|level| *level == brightest).unwrap();
            let expected = (1.0 - mel(hz) / mel(f64::from(rate) / 2.0)) * ROWS as f64;
            assert!((row as f64 - expected).abs() <= 3.0, "{hz} Hz in row {row}, expected {expected}");
            let db = (1.0 - f64::from(brightest) / 254.0) * FLOOR_DB;
            // Between two bins a Hann window loses up to 1.42 dB.
            let lost = 20.0 * level.log10() - db;
            assert!((-0.3..1.8).contains(&lost), "{db} dB of level {level}");
            // Far from the tone nothing is to be seen.
            assert!(column[5] < 20 && brightest > 120, "{column:?}");
        }
    }

    #[test]
    fn every_bin_is_in_a_row_and_short_sounds_have_pictures() {
        for rate in [8_000, 44_100, 192_000] {
            let rows = rows(frame_len(rate), rate);
            assert!(rows.iter().all(|bins| !bins.is_empty()));
            assert_eq!((rows[ROWS - 1].start, rows[0].end > frame_len(rate) / 2 - 1), (0, true));
        }
        let short = Waveform { sample_rate_hz: 8_000, channels: vec![vec![0.5; 3]; 2] };
        assert_eq!((picture(&short).width, picture(&short).height()), (3, ROWS));
    }

    #[test]
    fn frequencies_are_named_below_the_top() {
        let named = marks(16_000);
        assert_eq!(named.last().unwrap().1, "4 kHz");
        assert!(named.windows(2).all(|two| two[0].0 < two[1].0) && named[0].1 == "500 Hz");
    }
}
