//! Parts that may have the next slot, by when they must have had it.

/// No part: at most 65,535 have numbers.
pub(super) const NOBODY: u16 = u16::MAX;

/// Parts in lists, one for each deadline: a queue whose keys are slots needs no comparisons.
pub(super) struct Ready {
    /// By deadline: the first part of its list.
    first: Vec<u16>,
    /// By part: the next one in its list.
    next: Vec<u16>,
    /// A bit for each deadline whose list is not empty.
    due: Vec<u64>,
    /// No word before this one has a bit.
    lowest: usize,
}

impl Ready {
    /// For deadlines up to `latest`.
    pub(super) fn new(n_parts: usize, latest: usize) -> Ready {
        Ready {
            first: vec![NOBODY; latest + 1],
            next: vec![NOBODY; n_parts],
            due: vec![0; latest / 64 + 1],
            lowest: 0,
        }
    }

    /// Adds a part, which must not be there.
    pub(super) fn add(&mut self, part: u16, deadline: usize) {
        self.next[usize::from(part)] = std::mem::replace(&mut self.first[deadline], part);
        self.due[deadline / 64] |= 1 << (deadline % 64);
        self.lowest = self.lowest.min(deadline / 64);
    }

    /// Takes the part with the earliest deadline; of several, that with the smallest `tie`, and of these the first.
    pub(super) fn take(&mut self, tie: impl Fn(u16) -> u64) -> Option<u16> {
        while *self.due.get(self.lowest)? == 0 {
            self.lowest += 1;
        }
        let deadline = self.lowest * 64 + self.due[self.lowest].trailing_zeros() as usize;
        let head = self.first[deadline];
        if self.next[usize::from(head)] == NOBODY {
            self.first[deadline] = NOBODY;
            self.due[self.lowest] &= self.due[self.lowest] - 1;
            return Some(head);
        }
        let mut best = (tie(head), head, NOBODY);
        let mut before = head;
        loop {
            let part = self.next[usize::from(before)];
            if part == NOBODY {
                break;
            }
            let tie = tie(part);
            if (tie, part) < (best.0, best.1) {
                best = (tie, part, before);
            }
            before = part;
        }
        let (_, part, before) = best;
        let behind = self.next[usize::from(part)];
        match before {
            NOBODY => self.first[deadline] = behind,
            before => self.next[usize::from(before)] = behind,
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::*;
    use crate::record::keyed_hash;

    #[test]
    fn parts_come_by_deadline_then_tie_then_number() {
        for case in 0..200u64 {
            let draw = |n: u64, below: u64| keyed_hash(case, [n, 0, 0]) % below;
            // Few ties, so that numbers decide too.
            let tie = |part: u16| keyed_hash(case, [u64::from(part), 1, 0]) % 3;
            let (n_parts, latest) = (1 + draw(0, 40) as u16, 1 + draw(1, 300) as usize);
            let mut ready = Ready::new(usize::from(n_parts), latest);
            let mut heap = BinaryHeap::new();
            let mut is_there = vec![false; usize::from(n_parts)];
            for step in 0..500u64 {
                let part = draw(2 + 2 * step, u64::from(n_parts)) as u16;
                if !std::mem::replace(&mut is_there[usize::from(part)], true) {
                    let deadline = draw(3 + 2 * step, latest as u64 + 1) as usize;
                    ready.add(part, deadline);
                    heap.push(Reverse((deadline, tie(part), part)));
                }
                if step % 3 != 0 {
                    let found = ready.take(tie);
                    assert_eq!(found, heap.pop().map(|Reverse((_, _, part))| part));
                    if let Some(part) = found {
                        is_there[usize::from(part)] = false;
                    }
                }
            }
            while let Some(Reverse((_, _, part))) = heap.pop() {
                assert_eq!(ready.take(tie), Some(part));
            }
            assert_eq!(ready.take(tie), None);
        }
    }
}
