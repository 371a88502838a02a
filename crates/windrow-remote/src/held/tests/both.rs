//! Files made once and copies in one cache: one limit, in one process and in several.

use std::process::{Child, Command, Stdio};

use windrow_core::store::{Memory, Store, made_once};

use super::processes::{end, spawn};
use super::*;

const ROLE: &str = "WINDROW_TEST_ROLE";
const LIMIT: u64 = 40 * BLOCK;
/// What an object has, and a file.
const SIZE: u64 = 5 * BLOCK;

/// A file made once, made of a few bytes; nobody has it open afterwards.
fn make(number: u64) {
    let object = Memory::new().with("x", number.to_le_bytes()).open("x").unwrap();
    let made = made_once(object.as_ref(), "made", "", |out| {
        out.write_all(&content(SIZE)).map_err(|e| windrow_core::Error::io("write", "x", e))
    });
    assert!(made.unwrap().size() == SIZE);
}

/// Copies an object, whose copy is closed afterwards.
fn copy(cache: &Path, number: u64) {
    let content = content(SIZE);
    let held = Held::new(identity(&number.to_string(), SIZE), &limits(cache, None));
    assert_eq!(read(&held, &content, 0..SIZE), content);
}

/// How many of both kinds there are, which take no more than the limit together.
fn there() -> [usize; 2] {
    let entries = Cache::of_environment().unwrap().entries().unwrap();
    assert!(entries.iter().map(|entry| entry.bytes).sum::<u64>() <= LIMIT, "{entries:?}");
    ["made", "fetched"].map(|kind| entries.iter().filter(|entry| entry.kind == kind).count())
}

/// What [`start`] does; nothing by itself.
#[test]
fn a_process_with_a_limit() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let cache = PathBuf::from(std::env::var_os("WINDROW_CACHE").unwrap());
    match role.as_str() {
        "files" => (0..60).for_each(make),
        "copies" => (0..60).for_each(|number| copy(&cache, number)),
        "a file" => make(1000),
        _ => {
            (0..6).for_each(make);
            assert_eq!(there(), [6, 0]);
            // More is fetched than is left: old files go, and then old copies.
            (0..5).for_each(|number| copy(&cache, number));
            let [files, copies] = there();
            assert!(copies == 5 && (1..4).contains(&files), "{files}");
            (5..20).for_each(|number| copy(&cache, number));
            let [files, copies] = there();
            assert!(files == 0 && (6..8).contains(&copies), "{copies}");
            // One that is open stays, whatever is made.
            let open = Held::new(identity("19", SIZE), &limits(&cache, None));
            assert!(borrowed(&open, &(0..SIZE)).is_none() && open.missing(0, SIZE).is_empty());
            (100..120).for_each(make);
            let [files, copies] = there();
            assert!(copies == 1 && (5..8).contains(&files), "{files}");
            assert_eq!(borrowed(&open, &(0..SIZE)), Some(content(SIZE)));
        }
    }
}

fn start(cache: &Path, role: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["held::tests::both::a_process_with_a_limit", "--exact"]).env(ROLE, role);
    spawn(
        command
            .env("WINDROW_CACHE", cache)
            .env("WINDROW_CACHE_LIMIT", LIMIT.to_string())
            .stdout(Stdio::piped()),
    )
}

#[test]
fn files_and_copies_of_one_process_have_one_limit() {
    let cache = tempfile::tempdir().unwrap();
    end(start(cache.path(), "both"));
}

#[test]
fn files_and_copies_of_several_processes_have_one_limit() {
    let cache = tempfile::tempdir().unwrap();
    let started = ["files", "copies", "copies", "files"].map(|role| start(cache.path(), role));
    started.into_iter().for_each(end);
    // On a busy machine the last ones may have overlooked what others added at the same time; the next one does not.
    end(start(cache.path(), "a file"));
    let entries = Cache::new(Some(cache.path().to_path_buf()), Some(LIMIT)).unwrap().entries().unwrap();
    assert!(entries.iter().map(|entry| entry.bytes).sum::<u64>() <= LIMIT, "{entries:?}");
    assert!(entries.len() > 4 && entries.iter().all(|entry| !entry.is_open), "{entries:?}");
}
