//! What is known of the objects that were opened last, so that one that is opened again is not asked for again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use windrow_core::PerProcess;

use crate::copy::Copy;

/// How many are remembered: opening data opens a few objects several times.
const MOST: usize = 16;

/// How many are remembered that are about to be opened.
const MOST_EXPECTED: usize = 1024;

/// Copies of objects of one store.
#[derive(Default)]
pub(crate) struct Copies(PerProcess<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    /// The one opened last behind the others.
    last: VecDeque<Arc<Copy>>,
    /// By their keys.
    expected: HashMap<String, Arc<Copy>>,
}

impl Copies {
    /// That of an object in one version, or the one that `make` makes of it.
    pub(crate) fn of(
        &self,
        (key, size, tag): (&str, u64, Option<&str>),
        make: impl FnOnce() -> Copy,
    ) -> Arc<Copy> {
        let mut kept = self.0.get().lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { last, expected } = &mut *kept;
        let is_it = |copy: &Arc<Copy>| tag.is_some() && copy.is_of(key, size, tag);
        let known = last.iter().position(is_it).and_then(|at| last.remove(at));
        let known = known.or_else(|| expected.remove(key).filter(is_it));
        let copy = known.unwrap_or_else(|| Arc::new(make()));
        if last.len() >= MOST {
            last.pop_front();
        }
        last.push_back(copy.clone());
        copy
    }

    /// That of an object that is about to be opened, or the one that `make` makes of it; kept until then.
    pub(crate) fn to_come(
        &self,
        (key, size, tag): (&str, u64, Option<&str>),
        make: impl FnOnce() -> Copy,
    ) -> Arc<Copy> {
        let known = {
            let mut kept = self.0.get().lock().unwrap_or_else(PoisonError::into_inner);
            let Kept { last, expected } = &mut *kept;
            let known = last.iter().find(|copy| copy.is_of(key, size, tag));
            known.cloned().or_else(|| expected.remove(key).filter(|copy| copy.is_of(key, size, tag)))
        };
        let copy = known.unwrap_or_else(|| Arc::new(make()));
        self.expect(key, copy.clone());
        copy
    }

    /// Keeps one until its object is opened.
    pub(crate) fn expect(&self, key: &str, copy: Arc<Copy>) {
        let mut kept = self.0.get().lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody opened.
        if kept.expected.len() >= MOST_EXPECTED {
            kept.expected.clear();
        }
        kept.expected.insert(key.to_string(), copy);
    }

    /// Forgets them: something was written.
    pub(crate) fn forget(&self) {
        *self.0.get().lock().unwrap_or_else(PoisonError::into_inner) = Kept::default();
    }
}
