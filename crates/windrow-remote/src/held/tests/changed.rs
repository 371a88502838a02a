//! Files that other programs truncate, remove, replace or close, before they are opened and while they are open.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const SIZE: u64 = 8 * BLOCK + 3;

type Change = fn(&Path);

const CHANGES: &[(&str, Change)] = &[
    ("data is empty", |folder| cut(&folder.join("data"), 0)),
    ("data ends early", |folder| cut(&folder.join("data"), 3 * BLOCK + 1)),
    ("data is longer", |folder| cut(&folder.join("data"), SIZE + 1)),
    ("data is gone", |folder| fs::remove_file(folder.join("data")).unwrap()),
    ("data is a link", |folder| link(folder, "data")),
    ("data is a folder", |folder| {
        fs::remove_file(folder.join("data")).unwrap();
        fs::create_dir(folder.join("data")).unwrap();
    }),
    ("data is a pipe", |folder| {
        fs::remove_file(folder.join("data")).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, folder.join("data"), kind, mode, 0).unwrap();
    }),
    ("sums are empty", |folder| cut(&folder.join("sums"), 0)),
    ("sums end early", |folder| cut(&folder.join("sums"), 20)),
    ("sums are gone", |folder| fs::remove_file(folder.join("sums")).unwrap()),
    ("sums are a link", |folder| link(folder, "sums")),
    ("about.json is empty", |folder| cut(&folder.join("about.json"), 0)),
    ("about.json is torn", |folder| cut(&folder.join("about.json"), 11)),
    ("about.json is gone", |folder| fs::remove_file(folder.join("about.json")).unwrap()),
    ("about.json is a link", |folder| link(folder, "about.json")),
    ("about.json is of something else", |folder| {
        let other = serde_json::to_vec(&identity("other", SIZE)).unwrap();
        fs::write(folder.join("about.json"), other).unwrap();
    }),
    ("all is gone", |folder| fs::remove_dir_all(folder).unwrap()),
    ("the folder is a link", |folder| {
        let other = folder.with_file_name("other");
        fs::rename(folder, &other).unwrap();
        symlink(other, folder).unwrap();
    }),
    ("the folder is a file", |folder| {
        fs::remove_dir_all(folder).unwrap();
        fs::write(folder, "x").unwrap();
    }),
];

fn cut(path: &Path, size: u64) {
    fs::File::options().write(true).open(path).unwrap().set_len(size).unwrap();
}

// What the link leads to must stay as it is.
fn link(folder: &Path, name: &str) {
    let target = folder.parent().unwrap().join("target");
    fs::write(&target, "not ours").unwrap();
    fs::remove_file(folder.join(name)).unwrap();
    symlink(target, folder.join(name)).unwrap();
}

fn check_target(cache: &Path, what: &str) {
    if let Ok(target) = fs::read(cache.join("remote/target")) {
        assert_eq!(target, b"not ours", "{what}");
    }
}

#[test]
fn whatever_was_changed_before_the_bytes_are_right() {
    let content = content(SIZE);
    for (what, change) in CHANGES {
        let (cache, identity) = (tempfile::tempdir().unwrap(), identity("x", SIZE));
        let open = || Held::new(identity.clone(), &limits(cache.path(), None));
        fetch(&open(), &content, 0..SIZE);
        change(&folder_of(cache.path(), &identity));
        let held = open();
        exercise(&held, &content, 5, 50);
        assert_eq!(read(&held, &content, 0..SIZE), content, "{what}");
        check_target(cache.path(), what);
    }
}

#[test]
fn whatever_changes_meanwhile_the_bytes_are_right() {
    let content = content(SIZE);
    for (what, change) in CHANGES {
        for so_far in [0..SIZE, 0..BLOCK, 5 * BLOCK..SIZE] {
            let (cache, identity) = (tempfile::tempdir().unwrap(), identity("x", SIZE));
            let held = Held::new(identity.clone(), &limits(cache.path(), None));
            fetch(&held, &content, so_far);
            change(&folder_of(cache.path(), &identity));
            // What another one makes in its place does not deceive the first.
            let other = Held::new(identity.clone(), &limits(cache.path(), None));
            fetch(&other, &content, 2 * BLOCK..3 * BLOCK);
            for held in [&held, &other] {
                exercise(held, &content, 6, 50);
                assert_eq!(read(held, &content, 0..SIZE), content, "{what}");
            }
            check_target(cache.path(), what);
        }
    }
}

#[test]
fn readers_of_a_copy_that_is_cut_get_its_bytes_or_nothing() {
    let content = content(SIZE);
    let mut random = fastrand::Rng::with_seed(8);
    for seed in 0..20 {
        let (cache, identity) = (tempfile::tempdir().unwrap(), identity("x", SIZE));
        let held = Held::new(identity.clone(), &limits(cache.path(), None));
        fetch(&held, &content, 0..SIZE);
        std::thread::scope(|scope| {
            for reader in 0..2 {
                let (held, content) = (&held, &content);
                let mut random = fastrand::Rng::with_seed(2 * seed + reader);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let start = random.u64(0..SIZE);
                        let range = start..random.u64(start..=SIZE);
                        let _reading = held.reading(start, SIZE);
                        assert!(borrowed(held, &range).is_none_or(|bytes| bytes == part(content, &range)));
                        // What was cut off in between comes once more.
                        let read = (0..2).find_map(|_| {
                            fetch(held, content, range.clone());
                            found(held, &range)
                        });
                        assert_eq!(read, Some(part(content, &range)));
                    }
                });
            }
            cut(&folder_of(cache.path(), &identity).join("data"), random.u64(0..8) * BLOCK);
        });
        assert_eq!(read(&held, &content, 0..SIZE), content);
    }
}

#[test]
fn a_copy_of_another_size_or_with_an_empty_note_is_made_again() {
    let content = content(SIZE);
    for what in ["data is empty", "data ends early", "data is longer", "about.json is torn", "sums are gone"]
    {
        let (cache, identity) = (tempfile::tempdir().unwrap(), identity("x", SIZE));
        let open = || Held::new(identity.clone(), &limits(cache.path(), None));
        fetch(&open(), &content, 0..SIZE);
        CHANGES.iter().find(|(name, _)| *name == what).unwrap().1(&folder_of(cache.path(), &identity));
        fetch(&open(), &content, 0..SIZE);
        assert_eq!(bytes_on_disk(cache.path(), &identity), SIZE, "{what}");
    }
}

#[test]
fn a_folder_that_says_it_is_of_something_else_is_made_again() {
    let (cache, content, identity) = (tempfile::tempdir().unwrap(), content(SIZE), identity("x", SIZE));
    let open = || Held::new(identity.clone(), &limits(cache.path(), None));
    fetch(&open(), &content, 0..SIZE);
    let about = folder_of(cache.path(), &identity).join("about.json");
    let before = fs::read(&about).unwrap();
    fs::write(&about, serde_json::to_vec(&super::identity("other", SIZE)).unwrap()).unwrap();
    // Its name says of what it is: the note is damaged, and the bytes may be of anything.
    let held = open();
    assert_eq!(held.missing(0, SIZE), one(0..SIZE));
    assert_eq!(read(&held, &content, 0..SIZE), content);
    assert_eq!(fs::read(&about).unwrap(), before);
    drop(held);
    assert_eq!(bytes_on_disk(cache.path(), &identity), SIZE);
}

#[test]
fn where_nothing_can_be_written_memory_takes_it() {
    let (outside, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let file = outside.path().join("file");
    fs::write(&file, "x").unwrap();
    // A file in the way, and the files that the system makes.
    for cache in [file.clone(), file.join("below"), PathBuf::from("/proc/windrow")] {
        let held = Held::new(identity("x", SIZE), &limits(&cache, None));
        exercise(&held, &content, 7, 50);
        assert_eq!(read(&held, &content, 0..SIZE), content);
        assert_eq!(borrowed(&held, &(0..1)), None);
    }
    assert_eq!(fs::read(file).unwrap(), b"x");
}

#[test]
fn what_is_made_is_for_its_owner_alone() {
    let outside = tempfile::tempdir().unwrap();
    let cache = outside.path().join("a/b");
    fetch(&Held::new(identity("x", SIZE), &limits(&cache, None)), &content(SIZE), 0..SIZE);
    let folder = folder_of(&cache, &identity("x", SIZE));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for path in [&outside.path().join("a"), &cache, &cache.join("remote"), &folder] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    for name in ["data", "sums", "about.json"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
}
