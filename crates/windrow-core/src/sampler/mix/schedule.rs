//! Whose turn it is at each position of a mixture: blocks that repeat, another one where the shares change.
//!
//! A turn is one position, or where batches are of one part each, the positions of a batch. Outside, all is counted in positions.

use std::num::NonZeroU64;

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
    // Positions of a turn.
    rows: NonZeroU64,
}

/// Turns in which the shares stay the same.
#[derive(Clone, Debug)]
struct Stretch {
    start: u64,
    /// By part: turns before the start.
    before: Vec<u64>,
    block: Block,
}

impl Schedule {
    /// Phases, of which the first begins at 0, each later than the one before, in turns of `rows` positions. A part that had its
    /// `most` turns gives its slots to the others from there on, whose shares keep their proportions; when none is left, the schedule
    /// ends.
    ///
    /// # Errors
    /// `Config` where a phase begins inside a turn, or at or after the end, and where the blocks take too much memory.
    pub(super) fn new(
        phases: &[Slots],
        most: &[Option<u64>],
        rows: NonZeroU64,
        seed: u64,
    ) -> Result<Schedule> {
        let starts = phases.iter().map(|phase| turn_of(phase.start, rows)).collect::<Result<Vec<u64>>>()?;
        let n_parts = most.len();
        let mut used = vec![0u64; n_parts];
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut taken = 0u64;
        for (number, phase) in phases.iter().enumerate() {
            let phase_end = starts.get(number + 1).copied();
            let mut start = starts[number];
            loop {
                let is_left = |part: usize| most[part].is_none_or(|most| used[part] < most);
                let counts: Vec<u64> = (phase.of_parts.iter().enumerate())
                    .map(|(part, &slots)| if is_left(part) { slots } else { 0 })
                    .collect();
                let size: u64 = counts.iter().sum();
                if size == 0 {
                    let late = number + usize::from(start > starts[number]);
                    return match phases.get(late).filter(|_| late > 0) {
                        None => Ok(Schedule { stretches, end: Some(start), rows }),
                        Some(late) => Err(Error::config(format!(
                            "a phase of the mixture begins at sample {}, and no part is left at sample {}",
                            late.start,
                            start.saturating_mul(rows.get())
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
                    None => return Ok(Schedule { stretches, end: None, rows }),
                    Some(end) if Some(end) == phase_end => break,
                    Some(end) => start = end,
                }
            }
        }
        Ok(Schedule { stretches, end: None, rows })
    }

    /// Where every part has had all of its turns. An end beyond 2^64 counts as 2^64 - 1: nobody gets there.
    pub(super) fn end(&self) -> Option<u64> {
        self.end.map(|end| end.saturating_mul(self.rows.get()))
    }

    /// Where shares change, the beginning included, and the slots of each part from there on.
    pub(super) fn changes(&self) -> impl Iterator<Item = Slots> {
        self.stretches.iter().map(|stretch| Slots {
            start: stretch.start.saturating_mul(self.rows.get()),
            of_parts: (0u16..).take(stretch.before.len()).map(|part| stretch.block.slots_of(part)).collect(),
        })
    }

    fn stretch_at(&self, turn: u64) -> &Stretch {
        &self.stretches[self.stretches.partition_point(|s| s.start <= turn).saturating_sub(1)]
    }

    // Whose turn it is, and how many that part had before.
    fn turn(&self, turn: u64) -> (u16, u64) {
        let stretch = self.stretch_at(turn);
        let (part, before) = stretch.block.place(turn - stretch.start);
        (part, stretch.before[usize::from(part)] + before)
    }

    /// Whose position it is, and how many that part had before.
    pub(super) fn place(&self, position: u64) -> (u16, u64) {
        let (part, turn) = self.turn(position / self.rows);
        (part, turn * self.rows.get() + position % self.rows)
    }

    /// How many of the first `positions` positions a part has.
    pub(super) fn positions_before(&self, part: u16, positions: u64) -> u64 {
        let (turns, rest) = (positions / self.rows, positions % self.rows);
        let stretch = self.stretch_at(turns);
        let before =
            stretch.before[usize::from(part)] + stretch.block.turns_before(part, turns - stretch.start);
        let is_its = rest > 0 && self.turn(turns).0 == part;
        before * self.rows.get() + if is_its { rest } else { 0 }
    }

    /// The inverse: where position number `place` of a part comes; `None` where it never does.
    pub(super) fn position(&self, part: u16, place: u64) -> Option<u64> {
        let (turn, row) = (place / self.rows, place % self.rows);
        let before = |stretch: &Stretch| stretch.before[usize::from(part)];
        let stretch =
            &self.stretches[self.stretches.partition_point(|s| before(s) <= turn).saturating_sub(1)];
        let turn = stretch.block.position(part, turn - before(stretch))?.checked_add(stretch.start)?;
        if self.end.is_some_and(|end| turn >= end) {
            return None;
        }
        turn.checked_mul(self.rows.get())?.checked_add(row)
    }
}

// The turn that begins at a position.
fn turn_of(position: u64, rows: NonZeroU64) -> Result<u64> {
    let inside = position % rows;
    if inside == 0 {
        return Ok(position / rows);
    }
    let (before, after) = (position - inside, (position - inside).checked_add(rows.get()));
    Err(Error::config(format!(
        "a phase begins at sample {position}, inside a batch: each batch is of one part, and has {rows} rows"
    ))
    .field("phases")
    .hint(match after {
        Some(after) => format!(
            "a phase begins with a batch, as at sample {before} or {after}; @steps_of={rows}@ counts phases in batches"
        ),
        None => format!("a phase begins with a batch, as at sample {before}"),
    }))
}
