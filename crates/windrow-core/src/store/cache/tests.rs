//! Drafts, entries, space.

use std::fs::File;
use std::io::Read;

use super::*;
use crate::store::{Local, Memory, Store};

fn object(bytes: &[u8]) -> Arc<dyn Object> {
    Memory::new().with("x", bytes).open("x").unwrap()
}

#[test]
fn a_draft_is_appended_to_changed_and_cut() {
    let folder = tempfile::tempdir().unwrap();
    let made = Cache::at(folder.path()).made(object(b"a").as_ref(), "test", "", |draft| {
        draft.append(b"0123456789")?;
        let mut part = [0; 3];
        draft.read_at(4, &mut part)?;
        assert_eq!(&part, b"456");
        draft.write_at(1, b"AB")?;
        draft.cut(6)?;
        let mut other = draft.spill()?;
        other.append(&[b'x'; BUFFER + 1])?;
        other.append(b"end")?;
        draft.append_all(&mut other)?;
        assert_eq!(draft.size(), 6 + BUFFER as u64 + 4);
        Ok(())
    });
    let made = made.unwrap();
    let bytes = made.mapped().unwrap();
    assert_eq!(&bytes[..7], b"0AB345x");
    assert_eq!(&bytes[bytes.len() - 4..], b"xend");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_is_there_is_not_made_again_and_what_differs_is() {
    let folder = tempfile::tempdir().unwrap();
    let made = |bytes: &[u8], what: &str| {
        let mut times = 0;
        Cache::at(folder.path())
            .made(object(bytes).as_ref(), "test", what, |draft| {
                times += 1;
                draft.append(b"x")
            })
            .unwrap();
        times
    };
    assert_eq!([made(b"a", "1"), made(b"a", "1"), made(b"b", "1"), made(b"a", "2")], [1, 0, 1, 1]);
}

#[test]
fn what_several_ask_for_at_once_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let times = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let made = Cache::at(folder.path()).made(object(b"a").as_ref(), "test", "1", |draft| {
                    times.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    draft.append(b"xyz")
                });
                assert_eq!(made.unwrap().mapped(), Some(&b"xyz"[..]));
            });
        }
    });
    assert_eq!(times.into_inner(), 1);
}

#[test]
fn what_fails_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let error = Cache::at(folder.path()).made(object(b"a").as_ref(), "test", "1", |draft| {
        draft.append(b"x")?;
        Err(Error::corrupt("no"))
    });
    assert_eq!(error.err().unwrap().kind(), Kind::Corrupt);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A folder of files of its own and a cache.
struct Desk(tempfile::TempDir);

const SIZE: usize = 100_000;
/// What one entry of that takes at most, and more than half of another.
const ROOM: u64 = 130_000;

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn cache(&self) -> Cache {
        Cache::at(&self.path("cache"))
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// The entry of a file, and whether it was made now: the file's bytes, again and again.
    fn made_in(&self, cache: &Cache, name: &str) -> Result<(Arc<dyn Object>, bool)> {
        let object = Local::new(self.0.path()).open(name)?;
        let mut is_new = false;
        let made = cache.made(object.as_ref(), "test", "", |draft| {
            is_new = true;
            let mut scratch = Vec::new();
            let bytes = object.read(0, object.size() as usize, &mut scratch)?;
            while draft.size() < SIZE as u64 {
                draft.append(bytes)?;
            }
            Ok(())
        })?;
        assert!(made.read(0, object.size() as usize, &mut Vec::new())? == object.mapped().unwrap());
        Ok((made, is_new))
    }

    /// Makes the entry of a file, closed at once; whether it was made now.
    fn made(&self, cache: &Cache, name: &str) -> bool {
        self.made_in(cache, name).unwrap().1
    }

    /// A copy of something far, used `hours` hours ago, as another process would make it; its bytes.
    fn copy(&self, number: u32, hours: u64) -> PathBuf {
        let folder = self.path(&format!("cache/remote/{number:032x}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("data"), [1; SIZE]).unwrap();
        fs::write(folder.join("sums"), [1; 16]).unwrap();
        fs::write(folder.join("about.json"), format!(r#"{{"url": "s3://bucket/{number}"}}"#)).unwrap();
        used(&folder.join("about.json"), hours);
        folder.join("data")
    }

    /// The file of an entry.
    fn entry_of(&self, cache: &Cache, name: &str) -> PathBuf {
        let entries = cache.entries().unwrap();
        let entry = entries.iter().find(|entry| entry.source.ends_with(name)).unwrap();
        self.path("cache").join(&entry.name)
    }

    fn kept(&self) -> usize {
        fs::read_dir(self.path("cache")).map_or(0, Iterator::count)
    }
}

#[test]
fn what_was_used_least_recently_goes_first_and_what_is_open_stays() {
    let desk = Desk::new();
    let cache = desk.cache().limited_to(3 * ROOM);
    for name in ["a", "b", "c", "d", "e"] {
        desk.write(name, name.as_bytes());
    }
    assert!(["a", "b", "c"].map(|name| desk.made(&cache, name)) == [true; 3]);
    assert!(!desk.made(&cache, "a"));
    // `b` was used least recently.
    assert!(desk.made(&cache, "d"));
    assert_eq!(desk.kept(), 3);
    assert!(["a", "c", "d"].map(|name| desk.made(&cache, name)) == [false; 3]);
    // `a` is next, but open.
    let (a, _) = desk.made_in(&cache, "a").unwrap();
    assert!(["c", "d"].map(|name| desk.made(&cache, name)) == [false; 2]);
    assert!(desk.made(&cache, "e") && desk.made(&cache, "b"));
    assert!(!desk.made(&cache, "a"));
    assert!(a.mapped().unwrap().iter().all(|byte| *byte == b'a'));
    let entries = cache.entries().unwrap();
    assert_eq!(entries.iter().map(|entry| entry.is_open).filter(|open| *open).count(), 1);
    assert!(entries.iter().all(|entry| entry.kind == "test" && entry.bytes > SIZE as u64), "{entries:?}");
    let of = |entry: &Entry| Path::new(&entry.source).file_name().unwrap().to_str().unwrap().to_string();
    assert_eq!(entries.iter().map(of).collect::<Vec<_>>(), ["a", "b", "e"]);
    drop(a);
    assert!(cache.entries().unwrap().iter().all(|entry| !entry.is_open));
}

/// Sets when something was used last: `hours` hours ago.
fn used(path: &Path, hours: u64) {
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(3600 * hours);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// The sources of all that is there, sorted, within the limit.
fn sources(cache: &Cache, limit: u64) -> Vec<String> {
    let entries = cache.entries().unwrap();
    assert!(entries.iter().map(|entry| entry.bytes).sum::<u64>() <= limit, "{entries:?}");
    let name = |entry: &Entry| entry.source.rsplit('/').next().unwrap().to_string();
    let mut names: Vec<_> = entries.iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn entries_and_copies_have_one_limit_and_what_was_used_least_recently_goes_first() {
    let desk = Desk::new();
    let cache = desk.cache().limited_to(3 * ROOM);
    ["a", "b", "c", "d", "e"].iter().for_each(|name| desk.write(name, name.as_bytes()));
    desk.copy(1, 2);
    assert!(desk.made(&cache, "a") && desk.made(&cache, "b"));
    assert_eq!(sources(&cache, 3 * ROOM), ["1", "a", "b"]);
    // The copy is oldest.
    assert!(desk.made(&cache, "c"));
    assert_eq!(sources(&cache, 3 * ROOM), ["a", "b", "c"]);
    // Entries are older than a copy of another process.
    ["a", "b", "c"].iter().zip(3..).for_each(|(name, hours)| used(&desk.entry_of(&cache, name), hours));
    let copy = desk.copy(2, 2);
    super::space::forget_listing(&cache);
    assert!(desk.made(&cache, "d"));
    assert_eq!(sources(&cache, 3 * ROOM), ["2", "a", "d"]);
    // The oldest of all is open in a process.
    used(&copy.with_file_name("about.json"), 5);
    let open = File::open(&copy).unwrap();
    open.lock_shared().unwrap();
    super::space::forget_listing(&cache);
    assert!(desk.made(&cache, "e"));
    assert_eq!(sources(&cache, 3 * ROOM), ["2", "d", "e"]);
    let listed = cache.entries().unwrap();
    let fetched = listed.iter().find(|entry| entry.kind == "fetched").unwrap();
    assert!(fetched.is_open && fetched.name.starts_with("remote/0") && fetched.source == "s3://bucket/2");
    assert_eq!(cache.clear().unwrap().left, std::slice::from_ref(fetched));
    drop(open);
    assert_eq!(cache.clear().unwrap().removed, 1);
    assert!(!copy.parent().unwrap().exists());
}

#[test]
fn what_is_granted_for_copies_makes_entries_go_and_is_below_the_limit_with_them() {
    let desk = Desk::new();
    let cache = desk.cache().limited_to(10 * ROOM);
    let names: Vec<String> = (0..8).map(|i| i.to_string()).collect();
    for name in &names {
        desk.write(name, name.as_bytes());
        assert!(desk.made(&cache, name));
    }
    let held = || cache.entries().unwrap().iter().map(|entry| entry.bytes).sum::<u64>();
    assert_eq!(cache.take(ROOM, ROOM), ROOM);
    assert_eq!(desk.kept(), 8);
    // Given back; what is taken and not there counts.
    cache.wrote(ROOM, 0);
    for round in 1..=5 {
        assert_eq!(cache.take(ROOM, ROOM), ROOM);
        assert!(held() + round * ROOM <= 10 * ROOM, "{round}");
    }
    assert!(["6", "7"].map(|name| desk.made(&cache, name)) == [false; 2] && desk.kept() < 8);
    cache.closed();
    // No more than there is, in whole units.
    let all = cache.take(u64::MAX, 1000);
    assert!(all.is_multiple_of(1000) && all <= 5 * ROOM && desk.kept() == 0, "{all}");
    cache.wrote(5 * ROOM + all, 0);
    assert!(desk.made(&cache, "0"));
}

#[test]
fn what_lies_in_the_place_of_copies_and_is_none_is_never_touched() {
    let desk = Desk::new();
    let cache = desk.cache().limited_to(ROOM);
    desk.write("a", b"a");
    let inside = desk.copy(1, 2);
    let outside = desk.path("outside");
    fs::rename(desk.path("cache/remote"), &outside).unwrap();
    let kept = || {
        assert!(desk.made(&cache, "a"));
        let sources = sources(&cache, ROOM);
        cache.clear().unwrap();
        sources
    };
    // A link, a file, and folders of other names.
    std::os::unix::fs::symlink(&outside, desk.path("cache/remote")).unwrap();
    assert_eq!(kept(), ["a"]);
    fs::remove_file(desk.path("cache/remote")).unwrap();
    desk.write("cache/remote", b"notes");
    assert_eq!(kept(), ["a"]);
    fs::remove_file(desk.path("cache/remote")).unwrap();
    fs::create_dir_all(desk.path("cache/remote/notes")).unwrap();
    desk.write("cache/remote/notes/data", &[0; 3 * ROOM as usize]);
    std::os::unix::fs::symlink(
        outside.join(inside.parent().unwrap().file_name().unwrap()),
        desk.path(&format!("cache/remote/{:032x}", 7)),
    )
    .unwrap();
    assert_eq!(kept(), ["a"]);
    assert!(desk.path("cache/remote/notes/data").exists());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read(outside.join(format!("{:032x}/data", 1))).unwrap().len(), SIZE);
}

#[test]
fn an_entry_that_has_no_space_is_an_error_that_says_how_to_have_it() {
    let desk = Desk::new();
    ["a", "b", "c"].iter().for_each(|name| desk.write(name, name.as_bytes()));
    let check = |error: Error, says: &[&str]| {
        assert_eq!(
            (error.kind(), error.place().field.as_deref()),
            (Kind::Config, Some("WINDROW_CACHE_LIMIT"))
        );
        assert!(error.place().file.is_some() && error.hint_text().is_some(), "{error}");
        says.iter().for_each(|word| assert!(format!("{error:#}").contains(word), "{error}: {word}"));
    };
    let small = desk.cache().limited_to(SIZE as u64 - 1);
    let error = desk.made_in(&small, "a").err().unwrap();
    check(error, &["at least 1000", "limit of 99999 bytes", "set WINDROW_CACHE_LIMIT to more"]);
    // The note counts, too.
    check(
        desk.made_in(&desk.cache().limited_to(SIZE as u64), "a").err().unwrap(),
        &["limit of 100000 bytes"],
    );
    assert_eq!(desk.kept(), 0);
    let cache = desk.cache().limited_to(2 * ROOM);
    let (a, b) = (desk.made_in(&cache, "a").unwrap(), desk.made_in(&cache, "b").unwrap());
    check(desk.made_in(&cache, "c").err().unwrap(), &["are open"]);
    assert_eq!(desk.kept(), 2);
    drop(a);
    assert!(desk.made(&cache, "c") && !desk.made(&cache, "b"));
    assert_eq!(desk.kept(), 2);
    drop(b);
    let mut what = String::new();
    let wrapped = cache.made(object(b"x").as_ref(), "test", "", |draft| {
        let done = std::io::copy(&mut std::io::repeat(1).take(3 * ROOM), draft);
        what = done.as_ref().unwrap_err().to_string();
        done.map(drop).map_err(|e| Error::new(Kind::Io, "cannot write").caused_by(e))
    });
    check(wrapped.err().unwrap(), &["at least"]);
    assert!(!what.is_empty());
}

#[test]
fn a_file_is_found_by_what_it_is_and_not_by_its_path() {
    let desk = Desk::new();
    let cache = desk.cache();
    fs::create_dir(desk.path("one")).unwrap();
    desk.write("one/a", b"abc");
    assert!(desk.made(&cache, "one/a") && !desk.made(&cache, "one/a"));
    std::os::unix::fs::symlink("one/a", desk.path("link")).unwrap();
    assert!(!desk.made(&cache, "link"));
    // A folder that was renamed holds the same files.
    fs::rename(desk.path("one"), desk.path("other")).unwrap();
    assert!(!desk.made(&cache, "other/a"));
    // Two names of one file are one version of it.
    fs::hard_link(desk.path("other/a"), desk.path("second")).unwrap();
    desk.made(&cache, "second");
    assert!(!desk.made(&cache, "other/a") && !desk.made(&cache, "second"));
    // Where it was, another file is another one.
    let before = fs::metadata(desk.path("other/a")).unwrap().modified().unwrap();
    let set =
        |name: &str| File::options().write(true).open(desk.path(name)).unwrap().set_modified(before).unwrap();
    fs::create_dir(desk.path("one")).unwrap();
    desk.write("one/a", b"abd");
    set("one/a");
    assert!(desk.made(&cache, "one/a"));
    // A copy with the same times is another file.
    fs::copy(desk.path("other/a"), desk.path("copy")).unwrap();
    set("copy");
    assert!(desk.made(&cache, "copy"));
    // So is the same file with other bytes, whatever its time says.
    fs::write(desk.path("copy"), b"xyz").unwrap();
    set("copy");
    assert!(desk.made(&cache, "copy") && !desk.made(&cache, "copy"));
}

#[test]
fn quick_edits_that_set_the_time_back_are_always_seen() {
    let desk = Desk::new();
    let cache = desk.cache();
    desk.write("a", b"0");
    let before = fs::metadata(desk.path("a")).unwrap().modified().unwrap();
    for i in 0..100 {
        let file = File::options().write(true).open(desk.path("a")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[i], 0).unwrap();
        file.set_modified(before).unwrap();
        // Compares what was made with the file.
        desk.made(&cache, "a");
    }
}

#[test]
fn what_was_made_while_a_change_could_stay_unseen_is_compared_once_more() {
    let desk = Desk::new();
    let cache = desk.cache();
    desk.write("a", b"abc");
    assert!(desk.made(&cache, "a"));
    let entry = desk.path("cache").join(&cache.entries().unwrap()[0].name);
    let content = || {
        let bytes = fs::read(&entry).unwrap();
        u64::from_le_bytes(bytes[bytes.len() - 16..][..8].try_into().unwrap())
    };
    let set = |content: u64| {
        let file = File::options().write(true).open(&entry).unwrap();
        let at = file.metadata().unwrap().len() - 16;
        std::os::unix::fs::FileExt::write_all_at(&file, &content.to_le_bytes(), at).unwrap();
    };
    std::thread::sleep(std::time::Duration::from_millis(30));
    // It was written a moment before: noted until now, and no longer.
    assert!(!desk.made(&cache, "a"));
    assert_eq!(content(), 0);
    // Of other content, though inode and times are the same.
    set(77);
    assert!(desk.made(&cache, "a") && !desk.made(&cache, "a"));
    assert_eq!(content(), 0);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_not_kept() {
    let desk = Desk::new();
    desk.write("a", b"abc");
    for change in
        [|path: &Path| fs::write(path, b"abd").unwrap(), |path: &Path| fs::remove_file(path).unwrap()]
    {
        let object = Local::new(desk.0.path()).open("a").unwrap();
        let made = desk.cache().made(object.as_ref(), "test", "", |draft| {
            draft.append(b"x")?;
            change(&desk.path("a"));
            Ok(())
        });
        assert_eq!(made.err().unwrap().kind(), Kind::Stale);
        assert_eq!(desk.kept(), 0);
    }
}

#[test]
fn files_that_killed_processes_left_are_removed_and_those_of_others_are_not() {
    let desk = Desk::new();
    let cache = desk.cache().limited_to(2 * ROOM);
    ["a", "b", "c"].iter().for_each(|name| desk.write(name, name.as_bytes()));
    fs::create_dir(desk.path("cache")).unwrap();
    let left = desk.path("cache/.0123456789abcdef0123456789abcdef.windrow.tmp-Xy12Zw");
    let foreign =
        ["cache/notes.txt", "cache/0123456789abcdef", "cache/.0123456789abcdef.tmp-1", "cache/x.windrow"];
    foreign.iter().for_each(|name| desk.write(name, &[0; 2 * ROOM as usize]));
    fs::create_dir(desk.path("cache/0123456789abcdef.windrow")).unwrap();
    fs::write(&left, [0; 1000]).unwrap();
    assert!(desk.made(&cache, "a"));
    assert!(!left.exists());
    // One that is being written is counted, and stays.
    fs::write(&left, [0; ROOM as usize]).unwrap();
    let writing = File::open(&left).unwrap();
    writing.lock_shared().unwrap();
    super::space::forget_listing(&cache);
    assert!(desk.made(&cache, "b"));
    assert!(left.exists() && desk.made(&cache, "a"));
    assert!(cache.entries().unwrap().iter().any(|entry| entry.kind == "unfinished" && entry.is_open));
    let cleared = cache.clear().unwrap();
    assert_eq!((cleared.removed, cleared.left.len()), (1, 1));
    drop(writing);
    assert_eq!(cache.clear().unwrap().removed, 1);
    assert!(!left.exists() && foreign.iter().all(|name| desk.path(name).exists()));
    assert!(desk.path("cache/0123456789abcdef.windrow").exists());
    assert_eq!(cache.entries().unwrap(), []);
}

#[test]
fn a_damaged_entry_is_an_error_and_can_be_removed() {
    let desk = Desk::new();
    let cache = desk.cache();
    desk.write("a", b"abc");
    assert!(desk.made(&cache, "a"));
    let entry = desk.path("cache").join(&cache.entries().unwrap()[0].name);
    let whole = fs::read(&entry).unwrap();
    for end in [0, 10, SIZE, whole.len() - 32, whole.len() - 1] {
        fs::write(&entry, &whole[..end]).unwrap();
        let error = desk.made_in(&cache, "a").err().unwrap();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    }
    assert_eq!(cache.entries().unwrap()[0].kind, "damaged");
    assert_eq!(cache.clear().unwrap().removed, 1);
    assert!(desk.made(&cache, "a"));
}

#[test]
fn without_a_folder_there_is_nothing_and_a_limit() {
    let desk = Desk::new();
    assert_eq!(desk.cache().entries().unwrap(), []);
    assert_eq!(desk.cache().clear().unwrap(), Cleared::default());
    let limit = desk.cache().limit(0);
    assert!(limit > 0 && limit < u64::MAX);
    assert!(desk.cache().limit(1 << 40) > 1 << 38);
    assert_eq!(desk.cache().limited_to(5).limit(1 << 40), 5);
}
