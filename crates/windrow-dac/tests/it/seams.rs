//! Chunks, threads and parts change no code.

use std::thread;

use windrow_core::Kind;
use windrow_dac::{Codec, Codes, Options};

use super::support::{clip, codec, codes, fixture};

fn with(threads: usize, chunk: usize) -> Codec {
    Codec::open(fixture("small.pth"), &Options::default().num_threads(threads).chunk(chunk)).unwrap()
}

#[test]
fn chunks_and_threads_change_no_code() {
    let samples = clip();
    let whole = with(1, 1 << 20);
    let expected = whole.encode(&samples).unwrap();
    let played = whole.decode(&expected).unwrap();
    // One frame at a time, sizes that divide nothing, and the end within a chunk's surroundings.
    for (threads, chunk) in [(1, 1), (3, 25), (2, 24 * 37), (5, 4_801), (2, 12_000), (2, 12_001), (1, 12_024)]
    {
        let codec = with(threads, chunk);
        assert_eq!(codec.encode(&samples).unwrap(), expected, "{threads} threads, chunks of {chunk}");
        assert_eq!(codec.decode(&expected).unwrap(), played, "{threads} threads, chunks of {chunk}");
    }
}

#[test]
fn every_length_is_the_same_in_chunks() {
    let samples = clip();
    let (whole, chunked) = (with(1, 1 << 20), with(2, 24 * 9));
    for n in [1, 23, 24, 25, 24 * 9 - 1, 24 * 9, 24 * 9 + 1, 1_000, 3_333] {
        let expected = whole.encode(&samples[..n]).unwrap();
        assert_eq!(expected.frames(), n.div_ceil(24));
        assert_eq!(chunked.encode(&samples[..n]).unwrap(), expected, "{n} samples");
    }
}

#[test]
fn samples_may_come_in_parts() {
    let samples = clip();
    let codec = with(1, 24 * 20);
    for part in [1_usize, 7, 240, 5_000, 50_000] {
        let mut encoder = codec.encoder();
        let mut found = Vec::new();
        for samples in samples.chunks(part) {
            found.extend(encoder.push(samples).unwrap().into_values());
        }
        // What is left is little: the rest of a chunk, and what its codes depend on.
        assert!(samples.len() / 24 - found.len() / 5 < 200, "{} frames at the end", found.len() / 5);
        found.extend(encoder.finish().unwrap().into_values());
        assert_eq!(found, codes("codes.u16"), "in parts of {part}");
    }
    let mut encoder = codec.encoder();
    encoder.push(&samples).unwrap();
    let error = encoder.push(&[0.0, f32::NAN]).unwrap_err();
    assert!(format!("{error:#}").contains(&format!("sample {}", samples.len() + 1)), "{error}");
}

#[test]
fn threads_may_share_a_codec() {
    let codec = codec("small.pth");
    let expected = codes("codes.u16");
    thread::scope(|scope| {
        for _ in 0..4 {
            let codec = codec.clone();
            let expected = &expected;
            scope.spawn(move || {
                let found: Codes = codec.encode(&clip()).unwrap();
                assert_eq!(found.values(), expected);
            });
        }
    });
}

#[test]
fn chunks_of_nothing_are_refused() {
    let error = Codec::open(fixture("small.pth"), &Options::default().chunk(0)).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
}
