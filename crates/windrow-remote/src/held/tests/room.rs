//! The limit: what is in stays, what does not fit goes through memory, and other data's copies go first.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use super::processes::no_forks;
use super::*;

const SIZE: u64 = 32 * BLOCK;
/// What a limit keeps from the bytes of copies: a page of checksums, its 256th, and less than another granule.
const fn with_besides(bytes: u64) -> u64 {
    (bytes + 4096 + 1000) / 255 * 256
}

#[test]
fn half_is_kept_and_stays() {
    let (cache, content, identity) = (tempfile::tempdir().unwrap(), content(SIZE), identity("x", SIZE));
    let half = SIZE / 2;
    let limits = Limits { memory: BLOCK, ..limits(cache.path(), Some(with_besides(half))) };
    let held = Held::new(identity.clone(), &limits);
    for epoch in 0..3 {
        let mut fetched = 0;
        for start in (0..SIZE).step_by(BLOCK as usize) {
            let granule = start..start + BLOCK;
            let _reading = held.reading(start, BLOCK);
            fetched += fetch(&held, &content, granule.clone());
            assert_eq!(found(&held, &granule), Some(part(&content, &granule)));
        }
        // Something that was read may still be in memory.
        assert!(fetched <= if epoch == 0 { SIZE } else { half }, "epoch {epoch}: {fetched}");
        assert!(fetched >= half - BLOCK, "epoch {epoch}: {fetched}");
        assert!(borrowed(&held, &(0..half)).is_some() && borrowed(&held, &(half..half + 1)).is_none());
    }
    drop(held);
    assert_eq!(bytes_on_disk(cache.path(), &identity), half);
}

#[test]
fn a_range_that_fits_in_part_is_on_disk_in_part() {
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let held = Held::new(identity("x", SIZE), &limits(cache.path(), Some(with_besides(3 * BLOCK))));
    assert_eq!(held.missing(1, SIZE - 2), one(0..SIZE));
    let _reading = held.reading(0, SIZE);
    held.put(0, content.clone());
    assert!(
        borrowed(&held, &(0..3 * BLOCK)).is_some() && borrowed(&held, &(3 * BLOCK..3 * BLOCK + 1)).is_none()
    );
    assert_eq!(found(&held, &(0..SIZE)), Some(content));
    assert_eq!(held.missing(0, SIZE), []);
}

#[test]
fn other_datas_copies_go_first_the_oldest_before_the_others_and_not_those_in_use() {
    let _alone = no_forks();
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let open = |name: &str, disk| Held::new(identity(name, SIZE), &limits(cache.path(), Some(disk)));
    let path = |name: &str| folder_of(cache.path(), &identity(name, SIZE));
    for (name, hours) in [("open", 9), ("oldest", 8), ("old", 7), ("new", 1)] {
        fetch(&open(name, u64::MAX), &content, 0..SIZE);
        let used = SystemTime::now() - Duration::from_secs(hours * 3600);
        File::options().write(true).open(path(name).join("about.json")).unwrap().set_modified(used).unwrap();
    }
    // What is no copy stays, whatever it is.
    let foreign = cache.path().join("remote/notes");
    fs::create_dir(&foreign).unwrap();
    // The sums, and what a file system keeps beside the bytes.
    let slack = 8 * BLOCK;
    let in_use = open("open", u64::MAX);
    assert_eq!(in_use.missing(0, SIZE), []);
    let held = open("x", 4 * SIZE + slack);
    fetch(&held, &content, 0..SIZE);
    assert!(borrowed(&held, &(0..SIZE)).is_some());
    let there = |name: &str| path(name).exists();
    assert_eq!(["open", "oldest", "old", "new", "x"].map(there), [true, false, true, true, true]);
    // Room for these two alone: all others go.
    let more = open("more", 3 * SIZE + slack);
    fetch(&more, &content, 0..SIZE);
    assert!(borrowed(&more, &(0..SIZE)).is_some());
    assert_eq!(["open", "old", "new", "x", "more"].map(there), [true, false, false, true, true]);
    // All are in use: what else comes goes through memory.
    let last = open("last", 3 * SIZE + slack / 2);
    assert_eq!(read(&last, &content, 0..SIZE), content);
    assert!(borrowed(&last, &(0..SIZE)).is_none());
    assert!([&in_use, &held, &more].iter().all(|held| borrowed(held, &(0..SIZE)) == Some(content.clone())));
    // Closed, they may go.
    drop(in_use);
    let next = open("next", 3 * SIZE + slack);
    fetch(&next, &content, 0..SIZE);
    assert!(borrowed(&next, &(0..SIZE)).is_some() && !there("open") && foreign.exists());
}

#[test]
fn closed_copies_of_this_process_may_go() {
    let _alone = no_forks();
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    for i in 0..20 {
        let held = Held::new(identity(&i.to_string(), SIZE), &limits(cache.path(), Some(3 * SIZE)));
        fetch(&held, &content, 0..SIZE);
        assert_eq!(borrowed(&held, &(0..SIZE)), Some(content.clone()));
    }
    assert!(fs::read_dir(cache.path().join("remote")).unwrap().count() <= 4);
}

#[test]
fn processes_of_a_machine_share_the_limit() {
    assert_eq!([None, Some("4"), Some("0"), Some(""), Some("x")].map(space::processes), [1, 4, 1, 1, 1]);
}

#[test]
fn what_was_read_goes_when_memory_is_short() {
    let content = content(8 * BLOCK);
    let held =
        Held::new(identity("x", 8 * BLOCK), &Limits { folder: None, disk: Some(0), memory: BLOCK / 2 });
    let (first, second) = (0..BLOCK, BLOCK..2 * BLOCK);
    assert_eq!(read(&held, &content, first.clone()), part(&content, &first));
    assert_eq!(read(&held, &content, second.clone()), part(&content, &second));
    assert_eq!(found(&held, &(0..1)), None);
}
