//! Data sets in parts as a user has them: the samples of one run, on any number of ranks, here and in a store.

use std::fs;
use std::path::Path;
use std::time::Duration;

use windrow::format::Options;
use windrow::{Dataset, Kind, Samples, open_with};

use crate::in_parts::{Files, JOB, Made};
use crate::s3::S3;
use crate::states::hash_of;

/// 60 documents of 0 to 60 IDs in five parts, one of which is empty.
fn made() -> Made {
    let document = |i: u16| (0..i * 37 % 61).map(|at| 10 * i + at).collect();
    Made::tokens(&[0..11, 11..30, 30..30, 30..31, 31..60].map(|range| range.map(document).collect()))
}

fn put_all(folder: &Path, files: &Files) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn hashes(samples: &Samples, rank: u64, ranks: u64) -> Vec<String> {
    let loader = samples.loader().global_batch_size(6).seed(5).rank(rank, ranks).epochs(Some(2));
    loader.build().unwrap().map(|batch| hash_of(&batch.unwrap())).collect()
}

// The IDs of all rows of the batches that are left, in the order of the ranks.
fn rows(loaders: Vec<windrow::Loader>) -> Vec<i64> {
    let batches: Vec<Vec<Vec<i64>>> = loaders
        .into_iter()
        .map(|loader| loader.map(|batch| batch.unwrap().get::<i64>("input_ids").unwrap().to_vec()).collect())
        .collect();
    (0..batches[0].len()).flat_map(|step| batches.iter().flat_map(move |own| own[step].clone())).collect()
}

#[test]
fn samples_are_those_of_one_file_and_a_run_continues_with_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let made = made();
    put_all(&folder.path().join("parts_of_it"), &made.whole());
    fs::write(folder.path().join("all.bin"), made.parts.concat().concat()).unwrap();
    let dtype = Some(windrow::DType::U16);
    let one = open_with(folder.path().join("all.bin"), &Options { dtype, ..Options::default() }).unwrap();
    let parts = windrow::open(folder.path().join("parts_of_it")).unwrap();
    let [one, parts]: [Samples; 2] = [&one, &parts].map(|data: &Dataset| data.pack(16).unwrap());
    for ranks in [1, 2, 3, 6] {
        for rank in 0..ranks {
            let expected = hashes(&one, rank, ranks);
            assert!(expected.len() > 20);
            assert_eq!(hashes(&parts, rank, ranks), expected, "rank {rank} of {ranks}");
        }
    }
    // Stopped after seven steps, and after nine more on three ranks.
    let build = |rank, ranks| {
        let loader = parts.loader().global_batch_size(6).seed(5).rank(rank, ranks).epochs(Some(2));
        loader.build().unwrap()
    };
    let whole = rows(vec![build(0, 1)]);
    let mut first = build(0, 1);
    let mut seen = Vec::new();
    for _ in 0..7 {
        seen.extend_from_slice(first.next_batch().unwrap().unwrap().get::<i64>("input_ids").unwrap());
    }
    let mut three: Vec<windrow::Loader> = (0..3).map(|rank| build(rank, 3)).collect();
    three.iter_mut().for_each(|loader| loader.resume(&first.state()).unwrap());
    for _ in 0..9 {
        for loader in &mut three {
            seen.extend_from_slice(loader.next_batch().unwrap().unwrap().get::<i64>("input_ids").unwrap());
        }
    }
    let state = three[0].state();
    assert!(three.iter().all(|loader| loader.state() == state));
    let mut two: Vec<windrow::Loader> = (0..2).map(|rank| build(rank, 2)).collect();
    two.iter_mut().for_each(|loader| loader.resume(&state).unwrap());
    seen.extend(rows(two));
    assert_eq!(seen, whole);
}

#[test]
fn parts_in_a_store_are_read_alike_and_every_claim_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bucket/out");
    let made = made();
    put_all(&out, &made.whole());
    let s3 = S3::serve(folder.path());
    let options = Options { timeout: Some(Duration::from_secs(20)), ..s3.options() };
    let open = |key: &str| open_with(format!("s3://bucket/{key}"), &options);
    let (here, there) = (windrow::open(&out).unwrap(), open("out").unwrap());
    assert_eq!(there.source().format(), "parts");
    assert_eq!(there.source().fingerprint().unwrap(), here.source().fingerprint().unwrap());
    let [near, far] = [&here, &there].map(|data| data.pack(16).unwrap());
    assert_eq!(hashes(&far, 1, 2), hashes(&near, 1, 2));
    windrow::dev::source::conformance::check(there.source().as_ref()).unwrap();
    assert_eq!(open("out/parts/000003.bin").unwrap().source().len(), 1);

    // Nothing of a part is asked for before it is read; then what is not as it was said to be is named.
    let read = |data: &Dataset| {
        let mut scratch = Vec::new();
        let source = data.source();
        (0..source.len()).try_for_each(|record| source.read_whole(record, &mut scratch).map(drop))
    };
    let bytes = fs::read(out.join("parts/000004.bin")).unwrap();
    fs::write(out.join("parts/000004.bin"), &bytes[2..]).unwrap();
    let e = read(&open("out").unwrap()).unwrap_err();
    assert!([Kind::Stale, Kind::Corrupt].contains(&e.kind()), "{e}");
    let sizes = [bytes.len(), bytes.len() - 2].map(|size| size.to_string());
    for wanted in ["s3://bucket/out/parts/000004.bin", &sizes[0], &sizes[1]] {
        assert!(format!("{e:#}").contains(wanted), "{wanted}: {e}");
    }
    fs::remove_file(out.join("parts/000004.bin")).unwrap();
    let e = read(&open("out").unwrap()).unwrap_err();
    assert!(e.kind() == Kind::NotFound && format!("{e:#}").contains("out/parts/000004.bin"), "{e}");

    fs::remove_file(out.join("windrow.json")).unwrap();
    fs::remove_file(out.join("parts/000004.json")).unwrap();
    let e = open("out").map(drop).unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (Kind::Stale, "the preparation is not finished: 4 of 5 tasks are done")
    );
    let job = format!("windrow prep run s3://bucket/out/prep/{JOB}.json");
    assert!(e.hint_text().unwrap().contains(&job), "{e}");
}

#[test]
fn very_many_parts_in_a_store_are_opened_without_a_listing() {
    let folder = tempfile::tempdir().unwrap();
    let parts: Vec<Vec<Vec<u16>>> = (0..10_001).map(|i| vec![vec![i % 1000; 3]]).collect();
    let files = Made::tokens(&parts).whole();
    // Of the parts only those that are read are there.
    let is_there = |name: &str| !name.starts_with("parts/") || name.starts_with("parts/005000.");
    let files: Files = files.into_iter().filter(|(name, _)| is_there(name)).collect();
    put_all(&folder.path().join("bucket/out"), &files);
    let s3 = S3::serve(folder.path());
    // No names are told: what is opened is asked for by its own.
    s3.deny(" /bucket/*$", 0);
    let data = open_with("s3://bucket/out", &s3.options()).unwrap();
    assert_eq!(data.len(), 10_001);
    let opened = data.traffic().requests;
    assert!(opened < 10, "{opened} requests");
    let mut scratch = Vec::new();
    let values = data.source().read_whole(5000, &mut scratch).unwrap();
    assert_eq!(values.bytes, [0u16; 3].map(u16::to_le_bytes).concat());
    let asked = data.traffic().requests - opened;
    assert!(asked <= 4, "{asked} requests");
}
