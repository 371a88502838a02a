//! What is written: equal when it is read, stored as the original stores it, whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use windrow_core::Kind;
use windrow_core::source::SharedSource;

use crate::stores::{golden, open, read_with_calls, sequences};
use crate::writing::{FlatTokensWriter, WriteOptions};

fn write(out: &Path, sequences: &[Vec<i64>], options: &WriteOptions) -> windrow_core::Result<u64> {
    let mut writer = FlatTokensWriter::create(out, options)?;
    for sequence in sequences {
        let ids: Vec<u32> = sequence.iter().map(|id| u32::try_from(*id).unwrap()).collect();
        writer.add(&ids)?;
    }
    Ok(writer.finish()?.tokens)
}

fn small(zarr_format: u64, chunks_per_shard: Option<u64>) -> WriteOptions {
    WriteOptions {
        zarr_format,
        tokens_chunk_size: 7,
        seq_starts_chunk_size: 3,
        chunks_per_shard,
        ..WriteOptions::default()
    }
}

fn kinds() -> [WriteOptions; 3] {
    [small(2, None), small(3, None), small(3, Some(2))]
}

fn some() -> Vec<Vec<i64>> {
    (0..23i64).map(|i| (0..i % 6).map(|j| i * 100 + j).collect()).collect()
}

// Every file and what it holds.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut below = vec![folder.to_path_buf()];
    while let Some(folder) = below.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below.push(path)
            } else {
                drop(found.insert(path.display().to_string(), fs::read(&path).unwrap()))
            }
        }
    }
    found
}

#[test]
fn what_is_written_is_read_equal_and_grows() {
    for options in kinds() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("corpus.zarr/train");
        let all = some();
        // Ends of parts within a chunk, at its border, and nothing at all.
        for part in [&all[..4], &all[4..4], &all[4..5], &all[5..16], &all[16..]] {
            write(&out, part, &WriteOptions { append: true, ..options.clone() }).unwrap();
        }
        assert_eq!(sequences(open(&out).unwrap().as_ref()).unwrap(), all, "{options:?}");
        let other = folder.path().join("other");
        write(&other, &all, &options).unwrap();
        let bytes = |path: &Path| files(path).into_values().collect::<Vec<_>>();
        assert_eq!(bytes(&out), bytes(&other), "in parts and at once, the bytes are the same");
        let left: Vec<_> = fs::read_dir(folder.path().join("corpus.zarr")).unwrap().collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }
}

#[test]
fn an_open_store_keeps_its_state_when_it_grows_and_is_stale_when_it_is_written_again() {
    let opens: [fn(&Path) -> windrow_core::Result<SharedSource>; 2] = [open, read_with_calls];
    for (options, open) in kinds().into_iter().flat_map(|options| opens.map(|open| (options.clone(), open))) {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("train");
        let other: Vec<Vec<i64>> = some().iter().map(|ids| ids.iter().rev().copied().collect()).collect();
        write(&out, &some(), &options).unwrap();
        let opened = open(&out).unwrap();
        // Nothing was read before; the last chunk is another file then.
        write(&out, &other, &WriteOptions { append: true, ..options.clone() }).unwrap();
        assert_eq!(sequences(opened.as_ref()).unwrap(), some(), "{options:?}");
        drop(opened);

        write(&out, &some(), &WriteOptions { overwrite: true, ..options.clone() }).unwrap();
        let opened = open(&out).unwrap();
        // The same lengths and the same largest id.
        write(&out, &other, &WriteOptions { overwrite: true, ..options.clone() }).unwrap();
        let error = sequences(opened.as_ref()).unwrap_err();
        assert_eq!(error.kind(), Kind::Stale, "{error}");
        assert_eq!(sequences(open(&out).unwrap().as_ref()).unwrap(), other);
    }
}

#[test]
fn nothing_but_empty_sequences_is_a_store_too() {
    for options in kinds() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("train");
        write(&out, &[vec![], vec![]], &options).unwrap();
        assert_eq!(sequences(open(&out).unwrap().as_ref()).unwrap(), [vec![0i64; 0], vec![]]);
        write(&out, &[vec![5]], &WriteOptions { append: true, ..options }).unwrap();
        assert_eq!(sequences(open(&out).unwrap().as_ref()).unwrap(), [vec![], vec![], vec![5]]);
    }
}

#[test]
fn version_2_is_described_as_the_original_describes_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("doc.zarr/validation");
    let options = WriteOptions { tokens_chunk_size: 4, seq_starts_chunk_size: 2, ..WriteOptions::default() };
    write(&out, &[vec![1, 2], vec![3, 4, 5], vec![6, 7, 8]], &options).unwrap();
    for name in [".zgroup", ".zattrs", "encoded_tokens/.zarray", "seq_starts/.zarray"] {
        let read = |root: &Path| fs::read_to_string(root.join(name)).unwrap();
        assert_eq!(read(&out), read(&golden().join("doc.zarr/validation")), "{name}");
    }
    // These chunks hold no padding, so their bytes are those of the original too.
    for name in ["encoded_tokens/0", "encoded_tokens/1", "seq_starts/0", "seq_starts/1"] {
        let read = |root: &Path| fs::read(root.join(name)).unwrap();
        assert_eq!(read(&out), read(&golden().join("doc.zarr/validation")), "{name}");
    }
}

#[test]
fn a_store_of_another_program_grows_by_its_own_codecs() {
    for entry in fs::read_dir(golden().join("zarr_variants")).unwrap() {
        let path = entry.unwrap().path().join("train");
        if !path.is_dir() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("train");
        for (name, bytes) in files(&path) {
            let to = out.join(Path::new(&name).strip_prefix(&path).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::write(to, bytes).unwrap();
        }
        let mut all = sequences(open(&out).unwrap().as_ref()).unwrap();
        let more: Vec<Vec<i64>> = vec![vec![1; 150], vec![], vec![4000, 5]];
        write(&out, &more, &WriteOptions { append: true, ..WriteOptions::default() }).unwrap();
        all.extend(more);
        let source = open(&out).unwrap();
        assert_eq!(sequences(source.as_ref()).unwrap(), all, "{}", path.display());
        assert_eq!(source.schema().vocab_size, Some(4001));
    }
}

#[test]
fn what_is_stopped_changes_nothing_and_what_is_open_stays() {
    for options in kinds() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("train");
        let all = some();
        write(&out, &all[..9], &options).unwrap();
        let before = files(&out);
        let old = open(&out).unwrap();
        let mut writer =
            FlatTokensWriter::create(&out, &WriteOptions { append: true, ..options.clone() }).unwrap();
        for i in 0..40 {
            writer.add(&[i; 5]).unwrap();
            assert_eq!(files(&out), before);
        }
        // Another one waits its turn.
        let again = FlatTokensWriter::create(&out, &WriteOptions { append: true, ..options.clone() });
        assert_eq!(again.err().unwrap().kind(), Kind::Exists);
        drop(writer);
        assert_eq!(files(&out), before);
        write(&out, &all[9..], &WriteOptions { append: true, ..options }).unwrap();
        assert_eq!(sequences(old.as_ref()).unwrap(), all[..9]);
        assert_eq!(open(&out).unwrap().len(), all.len() as u64);
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("train");
    let kind = |options: WriteOptions| match FlatTokensWriter::create(&out, &options) {
        Ok(_) => None,
        Err(e) => Some(e.kind()),
    };
    assert_eq!(kind(WriteOptions { zarr_format: 4, ..WriteOptions::default() }), Some(Kind::Config));
    assert_eq!(kind(WriteOptions { tokens_chunk_size: 0, ..WriteOptions::default() }), Some(Kind::Config));
    assert_eq!(kind(small(2, Some(2))), Some(Kind::Config));
    let mut writer = FlatTokensWriter::create(&out, &small(2, None)).unwrap();
    writer.add(&[(1 << 31) - 1]).unwrap();
    let error = writer.add(&[0, 1 << 31]).unwrap_err();
    assert_eq!((error.kind(), error.place().record), (Kind::Config, Some(1)));
    drop(writer);
    assert!(!out.exists());
    write(&out, &[vec![1]], &small(2, None)).unwrap();
    assert_eq!(kind(small(2, None)), Some(Kind::Exists));
    write(&out, &[vec![2]], &WriteOptions { overwrite: true, ..small(3, None) }).unwrap();
    assert_eq!(sequences(open(&out).unwrap().as_ref()).unwrap(), [[2]]);
    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("a.txt"), "a").unwrap();
    let replaced =
        FlatTokensWriter::create(&foreign, &WriteOptions { overwrite: true, ..WriteOptions::default() });
    assert_eq!(replaced.err().unwrap().kind(), Kind::Exists);
    assert!(foreign.join("a.txt").exists());
}

#[test]
fn a_group_may_be_called_as_a_file_of_the_writer_is() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["aside", "x.aside"] {
        let out = folder.path().join(name);
        write(&out, &some(), &small(2, None)).unwrap();
        assert_eq!(sequences(open(&out).unwrap().as_ref()).unwrap(), some());
    }
}

#[test]
fn what_is_no_part_of_the_group_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let overwrite = || WriteOptions { overwrite: true, ..WriteOptions::default() };
    let check = |out: &Path| {
        let before = files(folder.path());
        let error = FlatTokensWriter::create(out, &overwrite()).err().unwrap();
        assert_eq!(error.kind(), Kind::Exists);
        assert!(files(folder.path()) == before);
    };
    // A folder of splits, with and without something beside them.
    let splits = folder.path().join("splits");
    write(&splits.join("train"), &[vec![1]], &WriteOptions::default()).unwrap();
    write(&splits.join("validation"), &[vec![1]], &WriteOptions::default()).unwrap();
    check(&splits);
    // Somebody's own in the group.
    let group = splits.join("train");
    fs::create_dir(group.join("notes")).unwrap();
    fs::write(group.join("notes/thesis.txt"), "years of work").unwrap();
    check(&group);
    fs::remove_dir_all(group.join("notes")).unwrap();
    write(&group, &[vec![2]], &overwrite()).unwrap();
    assert_eq!(sequences(open(&group).unwrap().as_ref()).unwrap(), [[2]]);
}

#[test]
fn what_append_cannot_do_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("train");
    write(&out, &[vec![5, 6]], &WriteOptions::default()).unwrap();
    let before = files(&out);
    let append = WriteOptions { append: true, ..WriteOptions::default() };
    for (options, said) in [
        (WriteOptions { overwrite: true, ..append.clone() }, "append and overwrite"),
        (WriteOptions { zarr_format: 3, ..append }, "zarr_format 3, and what is there is of version 2"),
    ] {
        let error = FlatTokensWriter::create(&out, &options).err().unwrap();
        assert_eq!(error.kind(), Kind::Config);
        assert!(format!("{error:#}").contains(said), "{error}");
        assert_eq!(files(&out), before);
    }
}
