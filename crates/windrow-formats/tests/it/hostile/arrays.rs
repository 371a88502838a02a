//! numpy's files that are cut, that lie about their sizes, or that expand without end.

use windrow_core::Kind;
use windrow_core::format::Options;
use windrow_core::source::conformance;

use super::refused;
use crate::alone::{alone, most_memory};
use crate::disk::{Wanted, both_ways, open, open_with};
use crate::folder::{folder_of, names};

const MILLION: usize = 1 << 20;

fn npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
    out.extend(bytes);
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// A member as the archive tells of it; the defaults are the truth.
#[derive(Clone)]
struct Member {
    name: &'static str,
    bytes: Vec<u8>,
    method: u16,
    flags: u16,
    /// Claimed size once expanded.
    size: u32,
    crc: u32,
    /// Claimed place of its local header.
    place: Option<u32>,
}

fn stored(name: &'static str, bytes: Vec<u8>) -> Member {
    let mut crc = flate2::Crc::new();
    crc.update(&bytes);
    Member { name, size: bytes.len() as u32, crc: crc.sum(), bytes, method: 0, flags: 0, place: None }
}

fn deflated(name: &'static str, bytes: &[u8]) -> Member {
    use std::io::Write;
    let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    Member { bytes: out.finish().unwrap(), method: 8, ..stored(name, bytes.to_vec()) }
}

/// A zip archive, written by hand so that it can lie.
fn zip(members: &[Member]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for m in members {
        let mut common = Vec::new();
        for number in [20, m.flags, m.method, 0, 0] {
            common.extend(number.to_le_bytes());
        }
        for number in [m.crc, m.bytes.len() as u32, m.size] {
            common.extend(number.to_le_bytes());
        }
        common.extend((m.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(m.place.unwrap_or(out.len() as u32).to_le_bytes());
        directory.extend(m.name.as_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(m.name.as_bytes());
        out.extend(&m.bytes);
    }
    let start = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend((members.len() as u16).to_le_bytes());
    out.extend((members.len() as u16).to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn series() -> Vec<u8> {
    npy("'<i2'", "(2, 3)", &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0])
}

#[test]
fn the_archives_of_these_tests_open() {
    alone("hostile::arrays::the_archives_of_these_tests_open", |_| {
        let whole =
            zip(&[stored("a.npy", series()), deflated("b.npy", &series()), stored("read.me", vec![1])]);
        let folder = folder_of(&[("a.npz", whole)]);
        for options in both_ways(&Options::default()) {
            let source = open_with(&folder.path().join("a.npz"), &options).unwrap();
            assert_eq!(source.len(), 4);
            conformance::check(source.as_ref()).unwrap();
        }
    });
}

#[test]
fn every_cut_is_an_error_that_names_the_file() {
    alone("hostile::arrays::every_cut_is_an_error_that_names_the_file", |cache| {
        let archive = zip(&[stored("a.npy", series()), deflated("b.npy", &series())]);
        for (name, whole) in [("a.npy", series()), ("a.npy.gz", gzip(&series())), ("a.npz", archive)] {
            for end in 0..whole.len() {
                let folder = folder_of(&[(name, &whole[..end])]);
                let file = folder.path().join(name);
                for options in both_ways(&Options::default()) {
                    let error = open_with(&file, &options).err().unwrap_or_else(|| panic!("{name} at {end}"));
                    assert_eq!(error.kind(), Kind::Corrupt, "{name} cut at {end}: {error}");
                    assert!(error.place().file.as_deref().unwrap().contains(name), "{error}");
                }
            }
        }
        assert_eq!(names(cache).len(), 0);
    });
}

#[test]
fn a_turned_bit_is_an_error_or_an_array_that_keeps_its_promises() {
    alone("hostile::arrays::a_turned_bit_is_an_error_or_an_array_that_keeps_its_promises", |_| {
        let archive = zip(&[stored("a.npy", series()), deflated("b.npy", &series())]);
        let mut failed = 0;
        for (name, whole) in [("a.npy", series()), ("a.npz", archive)] {
            for bit in 0..whole.len() * 8 {
                let mut turned = whole.clone();
                turned[bit / 8] ^= 1 << (bit % 8);
                let folder = folder_of(&[(name, &turned)]);
                match open_with(&folder.path().join(name), &Options::default()) {
                    Ok(source) => conformance::check(source.as_ref()).unwrap(),
                    Err(error) => {
                        let kinds = [Kind::Corrupt, Kind::Unsupported, Kind::Mismatch];
                        assert!(kinds.contains(&error.kind()), "{name}, bit {bit}: {error}");
                        assert!(error.place().file.as_deref().unwrap().contains(name), "{error}");
                        failed += 1;
                    }
                }
            }
        }
        assert!(failed > 2_000, "{failed}");
    });
}

#[track_caller]
fn refused_archive(members: &[Member], kind: Kind, file: &str, says: &[&str]) {
    let folder = folder_of(&[("a.npz", zip(members))]);
    for options in both_ways(&Options::default()) {
        let (error, memory) = most_memory(|| open_with(&folder.path().join("a.npz"), &options).err());
        let error = error.expect("an archive that lies opens");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.place().file.as_deref().unwrap().ends_with(file), "{error}");
        for word in says {
            assert!(format!("{error:#}").contains(word), "{error}: does not say {word:?}");
        }
        assert!(memory < 2 * MILLION, "{memory} bytes for {error}");
    }
}

#[test]
fn archives_that_lie_are_refused_and_leave_no_cache() {
    alone("hostile::arrays::archives_that_lie_are_refused_and_leave_no_cache", |cache| {
        let (a, b) = (stored("a.npy", series()), deflated("b.npy", &series()));
        let same = Member { name: "a.npy", ..b.clone() };
        refused_archive(&[a.clone(), same], Kind::Corrupt, "a.npz", &["one name"]);
        let over = Member { place: Some(0), name: "b.npy", ..a.clone() };
        refused_archive(&[a.clone(), over], Kind::Corrupt, "a.npz", &["overlap"]);
        let far = Member { place: Some(1 << 30), ..a.clone() };
        refused_archive(&[far], Kind::Corrupt, "a.npz", &[]);
        let short = Member { size: a.size + 1, ..a.clone() };
        refused_archive(&[short], Kind::Corrupt, "#a.npy", &["stored array of"]);
        for size in [b.size - 1, b.size + 1, b.size + 70_000, u32::MAX - 1] {
            let lies = Member { size, ..b.clone() };
            let kind = if size > 1 << 30 { Kind::Unsupported } else { Kind::Corrupt };
            refused_archive(&[lies], kind, "#b.npy", &[]);
        }
        let crc = Member { crc: b.crc ^ 1, ..b.clone() };
        refused_archive(&[crc], Kind::Corrupt, "#b.npy", &["damaged"]);
        for method in [1, 9, 12, 14, 93, 95, 98, 99, 40_000] {
            let other = Member { method, ..b.clone() };
            refused_archive(&[other], Kind::Unsupported, "#b.npy", &["compressed by"]);
        }
        let locked = Member { flags: 1, ..a.clone() };
        refused_archive(&[locked], Kind::Unsupported, "#a.npy", &["encrypted"]);
        refused_archive(&[], Kind::Corrupt, "a.npz", &["no .npy"]);
        refused_archive(&[stored("a.txt", vec![1])], Kind::Corrupt, "a.npz", &["1 members and no .npy"]);
        let other = stored("c.npy", npy("'<f4'", "(1,)", &[0; 4]));
        refused_archive(
            &[a.clone(), other],
            Kind::Mismatch,
            "a.npz",
            &["#a.npy holds int16", "#c.npy holds float32"],
        );
        let cube = stored("c.npy", npy("'<i2'", "(1, 1, 2)", &[0; 4]));
        refused_archive(&[a.clone(), cube], Kind::Mismatch, "a.npz", &["#c.npy holds int16 with 2 channels"]);
        let objects = stored("c.npy", npy("'|O'", "(1,)", &[0; 4]));
        refused_archive(&[a, objects], Kind::Unsupported, "#c.npy", &["object array"]);
        assert_eq!(names(cache).len(), 0);
    });
}

#[test]
fn claims_of_many_members_take_no_memory() {
    alone("hostile::arrays::claims_of_many_members_take_no_memory", |_| {
        let mut archive = vec![b' '; MILLION];
        archive[..4].copy_from_slice(b"PK\x03\x04");
        let (place, count, many) = (archive.len() as u64, 1u64 << 19, 46u64 << 19);
        archive.extend(b"PK\x06\x06");
        archive.extend(44u64.to_le_bytes());
        archive.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for number in [count, count, many, place - 64] {
            archive.extend(number.to_le_bytes());
        }
        archive.extend(b"PK\x06\x07\0\0\0\0");
        archive.extend(place.to_le_bytes());
        archive.extend([1, 0, 0, 0]);
        archive.extend(b"PK\x05\x06\0\0\0\0");
        archive.extend([0xff; 12]);
        archive.extend([0, 0]);
        let folder = folder_of(&[("a.npz", archive)]);
        let (error, memory) = most_memory(|| open(&folder.path().join("a.npz")).err().unwrap());
        assert!(format!("{error:#}").contains("524288 members"), "{error}");
        assert!(memory < 4 * MILLION, "{memory}");
    });
}

#[test]
fn bombs_are_not_expanded_and_honest_zeros_are() {
    alone("hostile::arrays::bombs_are_not_expanded_and_honest_zeros_are", |cache| {
        let zeros = |n: usize| npy("'|u1'", &format!("({n},)"), &vec![0; n]);
        let bomb = deflated("z.npy", &zeros(100 * MILLION));
        assert!(bomb.bytes.len() < MILLION / 4);
        refused_archive(&[bomb], Kind::Unsupported, "#z.npy", &["times as many"]);
        assert_eq!(names(cache).len(), 0);
        let folder = folder_of(&[("a.npz", zip(&[deflated("z.npy", &zeros(30 * MILLION))]))]);
        let (source, memory) = most_memory(|| open(&folder.path().join("a.npz")).unwrap());
        assert_eq!(source.length(0).unwrap(), 30 * MILLION as u64);
        assert!(memory < 4 * MILLION, "{memory}");
        assert_eq!(names(cache).len(), 1);
    });
}

#[test]
fn headers_that_lie_take_no_memory() {
    alone("hostile::arrays::headers_that_lie_take_no_memory", |_| {
        for (descr, shape, kind, says) in [
            ("'<f8'", "(1099511627776,)", Kind::Corrupt, "8796093022208 bytes; 8 bytes follow"),
            ("'<f8'", "(4294967296, 4294967296)", Kind::Corrupt, "more than any file holds"),
            ("'<f8'", "(18446744073709551615, 0)", Kind::Corrupt, "8 bytes follow"),
            ("'<f8'", "()", Kind::Unsupported, "shape []"),
            ("'<f8'", "(1, 1, 1, 1)", Kind::Unsupported, "shape [1, 1, 1, 1]"),
            ("'|O'", "(1,)", Kind::Corrupt, "expected an opcode"),
            ("[('x', '<f8')]", "(1,)", Kind::Unsupported, "structured"),
            (
                "'<f8', 'x': __import__('os').abort()",
                "(1,)",
                Kind::Corrupt,
                "expected descr, fortran_order or shape",
            ),
        ] {
            let folder = folder_of(&[("a.npy", npy(descr, shape, &[0; 8]))]);
            let (error, memory) = most_memory(|| open(&folder.path().join("a.npy")).err().unwrap());
            assert_eq!(error.kind(), kind, "{shape}: {error}");
            assert!(format!("{error:#}").contains(says), "{shape}: {error}");
            assert!(memory < MILLION, "{shape}: {memory}");
        }
        let empty = folder_of(&[("a.npy", npy("'<f8'", "(4000000000, 0)", &[]))]);
        assert_eq!(open(&empty.path().join("a.npy")).err().unwrap().kind(), Kind::Corrupt);
    });
}

#[test]
fn options_that_contradict_the_header_are_refused() {
    let folder = folder_of(&[("a.npy", series())]);
    let dtype = Options { dtype: Some(windrow_core::DType::U16), ..Options::default() };
    let wanted =
        Wanted { kind: Some(Kind::Mismatch), file: "a.npy", says: &["uint16", "int16"], ..Wanted::default() };
    refused(folder.path(), "a.npy", &dtype, &wanted);
    let ids = Options { vocab_size: Some(6), ..Options::default() };
    let wanted = Wanted {
        kind: Some(Kind::Corrupt),
        file: "a.npy",
        record: Some(1),
        byte: Some(series().len() as u64 - 2),
        says: &["id 6"],
    };
    refused(folder.path(), "a.npy", &ids, &wanted);
    let fits = Options { vocab_size: Some(7), ..Options::default() };
    let source = open_with(&folder.path().join("a.npy"), &fits).unwrap();
    assert_eq!(source.schema().vocab_size, Some(7));
    let tokenizer = Options { tokenizer: Some("0123456789abcdef".to_string()), ..Options::default() };
    let wanted = Wanted { kind: Some(Kind::Mismatch), file: "a.npy", ..Wanted::default() };
    refused(folder.path(), "a.npy", &tokenizer, &wanted);
}

#[test]
fn one_broken_file_in_a_folder_is_named() {
    for (name, bytes, kind) in [
        ("b/broken.npy", series()[..20].to_vec(), Kind::Corrupt),
        ("b/empty.npz", Vec::new(), Kind::Corrupt),
        ("b/cube.npy", npy("'<i2'", "(1, 1, 2)", &[0; 4]), Kind::Mismatch),
        ("b/objects.npy", npy("'|O'", "(1,)", &[0; 4]), Kind::Corrupt),
        ("b/attack.npy", npy("'|O'", "(1,)", b"cos\nsystem\n(S'true'\ntR."), Kind::Unsupported),
    ] {
        let folder = folder_of(&[("a.npy", series()), (name, bytes)]);
        let wanted = Wanted { kind: Some(kind), file: name, ..Wanted::default() };
        for options in both_ways(&Options::default()) {
            let error = open_with(folder.path(), &options).err().unwrap_or_else(|| panic!("{wanted:?}"));
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.place().file.as_deref().unwrap().ends_with(name), "{error}");
        }
    }
    let folder = folder_of(&[("notes.txt", b"nothing")]);
    let forced = Options { format: Some("collection".to_string()), ..Options::default() };
    let error = open_with(folder.path(), &forced).err().unwrap();
    assert_eq!(error.kind(), Kind::NotFound, "{error}");
    assert!(format!("{error:#}").contains(".npz"), "{error}");
}
