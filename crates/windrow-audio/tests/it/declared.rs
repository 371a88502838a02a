//! What a header declares is compared with the bytes: all that is there is read, or an error says what is wrong.

use std::fs;

use windrow_audio::{Decoder, Options, Waveform};
use windrow_core::{Error, Kind};

use crate::logged::{listen, warnings};
use crate::toy::{Stored, object, own_rate, read, sine, testdata, wav, wav_header};

fn clip(name: &str) -> Vec<u8> {
    fs::read(testdata().join(name)).unwrap()
}

fn sound(name: &str, bytes: &[u8]) -> Waveform {
    read(name, bytes, &own_rate()).unwrap()
}

fn refused(name: &str, bytes: &[u8]) -> Error {
    let error = read(name, bytes, &own_rate()).unwrap_err();
    assert_eq!(error.place().file.as_deref(), Some(name), "{error}");
    error
}

fn skipping() -> Options {
    Options { skip_corrupt: true, ..own_rate() }
}

fn joined(parts: &[&Waveform]) -> Vec<Vec<f32>> {
    let of = |channel: usize| parts.iter().flat_map(|w| w.channels[channel].clone()).collect();
    (0..parts[0].n_channels()).map(of).collect()
}

fn put(bytes: &mut [u8], at: usize, part: &[u8]) {
    bytes[at..at + part.len()].copy_from_slice(part);
}

// ---- mp3

/// An encoder's tag in `bytes`: where it says how many frames there are.
fn count_at(bytes: &[u8]) -> usize {
    bytes.windows(4).position(|w| w == b"Info" || w == b"Xing").unwrap() + 8
}

fn counting(name: &str, n_frames: u32) -> Vec<u8> {
    let mut bytes = clip(name);
    let at = count_at(&bytes);
    put(&mut bytes, at, &n_frames.to_be_bytes());
    bytes
}

/// The frames of a clip of 16 kHz and 48 kbit/s without the tags before them: 216 bytes each.
fn frames() -> Vec<u8> {
    let bytes = clip("cards_003.mp3");
    bytes[20 + 216..].to_vec()
}

/// A frame that holds an encoder's tag, made of the first one of a clip.
fn tag_frame(id: &[u8; 4], n_frames: u32, n_bytes: u32, encoder: &[u8]) -> Vec<u8> {
    let mut frame = clip("cards_003.mp3")[20..20 + 216].to_vec();
    frame[4..].fill(0);
    put(&mut frame, 13, id);
    put(&mut frame, 17, &[0, 0, 0, 3]);
    put(&mut frame, 21, &n_frames.to_be_bytes());
    put(&mut frame, 25, &n_bytes.to_be_bytes());
    put(&mut frame, 29, encoder);
    frame
}

#[test]
fn joined_mp3_files_are_read_to_the_end_of_the_last() {
    let one = clip("cards_003.mp3");
    let alone = sound("a.mp3", &one);
    // Tags of players stand between, and one of them holds what looks like frames.
    let mut id3 = b"ID3\x03\0\0\0\0\x08\0".to_vec();
    id3.extend(&one[2_000..3_024]);
    let mut id3v1 = b"TAG".to_vec();
    id3v1.resize(128, 0);
    let ape = [&b"APETAGEX"[..], &2_000_u32.to_le_bytes(), &32_u32.to_le_bytes(), &[0; 16]].concat();
    let lyrics = b"LYRICSBEGININD0000200LYR00010hello wrld000039LYRICS200".to_vec();
    for between in [vec![], id3, id3v1, ape, lyrics, vec![0; 700]] {
        let bytes = [&one[..], &between, &one, &between, &one].concat();
        assert!(
            sound("a.mp3", &bytes).channels == joined(&[&alone, &alone, &alone]),
            "{} bytes",
            between.len()
        );
    }
    // Without tags of encoders, frames are all there is.
    let bare = sound("a.mp3", &frames());
    let twice = sound("a.mp3", &[frames(), frames()].concat());
    assert_eq!(twice.n_samples(), 2 * bare.n_samples());
    // One that was cut short is told of, wherever it is.
    let cut = [&one[..one.len() - 5 * 216], &one[..]].concat();
    let error = refused("a.mp3", &cut);
    assert_eq!(error.message(), "the encoder's tag declares 45 frames, 40 follow it");
    assert_eq!(read("a.mp3", cut, &skipping()).unwrap().n_samples(), 40 * 576 + alone.n_samples() - 1_105);
}

#[test]
fn frames_beyond_the_count_of_an_mp3_are_read() {
    listen();
    let n_frames = 45;
    let whole = sound("a.mp3", &clip("cards_003.mp3"));
    for declared in [0, 1, 7, n_frames - 1] {
        let name = format!("counts-{declared}.mp3");
        let found = sound(&name, &counting("cards_003.mp3", declared));
        // What is padding is not known then; what comes before the sound is.
        assert_eq!(found.n_samples(), n_frames as usize * 576 - 1_105);
        assert!(found.channels[0][..whole.n_samples()] == whole.channels[0]);
        assert_eq!(
            warnings(&name),
            [format!(
                "{name}: the encoder's tag at byte 20 declares {declared} frames, {n_frames} follow it: all are read"
            )]
        );
        assert!(sound(&name, &counting("cards_003.mp3", n_frames)) == whole);
    }
    // A stream that went on behind its tag.
    let more = [clip("cards_003.mp3"), frames()].concat();
    assert_eq!(sound("a.mp3", &more).n_samples(), 2 * 45 * 576 - 1_105);
    let error = refused("a.mp3", &counting("cards_003.mp3", 46));
    assert_eq!(error.message(), "the encoder's tag declares 46 frames, 45 follow it");
    assert_eq!(error.place().byte, Some(20));
}

#[test]
fn a_count_is_no_end_whoever_wrote_it() {
    let frames = frames();
    let n_samples = 45 * 576;
    let n_bytes = 46 * 216;
    for (id, encoder) in
        [(b"Xing", &b""[..]), (b"Info", b""), (b"Xing", b"Gogo"), (b"Info", b"Lavf59.27\0\0")]
    {
        for declared in [0, 10, 44, 45, 46] {
            let bytes = [tag_frame(id, declared, n_bytes, encoder), frames.clone()].concat();
            let found = read("a.mp3", bytes, &own_rate());
            match found {
                Ok(found) => assert!(found.n_samples() + 529 >= n_samples, "{declared} {encoder:?}"),
                Err(e) => {
                    assert!(declared == 46 && encoder.starts_with(b"Lavf"), "{declared} {encoder:?}: {e}")
                }
            }
        }
        // A file that was cut short has less of everything than its tag says.
        let cut = [tag_frame(id, 45, n_bytes, encoder), frames[..20 * 216].to_vec()].concat();
        assert_eq!(refused("a.mp3", &cut).message(), "the encoder's tag declares 45 frames, 20 follow it");
    }
    // Fraunhofer's.
    for declared in [0_u32, 10, 45, 46] {
        let mut tag = tag_frame(b"\0\0\0\0", 0, 0, b"");
        tag[4..].fill(0);
        put(&mut tag, 36, b"VBRI\0\x01");
        put(&mut tag, 46, &n_bytes.to_be_bytes());
        put(&mut tag, 50, &declared.to_be_bytes());
        let found = sound("a.mp3", &[tag, frames.clone()].concat());
        assert_eq!(found.n_samples(), n_samples, "{declared}");
    }
}

#[test]
fn the_length_of_an_mp3_is_told_only_where_its_bytes_agree() {
    let told = |bytes: Vec<u8>| Decoder::new(object("a.mp3", bytes), &own_rate()).unwrap().n_samples();
    let one = clip("cards_003.mp3");
    let n_samples = sound("a.mp3", &one).n_samples() as u64;
    assert_eq!(told(one.clone()), Some(n_samples));
    assert_eq!(told([one.clone(), one.clone()].concat()), None);
    assert_eq!(told(counting("cards_003.mp3", 0)), None);
    assert_eq!(told(frames()), None);
}

#[test]
fn a_stream_of_mp3_that_changes_its_rate_of_bits_is_read_whole() {
    // Small frames first: a length that is guessed from them is too long, and from large ones too short.
    let small = frames();
    let large: Vec<u8> = small
        .chunks_exact(216)
        .flat_map(|frame| {
            // The same sound in a frame of twice as many bytes, the rest of it unused.
            let mut frame = frame.to_vec();
            frame[2] = frame[2] & 0x0f | 0xa0;
            frame.resize(432, 0);
            frame
        })
        .collect();
    let n_samples = 45 * 576;
    for bytes in [[&small[..], &large].concat(), [&large[..], &small].concat()] {
        assert_eq!(sound("a.mp3", &bytes).n_samples(), 2 * n_samples);
    }
}

#[test]
fn what_is_between_the_frames_of_an_mp3_is_told_of() {
    listen();
    let frames = frames();
    let whole = sound("a.mp3", &frames);
    let cut = refused("a.mp3", &frames[..frames.len() - 30]);
    assert_eq!(cut.message(), "the file ends in the middle of frame 44");
    let found = read("a.mp3", &frames[..frames.len() - 30], &skipping()).unwrap();
    assert_eq!(found.n_samples(), 44 * 576);
    // A header that was damaged, so that its frame is not found.
    let mut damaged = frames.clone();
    damaged[216 * 20] = 0;
    let error = refused("a.mp3", &damaged);
    assert_eq!(error.message(), "216 bytes between frames are not MP3, behind 20 frames");
    assert_eq!((error.kind(), error.place().byte), (Kind::Corrupt, Some(216 * 20)));
    let mut decoder = Decoder::new(object("a.mp3", damaged), &skipping()).unwrap();
    let n_samples: usize = decoder.by_ref().map(|b| b.unwrap().n_samples()).sum();
    assert_eq!((n_samples, decoder.n_corrupt()), (44 * 576, 1));
    // Bytes before the first frame, and after the last one, are not counted as a missing frame.
    let around = [&[7; 1_000], &frames[..], &[9; 300]].concat();
    assert!(sound("around.mp3", &around) == whole);
    assert_eq!(
        warnings("around.mp3"),
        [
            "around.mp3: 1000 bytes before the first frame, at byte 0, are not MP3".to_string(),
            format!(
                "around.mp3: 300 bytes behind the last frame, at byte {}, are not MP3",
                1_000 + frames.len()
            ),
        ]
    );
    let error = refused("a.mp3", &[clip("cards_003.mp3"), clip("ru_agent_pass.mp3")].concat());
    assert_eq!(error.message(), "the sound changes from 1 channels at 16000 Hz to 1 at 8000 Hz");
    assert_eq!(error.kind(), Kind::Unsupported);
}

#[test]
fn the_size_of_a_tag_takes_no_frames() {
    listen();
    let frames = frames();
    let whole = sound("a.mp3", &frames);
    let item = [&8_u32.to_le_bytes()[..], &[0; 4], b"Artist\0somebody"].concat();
    let end = |size: u32, flags: u32| {
        [
            &b"APETAGEX"[..],
            &2_000_u32.to_le_bytes(),
            &size.to_le_bytes(),
            &1_u32.to_le_bytes(),
            &flags.to_le_bytes(),
            &[0; 8],
        ]
        .concat()
    };
    let own = item.len() as u32 + 32;
    for (name, tag) in [
        ("with.mp3", [end(own, 0xa000_0000), item.clone(), end(own, 0x8000_0000)].concat()),
        ("without.mp3", [item.clone(), end(own, 0)].concat()),
        ("more.mp3", [item.clone(), end(5_000, 0)].concat()),
        ("more-with.mp3", [end(own, 0xa000_0000), item.clone(), end(5_000, 0x8000_0000)].concat()),
    ] {
        assert!(sound(name, &[&frames[..], &tag].concat()) == whole, "{name}");
    }
    assert_eq!(warnings("more.mp3").len(), 1);
    // A tag at the front that declares more than it is: nobody knows where it ends, but the log says that something is missing.
    let before = [&b"ID3\x03\0\0\0\0\x0a\0"[..], &[0; 100], &frames].concat();
    assert!(sound("front.mp3", &before).n_samples() < whole.n_samples());
    assert!(warnings("front.mp3")[0].contains("bytes before the first frame"));
}

// ---- wav

const UNKNOWN: u32 = u32::MAX;

fn sized(riff: u32, data: u32) -> Vec<u8> {
    let mut file = wav(16_000, 2, Stored::Pcm16, &sine(16_000, 440.0, 1_000));
    put(&mut file, 4, &riff.to_le_bytes());
    put(&mut file, 40, &data.to_le_bytes());
    file
}

#[test]
fn sizes_of_a_wav_that_were_never_filled_in_mean_its_end() {
    listen();
    let wanted = sound("a.wav", &sized(2_036, 2_000));
    for data in [
        0x7fff_ffff,
        2_000_000_000,
        0x8000_0000,
        0xffff_ff00,
        0x4000_0000,
        UNKNOWN,
        0x7fff_f000,
        0,
        2_001,
        9_999,
    ] {
        for riff in [2_036, 0, 36, 4, UNKNOWN, data.saturating_add(36)] {
            let name = format!("{riff:x}-{data:x}.wav");
            // Both together, and not large, are those of a file that was longer.
            if data == 9_999 && riff == data + 36 {
                continue;
            }
            assert_eq!(sound(&name, &sized(riff, data)), wanted, "{name}");
            let is_told = !matches!(data, 0 | UNKNOWN | 0x7fff_f000);
            let warning = format!(
                "{name}: the header declares {data} bytes of samples, the file holds 2000: these are read"
            );
            assert_eq!(warnings(&name), if is_told { vec![warning] } else { vec![] });
        }
    }
    let error = refused("a.wav", &sized(9_999 + 36, 9_999));
    assert_eq!(error.message(), "the header declares 9999 bytes of samples, the file holds 2000");
    assert_eq!((error.kind(), error.place().byte), (Kind::Corrupt, Some(2_044)));
    let mut decoder = Decoder::new(object("a.wav", sized(9_999 + 36, 9_999)), &skipping()).unwrap();
    assert_eq!(decoder.by_ref().map(|b| b.unwrap().n_samples()).sum::<usize>(), 500);
    assert_eq!(decoder.n_corrupt(), 1);
    assert_eq!(Decoder::new(object("a.wav", sized(0, UNKNOWN)), &own_rate()).unwrap().n_samples(), Some(500));
}

#[test]
fn the_size_of_the_whole_of_a_wav_decides_nothing() {
    let wanted = sound("a.wav", &sized(2_036, 2_000));
    for riff in [0, 1, 4, 10, 36, 1_000, 2_035, 2_037, 4_000, 0x7fff_ffff, 0x8000_0024, UNKNOWN] {
        assert_eq!(sound("a.wav", &sized(riff, 2_000)), wanted, "{riff}");
    }
}

#[test]
fn what_follows_the_samples_of_a_wav_is_a_chunk_or_an_error() {
    let wanted = sound("a.wav", &sized(2_036, 2_000));
    let list = b"LIST\x0c\0\0\0INFOISFT\0\0\0\0";
    let id3 = b"ID3\x03\0\0\0\0\0\x04abcd";
    for behind in [&b""[..], list, &[&list[..], list].concat(), id3, &[0; 300], b"\r\n", b"LIST\xff\xff"] {
        for size in [2_000_u32, UNKNOWN] {
            let bytes = [&sized(2_036, size)[..], behind].concat();
            // Who does not say where the samples end has them all.
            if size == UNKNOWN && !behind.is_empty() {
                assert!(sound_or_cut(&bytes) >= 500)
            } else {
                assert_eq!(sound("a.wav", &bytes), wanted, "{behind:?}")
            }
        }
    }
    // Samples that the header does not count, as of a recorder that was stopped.
    for (riff, data) in [(2_036, 1_000), (1_036, 1_000), (UNKNOWN, 4)] {
        let error = refused("a.wav", &sized(riff, data));
        let left = 2_000 - data;
        assert_eq!(
            error.message(),
            format!(
                "the header declares {data} bytes of samples, and {left} more follow that are in no chunk"
            )
        );
        assert_eq!((error.kind(), error.place().byte), (Kind::Corrupt, Some(44 + u64::from(data))));
        let found = read("a.wav", sized(riff, data), &skipping()).unwrap();
        assert_eq!(found.n_samples() as u32, data / 4);
    }
    // Joined files.
    let twice = [sized(2_036, 2_000), sized(2_036, 2_000)].concat();
    for options in [own_rate(), skipping()] {
        let error = read("a.wav", twice.clone(), &options).unwrap_err();
        assert_eq!((error.kind(), error.place().byte), (Kind::Unsupported, Some(2_044)));
        assert!(error.message().starts_with("a second wav file"), "{error}");
    }
}

fn sound_or_cut(bytes: &[u8]) -> usize {
    read("a.wav", bytes, &own_rate()).map_or_else(
        |e| {
            assert!(e.message().contains("into a frame of 4"), "{e}");
            500
        },
        |sound| sound.n_samples(),
    )
}

#[test]
fn chunks_before_the_samples_of_a_wav_may_be_any() {
    let plain = sized(2_036, 2_000);
    let wanted = sound("a.wav", &plain);
    let fact = [&b"fact\x04\0\0\0"[..], &7_u32.to_le_bytes()].concat();
    let long_fact = [&b"fact\x0c\0\0\0"[..], &[0; 12]].concat();
    // An odd size, with the byte that makes it even and without.
    let odd = b"bext\x03\0\0\0abc\0".to_vec();
    let unpadded = b"bext\x03\0\0\0abc".to_vec();
    let empty = b"LIST\0\0\0\0".to_vec();
    for before in [fact, long_fact, odd, unpadded, empty] {
        let bytes = [&plain[..36], &before, &plain[36..]].concat();
        assert_eq!(sound("a.wav", &bytes), wanted, "{before:?}");
    }
    for (bytes, message) in [
        (plain[..30].to_vec(), "the file ends before its samples (no chunk \"data\")"),
        (
            [&plain[..12], &plain[36..]].concat(),
            "the samples come before the chunk that says what they are (\"fmt \")",
        ),
    ] {
        let error = refused("a.wav", &bytes);
        assert_eq!((error.kind(), error.message()), (Kind::Corrupt, message));
    }
}

#[test]
fn samples_of_twelve_bits_lie_in_the_upper_ones_of_sixteen() {
    let plain = sized(2_036, 2_000);
    let mut twelve = plain.clone();
    put(&mut twelve, 34, &12_u16.to_le_bytes());
    // As ffmpeg 5.1 and sox 14.4 read them.
    assert_eq!(sound("a.wav", &twelve), sound("a.wav", &plain));
    // 20 bits in three bytes, and frames that do not fit.
    let mut twenty = wav_header(16_000, 1, 1, 3, 9);
    put(&mut twenty, 34, &20_u16.to_le_bytes());
    twenty.extend([0, 0, 0x40, 0, 0, 0xc0, 0x10, 0, 0]);
    assert_eq!(sound("a.wav", &twenty).channels, [[0.5, -0.5, 16.0 / 8_388_608.0]]);
    for (tag, bits) in [(1_u16, 12_u16), (1, 40), (1, 0), (3, 16)] {
        let mut strange = plain.clone();
        put(&mut strange, 20, &tag.to_le_bytes());
        put(&mut strange, 32, &6_u16.to_le_bytes());
        put(&mut strange, 34, &bits.to_le_bytes());
        let error = refused("a.wav", &strange);
        assert_eq!(error.kind(), Kind::Unsupported);
        assert_eq!(
            error.message(),
            format!(
                "samples of {bits} bits in frames of 6 bytes; 1 to 32 bits, and floats of 32 and 64, are read"
            )
        );
        assert_eq!(error.hint_text(), Some("convert it: ffmpeg -i IN OUT.flac"));
    }
    for (tag, what) in
        [(0x55_u16, "MP3 in wav is not read"), (0x1234, "sound of the format 0x1234 in wav is not read")]
    {
        let mut other = plain.clone();
        put(&mut other, 20, &tag.to_le_bytes());
        assert_eq!(refused("a.wav", &other).message(), what);
    }
}

#[test]
fn samples_in_wider_slots_are_refused() {
    // (format, channels, bits, bytes of a sample): as ALSA's S24_LE, Cool Edit's 24 bits and others are stored.
    for (tag, n_channels, bits, size) in [
        (1_u16, 2_u16, 24_u16, 4_u16),
        (1, 1, 24, 4),
        (1, 1, 16, 4),
        (1, 1, 32, 8),
        (3, 2, 64, 4),
        (0xfffe, 2, 24, 4),
    ] {
        let data = [0, 1, 2, 3].repeat(2 * usize::from(size * n_channels));
        let mut bytes = wav_header(16_000, n_channels, tag, size, data.len() as u32);
        put(&mut bytes, 34, &bits.to_le_bytes());
        if tag == 0xfffe {
            // PCM, in the long form, of which all 24 bits count.
            let long =
                [&[22, 0, 24, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 16, 0][..], b"\x80\0\0\xaa\0\x38\x9b\x71"];
            bytes[16] = 40;
            bytes.splice(36..36, long.concat());
        }
        bytes.extend(&data);
        let (frame, packed) = (size * n_channels, bits / 8 * n_channels);
        let channels = if n_channels == 1 { "one channel" } else { "2 channels" };
        for options in [own_rate(), skipping()] {
            let error = read("a.wav", bytes.clone(), &options).unwrap_err();
            assert_eq!(
                error.message(),
                format!(
                    "samples of {bits} bits in frames of {frame} bytes are not read; those of {channels} take {packed}"
                )
            );
            assert_eq!((error.kind(), error.place().byte), (Kind::Unsupported, Some(20)));
        }
        // Where one of the two sizes is another, or none, the samples are packed.
        for (at, number) in [(28, u32::from(packed) * 16_000), (28, 0), (32, u32::from(bits) << 16)] {
            let mut slip = bytes.clone();
            put(&mut slip, at, &number.to_le_bytes());
            assert_eq!(sound("a.wav", &slip).n_samples(), data.len() / usize::from(packed), "{bits} {at}");
        }
    }
}

// ---- aac, flac, ogg, m4a

#[test]
fn a_stream_of_aac_is_whole_or_an_error() {
    listen();
    let clip = clip("cards_004_adts.aac");
    let whole = sound("a.aac", &clip);
    assert_eq!(whole.n_samples(), 26 * 1_024);
    assert_eq!(
        Decoder::new(object("a.aac", clip.clone()), &own_rate()).unwrap().n_samples(),
        Some(26 * 1_024)
    );
    let id3 = b"ID3\x04\0\0\0\0\0\x04abcd";
    for between in [&b""[..], id3] {
        let twice = sound("a.aac", &[&clip[..], between, &clip].concat());
        assert_eq!(twice.n_samples(), 2 * whole.n_samples());
    }
    assert!(sound("a.aac", &[&clip[..], &[0; 100]].concat()) == whole);
    assert!(sound("more.aac", &[&clip[..], &[7; 100]].concat()) == whole);
    assert_eq!(warnings("more.aac").len(), 1);
    // A header that was damaged, so that its frame is not found.
    let size = |at: usize| {
        usize::from(clip[at + 3] & 3) << 11 | usize::from(clip[at + 4]) << 3 | usize::from(clip[at + 5] >> 5)
    };
    let second = size(0);
    let mut damaged = clip.clone();
    damaged[second] = 0;
    let error = refused("a.aac", &damaged);
    assert_eq!(
        error.message(),
        format!("{} bytes between frames are not AAC, behind 1 frames", size(second))
    );
    assert_eq!((error.kind(), error.place().byte), (Kind::Corrupt, Some(second as u64)));
    assert!(read("a.aac", damaged, &skipping()).unwrap().n_samples() < whole.n_samples());
    assert_eq!(
        refused("a.aac", &clip[..clip.len() - 1]).message(),
        "the file ends in the middle of frame 25"
    );
}

#[test]
fn samples_beyond_the_count_of_a_flac_are_read() {
    listen();
    let clip = clip("cards_002.flac");
    let whole = sound("a.flac", &clip);
    let counting = |n: u64| {
        let mut bytes = clip.clone();
        bytes[21] = bytes[21] & 0xf0 | (n >> 32) as u8;
        put(&mut bytes, 22, &(n as u32).to_be_bytes());
        bytes
    };
    for declared in [0, 1_000, whole.n_samples() as u64 - 1] {
        let name = format!("counts-{declared}.flac");
        assert!(sound(&name, &counting(declared)) == whole);
        let told = warnings(&name);
        assert_eq!(told.len(), usize::from(declared > 0), "{told:?}");
        assert!(told.iter().all(|w| w.contains(&format!("declares {declared} samples"))), "{told:?}");
    }
    assert_eq!(refused("a.flac", &counting(whole.n_samples() as u64 + 1)).kind(), Kind::Corrupt);
    // As a stream has it that was written to a pipe: neither a count nor a checksum.
    let mut unknown = counting(0);
    unknown[26..42].fill(0);
    assert!(sound("a.flac", &unknown) == whole);
    for one in [clip.clone(), unknown] {
        let error = refused("a.flac", &[one.clone(), one.clone()].concat());
        assert_eq!(error.message(), "a second stream of flac follows the first");
        assert_eq!((error.kind(), error.place().byte), (Kind::Unsupported, Some(one.len() as u64)));
    }
}

#[test]
fn an_ogg_ends_where_its_packets_do() {
    let clip = clip("cards_005.ogg");
    let n_samples = sound("a.ogg", &clip).n_samples() as i64;
    // The position of the last page, with the checksum that belongs to it.
    let ending = |position: i64| {
        let mut bytes = clip.clone();
        let at = bytes.windows(4).rposition(|w| w == b"OggS").unwrap();
        put(&mut bytes, at + 6, &position.to_le_bytes());
        put(&mut bytes, at + 22, &[0; 4]);
        let sum = ogg_checksum(&bytes[at..]);
        put(&mut bytes, at + 22, &sum.to_le_bytes());
        bytes
    };
    assert_eq!(sound("a.ogg", &ending(n_samples)), sound("a.ogg", &clip));
    for position in [0, n_samples / 2] {
        let error = refused("a.ogg", &ending(position));
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(error.message().contains("packets are past the position"), "{error}");
    }
    assert!(refused("a.ogg", &ending(n_samples + 5_000)).message().contains("its header promises"));
    for options in [own_rate(), skipping()] {
        let error = read("a.ogg", [clip.clone(), clip.clone()].concat(), &options).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.message().starts_with("a second stream follows the first"), "{error}");
    }
}

fn ogg_checksum(page: &[u8]) -> u32 {
    page.iter().fold(0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 }
        })
    })
}

#[test]
fn durations_of_an_m4a_are_those_of_its_packets() {
    listen();
    let clip = clip("cards_004.m4a");
    let whole = sound("a.m4a", &clip);
    let with = |name: &[u8; 4], offset: usize, value: u32| {
        let mut bytes = clip.clone();
        let at = bytes.windows(4).position(|w| w == name).unwrap() + 4 + offset;
        put(&mut bytes, at, &value.to_be_bytes());
        bytes
    };
    for value in [0, 1_000, 1 << 30] {
        assert!(sound("a.m4a", &with(b"mdhd", 16, value)) == whole, "{value}");
    }
    // Times of fewer packets than have a size, or of more.
    for n in [1, 40] {
        let error = refused("a.m4a", &with(b"stts", 8, n));
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(error.message().starts_with("the index has sizes of 26 packets, and times of "), "{error}");
    }
    // An edit list that plays a part is followed, and told of.
    assert!(sound("all.m4a", &with(b"elst", 8, 1 << 30)).n_samples() >= whole.n_samples());
    assert_eq!(warnings("all.m4a"), Vec::<String>::new());
    let part = sound("part.m4a", &with(b"elst", 8, 100));
    assert!(part.n_samples() < whole.n_samples());
    let told = warnings("part.m4a");
    assert!(told.len() == 1 && told[0].contains("the edit list plays"), "{told:?}");
}
