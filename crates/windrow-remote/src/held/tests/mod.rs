//! What is kept is what was put, wherever it is, whatever others do to the files.

mod both;
pub(super) mod by_position;
mod changed;
mod damaged;
mod processes;
mod room;

use std::path::{Path, PathBuf};

use windrow_core::store::whole;

use super::*;

const MIB: u64 = 1 << 20;
/// What tests count sizes in: several granules.
const BLOCK: u64 = 64 << 10;
const GRANULE: u64 = 4 << 10;
const SECTOR: u64 = 64;
const KIB: u64 = 1 << 10;

fn content(size: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(size);
    (0..size).map(|_| random.u8(..)).collect()
}

fn identity(name: &str, size: u64) -> Identity {
    Identity { url: format!("s3://bucket/{name}"), size, tag: "\"1\"".into() }
}

fn limits(cache: &Path, disk: Option<u64>) -> Limits {
    Limits { folder: Some(cache.to_path_buf()), disk, memory: 64 * MIB }
}

fn folder_of(cache: &Path, identity: &Identity) -> PathBuf {
    folder::Folder::new(cache.to_path_buf(), identity.clone()).path()
}

fn part(content: &[u8], range: &Range<u64>) -> Vec<u8> {
    content[range.start as usize..range.end as usize].to_vec()
}

fn one(range: Range<u64>) -> Vec<Range<u64>> {
    std::iter::once(range).collect()
}

/// Puts what is missing of a range; how many bytes that was.
fn fetch(held: &Held, content: &[u8], range: Range<u64>) -> u64 {
    let missing = held.missing(range.start, range.end - range.start);
    for missing in &missing {
        held.put(missing.start, part(content, missing));
    }
    missing.iter().map(|range| range.end - range.start).sum()
}

/// A range as a read has it. Tests of one program share its memory, so what is not being read may go at any time.
fn read(held: &Held, content: &[u8], range: Range<u64>) -> Vec<u8> {
    let _reading = held.reading(range.start, range.end - range.start);
    fetch(held, content, range.clone());
    assert!(held.missing(range.start, range.end - range.start).is_empty());
    found(held, &range).unwrap()
}

/// A range, where all of it is here.
fn found(held: &Held, range: &Range<u64>) -> Option<Vec<u8>> {
    let mut out = vec![0; (range.end - range.start) as usize];
    held.copy(range.start, &mut out).then_some(out)
}

fn borrowed(held: &Held, range: &Range<u64>) -> Option<Vec<u8>> {
    whole(|| held.borrowed(range.start, (range.end - range.start) as usize).map(<[u8]>::to_vec))
}

/// Bytes of a range that the disk holds, as the first process of all would find it.
fn bytes_on_disk(cache: &Path, identity: &Identity) -> u64 {
    let held = Held::new(identity.clone(), &limits(cache, Some(u64::MAX)));
    let missing: u64 = held.missing(0, identity.size).iter().map(|range| range.end - range.start).sum();
    identity.size - missing
}

/// Asks and puts at random places, and compares.
fn exercise(held: &Held, content: &[u8], seed: u64, rounds: u32) {
    let size = content.len() as u64;
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..rounds {
        let start = random.u64(0..size);
        let range = start..(start + random.u64(0..=3 * BLOCK)).min(size);
        let _reading = held.reading(range.start, range.end - range.start);
        let missing = held.missing(range.start, range.end - range.start);
        assert!(missing.iter().all(|range| range.start < range.end && range.end <= size), "{missing:?}");
        assert!(missing.windows(2).all(|two| two[0].end < two[1].start), "{missing:?}");
        match found(held, &range) {
            Some(bytes) => assert_eq!(bytes, part(content, &range)),
            None => assert!(!missing.is_empty(), "{range:?}"),
        }
        if let Some(bytes) = borrowed(held, &range) {
            assert_eq!(bytes, part(content, &range));
        }
        for missing in missing {
            // As several requests, or a part only.
            let middle = random.u64(missing.start..=missing.end);
            for one in [missing.start..middle, middle..missing.end] {
                if !one.is_empty() && random.u8(..) < 200 {
                    held.put(one.start, part(content, &one));
                }
            }
        }
        if random.bool() {
            assert_eq!(read(held, content, range.clone()), part(content, &range));
        }
    }
}

#[test]
fn what_is_put_is_found_on_disk_in_memory_and_in_both() {
    const SIZE: u64 = 40 * BLOCK + 777;
    let content = content(SIZE);
    for disk in [None, Some(u64::MAX), Some(0), Some(20 * BLOCK), Some(2 * BLOCK), Some(BLOCK), Some(5)] {
        let cache = tempfile::tempdir().unwrap();
        let held = Held::new(identity("x", SIZE), &limits(cache.path(), disk));
        exercise(&held, &content, 1, 400);
        assert_eq!(read(&held, &content, 0..SIZE), content);
    }
}

#[test]
fn any_number_of_threads_may_ask_and_put() {
    const SIZE: u64 = 30 * BLOCK + 5;
    let content = content(SIZE);
    for disk in [Some(u64::MAX), Some(10 * BLOCK), Some(0)] {
        let cache = tempfile::tempdir().unwrap();
        let held = Held::new(identity("x", SIZE), &limits(cache.path(), disk));
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (held, content) = (&held, &content);
                scope.spawn(move || exercise(held, content, seed, 200));
            }
        });
    }
}

#[test]
fn what_is_on_disk_is_there_the_next_time() {
    const SIZE: u64 = 3 * BLOCK + 1;
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let open = |identity| Held::new(identity, &limits(cache.path(), None));
    let held = open(identity("x", SIZE));
    assert_eq!(held.missing(10, 1), one(0..SECTOR));
    assert_eq!(held.missing(BLOCK - 1, 2), one(BLOCK - SECTOR..BLOCK + SECTOR));
    assert_eq!(held.missing(SIZE - 1, 1), one(3 * BLOCK..SIZE));
    assert_eq!(held.missing(5, 0), []);
    // The end of the object is a granule of one byte.
    held.put(BLOCK, part(&content, &(BLOCK..SIZE)));
    assert_eq!(held.missing(0, SIZE), one(0..BLOCK));
    drop(held);
    let held = open(identity("x", SIZE));
    assert_eq!(held.missing(0, SIZE), one(0..BLOCK));
    assert_eq!(borrowed(&held, &(BLOCK..SIZE)), Some(part(&content, &(BLOCK..SIZE))));
    // Another version, another size, another object: another copy.
    for other in [
        Identity { tag: "\"2\"".into(), ..identity("x", SIZE) },
        identity("x", SIZE + 1),
        identity("y", SIZE),
    ] {
        let size = other.size;
        assert_eq!(open(other).missing(0, size), one(0..size));
    }
    let about = std::fs::read(folder_of(cache.path(), &identity("x", SIZE)).join("about.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Identity>(&about).unwrap(), identity("x", SIZE));
}

#[test]
fn without_a_tag_or_a_limit_nothing_is_on_disk() {
    const SIZE: u64 = 2 * BLOCK;
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let untagged = Identity { tag: String::new(), ..identity("x", SIZE) };
    for (identity, disk) in [(untagged, None), (identity("x", SIZE), Some(0))] {
        let held = Held::new(identity, &limits(cache.path(), disk));
        assert_eq!(held.missing(SECTOR + 1, 1), one(SECTOR..2 * SECTOR));
        assert_eq!(read(&held, &content, 0..SIZE), content);
        assert_eq!(borrowed(&held, &(0..1)), None);
    }
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn a_read_larger_than_the_memory_succeeds() {
    const SIZE: u64 = 64 * BLOCK;
    let content = content(SIZE);
    let limits = Limits { folder: None, disk: Some(0), memory: BLOCK };
    let held = Held::new(identity("x", SIZE), &limits);
    {
        let _reading = held.reading(0, SIZE);
        for start in (0..SIZE).step_by(BLOCK as usize) {
            fetch(&held, &content, start..start + BLOCK);
        }
        assert_eq!(found(&held, &(0..SIZE)), Some(content.clone()));
    }
    // And goes afterwards.
    held.put(0, Vec::new());
    assert!(held.missing(0, SIZE).iter().map(|range| range.end - range.start).sum::<u64>() >= SIZE - BLOCK);
}

#[test]
fn an_object_may_be_of_any_size() {
    let cache = tempfile::tempdir().unwrap();
    // Larger ones have no copy, and some disks have none of these either.
    for size in [1, BLOCK, 1 << 40, 1 << 44, (1 << 44) + 1, 1 << 60, u64::MAX] {
        let held = Held::new(identity("x", size), &limits(cache.path(), Some(MIB)));
        for range in [0..size.min(10), size - 1..size, size / 2..size / 2 + 1] {
            let _reading = held.reading(range.start, range.end - range.start);
            for missing in held.missing(range.start, range.end - range.start) {
                assert!(missing.end <= size && missing.end - missing.start <= 2 * KIB);
                held.put(missing.start, missing.clone().map(|at| (at % 251) as u8).collect());
            }
            let right: Vec<u8> = range.clone().map(|at| (at % 251) as u8).collect();
            assert_eq!(found(&held, &range), Some(right), "{range:?} of {size}");
        }
    }
}

#[test]
fn what_was_read_one_by_one_is_kept_as_it_came() {
    const SAMPLE: u64 = 1000;
    const SIZE: u64 = 300 * SAMPLE + 128;
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let open = || Held::new(identity("x", SIZE), &limits(cache.path(), Some(u64::MAX)));
    let mut order: Vec<u64> = (0..300).collect();
    fastrand::Rng::with_seed(9).shuffle(&mut order);
    let held = open();
    let mut fetched = 0;
    for (number, sample) in order.iter().enumerate() {
        let range = 128 + sample * SAMPLE..128 + (sample + 1) * SAMPLE;
        let bytes = fetch(&held, &content, range.clone());
        assert!(bytes < SAMPLE + 2 * SECTOR, "{bytes}");
        fetched += bytes;
        // Its neighbours may come before it or after it; another process finds what this one does.
        if number % 10 == 0 {
            let other = open();
            assert!(other.missing(range.start, SAMPLE).is_empty());
            for held in [&held, &other] {
                assert!(borrowed(held, &range) == Some(part(&content, &range)), "{range:?}");
            }
        }
    }
    assert!(fetched < 300 * (SAMPLE + SECTOR), "{fetched}");
    assert_eq!(bytes_on_disk(cache.path(), &identity("x", SIZE)), SIZE - 128);
}

#[test]
fn threads_that_write_to_one_granule_leave_nothing_out() {
    const SIZE: u64 = 16 * GRANULE;
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let held = Held::new(identity("x", SIZE), &limits(cache.path(), Some(u64::MAX)));
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (held, content) = (&held, &content);
            scope.spawn(move || {
                for sector in (first..SIZE / SECTOR).step_by(4) {
                    let range = sector * SECTOR..(sector + 1) * SECTOR;
                    held.put(range.start, part(content, &range));
                }
            });
        }
    });
    assert_eq!(borrowed(&held, &(0..SIZE)), Some(content));
}

#[test]
fn all_is_kept_where_all_objects_find_room() {
    let cache = tempfile::tempdir().unwrap();
    // Tests of one program count together.
    let many = 1 << 50;
    let open = |disk, memory| {
        let limits = Limits { folder: Some(cache.path().to_path_buf()), disk: Some(disk), memory };
        Held::new(identity("x", MIB), &limits)
    };
    assert!(open(many, 0).keeps_all() && open(0, many).keeps_all());
    assert!(!open(MIB / 2, MIB / 4).keeps_all() && !open(0, MIB - 1).keeps_all());
}
