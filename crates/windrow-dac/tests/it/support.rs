//! The fixture: a small codec with random weights, a clip, and what the Python package makes of it (testdata/dac/make.py).

use std::fs;
use std::path::PathBuf;

use windrow_dac::{Codec, Options};

pub(crate) fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../testdata/dac", name].iter().collect()
}

pub(crate) fn codec(name: &str) -> Codec {
    Codec::open(fixture(name), &Options::default().num_threads(2)).unwrap()
}

/// Samples of the clip.
pub(crate) fn clip() -> Vec<f32> {
    let bytes = fs::read(fixture("clip.i16")).unwrap();
    bytes.as_chunks().0.iter().map(|b| f32::from(i16::from_le_bytes(*b)) / 32_768.0).collect()
}

/// The package's codes.
pub(crate) fn codes(name: &str) -> Vec<u16> {
    fs::read(fixture(name)).unwrap().as_chunks().0.iter().map(|b| u16::from_le_bytes(*b)).collect()
}
