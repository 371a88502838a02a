//! Tensors of torch that are cut, that lie, or that are programs; folders of them whose descriptions are wrong.

use windrow_core::format::Options;
use windrow_core::{DType, Kind};
use windrow_formats::{FORMATS, tensor_file};
use windrow_prepare::verify;

use super::{refused, unreadable};
use crate::alone::{alone, most_memory};
use crate::disk::{Wanted, both_ways, open, open_with, whole};
use crate::folder::{folder_of, put};

const GOLDEN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/4_dia/preencoded/encoded_audio/");

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(format!("{GOLDEN}{name}.pt")).unwrap()
}

fn track(frames: u64, channels: u64) -> Vec<u8> {
    let codes: Vec<u8> = (0..frames * channels).flat_map(|code| (code as i16).to_le_bytes()).collect();
    tensor_file("t", DType::I16, [frames, channels], &codes).unwrap()
}

fn stored(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for number in [crc.sum(), bytes.len() as u32, bytes.len() as u32] {
        common.extend(number.to_le_bytes());
    }
    common.extend((name.len() as u16).to_le_bytes());
    common.extend([0, 0]);
    common
}

/// An archive of stored members.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let common = stored(name, bytes);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(*bytes);
    }
    let start = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    for _ in 0..2 {
        out.extend((members.len() as u16).to_le_bytes());
    }
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// `_rebuild_tensor_v2` in protocol 2, over a storage of `held` int16 numbers called 0.
fn pickle(held: i32, offset: i32, shape: &[i32], strides: &[i32]) -> Vec<u8> {
    let whole = |number: &i32| {
        let mut out = vec![b'J'];
        out.extend(number.to_le_bytes());
        out
    };
    let tuple = |numbers: &[i32]| [vec![b'('], numbers.iter().flat_map(whole).collect(), vec![b't']].concat();
    let text = |text: &str| [&[b'X'][..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    [
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((".to_vec(),
        text("storage"),
        b"ctorch\nShortStorage\n".to_vec(),
        text("0"),
        text("cpu"),
        whole(&held),
        b"tQ".to_vec(),
        whole(&offset),
        tuple(shape),
        tuple(strides),
        b"\x89ccollections\nOrderedDict\n)RtR.".to_vec(),
    ]
    .concat()
}

fn tensor(held: i32, offset: i32, shape: &[i32], strides: &[i32], bytes: &[u8]) -> Vec<u8> {
    archive(&[("t/data.pkl", &pickle(held, offset, shape, strides)), ("t/data/0", bytes)])
}

#[track_caller]
fn wrong(bytes: &[u8], kind: Kind, says: &[&str]) {
    let folder = folder_of(&[("encoded_audio/a.pt", track(3, 4)), ("encoded_audio/b.pt", bytes.to_vec())]);
    for options in both_ways(&Options::default()) {
        let error =
            open_with(folder.path(), &options).err().unwrap_or_else(|| panic!("opens; wanted {says:?}"));
        assert_eq!(error.kind(), kind, "{error}");
        assert!(
            error.place().file.as_deref().is_some_and(|file| file.ends_with("encoded_audio/b.pt")),
            "{error:?}"
        );
        for word in says {
            assert!(format!("{error:#}").contains(word), "{error}: does not say {word:?}");
        }
        assert!(error.hint_text().is_some(), "{error}");
    }
}

#[test]
fn a_tensor_cut_anywhere_is_an_error_that_names_it() {
    for name in ["song1", "legacy", "strided"] {
        let honest = golden(name);
        for end in (0..honest.len()).step_by(7).chain([honest.len() - 1]) {
            let folder = folder_of(&[("x.pt", &honest[..end])]);
            let options = Options { format: Some("codes".into()), ..Options::default() };
            let error = open_with(&folder.path().join("x.pt"), &options);
            // What follows the storage of the older files is nothing that is read.
            let Err(error) = error else { panic!("{name} cut to {end} of {} bytes opens", honest.len()) };
            assert!(error.place().file.as_deref().is_some_and(|file| file.ends_with("x.pt")), "{error:?}");
            assert!(matches!(error.kind(), Kind::Corrupt | Kind::Unsupported), "{name} {end}: {error:?}");
        }
    }
}

#[test]
fn changed_bytes_are_an_error_or_other_codes_never_a_panic() {
    for name in ["song1", "legacy", "view", "float"] {
        let honest = golden(name);
        for at in (0..honest.len().min(1_800)).step_by(3) {
            for flip in [0xff, 0x01, 0x80] {
                let mut bytes = honest.clone();
                bytes[at] ^= flip;
                let folder = folder_of(&[("x.pt", &bytes)]);
                if let Ok(source) = open(&folder.path().join("x.pt")) {
                    let _ = whole(source.as_ref(), 0);
                    let _ = source.locate(windrow_core::Span { record: 0, start: 0, len: 0 });
                }
            }
        }
    }
}

#[test]
fn what_is_no_tensor_of_torch_is_refused_by_name() {
    wrong(b"", Kind::Corrupt, &["found 0 bytes that begin with nothing"]);
    wrong(b"not a tensor", Kind::Corrupt, &["expected a file of torch.save", "6e 6f 74 20"]);
    wrong(&archive(&[("t/other", b"x")]), Kind::Corrupt, &["expected data.pkl"]);
    wrong(
        &archive(&[("a/data.pkl", b"N."), ("b/data.pkl", b"N.")]),
        Kind::Unsupported,
        &["several data.pkl"],
    );
    wrong(
        &archive(&[("t/data.pkl", b"\x80\x02N.")]),
        Kind::Unsupported,
        &["expected one tensor", "torch.save(codes"],
    );
    wrong(&archive(&[("t/data.pkl", b"\x80\x02}.")]), Kind::Unsupported, &["found a dict"]);
    let long = vec![b'N'; 2 << 20];
    wrong(&archive(&[("t/data.pkl", &long)]), Kind::Unsupported, &["where one tensor takes at most"]);
}

#[test]
fn tensors_that_reach_beyond_their_storage_are_refused() {
    let six = [0u8; 24];
    wrong(&tensor(12, 0, &[4, 4], &[4, 1], &six), Kind::Corrupt, &["a tensor of shape [4, 4]"]);
    wrong(&tensor(12, 9, &[1, 4], &[4, 1], &six), Kind::Corrupt, &["offset 9"]);
    wrong(&tensor(12, -1, &[1, 4], &[4, 1], &six), Kind::Corrupt, &["an offset below 0"]);
    wrong(&tensor(12, 0, &[-3, 4], &[4, 1], &six), Kind::Corrupt, &["a size in a shape"]);
    wrong(&tensor(1 << 30, 0, &[1 << 28, 4], &[4, 1], &six), Kind::Corrupt, &["found 24 bytes"]);
    wrong(&tensor(12, 0, &[i32::MAX, i32::MAX], &[i32::MAX, i32::MAX], &six), Kind::Corrupt, &["shape"]);
    // One number for many: a few bytes would stand for any number of codes.
    wrong(
        &tensor(12, 0, &[1 << 30, 4], &[0, 1], &six),
        Kind::Unsupported,
        &["strides [0, 1]", "tensor.contiguous()"],
    );
    wrong(&tensor(12, 0, &[6, 6], &[1, 1], &six), Kind::Unsupported, &["[6, 6]", "clone()"]);
    for shape in [&[12][..], &[1, 3, 4], &[12, 0], &[]] {
        let strides: Vec<i32> = shape.iter().map(|_| 1).collect();
        wrong(&tensor(12, 0, shape, &strides, &six), Kind::Unsupported, &["[T, C]"]);
    }
    let missing = archive(&[("t/data.pkl", &pickle(12, 0, &[3, 4], &[4, 1]))]);
    wrong(&missing, Kind::Corrupt, &["expected the tensor's storage, found none"]);
    let big = archive(&[
        ("t/data.pkl", &pickle(12, 0, &[3, 4], &[4, 1])),
        ("t/byteorder", b"big"),
        ("t/data/0", &six),
    ]);
    wrong(&big, Kind::Unsupported, &["most significant byte first"]);
}

#[test]
fn a_pickle_that_is_a_program_is_refused_and_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("ran");
    let run = format!("\x28cos\nsystem\nX{}touch {}tR.", "\x06\0\0\0", flag.display());
    for program in [
        b"\x80\x02cos\nsystem\n(X\x04\0\0\0truetR.".to_vec(),
        b"\x80\x02cbuiltins\neval\n(X\x01\0\0\x001tR.".to_vec(),
        b"\x80\x02ctorch.nn\nModule\n)R.".to_vec(),
        b"\x80\x02ctorch._utils\n_rebuild_parameter\n)R.".to_vec(),
        [b"\x80\x02".to_vec(), run.into_bytes()].concat(),
    ] {
        wrong(&archive(&[("t/data.pkl", &program), ("t/data/0", b"")]), Kind::Unsupported, &["is not run"]);
    }
    assert!(!flag.exists());
    // Lists of lists of lists: cheap to write, without end to walk.
    let mut laughs = b"\x80\x02]q\x00".to_vec();
    for i in 0..100u8 {
        laughs.extend([b']', b'q', i + 1]);
        laughs.extend([b'h', i, b'a'].repeat(9));
    }
    laughs.push(b'.');
    wrong(&archive(&[("t/data.pkl", &laughs)]), Kind::Unsupported, &["found a list or tuple"]);
}

#[test]
fn large_claims_take_no_memory() {
    alone("hostile::tracks::large_claims_take_no_memory", |_| {
        let ((), most) = most_memory(|| {
            let claims = tensor(i32::MAX, 0, &[1 << 20, 1 << 10], &[1 << 10, 1], &[0; 24]);
            let folder = folder_of(&[("a.pt", claims)]);
            assert_eq!(open(folder.path()).err().unwrap().kind(), Kind::Corrupt);
            let mut stream = golden("legacy");
            let at = stream.windows(6).rposition(|w| w[0] == b'K').unwrap();
            stream[at + 1] = 0xff;
            let folder = folder_of(&[("a.pt", stream)]);
            let _ = open(folder.path()).map(|source| whole(source.as_ref(), 0));
        });
        assert!(most < 32 << 20, "{most} bytes");
    });
}

#[test]
fn tracks_of_different_widths_name_both_files() {
    let folder = folder_of(&[("a.pt", track(3, 18)), ("b.pt", track(2, 12))]);
    let wanted = Wanted {
        kind: Some(Kind::Mismatch),
        file: "b.pt",
        says: &["[3, 18]", "a.pt", "[2, 12]"],
        ..Wanted::default()
    };
    refused(folder.path(), "", &Options::default(), &wanted);
}

#[test]
fn a_description_that_is_wrong_names_file_and_field() {
    let metadata = |text: &str, wanted: &Wanted<'_>| {
        let folder =
            folder_of(&[("encoded_audio/a.pt", track(3, 18)), ("metadata.json", text.as_bytes().to_vec())]);
        refused(folder.path(), "", &Options::default(), wanted);
    };
    let corrupt =
        |says| Wanted { kind: Some(Kind::Corrupt), file: "metadata.json", says, ..Wanted::default() };
    metadata("{\"a.pt\": {\"te", &Wanted { byte: Some(13), ..corrupt(&["cannot be understood"]) });
    metadata("", &Wanted { byte: Some(0), ..corrupt(&["cannot be understood", "hint"]) });
    metadata("[]", &Wanted { byte: Some(0), ..corrupt(&["cannot be understood"]) });
    metadata("{\"a.pt\": \"text\"}", &corrupt(&["a.pt", "expected an object of fields, found \"text\""]));
    metadata("{\"a.pt\": {\"text\": 5}}", &corrupt(&["a.pt.text", "expected a text or null, found 5"]));
    let deep = format!("{{\"a.pt\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let folder = folder_of(&[("encoded_audio/a.pt", track(3, 18)), ("metadata.json", deep.into_bytes())]);
    assert_eq!(open(folder.path()).err().unwrap().kind(), Kind::Corrupt);
}

#[test]
fn a_prompt_that_is_no_text_names_its_file() {
    let folder = folder_of(&[("encoded_audio/a.pt", track(3, 18)), ("prompts/a.txt", b"ab\xff".to_vec())]);
    for options in both_ways(&Options::default()) {
        let source = open_with(folder.path(), &options).unwrap();
        let error = source.extras(0).unwrap_err();
        let place = error.place();
        assert_eq!((error.kind(), place.record, place.byte), (Kind::Corrupt, Some(0), Some(2)), "{error}");
        assert!(place.file.as_deref().unwrap().ends_with("prompts/a.txt"));
        assert_eq!(source.text(0, &mut String::new()).unwrap_err().to_string(), error.to_string());
    }
    put(folder.path(), "prompts/a.txt", &vec![b'a'; 2 << 20]);
    assert_eq!(open(folder.path()).unwrap().extras(0).unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn fractions_that_are_no_codes_name_their_place() {
    let honest = golden("float");
    // The first stored number of the float32 tensor, which lies behind `data/0` and its alignment.
    let stored = 770.75f32.to_le_bytes();
    let at = honest.windows(4).position(|w| w == stored).unwrap();
    for wrong in [f32::NAN, f32::INFINITY, 1e30, 3.7, -0.5] {
        let mut bytes = honest.clone();
        bytes[at..at + 4].copy_from_slice(&wrong.to_le_bytes());
        let folder = folder_of(&[("a.pt", bytes)]);
        let wanted = Wanted {
            kind: Some(Kind::Corrupt),
            file: "a.pt",
            record: Some(0),
            byte: Some(at as u64),
            says: &["expected a code"],
        };
        unreadable(folder.path(), "a.pt", &Options::default(), 0, &wanted);
    }
}

#[test]
fn verify_finds_codes_outside_and_descriptions_that_are_not_so() {
    let mut codes = [5i16; 54];
    codes[40] = 1024;
    let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
    let folder = folder_of(&[
        ("encoded_audio/a.pt", track(3, 18)),
        ("encoded_audio/b.pt", tensor_file("b", DType::I16, [3, 18], &bytes).unwrap()),
        (
            "metadata.json",
            br#"{"a.pt": {"text": "", "length": 4, "channels": 18}, "gone.pt": {"text": "x"}}"#.to_vec(),
        ),
    ]);
    let findings = verify(FORMATS, folder.path(), &Default::default(), &()).unwrap();
    let found: Vec<_> = findings
        .problems
        .iter()
        .map(|p| (p.file.rsplit('/').next().unwrap(), p.what.as_str(), p.expected.as_str(), p.found.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("metadata.json", "gone.pt", "a file of this name", "none"),
            ("metadata.json", "a.pt.length", "4", "3"),
            ("b.pt", "code at frame 2, channel 4", "0 to 1023", "1024"),
        ]
    );
    // A vocabulary that is asked for is checked when it is opened.
    let options = Options { vocab_size: Some(1024), ..Options::default() };
    let error = open_with(folder.path(), &options).err().unwrap();
    assert!(error.kind() == Kind::Corrupt && format!("{error:#}").contains("1024"), "{error}");
}
