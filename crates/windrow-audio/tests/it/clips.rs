//! Real clips against what ffmpeg 5.1 makes of them (testdata/audio/make.py).

use std::fs;

use serde_json::Value;
use windrow_audio::{Decoder, Options, Waveform, decode};
use windrow_core::Kind;

use crate::toy::{self, Stored, own_rate, read, sine, snr_db, testdata, wav, wav_header};

fn expected() -> serde_json::Map<String, Value> {
    serde_json::from_slice(&fs::read(testdata().join("expected.json")).unwrap()).unwrap()
}

// The samples of an .npy file of little-endian 32-bit floats, `[channels, 2048]`.
fn recorded(name: &str) -> Vec<Vec<f32>> {
    let bytes = fs::read(testdata().join(format!("expected/{name}.npy"))).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let numbers: Vec<f32> =
        bytes[start..].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    numbers.chunks(2_048).map(<[f32]>::to_vec).collect()
}

#[test]
fn every_clip_has_rate_channels_and_length_of_its_reference() {
    for (name, wanted) in expected() {
        let found = decode(testdata().join(&name), &own_rate()).unwrap();
        assert_eq!(u64::from(found.sample_rate_hz), wanted["sample_rate_hz"], "{name}");
        assert_eq!(found.n_channels() as u64, wanted["channels"], "{name}");
        // ffmpeg 5.1 leaves the encoder's padding at the end of AAC; the file itself says where the sound ends.
        let n_samples = match name.as_str() {
            "cards_004.m4a" => 24_864,
            "ru_all_circuits_busy_now.m4a" => 18_855,
            "chan3_44k.m4a" => 44_100,
            // It also leaves out the last block of a stream with one page; the page says 48,000.
            "chan3_48k.ogg" => 48_000,
            _ => wanted["samples"].as_u64().unwrap() as usize,
        };
        assert_eq!(found.n_samples(), n_samples, "{name}");
        assert!(found.channels.iter().all(|c| c.len() == n_samples), "{name}");
    }
}

#[test]
fn what_is_written_is_read_again_and_cut_off_at_full_scale() {
    let channels = vec![vec![0.0, 0.5, 1.5], vec![-1.0, -0.25, 0.000_02]];
    let sound = Waveform { sample_rate_hz: 8_000, channels };
    let again = toy::read("a.wav", sound.to_wav().unwrap(), &own_rate()).unwrap();
    assert_eq!(again.sample_rate_hz, 8_000);
    let full = 32_767.0 / 32_768.0;
    assert_eq!(again.channels, [vec![0.0, 0.5, full], vec![-1.0, -0.25, 1.0 / 32_768.0]]);
    let uneven = Waveform { sample_rate_hz: 8_000, channels: vec![vec![0.0], vec![]] };
    assert!(uneven.to_wav().is_err());
}

#[test]
fn what_would_not_be_read_again_is_not_written() {
    let refused = |sample_rate_hz, channels: &[Vec<f32>]| {
        let error = Waveform { sample_rate_hz, channels: channels.to_vec() }.to_wav().unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        error.message().to_string()
    };
    for rate in [0, 999, 768_001, 1_000_000_000] {
        let message = format!("a sample rate of {rate} Hz, expected 1000 to 768000 Hz");
        assert_eq!(refused(rate, &[vec![0.0]]), message);
    }
    assert_eq!(refused(8_000, &[vec![0.0, 0.5], vec![0.0, f32::NAN]]), "sample 1 of channel 1 is NaN");
}

#[test]
fn lossless_clips_are_equal_to_the_bit() {
    let mut seen = 0;
    for (name, wanted) in expected() {
        let Some(wanted) = wanted.get("sha256").and_then(Value::as_str) else { continue };
        let found = decode(testdata().join(&name), &own_rate()).unwrap();
        let bytes: Vec<u8> = found.channels.iter().flatten().flat_map(|s| s.to_le_bytes()).collect();
        assert_eq!(sha256(&bytes), wanted, "{name}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn lossy_clips_are_equal_but_for_rounding() {
    let mut seen = 0;
    for (name, wanted) in expected() {
        if wanted.get("sha256").is_some() {
            continue;
        }
        let found = decode(testdata().join(&name), &own_rate()).unwrap();
        let middle = wanted["samples"].as_u64().unwrap() as usize / 2;
        for (channel, wanted) in found.channels.iter().zip(recorded(&name)) {
            let some = [&channel[..1_024], &channel[middle..middle + 1_024]].concat();
            let db = snr_db(&wanted, &some);
            assert!(db > 90.0, "{name}: {db:.1} dB");
        }
        seen += 1;
    }
    assert_eq!(seen, 11);
}

#[test]
fn blocks_joined_are_the_whole() {
    for name in expected().keys() {
        for options in [own_rate(), Options::default()] {
            let path = testdata().join(name);
            let whole = decode(&path, &options).unwrap();
            let mut decoder = Decoder::open(&path, &options).unwrap();
            assert_eq!(
                decoder.n_samples().unwrap_or(whole.n_samples() as u64),
                whole.n_samples() as u64,
                "{name}"
            );
            let mut joined = vec![Vec::new(); decoder.n_channels()];
            for block in &mut decoder {
                let block: Waveform = block.unwrap();
                assert!(block.n_samples() > 0, "{name}");
                joined.iter_mut().zip(block.channels).for_each(|(all, block)| all.extend(block));
            }
            assert!(decoder.next().is_none(), "{name}: nothing comes after the end");
            assert!(joined == whole.channels, "{name}");
        }
    }
}

#[test]
fn a_file_says_what_it_is() {
    let found: Vec<String> =
        ["cards_001_24bit.wav", "cards_002.flac", "cards_003.mp3", "cards_004.m4a", "chan3.ogg"]
            .iter()
            .map(|name| {
                let sound = Decoder::open(testdata().join(name), &Options::default()).unwrap().sound();
                format!("{} {} {} {}", sound.container, sound.codec, sound.sample_rate_hz, sound.n_channels)
            })
            .collect();
    assert_eq!(
        found,
        [
            "wav pcm_s24le 16000 1",
            "flac flac 16000 1",
            "mp3 mp3 16000 1",
            "m4a aac 16000 1",
            "ogg vorbis 11025 2"
        ]
    );
}

#[test]
fn one_channel_becomes_two_only_when_asked() {
    let mono = decode(testdata().join("cards_001.wav"), &own_rate()).unwrap();
    assert_eq!(mono.n_channels(), 1);
    let both = mono.clone().stereo();
    assert_eq!(both.channels, [mono.channels[0].clone(), mono.channels[0].clone()]);
    let file = toy::wav(44_100, 2, toy::Stored::Float, &[0.1, -0.1, 0.2, -0.2, 0.3, -0.3]);
    let two = toy::read("two.wav", file, &own_rate()).unwrap();
    assert_eq!(two.channels, [[0.1, 0.2, 0.3], [-0.1, -0.2, -0.3]]);
    assert_eq!(two.clone().stereo(), two);
}

#[test]
fn tags_around_an_mp3_are_no_sound() {
    let clip = fs::read(testdata().join("cards_003.mp3")).unwrap();
    let plain = toy::read("a.mp3", clip.clone(), &own_rate()).unwrap();
    // A tag whose picture holds what looks like frames of sound, and tags of both kinds at the end.
    let picture = clip[1_000..1_300].to_vec();
    let mut tagged = b"ID3\x04\0\0\0\0\x02\x2c".to_vec();
    tagged.extend(&picture);
    tagged.extend(&clip);
    let mut ape =
        [b"APETAGEX".as_slice(), &2000_u32.to_le_bytes(), &332_u32.to_le_bytes(), &[0; 16]].concat();
    ape.splice(0..0, picture);
    tagged.extend(ape);
    tagged.extend(b"TAG");
    tagged.extend([0; 125]);
    assert!(toy::read("a.mp3", tagged, &own_rate()).unwrap() == plain);
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn a_wav_of_unknown_length_goes_to_the_end_of_its_file() {
    let samples = sine(16_000, 440.0, 1_000);
    let known = wav(16_000, 2, Stored::Pcm16, &samples);
    let wanted = read("a.wav", known.clone(), &own_rate()).unwrap();
    let unknown = u32::MAX;
    // (size of the whole, size of the samples), as ffmpeg, sox, and recorders that were stopped leave them.
    for (riff, data) in [
        (unknown, unknown),
        (0, 0),
        (unknown, 0),
        (0, unknown),
        (36, 0),
        (2_036, unknown),
        (0, 2_000),
        (0x7fff_f024, 0x7fff_f000),
    ] {
        let mut file = known.clone();
        file[4..8].copy_from_slice(&u32::to_le_bytes(riff));
        file[40..44].copy_from_slice(&u32::to_le_bytes(data));
        assert_eq!(read("a.wav", file.clone(), &own_rate()).unwrap(), wanted, "{riff:x} {data:x}");
        if data == 2_000 {
            continue;
        }
        // Cut within a frame, and with a tag of a player behind it.
        let error = read("a.wav", file[..file.len() - 1].to_vec(), &own_rate()).unwrap_err();
        assert!(error.message().contains("3 bytes into a frame of 4"), "{error}");
        let allowed = Options { skip_corrupt: true, ..own_rate() };
        let cut = read("a.wav", file[..file.len() - 1].to_vec(), &allowed).unwrap();
        assert_eq!(cut.n_samples(), 499);
        file.extend([&b"TAG"[..], &[0; 125]].concat());
        assert_eq!(read("a.wav", file, &own_rate()).unwrap(), wanted);
    }
    // Samples of three bytes, an odd number of them, made even.
    let mut odd = wav_header(16_000, 1, 1, 3, unknown);
    odd.extend([1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
    assert_eq!(read("a.wav", odd, &own_rate()).unwrap().n_samples(), 3);
    // No samples, and something else behind them, are no unknown length.
    for riff in [36, 36 + 8 + 12] {
        let mut empty = wav_header(16_000, 1, 1, 2, 0);
        empty[4..8].copy_from_slice(&u32::to_le_bytes(riff));
        if riff > 36 {
            empty.extend(*b"LIST\x0c\0\0\0INFOISFT\0\0\0\0");
        }
        let error = read("a.wav", empty, &own_rate()).unwrap_err();
        assert!(error.message().contains("no samples"), "{error}");
    }
}
