//! Sound files made in memory, and the clips of testdata.

use std::path::PathBuf;
use std::sync::Arc;

use windrow_audio::{Options, Waveform, decode_object};
use windrow_core::Result;
use windrow_core::store::{Memory, Object, Store};

/// How the numbers of a wav file are stored.
#[derive(Clone, Copy)]
pub(crate) enum Stored {
    Pcm16,
    Float,
}

/// A wav file of these samples, interleaved.
pub(crate) fn wav(rate_hz: u32, n_channels: u16, stored: Stored, samples: &[f32]) -> Vec<u8> {
    let (tag, size) = match stored {
        Stored::Pcm16 => (1_u16, 2_u16),
        Stored::Float => (3, 4),
    };
    let data: Vec<u8> = match stored {
        Stored::Pcm16 => samples.iter().flat_map(|s| ((s * 32_767.0) as i16).to_le_bytes()).collect(),
        Stored::Float => samples.iter().flat_map(|s| s.to_le_bytes()).collect(),
    };
    let mut file = wav_header(rate_hz, n_channels, tag, size, data.len() as u32);
    file.extend(data);
    file
}

/// The 44 bytes before the samples.
pub(crate) fn wav_header(rate_hz: u32, n_channels: u16, tag: u16, size: u16, data: u32) -> Vec<u8> {
    let frame = n_channels * size;
    let mut file = b"RIFF".to_vec();
    file.extend(data.saturating_add(36).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0");
    file.extend(tag.to_le_bytes());
    file.extend(n_channels.to_le_bytes());
    file.extend(rate_hz.to_le_bytes());
    file.extend((rate_hz * u32::from(frame)).to_le_bytes());
    file.extend(frame.to_le_bytes());
    file.extend((size * 8).to_le_bytes());
    file.extend(b"data");
    file.extend(data.to_le_bytes());
    file
}

/// A tone.
pub(crate) fn sine(rate_hz: u32, tone_hz: f64, len: usize) -> Vec<f32> {
    let step = std::f64::consts::TAU * tone_hz / f64::from(rate_hz);
    (0..len).map(|i| (0.5 * (step * i as f64).sin()) as f32).collect()
}

pub(crate) fn object(name: &str, bytes: impl Into<Arc<[u8]>>) -> Arc<dyn Object> {
    Memory::new().with(name, bytes).open(name).unwrap()
}

pub(crate) fn read(name: &str, bytes: impl Into<Arc<[u8]>>, options: &Options) -> Result<Waveform> {
    decode_object(object(name, bytes), options)
}

/// At the file's own rate.
pub(crate) fn own_rate() -> Options {
    Options { sample_rate_hz: None, ..Options::default() }
}

pub(crate) fn testdata() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/audio"))
}

/// One clip of each kind of file, with the name.
pub(crate) fn one_of_each() -> Vec<(&'static str, Vec<u8>)> {
    ["cards_001.wav", "cards_002.flac", "cards_003.mp3", "cards_004.m4a", "cards_005.ogg"]
        .into_iter()
        .map(|name| (name, std::fs::read(testdata().join(name)).unwrap()))
        .collect()
}

/// How far `found` is from `wanted`, in decibels of signal over difference.
pub(crate) fn snr_db(wanted: &[f32], found: &[f32]) -> f64 {
    assert_eq!(wanted.len(), found.len());
    let energy = |x: f64| x * x;
    let signal: f64 = wanted.iter().map(|w| energy(f64::from(*w))).sum();
    let noise: f64 = wanted.iter().zip(found).map(|(w, f)| energy(f64::from(*w) - f64::from(*f))).sum();
    10.0 * (signal / noise.max(1e-30)).log10()
}
