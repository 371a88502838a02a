//! Parts that may have the next slot, by when they must have had it.

/// No part: at most 65,535 have numbers.
pub(super) const NOBODY: u16 = u16::MAX;

/// Parts in lists, one for each deadline: a queue whose keys are slots compares none but parts of one deadline.
pub(super) struct Ready {
    /// By deadline: the first part of its list.
    first: Vec<u16>,
    /// By part: the next one in its list.
    next: Vec<u16>,
    /// A bit for each deadline whose list is in order: as long as the mixture has parts, where many have one share.
    in_order: Vec<u64>,
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
            in_order: vec![0; latest / 64 + 1],
            due: vec![0; latest / 64 + 1],
            lowest: 0,
        }
    }

    /// Adds a part, which must not be there.
    pub(super) fn add(&mut self, part: u16, deadline: usize) {
        self.next[usize::from(part)] = std::mem::replace(&mut self.first[deadline], part);
        self.in_order[deadline / 64] &= !(1 << (deadline % 64));
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
        if self.in_order[self.lowest] & (1 << (deadline % 64)) == 0 {
            self.put_in_order(deadline, tie);
        }
        let part = self.first[deadline];
        self.first[deadline] = self.next[usize::from(part)];
        Some(part)
    }

    // The smallest tie first. What was in order already, behind parts that were added since, takes a stable sort little time.
    fn put_in_order(&mut self, deadline: usize, tie: impl Fn(u16) -> u64) {
        let next = |part: &u16| Some(self.next[usize::from(*part)]).filter(|next| *next != NOBODY);
        let parts = std::iter::successors(Some(self.first[deadline]), next);
        let mut parts: Vec<(u64, u16)> = parts.map(|part| (tie(part), part)).collect();
        parts.sort();
        let mut behind = NOBODY;
        for &(_, part) in parts.iter().rev() {
            self.next[usize::from(part)] = std::mem::replace(&mut behind, part);
        }
        self.first[deadline] = behind;
        self.in_order[deadline / 64] |= 1 << (deadline % 64);
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
