//! With `skip_corrupt` silence takes the place of what cannot be decoded, and all that follows keeps its own.

use std::fs;
use std::ops::Range;

use windrow_audio::{Decoder, Options, Waveform};
use windrow_core::{Error, Kind, Result};

use crate::toy::{object, own_rate, read, snr_db, testdata};

const LOSSY: [&str; 3] = ["cards_004.m4a", "cards_004_adts.aac", "chan3_44k.m4a"];
const LOSSLESS: &str = "cards_001_alac.m4a";

fn clip(name: &str) -> Vec<u8> {
    fs::read(testdata().join(name)).unwrap()
}

// The sound, and how many places were passed over.
fn skipped(name: &str, bytes: &[u8]) -> Result<(Waveform, u64)> {
    let options = Options { skip_corrupt: true, ..own_rate() };
    let mut decoder = Decoder::new(object(name, bytes), &options)?;
    let mut channels = vec![Vec::new(); decoder.n_channels()];
    for block in &mut decoder {
        channels.iter_mut().zip(block?.channels).for_each(|(all, block)| all.extend(block));
    }
    Ok((Waveform { sample_rate_hz: decoder.sample_rate_hz(), channels }, decoder.n_corrupt()))
}

fn refused(name: &str, bytes: &[u8]) -> Error {
    read(name, bytes, &own_rate()).unwrap_err()
}

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

// Where the packets of a file lie, of which the index of an m4a knows the first chunk.
fn packets(name: &str, bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if name.ends_with("aac") {
        let mut at = 0;
        while at < bytes.len() {
            let size = usize::from(bytes[at + 3] & 3) << 11 | usize::from(bytes[at + 4]) << 3;
            let size = size | usize::from(bytes[at + 5] >> 5);
            found.push(at + 7..at + size);
            at += size;
        }
        return found;
    }
    let table = |id: &[u8; 4]| bytes.windows(4).position(|w| w == id).unwrap() + 8;
    let (sizes, chunks, runs) = (table(b"stsz"), table(b"stco"), table(b"stsc"));
    let mut at = number(bytes, chunks + 4);
    for i in 0..number(bytes, runs + 8) {
        let size = number(bytes, sizes + 8 + 4 * i);
        found.push(at..at + size);
        at += size;
    }
    found
}

// Both are as long, and alike from there on. AAC draws noise, in a decoder that starts over from its first number.
fn check_end(name: &str, found: &Waveform, wanted: &Waveform, from: usize) {
    assert_eq!(found.n_samples(), wanted.n_samples(), "{name}");
    for (found, wanted) in found.channels.iter().zip(&wanted.channels) {
        let db = snr_db(&wanted[from..], &found[from..]);
        assert!(db > if name == LOSSLESS { 200.0 } else { 20.0 }, "{name}: {db:.1} dB, not in its place");
    }
}

#[test]
fn a_first_packet_that_cannot_be_decoded_becomes_silence() {
    for name in [LOSSLESS].into_iter().chain(LOSSY) {
        let bytes = clip(name);
        let whole = read(name, bytes.clone(), &own_rate()).unwrap();
        let first = packets(name, &bytes)[0].clone();
        let mut seen = 0;
        for byte in 0..=255 {
            let mut damaged = bytes.clone();
            let end = first.end.min(first.start + 24);
            damaged[first.start..end].iter_mut().for_each(|b| *b ^= byte);
            let Err(error) = read(name, damaged.clone(), &own_rate()) else { continue };
            // A packet of ALAC may also end early without a word, or lead the codec astray.
            let is_first = error.message().starts_with("packet 0 cannot be");
            assert!(is_first || name == LOSSLESS, "{name}: {error}");
            let (found, n_corrupt) = skipped(name, &damaged).unwrap();
            assert_eq!(n_corrupt, 1, "{name}");
            // A packet of AAC reaches into the next one.
            let silent = if name == LOSSLESS { 4_096 } else { 2 * 1_024 };
            check_end(name, &found, &whole, silent);
            if name == LOSSLESS && is_first {
                assert!(found.channels[0][..silent].iter().all(|s| *s == 0.0));
            }
            seen += 1;
        }
        assert!(seen > 10, "{name}: {seen}");
    }
}

#[test]
fn a_packet_that_asks_for_more_than_the_codec_has_is_damaged_where_others_are_not() {
    // Elements that no AAC-LC has: a coupling channel, and a program of its own.
    for (element, what) in [(2 << 5, "coupling channel element"), (5 << 5, "program config")] {
        for name in LOSSY {
            let bytes = clip(name);
            let whole = read(name, bytes.clone(), &own_rate()).unwrap();
            let packets = packets(name, &bytes);
            for number in [0, 1, packets.len() - 5] {
                let mut damaged = bytes.clone();
                damaged[packets[number].start] = element;
                let error = refused(name, &damaged);
                assert_eq!(error.kind(), Kind::Unsupported, "{error}");
                assert!(error.message().contains(what), "{error}");
                let (found, n_corrupt) = skipped(name, &damaged).unwrap();
                assert_eq!(n_corrupt, 1, "{name}");
                check_end(name, &found, &whole, (number + 2) * 1_024);
            }
        }
    }
}

#[test]
fn a_stream_of_aac_continues_behind_a_damaged_header() {
    let name = "cards_004_adts.aac";
    let bytes = clip(name);
    let packets = packets(name, &bytes);
    let n_samples = read(name, bytes.clone(), &own_rate()).unwrap().n_samples();
    for number in [1, 10, packets.len() - 2] {
        // A rate that there is not, and several packets in a frame.
        for (at, bits) in [(5, 0x3c), (1, 0x03)] {
            let mut damaged = bytes.clone();
            damaged[packets[number].start - at] |= bits;
            let (found, n_corrupt) = skipped(name, &damaged).unwrap();
            assert!(n_corrupt > 0, "{number}");
            assert!(found.n_samples() >= n_samples - 2 * 1_024, "{number}: {}", found.n_samples());
        }
    }
    // One that is cut short ends there.
    let (found, n_corrupt) = skipped(name, &bytes[..packets[10].end - 9]).unwrap();
    assert_eq!((found.n_samples(), n_corrupt), (10 * 1_024, 1));
}

#[test]
fn a_file_of_which_nothing_can_be_decoded_is_an_error() {
    let bytes = clip("cards_004_adts.aac");
    let mut kinds = Vec::new();
    for byte in 0..=255 {
        let mut damaged = bytes.clone();
        packets("a.aac", &bytes).into_iter().for_each(|packet| damaged[packet].fill(byte));
        let Err(error) = skipped("a.aac", &damaged) else { continue };
        let strict = refused("a.aac", &damaged);
        assert_eq!((error.kind(), error.message()), (strict.kind(), strict.message()));
        assert!(error.message().starts_with("packet 0 cannot be"), "{error}");
        kinds.push(error.kind());
    }
    assert!(kinds.contains(&Kind::Corrupt) && kinds.contains(&Kind::Unsupported));
}

// ---- flac: a frame without its checksum is not given by the reader

const FLAC: [&str; 2] = ["cards_002.flac", "chan3_44k.flac"];

fn crc(bytes: &[u8], n_bits: u32, polynomial: u32) -> u32 {
    let top = 1 << (n_bits - 1);
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << (n_bits - 8), |crc, _| {
            (if crc & top != 0 { crc << 1 ^ polynomial } else { crc << 1 }) & (2 * top - 1)
        })
    })
}

// Where the frames lie: each has its own checksum at the end, and its number as one byte.
fn frames(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut at = 4;
    while bytes[at] & 0x80 == 0 {
        at += 4 + (number(bytes, at) & 0xff_ffff);
    }
    at += 4 + (number(bytes, at) & 0xff_ffff);
    let mut found = Vec::new();
    while at < bytes.len() {
        let is_end = |end: &usize| {
            let is_next = *end == bytes.len() || bytes[*end..].starts_with(&bytes[at..at + 2]);
            is_next && crc(&bytes[at..*end], 16, 0x8005) == 0
        };
        let end = (at + 10..=bytes.len()).find(is_end).unwrap();
        found.push(at..end);
        at = end;
    }
    found
}

// Samples in a frame.
fn longest(bytes: &[u8]) -> usize {
    usize::from(bytes[10]) << 8 | usize::from(bytes[11])
}

#[test]
fn a_frame_of_flac_without_its_checksum_becomes_silence() {
    for name in FLAC {
        let bytes = clip(name);
        let whole = read(name, bytes.clone(), &own_rate()).unwrap();
        let (frames, longest) = (frames(&bytes), longest(&bytes));
        assert_eq!(frames.len(), whole.n_samples().div_ceil(longest));
        for (number, frame) in frames.iter().enumerate() {
            // In the header, where it also hides the frame before it, and behind it.
            for at in [frame.start, frame.start + 3, frame.start + frame.len() / 2, frame.end - 1] {
                let mut damaged = bytes.clone();
                damaged[at..frame.end.min(at + 24)].iter_mut().for_each(|b| *b ^= 0x55);
                assert_eq!(refused(name, &damaged).kind(), Kind::Corrupt);
                let (found, n_corrupt) = skipped(name, &damaged).unwrap();
                assert_eq!(n_corrupt, 1, "{name}: frame {number}");
                assert_eq!(found.n_samples(), whole.n_samples(), "{name}: frame {number}, byte {at}");
                let silent = number.saturating_sub(1) * longest..(number + 1) * longest;
                for (found, wanted) in found.channels.iter().zip(&whole.channels) {
                    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                        assert!(found == wanted || (silent.contains(&at) && *found == 0.0), "{name}: {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn several_frames_of_flac_become_silence_of_their_length() {
    let bytes = clip(FLAC[0]);
    let whole = read("a.flac", bytes.clone(), &own_rate()).unwrap();
    let (frames, longest) = (frames(&bytes), longest(&bytes));
    let n = frames.len();
    for (lost, n_lost) in [(0..3, 3), (1..4, 3), (n - 3..n, 3)] {
        let mut damaged = bytes.clone();
        damaged[frames[lost.start].start..frames[lost.end - 1].end].fill(0x55);
        let (found, n_corrupt) = skipped("a.flac", &damaged).unwrap();
        assert_eq!((found.n_samples(), n_corrupt), (whole.n_samples(), 1), "{lost:?}");
        let n_silent = found.channels[0].iter().filter(|s| **s == 0.0).count();
        assert!(n_silent + longest > n_lost * longest, "{lost:?}: {n_silent}");
    }
}

#[test]
fn the_number_of_a_frame_of_flac_makes_no_more_silence_than_its_bytes_could_hold() {
    let bytes = clip(FLAC[0]);
    let (frames, longest) = (frames(&bytes), longest(&bytes));
    let n_samples = read("a.flac", bytes.clone(), &own_rate()).unwrap().n_samples();
    // The last frame says that it is number 1,500,000,000: six bytes instead of one.
    let last = frames.last().unwrap().clone();
    let mut frame = bytes[last.clone()].to_vec();
    frame.splice(4..5, [0xfd, 0x99, 0x9a, 0x82, 0xbc, 0x80]);
    // Its length follows the number where it is not one of the usual ones.
    let sum_at = 10 + [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0][usize::from(frame[2] >> 4)];
    frame[sum_at] = crc(&frame[..sum_at], 8, 0x07) as u8;
    let end = frame.len() - 2;
    let sum = crc(&frame[..end], 16, 0x8005) as u16;
    frame[end..].copy_from_slice(&sum.to_be_bytes());
    // Nothing before it is passed over.
    let altered = [&bytes[..last.start], &frame].concat();
    assert_eq!(skipped("a.flac", &altered).unwrap().0.n_samples(), n_samples);
    // The frame before it is: the number of samples that frames of ten bytes would have.
    let before = frames[frames.len() - 2].clone();
    let mut damaged = altered.clone();
    damaged[before.start + 20..before.end].fill(0x55);
    let found = skipped("a.flac", &damaged).unwrap().0;
    assert!(found.n_samples() > n_samples - longest);
    assert!(found.n_samples() < n_samples + before.len() / 10 * longest, "{}", found.n_samples());
    // A header that says how many there are makes none where the bytes are not there.
    let mut many = bytes.clone();
    many[22..26].fill(0xff);
    for cut in [last.end, last.start, last.start + 20, frames[3].start + 100] {
        let found = skipped("a.flac", &many[..cut]).unwrap().0;
        assert!(found.n_samples() <= n_samples, "{cut}: {}", found.n_samples());
    }
}

#[test]
fn a_flac_that_begins_in_the_middle_of_a_recording_is_read_as_it_is() {
    let bytes = clip(FLAC[0]);
    let frames = frames(&bytes);
    let longest = longest(&bytes);
    let whole = read("a.flac", bytes.clone(), &own_rate()).unwrap();
    let mut head = bytes[..frames[0].start].to_vec();
    // Neither a count nor a checksum.
    head[21] &= 0xf0;
    head[22..42].fill(0);
    let later = [&head, &bytes[frames[4].start..]].concat();
    for sound in [read("a.flac", later.clone(), &own_rate()).unwrap(), skipped("a.flac", &later).unwrap().0] {
        assert!(sound.channels[0] == whole.channels[0][4 * longest..]);
    }
}
