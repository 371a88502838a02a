//! What is kept of passes: of those in use, of the next one, and of one that somebody asked for.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::per_process::PerProcess;
use crate::record::Pass;

/// Passes kept of each view of a plan besides the one that is made ahead.
const KEPT: usize = 2;

/// Something for each of a few passes. A process has its own: after a fork nobody finishes what another one began to make.
pub(super) struct Kept<T>(PerProcess<Mutex<Passes<T>>>);

struct Passes<T> {
    n_asked: u64,
    kept: Vec<Of<T>>,
}

struct Of<T> {
    pass: Pass,
    value: Arc<T>,
    /// When it was asked for last; 0 while it was only made ahead.
    asked: u64,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept(PerProcess::new(|| Mutex::new(Passes { n_asked: 0, kept: Vec::new() })))
    }
}

impl<T> Kept<T> {
    /// That of a pass, made where it is not kept. One that was asked for long ago goes instead.
    ///
    /// # Errors
    /// What `make` says.
    pub(super) fn get(&self, pass: Pass, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let mut passes = self.0.get().lock().unwrap_or_else(PoisonError::into_inner);
        passes.n_asked += 1;
        let now = passes.n_asked;
        if let Some(of) = passes.kept.iter_mut().find(|of| of.pass == pass) {
            of.asked = now;
            return Ok(of.value.clone());
        }
        let is_used = |of: &&Of<T>| of.pass.view == pass.view && of.asked > 0;
        while passes.kept.iter().filter(is_used).count() >= KEPT {
            let oldest = passes.kept.iter().filter(is_used).map(|of| of.asked).min();
            passes.kept.retain(|of| Some(of.asked) != oldest);
        }
        let value = Arc::new(make()?);
        passes.kept.push(Of { pass, value: value.clone(), asked: now });
        Ok(value)
    }

    /// The value of a pass to come, made ahead: of its view only the pass that was asked for last stays beside it.
    ///
    /// # Errors
    /// What `make` says.
    pub(super) fn get_ahead(&self, pass: Pass, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let lock = || self.0.get().lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            |passes: &Passes<T>| passes.kept.iter().find(|of| of.pass == pass).map(|of| of.value.clone());
        let mut passes = lock();
        if let Some(value) = known(&passes) {
            return Ok(value);
        }
        let own = passes.kept.iter().filter(|of| of.pass.view == pass.view);
        let latest = own.map(|of| of.asked).max().filter(|asked| *asked > 0);
        passes.kept.retain(|of| of.pass.view != pass.view || Some(of.asked) == latest);
        drop(passes);
        // Whoever reads samples meanwhile does not wait for it.
        let value = Arc::new(make()?);
        let mut passes = lock();
        if let Some(value) = known(&passes) {
            return Ok(value);
        }
        passes.kept.push(Of { pass, value: value.clone(), asked: 0 });
        Ok(value)
    }

    /// Keeps it no longer: it was not made to the end.
    pub(super) fn forget(&self, value: &Arc<T>) {
        let mut passes = self.0.get().lock().unwrap_or_else(PoisonError::into_inner);
        passes.kept.retain(|of| !Arc::ptr_eq(&of.value, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(epoch: u64) -> Pass {
        Pass { epoch, ..Pass::default() }
    }

    fn epochs(kept: &Kept<u64>, view: u64) -> Vec<u64> {
        let passes = kept.0.get().lock().unwrap();
        let mut epochs: Vec<u64> =
            passes.kept.iter().filter(|of| of.pass.view == view).map(|of| *of.value).collect();
        epochs.sort_unstable();
        epochs
    }

    #[test]
    fn a_run_keeps_its_pass_and_the_next_one_and_one_that_is_asked_for() {
        let kept = Kept::default();
        let ask = |epoch| *kept.get(of(epoch), || Ok(epoch)).unwrap();
        assert_eq!((ask(0), epochs(&kept, 0)), (0, vec![0]));
        kept.get_ahead(of(1), || Ok(1)).unwrap();
        assert_eq!((ask(7), ask(0), epochs(&kept, 0)), (7, 0, vec![0, 1, 7]));
        assert_eq!(
            (ask(8), epochs(&kept, 0)),
            (8, vec![0, 1, 8]),
            "the one that is used stays, and the next one"
        );
        assert_eq!((ask(0), ask(1)), (0, 1));
        kept.get_ahead(of(2), || Ok(2)).unwrap();
        assert_eq!(epochs(&kept, 0), [1, 2]);
        let other = Pass { view: 1, ..of(5) };
        kept.get(other, || Ok(5)).unwrap();
        assert_eq!((epochs(&kept, 0), epochs(&kept, 1)), (vec![1, 2], vec![5]));
    }

    #[test]
    fn what_was_not_made_to_the_end_is_made_again() {
        let kept = Kept::default();
        let first = kept.get(of(0), || Ok(0)).unwrap();
        kept.forget(&first);
        assert_eq!(*kept.get(of(0), || Ok(1)).unwrap(), 1);
    }
}
