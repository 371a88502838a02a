//! A yes or no for each granule, that only ever becomes yes.

use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Bits(Vec<AtomicU64>);

impl Bits {
    /// All of them no; `None` where there is no memory.
    pub(super) fn new(count: u64) -> Option<Bits> {
        let words = usize::try_from(count.div_ceil(64)).ok()?;
        let mut bits = Vec::new();
        bits.try_reserve_exact(words).ok()?;
        bits.resize_with(words, AtomicU64::default);
        Some(Bits(bits))
    }

    #[inline]
    pub(super) fn get(&self, at: u64) -> bool {
        self.0.get((at / 64) as usize).is_some_and(|word| word.load(Ordering::Acquire) >> (at % 64) & 1 == 1)
    }

    pub(super) fn set(&self, at: u64) {
        if let Some(word) = self.0.get((at / 64) as usize) {
            word.fetch_or(1 << (at % 64), Ordering::Release);
        }
    }
}
