//! One cache, several processes: each finds what others made, makes space for its own, and takes nothing that is in use.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use windrow_core::Result;
use windrow_core::store::{Cache, Local, Object, Store, expanded};

use super::alone::alone;
use super::folder::{folder_of, names, put};

const ROLE: &str = "WINDROW_TEST_CACHE_ROLE";
const LIMIT: &str = "WINDROW_CACHE_LIMIT";
/// Bytes of a file.
const SIZE: usize = 200_000;
/// As much as an entry takes.
const ENTRY: usize = SIZE + 1000;

fn content(number: usize) -> Vec<u8> {
    (0..SIZE).map(|i| (i * 31 + number * 7 + i / 256) as u8).collect()
}

/// A folder of compressed files, `0.gz` and so on.
fn files(count: usize) -> tempfile::TempDir {
    let files: Vec<_> = (0..count)
        .map(|number| (format!("{number}.zst"), zstd::encode_all(&content(number)[..], 1).unwrap()))
        .collect();
    folder_of(&files.iter().map(|(name, bytes)| (name.as_str(), bytes)).collect::<Vec<_>>())
}

fn open(folder: &Path, number: usize) -> Result<Arc<dyn Object>> {
    let store: Arc<dyn Store> = Arc::new(Local::new(folder));
    let object = expanded(&store, &format!("{number}.zst"), None)?;
    let mut scratch = Vec::new();
    assert!(object.read(0, SIZE, &mut scratch)? == content(number), "{number}");
    Ok(object)
}

/// Another process that opens `count` files of the folder one after the other, from number `from` on.
fn other(folder: &Path, from: usize, count: usize, limit: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["cache::another_process", "--exact", "--test-threads=1", "--nocapture"])
        .env(ROLE, format!("{from} {count} {}", folder.display()))
        .env(LIMIT, limit.to_string())
        .spawn()
        .unwrap()
}

fn done(mut child: Child) -> bool {
    child.wait().unwrap().success()
}

/// What [`other`] does; nothing by itself.
#[test]
fn another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.splitn(3, ' ').collect();
    let (from, count): (usize, usize) = (words[0].parse().unwrap(), words[1].parse().unwrap());
    let folder = Path::new(words[2]);
    let files = fs::read_dir(folder).unwrap().count();
    for i in from..from + count {
        open(folder, i % files).unwrap();
    }
}

#[test]
fn what_one_process_has_open_no_other_removes() {
    alone("cache::what_one_process_has_open_no_other_removes", |cache| {
        let folder = files(6);
        let first = open(folder.path(), 0).unwrap();
        // Read by position, as where no map can be had.
        let entry = cache.join(names(cache)[0].file_name().unwrap());
        assert!(done(other(folder.path(), 1, 5, 3 * ENTRY)));
        assert!(entry.exists());
        assert_eq!(names(cache).len(), 3);
        let mut scratch = Vec::new();
        assert!(first.read(0, SIZE, &mut scratch).unwrap() == content(0));
        drop(first);
        // The oldest now.
        assert!(done(other(folder.path(), 1, 1, 3 * ENTRY)));
        assert!(!entry.exists());
        assert_eq!(names(cache).len(), 3);
    });
}

#[test]
fn processes_that_add_and_remove_at_once_read_what_is_right_and_keep_the_limit() {
    alone("cache::processes_that_add_and_remove_at_once_read_what_is_right_and_keep_the_limit", |cache| {
        let folder = files(12);
        let children: Vec<_> = (0..4).map(|i| other(folder.path(), i * 3, 60, 9 * ENTRY)).collect();
        // All are waited for.
        let all: Vec<bool> = children.into_iter().map(done).collect();
        assert_eq!(all, [true; 4]);
        // Each may have overlooked what the others added within the last second; the next one that adds anything does not.
        put(folder.path(), "12.zst", &zstd::encode_all(&content(12)[..], 1).unwrap());
        assert!(done(other(folder.path(), 12, 1, 9 * ENTRY)));
        let sizes: u64 = names(cache).iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(sizes <= 9 * ENTRY as u64, "{sizes}");
        assert!(names(cache).iter().all(|path| path.extension().is_some_and(|e| e == "windrow")));
    });
}

#[test]
fn what_is_opened_with_a_limit_of_its_own_keeps_all_of_the_cache_to_that() {
    alone("cache::what_is_opened_with_a_limit_of_its_own_keeps_all_of_the_cache_to_that", |cache| {
        // SAFETY: the only thread of this process that looks at the environment.
        unsafe { std::env::set_var(LIMIT, (10 * ENTRY).to_string()) };
        let folder = files(6);
        (0..4).for_each(|number| drop(open(folder.path(), number).unwrap()));
        let open_within = |bytes: usize| {
            let store: Arc<dyn Store> = Arc::new(Local::new(folder.path()).cache_limit(Some(bytes as u64)));
            expanded(&store, "4.zst", None)
        };
        let error = open_within(SIZE / 4).err().unwrap();
        assert_eq!(error.place().field.as_deref(), Some("cache_limit"), "{error}");
        assert_eq!(names(cache).len(), 4);
        assert_eq!(open_within(2 * ENTRY).unwrap().cache_limit(), Some(2 * ENTRY as u64));
        assert_eq!(names(cache).len(), 2);
        // 0 is of what is fetched.
        open(folder.path(), 5).unwrap();
        assert!(open_within(0).is_ok() && names(cache).len() == 3);
    });
}

#[test]
fn a_limit_that_is_no_size_is_named() {
    alone("cache::a_limit_that_is_no_size_is_named", |_| {
        let folder = files(1);
        assert!(open(folder.path(), 0).is_ok());
        // SAFETY: the only thread of this process that looks at the environment.
        unsafe { std::env::set_var(LIMIT, "much") };
        let error = open(folder.path(), 0).err().unwrap();
        assert!(format!("{error:#}").contains("\"much\" is not a size"), "{error}");
        assert_eq!(error.place().field.as_deref(), Some(LIMIT));
        // SAFETY: as above.
        unsafe { std::env::set_var(LIMIT, "1GB") };
        assert_eq!(Cache::of_environment().unwrap().limit(0), 1_000_000_000);
    });
}
