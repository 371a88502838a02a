//! Where every 16th place of a pass begins in its stream: added up in the stored order of the documents, each at the place where it comes.
//!
//! So lengths are read from front to back, and only the sums, half a byte a document, are touched at random. Whoever needs them
//! before they are there helps to add them up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::permutation::Permutation;
use crate::record::Lengths;
use crate::touch::{in_large_pages, touch_value};
use crate::view::share::Share;

/// Places between two sums.
pub(super) const PLACES: u64 = 16;

/// Documents that are asked for their lengths at once.
const BULK: usize = 4096;

/// Sums that the processor is asked for before lengths are added to them.
const AHEAD: usize = 16;

/// Documents of a piece of the work.
const DOCUMENTS: u64 = 16 * BULK as u64;

/// The sums of all documents in one order.
pub(super) struct Sums {
    order: Permutation,
    n: u64,
    /// What the places from each 16th one on add up to; once it is ready, what all places before it do.
    starts: Vec<AtomicU64>,
    /// The piece of the work that is begun next.
    next: AtomicU64,
    is_ready: AtomicBool,
    work: Mutex<Work>,
    done: Condvar,
}

struct Work {
    /// Pieces that are not done.
    left: u64,
    has_failed: bool,
}

/// What came of waiting for sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// They are there.
    Ready,
    /// Somebody else could not read a length.
    Failed,
    /// They are not wanted any more.
    Left,
}

impl Sums {
    /// Sums of `n` documents that come in this order, still to be added up.
    ///
    /// # Errors
    /// `Memory`.
    pub(super) fn new(order: Permutation, n: u64) -> Result<Sums> {
        let count = n.div_ceil(PLACES);
        let mut starts: Vec<AtomicU64> = Vec::new();
        let room = usize::try_from(count).ok().and_then(|count| starts.try_reserve_exact(count).ok());
        room.ok_or_else(|| {
            Error::memory(format!("8 bytes for every {PLACES} of {n} records"))
                .hint("@scope=block@ needs none at once")
        })?;
        in_large_pages(starts.spare_capacity_mut());
        starts.extend((0..count).map(|_| AtomicU64::new(0)));
        Ok(Sums {
            order,
            n,
            starts,
            next: AtomicU64::new(0),
            is_ready: AtomicBool::new(false),
            work: Mutex::new(Work { left: n.div_ceil(DOCUMENTS), has_failed: false }),
            done: Condvar::new(),
        })
    }

    /// The order of the documents.
    pub(super) fn order(&self) -> &Permutation {
        &self.order
    }

    /// How many sums.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Where place `16 i` begins, once they are ready.
    pub(super) fn start(&self, i: usize) -> u64 {
        self.starts[i].load(Ordering::Relaxed)
    }

    /// Adds up what nobody else does, and waits for what somebody does, as long as they are wanted. `share`: what each document takes;
    /// `total`: what all of them add up to.
    ///
    /// # Errors
    /// What the lengths say; `Corrupt` where they add up to something else.
    pub(super) fn ready(
        &self,
        lengths: &dyn Lengths,
        (share, total): (Share, u64),
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Outcome> {
        if self.is_ready.load(Ordering::Acquire) {
            return Ok(Outcome::Ready);
        }
        let pieces = self.n.div_ceil(DOCUMENTS);
        while self.next.load(Ordering::Relaxed) < pieces {
            if !is_wanted() {
                return Ok(Outcome::Left);
            }
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                break;
            }
            let begun = Begun { sums: self, is_done: false };
            self.add(piece, lengths, share)?;
            begun.done(total)?;
        }
        let mut work = self.work();
        while !work.has_failed && !self.is_ready.load(Ordering::Acquire) {
            work = self.done.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(if work.has_failed { Outcome::Failed } else { Outcome::Ready })
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, piece: u64, lengths: &dyn Lengths, share: Share) -> Result<()> {
        let mut some = [0; BULK];
        let mut first = piece * DOCUMENTS;
        let end = first.saturating_add(DOCUMENTS).min(self.n);
        while first < end {
            let some = &mut some[..(end - first).min(BULK as u64) as usize];
            lengths.lengths(first, some)?;
            for (first, few) in (first..).step_by(AHEAD).zip(some.chunks(AHEAD)) {
                let mut sums = [&self.starts[0]; AHEAD];
                // Sums come from memory while the places of the next ones are computed.
                for (document, sum) in (first..).zip(&mut sums[..few.len()]) {
                    *sum = &self.starts[(self.order.invert(document) / PLACES) as usize];
                    touch_value(*sum);
                }
                for (length, sum) in few.iter().zip(sums) {
                    // What is lost is found where the sum of all is compared.
                    sum.fetch_add(share.of(*length).unwrap_or(0), Ordering::Relaxed);
                }
            }
            first += some.len() as u64;
        }
        Ok(())
    }

    // From what places add up to, to where they begin.
    fn sum(&self, total: u64) -> Result<()> {
        let mut at = 0u64;
        for start in &self.starts {
            let places = start.swap(at, Ordering::Relaxed);
            at = at.checked_add(places).ok_or_else(other_lengths)?;
        }
        if at == total { Ok(()) } else { Err(other_lengths()) }
    }
}

/// The error where lengths are not those that a view was made of.
pub(super) fn other_lengths() -> Error {
    Error::corrupt("the lengths of records are not those that the view was made of")
        .hint("the index of the source has changed, or is damaged: `windrow verify` checks it")
}

/// A piece of the work. Whoever waits is told, also where it ends early.
struct Begun<'s> {
    sums: &'s Sums,
    is_done: bool,
}

impl Begun<'_> {
    fn done(mut self, total: u64) -> Result<()> {
        let left = {
            let mut work = self.sums.work();
            work.left -= 1;
            work.left
        };
        if left == 0 {
            self.sums.sum(total)?;
            self.sums.is_ready.store(true, Ordering::Release);
            // Under the lock: who waits looks at it there.
            drop(self.sums.work());
            self.sums.done.notify_all();
        }
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.sums.work().has_failed = true;
            self.sums.done.notify_all();
        }
    }
}
