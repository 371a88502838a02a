//! Several processes write one copy; a fork in the middle of everything.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::thread;

use super::*;

const SIZE: u64 = 50 * BLOCK + 9;

const CACHE: &str = "WINDROW_TEST_CACHE";
const LIMIT: &str = "WINDROW_TEST_LIMIT";
const READY: u8 = 1;

/// One of several processes: the tests below start this program again, with a cache to share.
#[test]
fn one_of_several_processes() {
    let Some(cache) = std::env::var_os(CACHE) else { return };
    let limit = std::env::var(LIMIT).map_or(u64::MAX, |limit| limit.parse().unwrap());
    let content = content(SIZE);
    let held = Held::new(identity("x", SIZE), &limits(Path::new(&cache), Some(limit)));
    exercise(&held, &content, u64::from(std::process::id()), 400);
    // Has it open until it is told to end.
    std::io::stdout().write_all(&[READY]).and_then(|()| std::io::stdout().flush()).unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(read(&held, &content, 0..SIZE), content);
}

fn start(cache: &Path, more: &[(&str, &str)]) -> Child {
    start_by(Command::new(std::env::current_exe().unwrap()), cache, more)
}

fn start_by(mut command: Command, cache: &Path, more: &[(&str, &str)]) -> Child {
    command.args(["--exact", "held::tests::processes::one_of_several_processes"]).env(CACHE, cache);
    spawn(command.envs(more.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()))
}

pub(super) fn spawn(command: &mut Command) -> Child {
    let _alone = FORKS.write().unwrap_or_else(PoisonError::into_inner);
    command.spawn().unwrap()
}

pub(super) fn end(mut process: Child) {
    drop(process.stdin.take());
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn processes_that_write_one_copy_read_right_bytes() {
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let started: Vec<_> = (0..4).map(|_| start(cache.path(), &[])).collect();
    started.into_iter().for_each(end);
    let held = Held::new(identity("x", SIZE), &limits(cache.path(), None));
    let fetched = fetch(&held, &content, 0..SIZE);
    assert!(fetched < SIZE / 2, "{fetched}");
    assert_eq!(borrowed(&held, &(0..SIZE)).as_deref(), Some(&content[..]));
}

#[test]
fn where_a_disk_takes_no_more_memory_does() {
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let held = Held::new(identity("x", SIZE), &limits(cache.path(), None));
    // The files have their size by then: to write to them fails behind some hundred kilobytes.
    fetch(&held, &content, 0..BLOCK);
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\""]);
    limited.arg(std::env::current_exe().unwrap());
    end(start_by(limited, cache.path(), &[]));
    let held = Held::new(identity("x", SIZE), &limits(cache.path(), None));
    let fetched = fetch(&held, &content, 0..SIZE);
    assert!(fetched > SIZE / 2, "{fetched}");
    assert_eq!(borrowed(&held, &(0..SIZE)).as_deref(), Some(&content[..]));
}

#[test]
fn a_copy_that_another_process_has_open_is_not_removed() {
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let mut theirs = start(cache.path(), &[]);
    let mut said = [0];
    while said != [READY] {
        theirs.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    }
    let fill = |name: &str| {
        let held = Held::new(identity(name, SIZE), &limits(cache.path(), Some(SIZE + 4 * BLOCK)));
        fetch(&held, &content, 0..SIZE);
        folder_of(cache.path(), &identity("x", SIZE)).join("data").exists()
    };
    assert!(fill("y"));
    end(theirs);
    let _alone = no_forks();
    // What this process knows of the others is of before.
    assert!(!fill("z"));
}

/// A child holds the locks of the files that its parent has open as it is forked: no test forks while another asks which copies are
/// in use.
static FORKS: RwLock<()> = RwLock::new(());

/// Nothing is forked until what is returned is dropped.
pub(super) fn no_forks() -> RwLockReadGuard<'static, ()> {
    FORKS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Forks, and has the child do the work before it becomes another program; whether it said `true`.
fn fork(work: impl Fn() -> bool + Send + Sync) -> bool {
    // SAFETY: the reference is used by the child alone, whose parent waits in here until the work is done.
    let work: &'static (dyn Fn() -> bool + Send + Sync) =
        unsafe { std::mem::transmute(&work as &(dyn Fn() -> bool + Send + Sync)) };
    let done = move || match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(true) => Ok(()),
        _ => Err(std::io::ErrorKind::Other.into()),
    };
    let _alone = FORKS.write().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new("true");
    // SAFETY: the child has this thread alone. What it waits for then is what is tested.
    unsafe { command.pre_exec(done) };
    command.spawn().and_then(|mut child| child.wait()).is_ok_and(|status| status.success())
}

#[test]
fn a_child_waits_for_no_lock_of_its_parent() {
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    for disk in [Some(u64::MAX), Some(10 * BLOCK), Some(0)] {
        let cache = cache.path().join(disk.unwrap_or_default().to_string());
        let held = Held::new(identity("x", SIZE), &limits(&cache, disk));
        fetch(&held, &content, 0..20 * BLOCK);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for seed in 0..3 {
                let (held, content, over) = (&held, &content, &over);
                scope.spawn(move || {
                    for round in 0.. {
                        exercise(held, content, seed * 1000 + round, 5);
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            let mut right = true;
            for seed in 0..20 {
                right &= fork(|| {
                    exercise(&held, &content, seed, 10);
                    true
                });
            }
            over.store(true, Ordering::Relaxed);
            assert!(right);
        });
    }
}

#[test]
fn a_child_finds_a_new_value_where_a_lock_was_held() {
    static OWN: windrow_core::PerProcess<Mutex<u32>> = windrow_core::PerProcess::new(Mutex::default);
    let _held = OWN.get().lock().unwrap();
    assert!(fork(|| OWN.get().try_lock().is_ok()));
}

#[test]
fn each_process_has_its_part_of_the_limit() {
    let cache = tempfile::tempdir().unwrap();
    // With what the limit keeps from them.
    let share = |processes: u64| {
        let cache = Cache::new(Some(cache.path().join(processes.to_string())), Some(11 * BLOCK)).unwrap();
        space::Share::of_processes(cache, processes).take(20 * BLOCK, BLOCK)
    };
    assert_eq!([1, 2, 3, 20].map(share), [10 * BLOCK, 5 * BLOCK, 3 * BLOCK, 0]);
    // As a launcher says to each.
    let limit = (41 * BLOCK).to_string();
    end(start(cache.path(), &[("LOCAL_WORLD_SIZE", "4"), (LIMIT, &limit)]));
    let kept = bytes_on_disk(cache.path(), &identity("x", SIZE));
    assert!(kept > 9 * BLOCK && kept <= 10 * BLOCK, "{kept}");
}
