//! Other rates: the same sound, neither shifted nor longer.

use windrow_audio::{Options, Quality, resampled_len};
use windrow_core::Kind;

use crate::toy::{Stored, read, sine, snr_db, wav};

#[test]
fn a_tone_stays_the_tone_without_a_shift() {
    for from_hz in [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 48_000, 96_000, 192_000] {
        for (to_hz, quality, least) in
            [(44_100, Quality::High, 110.0), (44_100, Quality::Fast, 100.0), (16_000, Quality::High, 110.0)]
        {
            if from_hz == to_hz {
                continue;
            }
            // Well below the half of both rates, so that it must come through.
            let tone_hz = f64::from(from_hz.min(to_hz)) * 0.2;
            let len = from_hz as usize / 2;
            let file = wav(from_hz, 1, Stored::Float, &sine(from_hz, tone_hz, len));
            let options = Options { sample_rate_hz: Some(to_hz), quality, ..Options::default() };
            let found = read("tone.wav", file, &options).unwrap();
            let wanted = sine(to_hz, tone_hz, found.n_samples());
            // A tone that begins at once is no tone at its ends.
            let inside = found.n_samples() / 4..found.n_samples() * 3 / 4;
            let db = snr_db(&wanted[inside.clone()], &found.channels[0][inside]);
            assert!(db > least, "{from_hz} to {to_hz}, {quality:?}: {db:.1} dB");
        }
    }
}

#[test]
fn what_the_lower_rate_cannot_hold_is_gone() {
    let file = wav(48_000, 1, Stored::Float, &sine(48_000, 12_000.0, 24_000));
    let options = Options { sample_rate_hz: Some(16_000), ..Options::default() };
    let found = read("high.wav", file, &options).unwrap();
    let loudest = found.channels[0][2_000..6_000].iter().fold(0.0_f32, |most, s| most.max(s.abs()));
    assert!(loudest < 1e-6, "{loudest}");
}

#[test]
fn the_length_is_rounded_up_as_torchaudio_does() {
    // torchaudio.functional.resample(torch.zeros(n), from, to).shape, torchaudio 2.x: ceil(to * n / from).
    for (n, from_hz, to_hz, wanted) in [
        (1, 8_000, 44_100, 6),
        (1, 192_000, 44_100, 1),
        (16_001, 16_000, 44_100, 44_103),
        (48_000, 48_000, 44_100, 44_100),
    ] {
        assert_eq!(resampled_len(n, from_hz, to_hz), wanted);
    }
    for from_hz in [8_000, 16_000, 44_099, 48_000, 192_000] {
        for n in [1_usize, 2, 159, 160, 161, 1_000, 2_353, 4_097] {
            let file = wav(from_hz, 2, Stored::Pcm16, &vec![0.25; n * 2]);
            let found = read("short.wav", file, &Options::default()).unwrap();
            let wanted = (n as u64 * 44_100).div_ceil(u64::from(from_hz)) as usize;
            assert!(found.channels.iter().all(|c| c.len() == wanted), "{n} samples of {from_hz} Hz");
        }
    }
}

#[test]
fn both_channels_are_resampled_as_each_alone() {
    let (left, right) = (sine(16_000, 300.0, 5_000), sine(16_000, 700.0, 5_000));
    let both: Vec<f32> = left.iter().zip(&right).flat_map(|(l, r)| [*l, *r]).collect();
    let found = read("both.wav", wav(16_000, 2, Stored::Float, &both), &Options::default()).unwrap();
    for (channel, alone) in found.channels.iter().zip([left, right]) {
        let alone = read("one.wav", wav(16_000, 1, Stored::Float, &alone), &Options::default()).unwrap();
        assert!(*channel == alone.channels[0]);
    }
}

#[test]
fn the_same_rate_changes_no_bit() {
    let samples = sine(44_100, 440.0, 3_000);
    let found = read("same.wav", wav(44_100, 1, Stored::Float, &samples), &Options::default()).unwrap();
    assert!(found.channels[0] == samples);
}

#[test]
fn a_rate_that_cannot_be_made_is_refused() {
    let file = wav(16_000, 1, Stored::Pcm16, &[0.0; 10]);
    for rate in [0, 999, 768_001, u32::MAX] {
        let options = Options { sample_rate_hz: Some(rate), ..Options::default() };
        assert_eq!(read("a.wav", file.clone(), &options).unwrap_err().kind(), Kind::Config);
    }
}
