//! Weights that are cut, that lie, that are another model's, or that are programs.

use std::fs;
use std::path::Path;

use windrow_core::{Error, Kind};
use windrow_dac::{Codec, Options};

use super::support::fixture;

fn opened(bytes: &[u8]) -> Result<Codec, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights");
    fs::write(&path, bytes).unwrap();
    Codec::open(&path, &Options::default().num_threads(1)).inspect_err(|error| {
        let file = error.place().file.as_deref().unwrap_or_default();
        assert!(file.ends_with("weights"), "names no file: {error}");
    })
}

#[track_caller]
fn refused(bytes: &[u8], kind: Kind, says: &[&str]) {
    let error = opened(bytes).err().unwrap_or_else(|| panic!("opens; wanted {says:?}"));
    assert_eq!(error.kind(), kind, "{error}");
    for word in says {
        assert!(format!("{error:#}").contains(word), "{error}: does not say {word:?}");
    }
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(fixture(name)).unwrap()
}

/// The fixture's `.safetensors` with another header.
fn with_header(change: impl Fn(String) -> String) -> Vec<u8> {
    let all = bytes("small.safetensors");
    let size = u64::from_le_bytes(all[..8].try_into().unwrap()) as usize;
    let header = change(String::from_utf8(all[8..8 + size].to_vec()).unwrap());
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &all[8 + size..]].concat()
}

/// The fixture's `.pth` with other numbers in what it says of itself: name, what stands there, what is to.
fn described(changes: &[(&str, u8, u8)]) -> Vec<u8> {
    let mut all = bytes("small.pth");
    let start = all.windows(2).position(|w| w == b"\x80\x02").unwrap();
    let size = all.windows(4).position(|w| w == b"PK\x07\x08").unwrap() - start;
    let sum = |bytes: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        crc.sum().to_le_bytes()
    };
    let before = sum(&all[start..start + size]);
    for (name, was, to) in changes {
        let at = all.windows(name.len()).position(|w| w == name.as_bytes()).unwrap() + name.len();
        let place = at + all[at..].windows(2).position(|w| w == [b'K', *was]).unwrap() + 1;
        all[place] = *to;
    }
    let after = sum(&all[start..start + size]);
    for at in 0..all.len() - 4 {
        if all[at..at + 4] == before {
            all[at..at + 4].copy_from_slice(&after);
        }
    }
    all
}

#[test]
fn no_weights_say_where_they_are_to_be_had() {
    let error = Codec::open(Path::new("/nowhere/weights.pth"), &Options::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    let text = format!("{error:#}");
    assert!(
        text.contains("/nowhere/weights.pth") && text.contains("descript-audio-codec/releases"),
        "{text}"
    );
}

#[test]
fn weights_of_another_model_name_the_first_tensor() {
    refused(
        &with_header(|header| header.replace("encoder.block.0.weight_v", "encoder.conv1.weight_vv")),
        Kind::Mismatch,
        &["encoder.block.0.weight_v", "found none", "descript-audio-codec/releases"],
    );
    // A shape that the codec's own description does not lead to.
    let other = described(&[("encoder_dim", 6, 8)]);
    refused(
        &other,
        Kind::Mismatch,
        &[
            "encoder.block.0.weight_v",
            "expected encoder.block.0.weight_v of shape [8, 1, 7], found [6, 1, 7]",
        ],
    );
    // A whole other thing: codes, which torch saved too.
    let tensor = windrow_formats::tensor_file("t", windrow_core::DType::I16, [2, 3], &[0; 12]).unwrap();
    refused(&tensor, Kind::Mismatch, &["expected a dict of tensors"]);
    refused(br"\x02\0\0\0\0\0\0\0{}", Kind::Corrupt, &["expected a .pth of torch or a .safetensors"]);
    refused(b"\x02\0\0\0\0\0\0\0{}", Kind::Mismatch, &["found none"]);
}

#[test]
fn every_cut_is_an_error_that_names_the_file() {
    for name in ["small.pth", "small.safetensors", "older.pth"] {
        let all = bytes(name);
        let cuts = (0..64).chain((0..all.len()).step_by(1 + all.len() / 97)).chain([all.len() - 1]);
        for cut in cuts {
            assert!(opened(&all[..cut]).is_err(), "{name}: cut at {cut}");
        }
    }
}

#[test]
fn a_turned_bit_is_an_error_or_a_codec_that_runs() {
    for name in ["older.pth", "small.safetensors"] {
        let all = bytes(name);
        // Where the descriptions lie; elsewhere there are numbers.
        let described: Vec<usize> = match name {
            "older.pth" => (0..12_000.min(all.len())).step_by(41).collect(),
            _ => (0..16_000).step_by(53).collect(),
        };
        for at in described {
            let mut turned = all.clone();
            turned[at] ^= 1 << (at % 8);
            if let Ok(codec) = opened(&turned) {
                codec.encode(&[0.25; 100]).unwrap();
            }
        }
    }
}

#[test]
fn headers_that_lie_take_no_memory() {
    // A header of 2^62 bytes, and tensors of sizes that are not there.
    let mut huge = bytes("small.safetensors");
    huge[..8].copy_from_slice(&(1u64 << 62).to_le_bytes());
    refused(&huge, Kind::Corrupt, &["expected a .pth of torch or a .safetensors"]);
    for (from, to) in [
        (r#""shape":[6,1,7]"#, r#""shape":[6000000,100000,7000]"#),
        (r#""data_offsets":[0,"#, r#""data_offsets":[18446744073709551000,"#),
        (r#""dtype":"F32""#, r#""dtype":"F64""#),
    ] {
        let lies = with_header(|header| {
            assert!(header.contains(from), "{from}");
            header.replacen(from, to, 1)
        });
        refused(&lies, Kind::Corrupt, &["expected a .pth of torch or a .safetensors"]);
    }
}

#[test]
fn sizes_that_no_codec_has_are_refused_before_anything_is_read() {
    for (name, was) in [("n_codebooks", 5), ("codebook_size", 64), ("encoder_dim", 6), ("decoder_dim", 24)] {
        refused(&described(&[(name, was, 0)]), Kind::Unsupported, &[name, "found 0"]);
    }
    // More codebooks than there are widths, and than there are tensors.
    refused(&described(&[("n_codebooks", 5, 200)]), Kind::Corrupt, &["codebook_dim", "200 numbers, found 5"]);
}

#[test]
fn weights_that_are_no_numbers_are_named() {
    let mut all = bytes("small.safetensors");
    let end = all.len();
    all[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    refused(&all, Kind::Corrupt, &["is NaN"]);
}

#[test]
fn a_pickle_that_is_a_program_is_refused_and_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("ran");
    let mut program = b"\x80\x02cos\nsystem\n(X".to_vec();
    let command = format!("touch {}", flag.display());
    program.extend((command.len() as u32).to_le_bytes());
    program.extend(command.as_bytes());
    program.extend(b"tR.");
    // In the older layout: the magic number, the version, the machine's sizes, then what was saved.
    let older = bytes("older.pth");
    let magic = &older[..15];
    let version = b"\x80\x02M\xe9\x03.";
    let machine = b"\x80\x02}X\x0d\0\0\0little_endian\x88s.";
    let stream = [magic, version, machine, &program].concat();
    refused(&stream, Kind::Unsupported, &["os.system", "is not run"]);
    // In place of the description in an archive: the same bytes are longer there, so the rest is no pickle any more.
    let mut archive = bytes("small.pth");
    let at = archive.windows(2).position(|w| w == b"\x80\x02").unwrap();
    archive[at..at + program.len()].copy_from_slice(&program);
    assert!(opened(&archive).is_err());
    assert!(!flag.exists());
}
