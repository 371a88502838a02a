//! Code for code what the Python package makes.

use std::fs;

use windrow_core::Kind;
use windrow_dac::{Codec, Codes, Device, Options};

use super::support::{clip, codec, codes, fixture};

#[test]
fn codes_are_those_of_the_package() {
    for name in ["small.pth", "small.safetensors"] {
        let codec = codec(name);
        assert_eq!(
            (codec.sample_rate(), codec.hop_length(), codec.codebooks(), codec.codebook_size()),
            (16_000, 24, 5, 64),
            "{name}"
        );
        let found = codec.encode(&clip()).unwrap();
        assert_eq!((found.frames(), found.codebooks()), (501, 5), "{name}");
        assert_eq!(found.values(), codes("codes.u16"), "{name}");
    }
}

#[test]
fn tensors_alone_in_the_older_layout_are_read_too() {
    let codec = codec("older.pth");
    // Nothing says it: the rate of the published weights.
    assert_eq!((codec.sample_rate(), codec.hop_length(), codec.codebooks()), (44_100, 4, 2));
    let found = codec.encode(&clip()[..2_000]).unwrap();
    assert_eq!(found.values(), codes("older_codes.u16"));
}

#[test]
fn samples_come_back_as_the_package_decodes_them() {
    let codec = codec("small.pth");
    let all = Codes::new(codes("codes.u16"), 5).unwrap();
    let found = codec.decode(&all).unwrap();
    // The odd rate of the decoder gives one column less, which is two samples, as there.
    assert_eq!(found.len(), 501 * 24 - 2);
    let bytes = fs::read(fixture("decoded.f32")).unwrap();
    let expected = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 1e-5, "sample {i}: {found}, not {expected}");
    }
}

// Another program's convolutions, from the same file.
#[test]
fn candle_gives_the_same() {
    let options = Options::default().device(Device::Candle).chunk(3_000);
    let reference = Codec::open(fixture("small.pth"), &options).unwrap();
    let codec = codec("small.pth");
    assert_eq!(reference.encode(&clip()).unwrap(), codec.encode(&clip()).unwrap());
    let all = Codes::new(codes("codes.u16"), 5).unwrap();
    let (one, two) = (reference.decode(&all).unwrap(), codec.decode(&all).unwrap());
    assert_eq!(one.len(), two.len());
    for (i, (one, two)) in one.iter().zip(two).enumerate() {
        assert!((one - two).abs() < 1e-5, "sample {i}: {one} and {two}");
    }
}

#[test]
fn a_device_that_is_not_there_is_named() {
    for device in [Device::Cuda(0), Device::Metal(3)] {
        let error = Codec::open(fixture("small.pth"), &Options::default().device(device)).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(format!("{error:#}").contains(&format!("{device:?}")), "{error}");
    }
}

#[test]
fn what_is_too_short_is_filled_with_silence() {
    let codec = codec("small.pth");
    let none = codec.encode(&[]).unwrap();
    assert_eq!((none.frames(), none.codebooks()), (0, 5));
    assert!(codec.decode(&none).unwrap().is_empty());
    let mut frame = [0.0; 24];
    frame[0] = 0.5;
    assert_eq!(codec.encode(&[0.5]).unwrap(), codec.encode(&frame).unwrap());
    assert_eq!(codec.encode(&[0.5]).unwrap().frames(), 1);
    let silence = codec.encode(&[0.0; 24 * 400]).unwrap();
    let rows: Vec<&[u16]> = silence.values().chunks(5).collect();
    // Away from the ends one frame of silence is like the other.
    assert!(rows[100..300].iter().all(|row| *row == rows[100]), "{rows:?}");
}

#[test]
fn codes_that_cannot_be_are_refused() {
    assert_eq!(Codes::new(vec![1; 7], 5).unwrap_err().kind(), Kind::Config);
    assert_eq!(Codes::new(vec![], 0).unwrap_err().kind(), Kind::Config);
    let codec = codec("small.pth");
    let narrow = Codes::new(vec![1; 8], 4).unwrap();
    assert_eq!(codec.decode(&narrow).unwrap_err().kind(), Kind::Mismatch);
    let mut marked = vec![1; 15];
    marked[12] = 64;
    let error = codec.decode(&Codes::new(marked, 5).unwrap()).unwrap_err();
    assert_eq!(error.kind(), Kind::OutOfRange);
    let text = format!("{error:#}");
    assert!(text.contains("code 64") && text.contains("frame 2, codebook 2"), "{text}");
}

#[test]
fn a_sample_that_is_no_number_is_named() {
    let codec = codec("small.pth");
    for (at, value) in [(0, f32::NAN), (11_111, f32::INFINITY)] {
        let mut samples = clip();
        samples[at] = value;
        let error = codec.encode(&samples).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(format!("{error:#}").contains(&format!("sample {at} is {value}")), "{error}");
    }
}
