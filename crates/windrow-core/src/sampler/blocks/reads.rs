//! Which blocks a stretch of the order draws from, so that a reader can fetch them whole before they are needed.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Pass;

/// A lane's pool that is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sampler) struct Needed {
    /// The first place that needs it.
    pub(in crate::sampler) place: u64,
    lane: u64,
    pool: u64,
}

impl Pass<'_> {
    /// The pools that these places draw from, in the order in which they are first needed.
    pub(in crate::sampler) fn pools(&self, places: Range<u64>) -> Vec<Needed> {
        let places = places.start..places.end.min(self.blocks.n);
        let in_rounds = self.blocks.in_rounds();
        let mut found = Vec::new();
        self.pools_in_rounds(places.start..places.end.min(in_rounds), &mut found);
        self.pools_left(places.start.max(in_rounds)..places.end, &mut found);
        found
    }

    fn pools_in_rounds(&self, places: Range<u64>, found: &mut Vec<Needed>) {
        let shape = self.blocks.shape;
        if places.is_empty() {
            return;
        }
        let (first, last) = (places.start / shape.rows, (places.end - 1) / shape.rows);
        // The lanes that have a turn, beginning with the one whose turn it is.
        for turn in first..=last.min(first + (shape.lanes - 1)) {
            let number = turn % shape.lanes;
            // How many rows the lane had before a place.
            let had = |place: u64| {
                let (turn, row) = (place / shape.rows, place % shape.rows);
                let (round, whose) = (turn / shape.lanes, turn % shape.lanes);
                let rows = match whose.cmp(&number) {
                    std::cmp::Ordering::Less => 0,
                    std::cmp::Ordering::Equal => row,
                    std::cmp::Ordering::Greater => shape.rows,
                };
                round * shape.rows + rows
            };
            let lane = self.lane(number);
            let (mut inner, end) = (had(places.start), had(places.end));
            while inner < end {
                let pool = self.pool_at(&lane, inner);
                let place = (inner / shape.rows * shape.lanes + number) * shape.rows + inner % shape.rows;
                found.push(Needed { place, lane: number, pool: pool.number });
                inner = pool.places.end;
            }
        }
        found.sort_unstable_by_key(|needed| needed.place);
    }

    fn pools_left(&self, places: Range<u64>, found: &mut Vec<Needed>) {
        if places.is_empty() {
            return;
        }
        let mut seen: BTreeSet<(u64, u64)> = found.iter().map(|n| (n.lane, n.pool)).collect();
        let mut order_left = None;
        for place in places {
            let (number, inner) = self.in_lane(place, &mut order_left);
            let pool = self.pool_number(number, inner);
            if seen.insert((number, pool)) {
                found.push(Needed { place, lane: number, pool });
            }
        }
    }

    /// The samples of each of a pool's blocks, in the order of the pool.
    pub(in crate::sampler) fn blocks_of(&self, needed: &Needed, mut give: impl FnMut(Range<u64>)) {
        let lane = self.lane(needed.lane);
        let shape = self.blocks.shape;
        let first = needed.pool * shape.pool;
        let end = first.saturating_add(shape.pool).min(self.blocks.blocks_of(needed.lane));
        for turn in first..end {
            give(self.blocks.samples_of(self.block(&lane, turn)));
        }
    }
}
