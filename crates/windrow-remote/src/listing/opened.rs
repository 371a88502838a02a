//! What is known of the objects that were opened last, so that one that is opened again is not asked for again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use windrow_core::PerProcess;

use crate::copy::Copy;

/// How many are remembered: opening data opens a few objects several times.
const MOST: usize = 16;

/// Copies of objects of one store, the one opened last behind the others.
#[derive(Default)]
pub(crate) struct Copies(PerProcess<Mutex<VecDeque<Arc<Copy>>>>);

impl Copies {
    /// That of an object in one version, or the one that `make` makes of it.
    pub(crate) fn of(
        &self,
        (key, size, tag): (&str, u64, Option<&str>),
        make: impl FnOnce() -> Copy,
    ) -> Arc<Copy> {
        let mut copies = self.0.get().lock().unwrap_or_else(PoisonError::into_inner);
        let known = copies.iter().position(|copy| tag.is_some() && copy.is_of(key, size, tag));
        let copy = known.and_then(|at| copies.remove(at)).unwrap_or_else(|| Arc::new(make()));
        if copies.len() >= MOST {
            copies.pop_front();
        }
        copies.push_back(copy.clone());
        copy
    }

    /// Forgets them: something was written.
    pub(crate) fn forget(&self) {
        self.0.get().lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
