//! Threads: how many may be asked for, how many the machine runs at once, and several at one piece of work.
//!
//! A machine may refuse a thread: a limit on processes counts them. Where the work can be done without it, it is;
//! elsewhere [`refused`] is the error.

use std::collections::VecDeque;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use crate::error::{Error, Kind, Result};
use crate::stop::Stop;

const MOST: usize = 1024;

/// That a number of threads, where one is asked for, is `least` to 1024.
///
/// # Errors
/// `Config`.
pub fn check(asked: Option<usize>, least: usize) -> Result<()> {
    match asked.filter(|threads| !(least..=MOST).contains(threads)) {
        None => Ok(()),
        Some(threads) => {
            Err(Error::config(format!("@the num_threads@ is {threads}; expected {least} to {MOST}"))
                .hint("left out, it follows the number of cores"))
        }
    }
}

/// Cores that this process may use, by its affinity and its container's quota; 1 where nobody can say.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Processor time that this thread has used so far; 0 where the system does not tell.
pub fn processor_time() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time that all threads of this process have used so far; 0 where the system does not tell.
pub fn processor_time_of_all() -> Duration {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn clock(id: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure that it is given.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The number of this process, as [`std::process::id`] gives it, without a system call each time: for what looks at each read
/// whether it is in the child of a fork. The child of a `clone` that runs no handlers of `pthread_atfork` has its parent's.
///
/// ```
/// assert_eq!(windrow_core::threads::process_id(), std::process::id());
/// ```
#[inline]
pub fn process_id() -> u32 {
    match PROCESS.load(Ordering::Relaxed) {
        0 => look_for_process_id(),
        id => id,
    }
}

/// 0 until it is known.
static PROCESS: AtomicU32 = AtomicU32::new(0);

extern "C" fn forget_process_id() {
    PROCESS.store(0, Ordering::Relaxed);
}

#[cold]
fn look_for_process_id() -> u32 {
    const NOBODY: u32 = 0;
    const ASKED: u32 = 1;
    const READY: u32 = 2;
    static HANDLER: AtomicU32 = AtomicU32::new(NOBODY);
    let id = std::process::id();
    if HANDLER.compare_exchange(NOBODY, ASKED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        // SAFETY: the function stays where it is, and only sets a number.
        if unsafe { libc::pthread_atfork(None, None, Some(forget_process_id)) } == 0 {
            HANDLER.store(READY, Ordering::Release);
        }
    }
    // Until somebody forgets it in the child, it is not noted.
    if HANDLER.load(Ordering::Acquire) == READY {
        PROCESS.store(id, Ordering::Relaxed);
    }
    id
}

/// Lets all other threads of the machine go before this one, for work that nobody waits for yet.
pub fn at_low_priority() {
    // Elsewhere it would be a matter of the whole process.
    #[cfg(target_os = "linux")]
    {
        const LEAST: libc::c_int = 19;
        // SAFETY: a system call about this thread, whose failure changes nothing.
        let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LEAST) };
    }
}

/// The error for a thread that cannot be had, which has `Io`.
pub fn refused(error: io::Error) -> Error {
    Error::new(Kind::Io, "cannot start a thread")
        .caused_by(error)
        .hint("a limit on processes counts threads: `ulimit -u`, or the pids limit of a container")
}

/// Runs `own` here and `other` on up to `threads - 1` threads beside it, until all of them have ended; what they gave,
/// one's own first.
///
/// They share out a piece of work between them: where a thread is refused, those that are there do it all. A panic in one
/// of them continues here.
pub fn beside<T: Send>(threads: usize, own: impl FnOnce() -> T, other: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let (stop, other) = (Stop::of_this_thread(), &other);
        let start = |_| {
            let stop = stop.clone();
            let work = move || stop.hold(other);
            Builder::new().name("windrow-beside".to_string()).spawn_scoped(scope, work).ok()
        };
        let others: Vec<_> = (1..threads).map_while(start).collect();
        let mut gave = vec![own()];
        gave.extend(
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))),
        );
        gave
    })
}

/// Does work that calls itself as deep as its input is nested, on a thread whose stack is deep enough for that.
///
/// # Errors
/// `Io` when the thread is refused. A panic of the work continues here.
pub fn with_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    const STACK: usize = 64 << 20;
    std::thread::scope(|scope| {
        let stop = Stop::of_this_thread();
        let thread = Builder::new().name("windrow-deep".to_string()).stack_size(STACK);
        let started = thread.spawn_scoped(scope, move || stop.hold(work)).map_err(refused)?;
        Ok(started.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Does the parts `0..count` of a piece of work on all cores; what each gave, in the order of the parts.
///
/// Beside the number of the part, `part` is given what its thread keeps from one part to the next: memory, most often.
pub fn in_parts<K: Default, T: Send>(count: usize, part: impl Fn(usize, &mut K) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut kept = K::default();
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let parts = numbers.take_while(|number| *number < count);
        parts.map(|number| (number, part(number, &mut kept))).collect::<Vec<_>>()
    };
    let mut done: Vec<(usize, T)> = beside(cores().min(count), work, work).into_iter().flatten().collect();
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, gave)| gave).collect()
}

/// Does the parts `0..count` of a piece of work on all cores, and gives here what each gave to `take`, in the order of the
/// parts. Few wait for it at a time, which bounds the memory. As in [`in_parts`], each thread keeps something.
///
/// # Errors
/// The first of `take`, which ends the work. A panic in a part continues here.
pub fn in_order<K: Default, T: Send>(
    count: usize,
    part: impl Fn(usize, &mut K) -> T + Sync,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let threads = cores().min(count);
    // Enough that the others continue while `take` waits for the disk.
    let ahead = 4 * threads;
    let (to_do, numbers) = sync_channel::<(usize, SyncSender<T>)>(ahead);
    let numbers = Mutex::new(numbers);
    let work = || {
        let mut kept = K::default();
        let next = || numbers.lock().unwrap_or_else(PoisonError::into_inner).recv();
        while let Ok((number, to_result)) = next() {
            // Nobody waits for it after an error.
            let _ = to_result.send(part(number, &mut kept));
        }
    };
    std::thread::scope(|scope| {
        let stop = Stop::of_this_thread();
        let start = |_| {
            let stop = stop.clone();
            Builder::new().name("windrow-parts".to_string()).spawn_scoped(scope, move || stop.hold(work)).ok()
        };
        let others: Vec<_> = (0..threads).map_while(start).collect();
        if others.is_empty() {
            let mut kept = K::default();
            return (0..count).try_for_each(|number| take(part(number, &mut kept)));
        }
        let (mut to_start, mut waiting) = (0..count, VecDeque::new());
        let done = (0..count).try_for_each(|_| {
            while waiting.len() < ahead
                && let Some(number) = to_start.next()
            {
                let (to_result, result) = sync_channel(1);
                waiting.push_back(result);
                // There is room, and the other end is held here.
                let _ = to_do.send((number, to_result));
            }
            match waiting.pop_front().and_then(|result| result.recv().ok()) {
                Some(gave) => take(gave),
                // The panic continues below.
                None => Err(Error::new(Kind::Interrupted, "a thread has ended early")),
            }
        });
        drop(to_do);
        others.into_iter().for_each(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        done
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn parts_come_in_their_order() {
        for count in [0, 1, 2, 1000] {
            let squares: Vec<usize> = (0..count).map(|i| i * i).collect();
            assert_eq!(in_parts(count, |i, (): &mut ()| i * i), squares);
        }
    }

    #[test]
    fn parts_are_taken_in_their_order_and_an_error_ends_the_work() {
        for count in [0, 1, 2, 1000] {
            let mut taken = Vec::new();
            in_order(
                count,
                |i, (): &mut ()| i * i,
                |square| {
                    taken.push(square);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(taken, (0..count).map(|i| i * i).collect::<Vec<_>>());
        }
        let started = AtomicUsize::new(0);
        let part = |i, (): &mut ()| {
            started.fetch_add(1, Ordering::Relaxed);
            i
        };
        let refuse = |i| if i < 3 { Ok(()) } else { Err(Error::new(Kind::Io, "full")) };
        assert_eq!(in_order(100_000, part, refuse).unwrap_err().kind(), Kind::Io);
        assert!(started.into_inner() < 100_000);
    }

    #[test]
    fn a_thread_keeps_what_it_had_for_its_next_part() {
        let count = 1000;
        let counted = |_: usize, parts: &mut usize| {
            *parts += 1;
            *parts
        };
        let first = |counts: Vec<usize>| counts.into_iter().filter(|n| *n == 1).count();
        assert!((1..=cores()).contains(&first(in_parts(count, counted))));
        let mut counts = Vec::new();
        in_order(count, counted, |n| {
            counts.push(n);
            Ok(())
        })
        .unwrap();
        assert!((1..=cores()).contains(&first(counts)));
    }

    #[test]
    fn as_many_run_as_are_asked_for_and_ones_own_is_the_first() {
        for threads in [0, 1, 2, 7] {
            let found = beside(threads, || 1, || 2);
            assert_eq!(found, [vec![1], vec![2; threads.saturating_sub(1)]].concat());
        }
    }

    #[test]
    fn a_panic_of_another_thread_continues_here() {
        let silent = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let found = catch_unwind(|| beside(2, || (), || panic!("beside")));
        let in_part = |i, (): &mut ()| if i == 70 { panic!("in a part") } else { i };
        let found_in_part = catch_unwind(|| in_order(100, in_part, |_| Ok(())));
        std::panic::set_hook(silent);
        assert_eq!(found.unwrap_err().downcast_ref(), Some(&"beside"));
        assert_eq!(found_in_part.unwrap_err().downcast_ref(), Some(&"in a part"));
    }
}
