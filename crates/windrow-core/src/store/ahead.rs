//! Ranges that are read soon, gathered for stores that are far away.
//!
//! A plan says what a step reads span by span. Stores that ask another machine join what lies near each other into one
//! request, so all ranges of a step are announced to them together.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Something that can fetch ranges before they are read.
pub trait Ahead: Send + Sync {
    /// Begins to fetch ranges `(start, size)` that are read soon, in the order in which they are needed; does not wait. A
    /// range that cannot be had is the error of whoever reads it.
    fn ahead(&self, ranges: &[(u64, u64)], between: Between);
}

/// What is known of the bytes between ranges that are read soon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// They may be read later: a store that keeps them may fetch them too, where that takes no longer.
    #[default]
    Likely,
    /// They are asked for by themselves, and what is told now is waited for first.
    Apart,
}

type Told = Vec<(Arc<dyn Ahead>, Vec<(u64, u64)>)>;

thread_local! {
    static GATHERED: RefCell<Option<Told>> = const { RefCell::new(None) };
    static BETWEEN: Cell<Between> = const { Cell::new(Between::Likely) };
}

/// Runs `f`, and says of all that it announces with [`announce`] what is between.
pub fn with_between<R>(between: Between, f: impl FnOnce() -> R) -> R {
    struct End(Between);
    impl Drop for End {
        fn drop(&mut self) {
            BETWEEN.set(self.0);
        }
    }
    let _end = End(BETWEEN.replace(between));
    f()
}

/// Runs `f`, and then passes on what it announces with [`announce`], each object's ranges together.
pub fn gather<R>(f: impl FnOnce() -> R) -> R {
    let is_outer = GATHERED.with_borrow_mut(|announced| match announced {
        Some(_) => false,
        None => {
            *announced = Some(Vec::new());
            true
        }
    });
    if !is_outer {
        return f();
    }
    // Also where `f` panics: what the next one gathers is its own.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            for (object, ranges) in GATHERED.take().unwrap_or_default() {
                object.ahead(&ranges, BETWEEN.get());
            }
        }
    }
    let _end = End;
    f()
}

/// Says that a range of an object is read soon: at once, or at the end of what [`gather`] runs.
pub fn announce(object: &Arc<dyn Ahead>, start: u64, size: u64) {
    let is_alone = GATHERED.with_borrow_mut(|announced| {
        let Some(announced) = announced else { return true };
        // Ranges of one object mostly follow each other.
        match announced.iter_mut().rev().take(16).find(|(known, _)| Arc::ptr_eq(known, object)) {
            Some((_, ranges)) => ranges.push((start, size)),
            None => announced.push((object.clone(), vec![(start, size)])),
        }
        false
    });
    if is_alone {
        object.ahead(&[(start, size)], BETWEEN.get());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Noted(Mutex<Vec<Vec<(u64, u64)>>>, Mutex<Vec<Between>>);

    impl Ahead for Noted {
        fn ahead(&self, ranges: &[(u64, u64)], between: Between) {
            self.0.lock().unwrap().push(ranges.to_vec());
            self.1.lock().unwrap().push(between);
        }
    }

    #[test]
    fn what_is_told_within_is_passed_on_together() {
        let noted: [Arc<Noted>; 2] = std::array::from_fn(|_| Arc::default());
        let objects: [Arc<dyn Ahead>; 2] = std::array::from_fn(|i| noted[i].clone() as Arc<dyn Ahead>);
        let found = |i: usize| noted[i].0.lock().unwrap().clone();
        announce(&objects[0], 1, 2);
        gather(|| {
            announce(&objects[0], 3, 4);
            gather(|| announce(&objects[1], 5, 6));
            announce(&objects[0], 7, 8);
            assert_eq!(found(0), [vec![(1, 2)]]);
        });
        assert_eq!(found(0), [vec![(1, 2)], vec![(3, 4), (7, 8)]]);
        assert_eq!(found(1), [vec![(5, 6)]]);
        let panicked = std::panic::catch_unwind(|| gather(|| panic!("within")));
        assert!(panicked.is_err());
        announce(&objects[1], 9, 1);
        assert_eq!(found(1).len(), 2);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            with_between(Between::Apart, || {
                gather(|| announce(&objects[1], 1, 1));
                panic!("within");
            })
        }));
        assert!(panicked.is_err());
        announce(&objects[1], 2, 1);
        assert_eq!(noted[1].1.lock().unwrap()[2..], [Between::Apart, Between::Likely]);
    }
}
