//! Raw token files cut at an end id: documents are records.

use std::fs;

use windrow_core::format::Options;
use windrow_core::source::conformance;
use windrow_core::{DType, Kind};

use super::alone::{alone, most_memory};
use super::disk::{Wanted, assert_error, both_ways, bytes_at, open_with, whole};
use super::folder::{folder_of, put};

fn cut_at(eos: i64, dtype: DType) -> Options {
    Options { document_eos: Some(eos), dtype: Some(dtype), ..Options::default() }
}

fn bytes(ids: &[i64], dtype: DType) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()[..dtype.size()].to_vec()).collect()
}

/// The documents of a stream, one id after the other.
fn documents(ids: &[i64], eos: i64) -> Vec<&[i64]> {
    ids.split_inclusive(|id| *id == eos).collect()
}

/// `n` ids in documents of 1 to 900 ids that end with `eos`, but for the last.
fn stream(n: usize, eos: i64) -> Vec<i64> {
    let mut ids = Vec::with_capacity(n);
    while ids.len() < n {
        let length = ids.len() * 7 % 900;
        ids.extend((0..length).map(|i| 1 + (i % 90) as i64));
        ids.push(eos);
    }
    ids.truncate(n);
    ids
}

#[test]
fn documents_of_every_dtype_keep_every_promise_of_a_source() {
    alone("documents::documents_of_every_dtype_keep_every_promise_of_a_source", |cache| {
        for dtype in [DType::U8, DType::U16, DType::U32, DType::I32, DType::I64] {
            let (long, short) = (stream(1_200_000, 99), vec![99, 99, 5, 99]);
            let folder = folder_of(&[
                ("b.bin", bytes(&short, dtype)),
                ("a.bin", bytes(&long, dtype)),
                ("c.bin", bytes(&[3], dtype)),
            ]);
            let expected: Vec<&[i64]> =
                [documents(&long, 99), documents(&short, 99), vec![&[3][..]]].concat();
            for options in both_ways(&Options { vocab_size: Some(100), ..cut_at(99, dtype) }) {
                let source = open_with(folder.path(), &options).unwrap();
                assert_eq!((source.len(), source.format()), (expected.len() as u64, "tokens"));
                conformance::check(source.as_ref()).unwrap();
                conformance::check_located(source.as_ref(), &bytes_at).unwrap();
                let mut lengths = vec![0; expected.len()];
                source.lengths(0, &mut lengths).unwrap();
                for (record, ids) in (0..).zip(&expected) {
                    assert_eq!(lengths[record as usize], ids.len() as u64);
                    assert_eq!(
                        whole(source.as_ref(), record).unwrap(),
                        bytes(ids, dtype),
                        "{dtype} {record}"
                    );
                }
            }
        }
        // A table for each file beyond a mebibyte, made once for both ways of reading; nothing beside the data.
        assert_eq!(fs::read_dir(cache).unwrap().count(), 5);
    });
}

#[test]
fn other_ids_cut_elsewhere_and_are_another_data_set() {
    let folder = folder_of(&[("a.bin", bytes(&[1, 2, 3, 1, 2, 3], DType::U16))]);
    let path = folder.path().join("a.bin");
    let open = |options: &Options| open_with(&path, options).unwrap();
    let (at_three, at_one) = (open(&cut_at(3, DType::U16)), open(&cut_at(1, DType::U16)));
    assert_eq!((at_three.len(), at_three.uniform()), (2, Some(3)));
    assert_eq!((at_one.len(), at_one.uniform()), (3, None));
    let whole = open(&Options { dtype: Some(DType::U16), ..Options::default() });
    let prints = [&at_three, &at_one, &whole].map(|source| source.fingerprint().unwrap());
    assert!(prints[0] != prints[1] && prints[0] != prints[2] && prints[1] != prints[2], "{prints:?}");
    assert_eq!(open(&cut_at(9, DType::U16)).len(), 1);
}

#[test]
fn a_table_of_the_cache_is_used_made_again_and_never_believed_when_damaged() {
    alone("documents::a_table_of_the_cache_is_used_made_again_and_never_believed_when_damaged", |cache| {
        let folder = folder_of(&[("a.bin", bytes(&stream(700_000, 0), DType::U16))]);
        let path = folder.path().join("a.bin");
        let table = || {
            let mut names: Vec<_> = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect();
            (names.len(), names.pop().unwrap())
        };
        let first = open_with(&path, &cut_at(0, DType::U16)).unwrap();
        let (count, kept) = table();
        assert_eq!(count, 1);
        // The table, then a note of what it was made from: its size stands 24 bytes before the end.
        let kept_bytes = fs::read(&kept).unwrap();
        let (before, end) = kept_bytes.split_at(kept_bytes.len() - 24);
        let note = u64::from_le_bytes(end[..8].try_into().unwrap());
        assert_eq!(before.len() as u64 + 24 - 32 - note, 6 * first.len() + 32);
        // The documents come from the table, not from another look at the ids.
        let good = fs::read(&kept).unwrap();
        let mut shifted = good.clone();
        shifted[0] += 1;
        put(cache, kept.file_name().unwrap().to_str().unwrap(), &shifted);
        assert_eq!(open_with(&path, &cut_at(0, DType::U16)).unwrap().length(0).unwrap(), 2);
        for size in [0, 31, good.len() - 1] {
            put(cache, kept.file_name().unwrap().to_str().unwrap(), &good[..size]);
            let error = open_with(&path, &cut_at(0, DType::U16)).err().unwrap();
            let file = kept.display().to_string();
            let says = ["a file of the cache is damaged", "delete it"];
            assert_error(
                &error,
                &Wanted { kind: Some(Kind::Corrupt), file: &file, says: &says, ..Wanted::default() },
            );
        }
        // The data changed: the table of the old one is not looked at.
        put(folder.path(), "a.bin", &bytes(&stream(800_000, 0), DType::U16));
        open_with(&path, &cut_at(0, DType::U16)).unwrap();
        assert_eq!(table().0, 2);
    });
}

#[test]
fn a_cache_that_cannot_be_written_is_done_without() {
    alone("documents::a_cache_that_cannot_be_written_is_done_without", |cache| {
        fs::remove_dir(cache).unwrap();
        fs::write(cache, b"a file where the folder should be").unwrap();
        let ids = stream(700_000, 0);
        let folder = folder_of(&[("a.bin", bytes(&ids, DType::U16))]);
        let source = open_with(&folder.path().join("a.bin"), &cut_at(0, DType::U16)).unwrap();
        assert_eq!(source.len(), documents(&ids, 0).len() as u64);
    });
}

#[test]
fn ends_take_no_memory_that_grows_with_the_file() {
    alone("documents::ends_take_no_memory_that_grows_with_the_file", |_| {
        // Every id ends a document: the most that there can be.
        let folder = folder_of(&[("a.bin", vec![0; 40 << 20])]);
        let (source, most) =
            most_memory(|| open_with(&folder.path().join("a.bin"), &cut_at(0, DType::U8)).unwrap());
        assert_eq!((source.len(), source.uniform()), (40 << 20, Some(1)));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(most < threads * (40 << 20), "{most} bytes on {threads} threads");
    });
}

#[test]
fn an_end_id_that_cannot_be_one_is_refused() {
    let folder = folder_of(&[("a.bin", vec![0; 8]), ("a.jsonl", b"{\"text\": \"a\"}\n".to_vec())]);
    let refused = |path: &str, options: Options, says: &str| {
        let error = open_with(&folder.path().join(path), &options).err().unwrap();
        assert_error(
            &error,
            &Wanted { kind: Some(Kind::Config), file: path, says: &[says], ..Wanted::default() },
        );
    };
    refused("a.bin", cut_at(70_000, DType::U16), "the EOS token 70000 does not fit uint16");
    refused("a.bin", cut_at(-1, DType::U32), "the EOS token -1 does not fit uint32");
    let small = Options { vocab_size: Some(50), ..cut_at(50, DType::U16) };
    refused("a.bin", small, "the EOS token 50 is outside the vocabulary of 50 IDs");
    refused(
        "a.jsonl",
        Options { document_eos: Some(1), ..Options::default() },
        "eos was given, but jsonl has records",
    );
}

#[test]
fn an_id_outside_the_vocabulary_names_its_document() {
    let folder = folder_of(&[("a.bin", bytes(&[1, 0, 2, 60, 0], DType::U16))]);
    let options = Options { vocab_size: Some(60), ..cut_at(0, DType::U16) };
    let error = open_with(&folder.path().join("a.bin"), &options).err().unwrap();
    let says = ["id 60 at value 1"];
    let wanted =
        Wanted { kind: Some(Kind::Corrupt), file: "a.bin", record: Some(1), byte: Some(6), says: &says };
    assert_error(&error, &wanted);
}
