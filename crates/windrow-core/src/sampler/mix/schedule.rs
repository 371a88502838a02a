//! Whose turn it is at each position of a mixture: blocks that repeat, another one where the shares change.

use super::block::Block;
use super::numbered;
use crate::error::{Error, Result};

/// Most slots of all blocks together, with what is kept of each part: a few hundred megabytes.
const MOST: u64 = 1 << 24;

/// How many of the slots each part has, from a position on.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    pub(super) start: u64,
    pub(super) of_parts: Vec<u64>,
}

/// The turns of the parts, by position.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    // Never empty; the first one begins at 0.
    stretches: Vec<Stretch>,
    end: Option<u64>,
}

/// Positions in which the shares stay the same.
#[derive(Clone, Debug)]
struct Stretch {
    start: u64,
    /// By part: turns before the start.
    before: Vec<u64>,
    block: Block,
}

impl Schedule {
    /// Phases, of which the first begins at 0, each later than the one before. A part that had its `most` turns gives its
    /// slots to the others from there on, whose shares keep their proportions; when none is left, the schedule ends.
    ///
    /// # Errors
    /// `Config` where a phase begins at or after the end, and where the blocks take too much memory.
    pub(super) fn new(phases: &[Slots], most: &[Option<u64>], seed: u64) -> Result<Schedule> {
        let n_parts = most.len();
        let mut used = vec![0u64; n_parts];
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut taken = 0u64;
        for (number, phase) in phases.iter().enumerate() {
            let phase_end = phases.get(number + 1).map(|next| next.start);
            let mut start = phase.start;
            loop {
                let is_left = |part: usize| most[part].is_none_or(|most| used[part] < most);
                let counts: Vec<u64> = (phase.of_parts.iter().enumerate())
                    .map(|(part, &slots)| if is_left(part) { slots } else { 0 })
                    .collect();
                let size: u64 = counts.iter().sum();
                if size == 0 {
                    let late = number + usize::from(start > phase.start);
                    return match phases.get(late).filter(|_| late > 0) {
                        None => Ok(Schedule { stretches, end: Some(start) }),
                        Some(late) => Err(Error::config(format!(
                            "a phase of the mixture begins at sample {}, and no part is left at sample {start}",
                            late.start
                        ))
                        .field("phases")
                        .hint("give more weights above 0, or max_epochs that reach further")),
                    };
                }
                taken = taken.saturating_add(size).saturating_add(4 * n_parts as u64);
                if taken > MOST {
                    return Err(Error::config(format!(
                        "the shares of {n_parts} parts that change {} times take {taken} numbers: at most {MOST}",
                        stretches.len()
                    ))
                    .hint("round the weights, as to 1/1000: blocks are shorter then; or give fewer phases or max_epochs"));
                }
                let block = Block::new(&counts, seed);
                // Behind the last turn of the part that first has had all of its turns.
                let first_out = numbered(most).zip(&used).filter_map(|((part, most), used)| {
                    let turns = most.filter(|most| most > used)? - used;
                    start.checked_add(block.position(part, turns - 1)?)?.checked_add(1)
                });
                let end = first_out.chain(phase_end).min();
                let before = used.clone();
                if let Some(end) = end {
                    for (used, part) in used.iter_mut().zip(0u16..) {
                        *used += block.turns_before(part, end - start);
                    }
                }
                stretches.push(Stretch { start, before, block });
                match end {
                    None => return Ok(Schedule { stretches, end: None }),
                    Some(end) if Some(end) == phase_end => break,
                    Some(end) => start = end,
                }
            }
        }
        Ok(Schedule { stretches, end: None })
    }

    /// Where every part has had all of its turns.
    pub(super) fn end(&self) -> Option<u64> {
        self.end
    }

    /// Where shares change, the beginning included, and the slots of each part from there on.
    pub(super) fn changes(&self) -> impl Iterator<Item = Slots> {
        self.stretches.iter().map(|stretch| Slots {
            start: stretch.start,
            of_parts: (0u16..).take(stretch.before.len()).map(|part| stretch.block.slots_of(part)).collect(),
        })
    }

    fn stretch_at(&self, position: u64) -> &Stretch {
        &self.stretches[self.stretches.partition_point(|s| s.start <= position).saturating_sub(1)]
    }

    /// Whose turn it is at a position, and how many turns that part had before.
    pub(super) fn place(&self, position: u64) -> (u16, u64) {
        let stretch = self.stretch_at(position);
        let (part, place) = stretch.block.place(position - stretch.start);
        (part, stretch.before[usize::from(part)] + place)
    }

    /// How many turns a part has in the first `positions` positions.
    pub(super) fn turns_before(&self, part: u16, positions: u64) -> u64 {
        let stretch = self.stretch_at(positions);
        stretch.before[usize::from(part)] + stretch.block.turns_before(part, positions - stretch.start)
    }

    /// The inverse: where turn number `place` of a part comes; `None` where it never does.
    pub(super) fn position(&self, part: u16, place: u64) -> Option<u64> {
        let before = |stretch: &Stretch| stretch.before[usize::from(part)];
        let stretch =
            &self.stretches[self.stretches.partition_point(|s| before(s) <= place).saturating_sub(1)];
        let position = stretch.block.position(part, place - before(stretch))?.checked_add(stretch.start)?;
        self.end.is_none_or(|end| position < end).then_some(position)
    }
}
