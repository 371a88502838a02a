//! Bad files: an error with the file's name each time, never a panic, never more memory than the file justifies.

use std::sync::Arc;

use windrow_audio::{Decoder, Options, decode};
use windrow_core::store::Object;
use windrow_core::{Error, Kind, Result};

use crate::logged::{listen, warnings};
use crate::memory::peak_of;
use crate::toy::{Stored, object, one_of_each, own_rate, read, sine, testdata, wav};

fn skipping() -> Options {
    Options { skip_corrupt: true, ..own_rate() }
}

fn refused(name: &str, bytes: Vec<u8>) -> Error {
    let error = read(name, bytes, &own_rate()).unwrap_err();
    assert_eq!(error.place().file.as_deref(), Some(name), "{error}");
    error
}

#[test]
fn a_file_that_was_cut_short_is_an_error_in_every_kind() {
    for (name, whole) in one_of_each() {
        for part in [0.02, 0.3, 0.5, 0.9, 0.999] {
            let cut = whole[..(whole.len() as f64 * part) as usize].to_vec();
            let error = refused(name, cut);
            assert_eq!(error.kind(), Kind::Corrupt, "{name} cut at {part}: {error}");
        }
        // The last two bytes of flac are a checksum; without them all samples are still there, and their MD5 says so.
        let missing = if name.ends_with("flac") { 8 } else { 1 };
        let nearly = refused(name, whole[..whole.len() - missing].to_vec());
        assert_eq!(nearly.kind(), Kind::Corrupt, "{name}: {nearly}");
    }
}

#[test]
fn a_file_that_is_cut_short_while_it_is_decoded_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.wav");
    std::fs::write(&path, wav(16_000, 1, Stored::Pcm16, &sine(16_000, 440.0, 2_000_000))).unwrap();
    let mut decoder = Decoder::open(&path, &own_rate()).unwrap();
    assert!(decoder.next().unwrap().is_ok());
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1_000_000).unwrap();
    let error = decoder.find_map(Result::err).unwrap();
    assert_eq!((error.kind(), error.place().file.as_deref()), (Kind::Stale, path.to_str()), "{error}");
}

#[test]
fn what_is_left_of_a_cut_file_can_be_read_when_allowed() {
    for (name, whole) in one_of_each() {
        // The index of this m4a stands at its end: without it nothing can be found.
        if name.ends_with("m4a") {
            continue;
        }
        let all = read(name, whole.clone(), &own_rate()).unwrap();
        let half = read(name, whole[..whole.len() / 2].to_vec(), &skipping()).unwrap();
        assert!(half.n_samples() > all.n_samples() / 4 && half.n_samples() < all.n_samples(), "{name}");
        let same = half.n_samples() / 2;
        assert!(half.channels[0][..same] == all.channels[0][..same], "{name}");
    }
}

#[test]
fn damaged_bytes_are_found_by_the_checksums_of_flac_and_ogg() {
    for (name, whole) in one_of_each() {
        if !name.ends_with("flac") && !name.ends_with("ogg") {
            continue;
        }
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 64].fill(0x55);
        let error = refused(name, damaged.clone());
        assert_eq!(error.kind(), Kind::Corrupt, "{name}: {error}");
        assert!(error.hint_text().is_some_and(|h| h.contains("skip_corrupt")), "{error}");
        let found = read(name, damaged, &skipping()).unwrap();
        assert!(found.n_samples() > 0, "{name}");
    }
}

#[test]
fn a_packet_that_cannot_be_decoded_becomes_silence_of_its_length() {
    let whole = std::fs::read(testdata().join("cards_004.m4a")).unwrap();
    let all = read("a.m4a", whole.clone(), &own_rate()).unwrap();
    // The sound of this file stands before its index; one packet in the middle is about 400 bytes long. AAC has no
    // checksum: some bytes are an early end of a packet, others cannot be decoded.
    let damaged = (0..=255)
        .map(|byte| {
            let mut damaged = whole.clone();
            let middle = damaged.len() / 2;
            damaged[middle..middle + 400].fill(byte);
            damaged
        })
        .find(|damaged| {
            let read = read("a.m4a", damaged.clone(), &own_rate());
            read.is_err_and(|e| {
                e.message().starts_with("packet ") && e.message().contains("cannot be decoded")
            })
        })
        .expect("some bytes that are no packet");
    let mut decoder = Decoder::new(object("a.m4a", damaged), &skipping()).unwrap();
    let found: usize = decoder.by_ref().map(|b| b.unwrap().n_samples()).sum();
    assert_eq!(found, all.n_samples());
    assert!(decoder.n_corrupt() > 0);
}

#[test]
fn random_damage_is_an_error_or_sound_and_bounded_in_memory() {
    let mut random = fastrand::Rng::with_seed(7);
    for (name, whole) in one_of_each() {
        for round in 0..60 {
            let mut damaged = whole.clone();
            for _ in 0..random.usize(1..20) {
                // Every other round in the headers, where the claims are.
                let at = random.usize(..if round % 2 == 0 { 300 } else { damaged.len() });
                damaged[at] = random.u8(..);
            }
            if round % 5 == 0 {
                damaged.truncate(random.usize(..damaged.len()));
            }
            let options =
                Options { skip_corrupt: round % 3 == 0, sample_rate_hz: None, ..Options::default() };
            let (peak, _) = peak_of(|| drained(name, damaged, &options));
            assert!(peak < 16 << 20, "{name} round {round}: {peak} bytes");
        }
    }
}

// Block by block, so that what is counted is the decoder's own memory.
fn drained(name: &str, bytes: Vec<u8>, options: &Options) -> Result<usize> {
    let mut n_samples = 0;
    for block in Decoder::new(object(name, bytes), options)?.take(10_000) {
        n_samples += block?.n_samples();
    }
    Ok(n_samples)
}

#[test]
fn claims_larger_than_the_file_take_no_memory() {
    let mut flac = std::fs::read(testdata().join("cards_002.flac")).unwrap();
    // 36 bits of samples, all ones.
    flac[21] |= 0x0f;
    flac[22..26].fill(0xff);
    // A chunk before the samples; sizes of samples are told of in declared.rs.
    let mut wav = wav(44_100, 2, Stored::Pcm16, &[0.1; 200]);
    wav[16..20].copy_from_slice(&0x7fff_fff0_u32.to_le_bytes());
    let m4a = std::fs::read(testdata().join("cards_004.m4a")).unwrap();
    let mut files = vec![("a.flac", flac), ("a.wav", wav)];
    // The number of entries in each table of the index.
    for table in [b"stsz", b"stts", b"stsc", b"stco", b"elst"] {
        let mut false_table = m4a.clone();
        let at = false_table.windows(4).position(|w| w == table).unwrap();
        let count = at + if table == b"stsz" { 12 } else { 8 };
        false_table[count..count + 4].copy_from_slice(&0x7fff_ffff_u32.to_be_bytes());
        files.push(("a.m4a", false_table));
    }
    for (name, file) in files {
        let (peak, error) = peak_of(|| drained(name, file, &own_rate()).unwrap_err());
        assert!(peak < 8 << 20, "{peak} bytes: {error}");
        assert_eq!(error.place().file.as_deref(), Some(name), "{error}");
    }
}

#[test]
fn a_file_without_samples_is_an_error() {
    let error = refused("none.wav", wav(16_000, 1, Stored::Pcm16, &[]));
    assert_eq!((error.kind(), error.message()), (Kind::Corrupt, "the file holds no samples"));
    assert_eq!(refused("none.mp3", Vec::new()).kind(), Kind::Corrupt);
    let tag_only = b"ID3\x04\0\0\0\0\0\x02\0\0".to_vec();
    assert!(refused("none.mp3", tag_only).message().contains("empty but for tags"));
}

#[test]
fn eight_channels_are_refused_by_number() {
    let error = refused("many.wav", wav(48_000, 8, Stored::Pcm16, &[0.0; 8_000]));
    assert_eq!(error.kind(), Kind::Unsupported);
    assert_eq!(error.message(), "the sound has 8 channels; one and two are read");
    assert!(error.hint_text().unwrap().contains("-ac 2"));
}

#[test]
fn what_is_not_a_number_is_named_by_sample_and_channel() {
    for (bad, text) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut samples = vec![0.0; 10_000];
        samples[2 * 3_000 + 1] = bad;
        let error = refused("bad.wav", wav(44_100, 2, Stored::Float, &samples));
        assert_eq!(error.message(), format!("sample 3000 of channel 1 is {text}"));
    }
}

#[test]
fn a_number_that_would_become_infinite_at_another_rate_is_refused() {
    for loud in [3e38, -2e20] {
        let mut samples = vec![0.0; 10_000];
        samples[3_000] = loud;
        let bytes = wav(16_000, 1, Stored::Float, &samples);
        for sample_rate_hz in [None, Some(44_100), Some(8_000)] {
            for skip_corrupt in [false, true] {
                let options = Options { sample_rate_hz, skip_corrupt, ..Options::default() };
                let error = read("loud.wav", bytes.clone(), &options).unwrap_err();
                assert_eq!(
                    (error.kind(), error.message()),
                    (Kind::Corrupt, &*format!("sample 3000 of channel 0 is {loud:?}"))
                );
            }
        }
    }
    // Integers that were stored as floats.
    let samples: Vec<f32> = sine(16_000, 440.0, 10_000).iter().map(|s| s * 2e9).collect();
    let sound = read("whole.wav", wav(16_000, 1, Stored::Float, &samples), &Options::default()).unwrap();
    assert!(sound.channels.iter().flatten().all(|s| s.is_finite()));
}

#[test]
fn damage_within_a_packet_is_corrupt_whatever_the_codec_calls_it() {
    let (_, whole) = one_of_each().into_iter().find(|(name, _)| name.ends_with(".m4a")).unwrap();
    let mut seen = 0;
    for at in (0..whole.len()).step_by(97) {
        for value in [0, 0xff] {
            let mut bytes = whole.clone();
            bytes[at..].iter_mut().take(4).for_each(|byte| *byte = value);
            if let Err(error) = read("a.m4a", bytes, &own_rate()) {
                assert_ne!(error.kind(), Kind::Io, "byte {at}: {error}");
                seen += 1;
            }
        }
    }
    assert!(seen > 0);
}

#[test]
fn a_wrong_name_is_read_by_content_with_a_warning() {
    listen();
    for (name, whole) in one_of_each() {
        let name = &format!("named-{name}");
        let wanted = read(name, whole.clone(), &own_rate()).unwrap();
        let other = format!("misnamed-{name}.txt");
        assert!(read(&other, whole, &own_rate()).unwrap() == wanted, "{name}");
        let kind = name.rsplit('.').next().unwrap();
        assert_eq!(warnings(&other), [format!("{other}: the name ends in .txt, the content is {kind}")]);
        assert!(warnings(name).is_empty());
    }
}

#[test]
fn other_kinds_of_files_are_named() {
    let opus = std::fs::read(testdata().join("cards_001_opus.ogg")).unwrap();
    for (bytes, kind, text) in [
        (opus, Kind::Unsupported, "Opus in ogg is not read"),
        (b"FORM\0\0\0\x10AIFF".to_vec(), Kind::Unsupported, "an AIFF file is not read"),
        (
            b"RF64\xff\xff\xff\xffWAVE".to_vec(),
            Kind::Unsupported,
            "a wav file of more than 4 GiB (RF64) is not read",
        ),
        (b"\xff\xfd\x90\0".to_vec(), Kind::Unsupported, "MPEG audio of layer I or II is not read"),
        (
            b"<!DOCTYPE html>".to_vec(),
            Kind::Unrecognised,
            "not a sound file that is read: the first bytes are 3c 21 44 4f 43 54 59 50",
        ),
    ] {
        let error = refused("some.file", bytes);
        assert_eq!((error.kind(), error.message()), (kind, text));
    }
    // Frames are looked for behind what stands first in an .mp3; in this one there are none.
    assert_eq!(refused("page.mp3", b"<!DOCTYPE html>".repeat(100)).kind(), Kind::Corrupt);
}

#[test]
fn missing_files_and_folders_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = decode(folder.path().join("none.wav"), &Options::default()).unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound);
    assert!(missing.place().file.as_deref().unwrap().ends_with("none.wav"));
    assert_eq!(decode(folder.path(), &Options::default()).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn rates_that_nobody_records_in_are_refused() {
    for rate in [0, 10, 4_000_000_000] {
        let mut file = wav(16_000, 1, Stored::Pcm16, &[0.1; 100]);
        file[24..28].copy_from_slice(&u32::to_le_bytes(rate));
        let error = refused("rate.wav", file);
        assert!(matches!(error.kind(), Kind::Unsupported | Kind::Corrupt), "{error}");
    }
}

#[test]
fn a_panic_below_is_an_error_here() {
    // Stands for a bug in a codec: it happens in the codec's call.
    struct Trap(Vec<u8>);
    impl Object for Trap {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }
        fn name(&self) -> &str {
            "trap.wav"
        }
        fn modified_ns(&self) -> Option<u64> {
            None
        }
        fn read<'a>(&'a self, start: u64, size: usize, _: &'a mut Vec<u8>) -> Result<&'a [u8]> {
            let end = start as usize + size;
            // The end is looked at for tags first, and that is no codec's doing.
            assert!(!(100_000..300_000).contains(&end), "attempt to subtract with overflow");
            Ok(&self.0[start as usize..end])
        }
    }
    let file = wav(16_000, 1, Stored::Pcm16, &vec![0.1; 200_000]);
    let decoder = Decoder::new(Arc::new(Trap(file)), &own_rate()).unwrap();
    let blocks: Vec<Result<usize>> = decoder.map(|b| b.map(|b| b.n_samples())).collect();
    let error = blocks.last().unwrap().as_ref().unwrap_err();
    assert!(blocks.len() > 1, "what lies before the panic came out");
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.message().contains("gave up while reading a packet: attempt to subtract"), "{error}");
    assert_eq!(error.place().file.as_deref(), Some("trap.wav"));
}

#[test]
fn what_the_store_says_comes_through_the_codec() {
    struct Gone(Vec<u8>);
    impl Object for Gone {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }
        fn name(&self) -> &str {
            "gone.wav"
        }
        fn modified_ns(&self) -> Option<u64> {
            None
        }
        fn read<'a>(&'a self, start: u64, size: usize, _: &'a mut Vec<u8>) -> Result<&'a [u8]> {
            let end = start as usize + size;
            if (100_000..300_000).contains(&end) {
                Err(Error::new(Kind::Io, "the mount went away").at("gone.wav").byte(start))
            } else {
                Ok(&self.0[start as usize..end])
            }
        }
    }
    let file = wav(16_000, 1, Stored::Pcm16, &vec![0.1; 200_000]);
    let error = windrow_audio::decode_object(Arc::new(Gone(file)), &own_rate()).unwrap_err();
    assert_eq!((error.kind(), error.message()), (Kind::Io, "the mount went away"));
}
