//! A weighted mixture of several views: whose turn it is, by a table of one block that repeats.

mod block;
mod part;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::block::Block;
use self::part::{Part, PassOrder};
use super::{Order, Sampler, Turn};
use crate::error::{Error, Result};
use crate::record::keyed_hash;

/// Sets the seeds of the parts apart from every other use of the hash.
const PART: u64 = 0x7061_7274_0000_0000;

/// When an epoch of a mixture ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// Before the first sample that would come a second time: no sample twice, some never.
    #[default]
    First,
    /// As soon as every sample of every part has come: none is left out, some come again.
    All,
    /// Never: one endless epoch.
    Never,
}

/// A mixture of parts in fixed shares.
///
/// Positions come in blocks of M. A part of share w has exactly `m = w·M` slots in each block, and in the first p
/// positions of a block it had its turn p·m/M times, give or take less than one. Which slots they are is decided once,
/// by the seed. Each part is gone through pass after pass, in a new order each pass and epoch when shuffled.
///
/// Sample numbers run through the first part, then the second, and so on.
///
/// ```
/// use windrow_core::sampler::{Mix, Sampler, Stop};
///
/// let web_and_code = Mix::new(&[(700, 0.7), (100, 0.3)], true, 7, Stop::All)?;
/// let turn = web_and_code.turn(0, 12);
/// assert_eq!(web_and_code.position(0, turn), Some(12));
/// # Ok::<(), windrow_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mix {
    parts: Vec<Part>,
    block: Block,
    stop: Stop,
    len: Option<u64>,
}

/// A turn before the order of its pass is applied.
struct Place {
    part: u16,
    pass: u64,
    inner: u64,
}

impl Mix {
    /// Mixes parts of `(number of samples, weight)`; only the ratio of the weights counts.
    ///
    /// # Errors
    /// `Config`, naming the part, when there is none or more than 65,535, when one is empty, when a weight is not a
    /// number above 0 or is less than about 1/65,536 of the whole, and when there are more than 2^63 samples.
    pub fn new(parts: &[(u64, f64)], shuffle: bool, seed: u64, stop: Stop) -> Result<Self> {
        let order = if shuffle { Order::Shuffle } else { Order::Sequential };
        let parts: Vec<_> = parts.iter().map(|&(len, weight)| (len, weight, order)).collect();
        Mix::in_orders(&parts, seed, stop)
    }

    /// Mixes parts of `(number of samples, weight, order)`, each in its own order.
    ///
    /// # Errors
    /// As [`Mix::new`]; `Config` where a part has not enough blocks for the lanes of its order.
    pub fn in_orders(parts: &[(u64, f64, Order)], seed: u64, stop: Stop) -> Result<Self> {
        let weights: Vec<f64> = parts.iter().map(|part| part.1).collect();
        let block = Block::new(&weights, seed)?;
        let mut offset = 0u64;
        let mut placed = Vec::with_capacity(parts.len());
        for (number, &(len, _, order)) in parts.iter().enumerate() {
            if len == 0 {
                return Err(Error::config(format!("part {number} of the mixture has no samples"))
                    .hint("leave it out, or cut shorter samples"));
            }
            placed.push(Part::new(offset, len, order, keyed_hash(seed, [number as u64, 0, PART]))?);
            offset = offset.checked_add(len).filter(|&all| all <= 1 << 63).ok_or_else(|| {
                Error::config(format!("part {number} with {len} samples makes the mixture longer than 2^63"))
            })?;
        }
        let mut mix = Mix { parts: placed, block, stop, len: None };
        mix.len = mix.length();
        Ok(mix)
    }

    /// Whose turn it is at a position, where each part continues in every epoch where it ended in the one before: passes count
    /// through all epochs. A mixture that never stops has one epoch only, whatever number it is given.
    ///
    /// ```
    /// use windrow_core::sampler::{Mix, Stop};
    ///
    /// // The second part ends the epoch after 50 samples of the first, which continues with the next 50.
    /// let mix = Mix::new(&[(100, 0.5), (50, 0.5)], false, 0, Stop::First)?;
    /// let of_the_first = |epoch| (0..100).map(|p| mix.onward(epoch, p).sample).filter(|n| *n < 100).max();
    /// assert_eq!((of_the_first(0), of_the_first(1)), (Some(49), Some(99)));
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    pub fn onward(&self, epoch: u64, position: u64) -> Turn {
        let (number, place) = self.block.place(position);
        let part = self.part(number);
        let in_an_epoch = self.len.map_or(0, |len| self.block.turns_before(number, len));
        let place = u128::from(epoch) * u128::from(in_an_epoch) + u128::from(place);
        let len = u128::from(part.len);
        let (pass, inner) = ((place / len) as u64, (place % len) as u64);
        let inner = part.order(0, pass).sample(inner);
        Turn { sample: part.offset + inner, pass }
    }

    /// Which part a sample number belongs to, and its number there.
    pub fn part_of(&self, sample: u64) -> (usize, u64) {
        let part = self.parts.partition_point(|part| part.offset <= sample).saturating_sub(1);
        (part, sample - self.parts[part].offset)
    }

    /// Positions of an epoch. An end beyond 2^64 counts as 2^64 - 1: nobody gets there.
    fn length(&self) -> Option<u64> {
        // Where each part's place number `place(len)` comes.
        let positions = |place: fn(u64) -> u64| {
            (0u16..)
                .zip(&self.parts)
                .map(move |(number, part)| self.block.position(number, place(part.len)).unwrap_or(u64::MAX))
        };
        match self.stop {
            Stop::First => positions(|len| len).min(),
            Stop::All => positions(|len| len - 1).max().map(|last| last.saturating_add(1)),
            Stop::Never => None,
        }
    }

    fn part(&self, number: u16) -> &Part {
        &self.parts[usize::from(number)]
    }

    fn place(&self, position: u64) -> Place {
        let (part, place) = self.block.place(position);
        let len = self.part(part).len;
        Place { part, pass: place / len, inner: place % len }
    }
}

impl Sampler for Mix {
    fn len(&self, _epoch: u64) -> Option<u64> {
        self.len
    }

    fn turn(&self, epoch: u64, position: u64) -> Turn {
        let Place { part, pass, inner } = self.place(position);
        let part = self.part(part);
        Turn { sample: part.offset + part.order(epoch, pass).sample(inner), pass }
    }

    fn turns(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Turn>) {
        // Neighbouring positions belong to different parts: each part keeps the order of its latest pass.
        let mut orders: BTreeMap<u16, (u64, PassOrder<'_>)> = BTreeMap::new();
        out.extend(positions.map(|position| {
            let Place { part: number, pass, inner } = self.place(position);
            let part = self.part(number);
            let latest = orders.entry(number).or_insert_with(|| (pass, part.order(epoch, pass)));
            if latest.0 != pass {
                *latest = (pass, part.order(epoch, pass));
            }
            Turn { sample: part.offset + latest.1.sample(inner), pass }
        }));
    }

    fn position(&self, epoch: u64, turn: Turn) -> Option<u64> {
        let Turn { sample, pass } = turn;
        let (number, inner) = self.part_of(sample);
        let number = u16::try_from(number).ok()?;
        let part = self.part(number);
        if inner >= part.len {
            return None;
        }
        let inner = part.order(epoch, pass).place(inner);
        let place = pass.checked_mul(part.len)?.checked_add(inner)?;
        let position = self.block.position(number, place)?;
        self.len.is_none_or(|len| position < len).then_some(position)
    }

    fn blocks(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Range<u64>>) -> bool {
        let positions = positions.start..self.len.map_or(positions.end, |len| len.min(positions.end));
        let mut needed = Vec::new();
        for (number, part) in (0u16..).zip(&self.parts) {
            let [mut place, end] =
                [positions.start, positions.end].map(|p| self.block.turns_before(number, p));
            while place < end {
                let (pass, inner) = (place / part.len, place % part.len);
                let n = (end - place).min(part.len - inner);
                let at = |inner| self.block.position(number, pass * part.len + inner).unwrap_or(u64::MAX);
                if !part.blocks(epoch, pass, inner..inner + n, &at, &mut needed) {
                    return false;
                }
                place += n;
            }
        }
        // Stable: the blocks of a pool stay in their order.
        needed.sort_by_key(|(position, _)| *position);
        out.extend(needed.into_iter().map(|(_, samples)| samples));
        true
    }

    fn describe(&self) -> String {
        // Slots, not weights: 7 to 3 and 0.7 to 0.3 are the same order.
        let parts: Vec<String> = (0u16..)
            .zip(&self.parts)
            .map(|(number, part)| format!("{}*{}", part.len, self.block.slots_of(number)))
            .collect();
        let orders: Vec<String> = self.parts.iter().map(Part::describe).collect();
        // One order of all parts is named once.
        let order = match orders.iter().all(|order| *order == orders[0]) {
            true => orders[0].clone(),
            false => orders.join("+"),
        };
        let stop = match self.stop {
            Stop::First => "first",
            Stop::All => "all",
            Stop::Never => "never",
        };
        format!("mix-v1:{order},stop={stop},slots={},len*slots={}", self.block.size(), parts.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn refused(parts: &[(u64, f64)]) -> String {
        let error = Mix::new(parts, true, 0, Stop::Never).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        error.message().to_string()
    }

    #[test]
    fn parts_that_cannot_be_mixed_are_refused_by_number() {
        assert!(refused(&[]).contains("no parts"));
        assert!(refused(&[(1, 1.0), (0, 1.0)]).contains("part 1 "));
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let message = refused(&[(1, 1.0), (1, 1.0), (1, weight)]);
            assert!(message.contains("part 2 ") && message.contains(&weight.to_string()), "{message}");
        }
        assert!(refused(&[(1, 1.0), (1, 1e-9)]).contains("part 1 "));
        assert!(refused(&[(1, f64::MAX), (1, f64::MAX), (1, 1.0)]).contains("part 2 "));
        assert!(refused(&[(1 << 63, 1.0), (1, 1.0)]).contains("part 1 "));
        assert!(refused(&vec![(1, 1.0); 65_536]).contains("65536"));
    }

    /// Positions, epochs and parts in a row: each part's samples follow one another without a gap.
    #[test]
    fn every_part_goes_on_where_the_epoch_before_ended() {
        for stop in [Stop::First, Stop::All] {
            for shuffle in [false, true] {
                let mix = Mix::new(&[(700, 0.9), (30, 0.1)], shuffle, 3, stop).unwrap();
                let len = mix.len(0).unwrap();
                let mut had = [Vec::new(), Vec::new()];
                for epoch in 0..5 {
                    for position in 0..len {
                        let turn = mix.onward(epoch, position);
                        let (part, number) = mix.part_of(turn.sample);
                        had[part].push((turn.pass, number));
                    }
                }
                for (numbers, n) in had.iter().zip([700, 30]) {
                    for (pass, of_pass) in numbers.chunks(n).enumerate() {
                        assert!(of_pass.iter().all(|turn| turn.0 == pass as u64));
                        let mut seen: Vec<u64> = of_pass.iter().map(|turn| turn.1).collect();
                        assert!(shuffle || seen.is_sorted());
                        seen.sort_unstable();
                        seen.dedup();
                        assert_eq!(seen.len(), of_pass.len());
                    }
                }
                let shares = had.each_ref().map(Vec::len);
                assert!((9 * shares[1]).abs_diff(shares[0]) < 10 * 5, "{shares:?}");
            }
        }
    }

    #[test]
    fn the_first_epoch_is_the_loaders_and_an_endless_one_is_the_only_one() {
        let mix = |stop| Mix::new(&[(70, 0.9), (30, 0.1)], false, 3, stop).unwrap();
        for position in 0..300 {
            for stop in [Stop::First, Stop::All, Stop::Never] {
                assert_eq!(mix(stop).onward(0, position), mix(stop).turn(0, position));
            }
            assert_eq!(mix(Stop::Never).onward(9, position), mix(Stop::Never).turn(0, position));
        }
        let long = Mix::new(&[(1 << 62, 1.0), (3, 1.0)], false, 1, Stop::First).unwrap();
        assert!(long.onward(u64::MAX, 5).sample < (1 << 62) + 3);
    }

    #[test]
    fn as_many_parts_as_slots_can_be_mixed() {
        let mix = Mix::new(&vec![(1, 1.0); 65_535], true, 0, Stop::All).unwrap();
        assert_eq!(mix.len(0), Some(65_535));
    }

    #[test]
    fn the_words_name_order_stop_shares_and_lengths() {
        let describe = |weights: [f64; 2], shuffle, stop| {
            Mix::new(&[(5, weights[0]), (9, weights[1])], shuffle, 1, stop).unwrap().describe()
        };
        assert_eq!(
            describe([0.7, 0.3], true, Stop::First),
            "mix-v1:shuffle:feistel-v1,stop=first,slots=1030,len*slots=5*721+9*309"
        );
        assert_eq!(
            describe([7.0, 3.0], false, Stop::Never),
            "mix-v1:sequential,stop=never,slots=1030,len*slots=5*721+9*309"
        );
    }

    #[test]
    fn the_longest_mixtures_do_not_overflow() {
        for stop in [Stop::First, Stop::All] {
            let mix = Mix::new(&[(1 << 62, 1.0), (1 << 61, 60_000.0)], true, 1, stop).unwrap();
            assert!(mix.len(0).is_some_and(|len| len > 1 << 61));
            let turn = mix.turn(0, u64::MAX - 1);
            assert!(turn.sample < (1 << 62) + (1 << 61));
        }
        let mix = Mix::new(&[(1 << 62, 1.0), (3, 1.0)], true, 1, Stop::Never).unwrap();
        assert_eq!(mix.position(0, Turn { sample: 0, pass: u64::MAX }), None);
        assert_eq!(mix.position(0, Turn { sample: u64::MAX, pass: 0 }), None);
    }

    #[test]
    fn stop_is_written_in_small_letters() {
        assert_eq!(serde_json::to_string(&Stop::First).unwrap(), "\"first\"");
        assert_eq!(serde_json::from_str::<Stop>("\"never\"").unwrap(), Stop::Never);
    }
}
