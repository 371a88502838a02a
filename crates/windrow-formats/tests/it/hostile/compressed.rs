//! Compressed files that are cut, damaged, or expand without end: an error that names the file, and an empty cache.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use windrow_core::format::Options;
use windrow_core::store::{Compression, Local, Store, expand_to};
use windrow_core::{Kind, Result};
use windrow_formats::FORMATS;
use windrow_prepare::IndexOptions;

use super::{read, refused};
use crate::alone::{alone, most_memory};
use crate::disk::{Wanted, both_ways, open_with};
use crate::folder::{folder_of, names, put};

const TEXT: &[u8] = b"{\"text\":\"one\"}\n[1,2,3]\n\"three\"\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    out.include_checksum(true).unwrap();
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn all(path: &Path, options: &Options) -> Result<Vec<Vec<u8>>> {
    let source = open_with(path, options)?;
    (0..source.len()).map(|record| read(source.as_ref(), record)).collect()
}

fn lines() -> Vec<Vec<u8>> {
    TEXT.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

#[test]
fn every_cut_is_an_error_and_leaves_no_cache() {
    alone("hostile::compressed::every_cut_is_an_error_and_leaves_no_cache", |cache| {
        for (name, whole) in [("a.jsonl.gz", gzip(TEXT)), ("a.jsonl.zst", zstd(TEXT))] {
            for end in 0..whole.len() {
                let folder = folder_of(&[(name, &whole[..end]), ("b.jsonl", b"1\n")]);
                let found = format!("found {end} bytes");
                let says = ["expected a", found.as_str()];
                let magic = if name.ends_with("gz") { 2 } else { 4 };
                let byte = (end < magic).then_some(0);
                let wanted =
                    Wanted { kind: Some(Kind::Corrupt), file: name, byte, says: &says, ..Wanted::default() };
                for path in [name, ""] {
                    refused(folder.path(), path, &Options::default(), &wanted);
                }
                assert_eq!(names(cache).len(), 0, "cut at {end}");
            }
            let folder = folder_of(&[(name, &whole)]);
            for options in both_ways(&Options::default()) {
                assert_eq!(all(folder.path(), &options).unwrap(), lines());
            }
            assert_eq!(names(cache).len(), 1);
            std::fs::remove_file(&names(cache)[0]).unwrap();
        }
    });
}

#[test]
fn a_cut_stream_of_ids_is_never_read_as_ids() {
    alone("hostile::compressed::a_cut_stream_of_ids_is_never_read_as_ids", |cache| {
        let ids: Vec<u8> = (0..64).collect();
        for (name, whole) in [("a.bin.gz", gzip(&ids)), ("a.bin.zst", zstd(&ids))] {
            for end in 0..whole.len() {
                let folder = folder_of(&[(name, &whole[..end])]);
                let says = ["expected a"];
                let byte = (end < if name.ends_with("gz") { 2 } else { 4 }).then_some(0);
                let wanted =
                    Wanted { kind: Some(Kind::Corrupt), file: name, byte, says: &says, ..Wanted::default() };
                for path in [name, ""] {
                    refused(folder.path(), path, &Options::default(), &wanted);
                }
                assert_eq!(names(cache).len(), 0, "cut at {end}");
            }
        }
    });
}

// As `gzip -k` leaves them.
#[test]
fn what_stands_there_compressed_and_expanded_is_refused() {
    alone("hostile::compressed::what_stands_there_compressed_and_expanded_is_refused", |cache| {
        for (plain, bytes) in
            [("a.jsonl", TEXT), ("a.bin", &[1; 8]), ("a.json", b"[[1,2],[3]]"), ("a.yaml", b"[1, 2]")]
        {
            let packed = format!("{plain}.gz");
            let folder = folder_of(&[(plain, bytes), (&packed, &gzip(bytes))]);
            let says = [plain, "twice"];
            let wanted = Wanted { kind: Some(Kind::Config), file: &packed, says: &says, ..Wanted::default() };
            refused(folder.path(), "", &Options::default(), &wanted);
            assert_eq!(names(cache).len(), 0);
            for name in [plain, &packed] {
                assert!(open_with(&folder.path().join(name), &Options::default()).is_ok());
            }
            names(cache).iter().for_each(|file| std::fs::remove_file(file).unwrap());
        }
    });
}

#[test]
fn no_bit_that_turns_gives_other_records() {
    alone("hostile::compressed::no_bit_that_turns_gives_other_records", |_| {
        for (name, whole) in [("a.jsonl.gz", gzip(TEXT)), ("a.jsonl.zst", zstd(TEXT))] {
            let folder = folder_of(&[(name, &whole)]);
            let mut failed = 0;
            for bit in 0..whole.len() * 8 {
                let mut turned = whole.clone();
                turned[bit / 8] ^= 1 << (bit % 8);
                put(folder.path(), name, &turned);
                match all(folder.path(), &Options::default()) {
                    // The time and the system in a gzip header say nothing of the content.
                    Ok(found) => assert_eq!(found, lines(), "bit {bit}"),
                    Err(error) => {
                        // A turned bit may ask for a long window.
                        let kinds = [Kind::Corrupt, Kind::Unsupported];
                        assert!(kinds.contains(&error.kind()), "bit {bit}: {error}");
                        assert!(error.place().file.as_deref().is_some_and(|f| f.ends_with(name)), "{error}");
                        failed += 1;
                    }
                }
            }
            assert!(failed > whole.len() * 6, "{failed} of {}", whole.len() * 8);
        }
    });
}

#[test]
fn a_damaged_part_behind_a_stream_and_what_hides_in_a_name_are_refused() {
    alone(
        "hostile::compressed::a_damaged_part_behind_a_stream_and_what_hides_in_a_name_are_refused",
        |cache| {
            let turned = |part: Vec<u8>, at: usize| {
                let mut whole = [part.clone(), part.clone()].concat();
                whole[part.len() + at] ^= 4;
                whole
            };
            for (name, bytes, says) in [
                ("a.jsonl.gz", turned(gzip(TEXT), 0), "expected a whole .gz stream"),
                ("a.jsonl.zst", turned(zstd(TEXT), 1), "expected a whole .zst stream"),
                (
                    "a.jsonl.gz",
                    [gzip(TEXT), b"x".to_vec(), gzip(TEXT)].concat(),
                    "another part is among them",
                ),
                ("a.jsonl.gz", TEXT.to_vec(), "expected a .gz stream, found 31 bytes starting [7b, 22"),
                ("a.jsonl.zst", gzip(TEXT), ""),
            ] {
                let folder = folder_of(&[(name, bytes)]);
                if says.is_empty() {
                    // What a file is compressed with is told by its first bytes, not by its name.
                    assert_eq!(all(folder.path(), &Options::default()).unwrap(), lines());
                    continue;
                }
                let error = open_with(folder.path(), &Options::default()).err().unwrap();
                assert_eq!(error.kind(), Kind::Corrupt);
                assert!(format!("{error:#}").contains(says), "{error}");
                assert!(error.place().file.as_deref().unwrap().ends_with(name), "{error}");
                assert_eq!(names(cache).len(), 0);
            }
        },
    );
}

#[test]
fn bytes_behind_the_end_of_a_stream_are_left_out() {
    alone("hostile::compressed::bytes_behind_the_end_of_a_stream_are_left_out", |_| {
        for (name, whole) in [("a.jsonl.gz", gzip(TEXT)), ("a.jsonl.zst", zstd(TEXT))] {
            for behind in [&b"\n"[..], b"garbage", b"{\"text\": \"no record\"}\n"] {
                let folder = folder_of(&[(name, [&whole, behind].concat())]);
                assert_eq!(all(folder.path(), &Options::default()).unwrap(), lines(), "{name}: {behind:?}");
                let report =
                    windrow_prepare::index(FORMATS, folder.path(), &IndexOptions::default(), &()).unwrap();
                assert_eq!(report.records, lines().len() as u64);
            }
        }
    });
}

#[test]
fn streams_in_parts_are_read_to_their_end() {
    alone("hostile::compressed::streams_in_parts_are_read_to_their_end", |_| {
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        for (name, bytes) in [
            ("a.jsonl.gz", [gzip(&TEXT[..20]), gzip(b""), gzip(&TEXT[20..])].concat()),
            ("a.jsonl.zst", [zstd(&TEXT[..20]), zstd(b""), zstd(&TEXT[20..])].concat()),
            ("b.jsonl.zst", [skipped, zstd(TEXT)].concat()),
        ] {
            let folder = folder_of(&[(name, bytes)]);
            assert_eq!(all(folder.path(), &Options::default()).unwrap(), lines(), "{name}");
        }
    });
}

#[test]
fn a_cache_that_cannot_be_written_is_an_io_error() {
    alone("hostile::compressed::a_cache_that_cannot_be_written_is_an_io_error", |cache| {
        // A file stands where the folder should be.
        std::fs::remove_dir(cache).unwrap();
        std::fs::write(cache, "").unwrap();
        let folder = folder_of(&[("a.jsonl.gz", gzip(TEXT))]);
        let error = open_with(folder.path(), &Options::default()).err().unwrap();
        assert!(error.hint_text().is_some_and(|hint| hint.contains("WINDROW_CACHE")), "{error}");
        assert!(error.place().file.is_some(), "{error}");
        assert_eq!(std::fs::read(cache).unwrap(), b"");
        std::fs::remove_file(cache).unwrap();
        std::fs::create_dir(cache).unwrap();
    });
}

const MILLION: usize = 1 << 20;

/// One line of `size` bytes that compresses to next to nothing.
fn bomb(size: usize) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(b"\"").unwrap();
    let part = vec![b'a'; MILLION];
    for _ in 0..size / MILLION {
        out.write_all(&part).unwrap();
    }
    out.write_all(b"\"\n").unwrap();
    out.finish().unwrap()
}

#[test]
fn a_line_of_200_megabytes_is_streamed() {
    alone("hostile::compressed::a_line_of_200_megabytes_is_streamed", |cache| {
        let bytes = bomb(200 * MILLION);
        assert!(bytes.len() < 2 * MILLION, "{}", bytes.len());
        let folder = folder_of(&[("a.jsonl.gz", bytes)]);
        let (source, memory) =
            most_memory(|| open_with(&folder.path().join("a.jsonl.gz"), &Options::default()));
        let source = source.unwrap();
        assert!(memory < 8 * MILLION, "{memory}");
        assert_eq!((source.len(), source.length(0).unwrap()), (1, 200 * MILLION as u64 + 2));
        assert_eq!(names(cache).len(), 1);
        drop(source);
        let mut object = Local::new(folder.path()).open("a.jsonl.gz");
        let (size, memory) = most_memory(|| {
            expand_to(object.as_mut().unwrap().as_ref(), Compression::Gzip, &mut std::io::sink())
        });
        assert_eq!(size.unwrap(), 200 * MILLION as u64 + 3);
        assert!(memory < 2 * MILLION, "{memory}");
    });
}

#[test]
fn claims_of_size_ask_for_no_memory() {
    alone("hostile::compressed::claims_of_size_ask_for_no_memory", |_| {
        use crate::disk::rows;
        let side = |length: u64| {
            format!(
                r#"{{"version":1,"windrow":"","format":"forager","dtype":"uint16","record_length":{length},
                "files":[{{"name":"a.bin","size":8}}]}}"#
            )
        };
        let huge = 1u64 << 40;
        let schema = format!(
            r#"{{"sample_size":{huge},"arrays":[{{"name":"tokens","dtype":"uint16","offset":0}}],
            "total_bytes_per_sample":{}}}"#,
            huge * 2
        );
        for (name, text) in
            [("windrow.json", side(huge)), ("windrow.json", side(u64::MAX)), ("sample_schema.json", schema)]
        {
            for row in [[0, 0, 8], [0, 0, huge * 2], [huge, 0, 8]] {
                let folder = folder_of(&[
                    ("a.bin", &b"12345678"[..]),
                    ("index/file_location.txt", b"a.bin\n"),
                    ("index/sample_locations.bin", &rows(&[row])),
                ]);
                put(folder.path(), &format!("index/{name}"), text.as_bytes());
                for options in both_ways(&Options::default()) {
                    let (error, memory) = most_memory(|| open_with(folder.path(), &options).err());
                    assert_eq!(error.unwrap().kind(), Kind::Corrupt);
                    assert!(memory < MILLION, "{memory}");
                }
            }
        }
    });
}

#[test]
fn a_long_window_is_told_apart_from_damage() {
    alone("hostile::compressed::a_long_window_is_told_apart_from_damage", |_| {
        let folder = folder_of::<&[u8]>(&[]);
        let mut out = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        out.window_log(28).unwrap();
        out.write_all(TEXT).unwrap();
        put(folder.path(), "a.jsonl.zst", &out.finish().unwrap());
        let error = all(&folder.path().join("a.jsonl.zst"), &Options::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
        assert!(error.hint_text().is_some_and(|hint| hint.contains("--long=31")), "{error}");
    });
}

#[test]
fn a_cache_may_be_shared() {
    alone("hostile::compressed::a_cache_may_be_shared", |cache| {
        let folder = folder_of::<&[u8]>(&[]);
        put(folder.path(), "a.jsonl.gz", &gzip(TEXT));
        assert_eq!(all(&folder.path().join("a.jsonl.gz"), &Options::default()).unwrap(), lines());
        put(folder.path(), "as_usual", b"");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let files: Vec<_> = names(cache).iter().map(|name| mode(&cache.join(name))).collect();
        assert!(!files.is_empty());
        assert!(files.iter().all(|found| *found == mode(&folder.path().join("as_usual"))), "{files:?}");
    });
}
