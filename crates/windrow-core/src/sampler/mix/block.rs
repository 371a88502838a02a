//! One block of a mixture: how many slots each part has, and which.

use super::numbered;
use super::ready::{NOBODY, Ready};
use crate::error::{Error, Result};
use crate::record::keyed_hash;

/// Fewest slots of a block: a shorter period is repeated, with other ties.
const FEWEST: u64 = 1024;

/// Most slots of a block.
const MOST: u64 = 65_536;

/// Most parts of a mixture.
const MOST_PARTS: usize = 65_535;

/// How far a share may be from a whole number of slots and still count as whole.
const WHOLE: f64 = 1e-9;

/// Sets the hashes that break ties apart from every other use of the hash.
const TIE: u64 = 0x7469_6500_0000_0000;

/// The table of a block: slot → (part, rank within the part), and back.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// By slot: whose it is, and the how-many-eth of that part.
    slots: Vec<(u16, u32)>,
    /// By part, then rank: the slot.
    by_part: Vec<Vec<u32>>,
}

impl Block {
    /// The block in which each part has its count of slots, of which not all are 0; its ties are broken by the seed.
    pub(super) fn new(counts: &[u64], seed: u64) -> Self {
        let size: u64 = counts.iter().sum();
        let mut block = Block {
            slots: Vec::with_capacity(size as usize),
            by_part: counts.iter().map(|&count| Vec::with_capacity(count as usize)).collect(),
        };
        // Earliest deadline first. Turn j of a part with m of M slots may not come before slot ⌊jM/m⌋, or it would be a
        // whole turn ahead, and must come before slot ⌈(j+1)M/m⌉, or it would be a whole turn behind. Such windows
        // leave room for all (Tijdeman's chairman assignment), and then the earliest deadline first finds it.
        let window = |part: u16, turn: u64| {
            let count = counts[usize::from(part)];
            (turn * size / count, ((turn + 1) * size).div_ceil(count))
        };
        // The parts whose next window opens at a slot, as a list: the first one, and who is behind each.
        let mut opens = vec![NOBODY; size as usize];
        let mut behind = vec![NOBODY; counts.len()];
        for (part, _) in numbered(counts).filter(|(_, count)| **count > 0) {
            behind[usize::from(part)] = std::mem::replace(&mut opens[0], part);
        }
        let mut ready = Ready::new(counts.len(), size as usize);
        for slot in 0..size {
            let mut part = opens[slot as usize];
            while part != NOBODY {
                let turn = block.by_part[usize::from(part)].len() as u64;
                ready.add(part, window(part, turn).1 as usize);
                part = behind[usize::from(part)];
            }
            let tie = |part: u16| {
                let turn = block.by_part[usize::from(part)].len() as u64;
                keyed_hash(seed, [u64::from(part), turn, TIE])
            };
            if let Some(part) = ready.take(tie) {
                let of_part = &mut block.by_part[usize::from(part)];
                block.slots.push((part, of_part.len() as u32));
                of_part.push(slot as u32);
                let next = of_part.len() as u64;
                if next < counts[usize::from(part)] {
                    let opens_at = window(part, next).0.max(slot + 1);
                    behind[usize::from(part)] = std::mem::replace(&mut opens[opens_at as usize], part);
                }
            }
        }
        debug_assert_eq!(block.slots.len() as u64, size);
        block
    }

    /// Number of slots.
    pub(super) fn size(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Slots of one part.
    pub(super) fn slots_of(&self, part: u16) -> u64 {
        self.by_part[usize::from(part)].len() as u64
    }

    /// Whose turn it is at a position, and how many turns that part had before.
    pub(super) fn place(&self, position: u64) -> (u16, u64) {
        let (part, rank) = self.slots[(position % self.size()) as usize];
        (part, position / self.size() * self.slots_of(part) + u64::from(rank))
    }

    /// How many turns a part has in the first `positions` positions.
    pub(super) fn turns_before(&self, part: u16, positions: u64) -> u64 {
        let of_part = &self.by_part[usize::from(part)];
        let rest = positions % self.size();
        let in_the_rest = of_part.partition_point(|&slot| u64::from(slot) < rest) as u64;
        positions / self.size() * self.slots_of(part) + in_the_rest
    }

    /// The inverse: where turn number `place` of a part comes; `None` where it has no slots, and past the last position that
    /// has a number.
    pub(super) fn position(&self, part: u16, place: u64) -> Option<u64> {
        let of_part = &self.by_part[usize::from(part)];
        let slot = of_part.get(place.checked_rem(of_part.len() as u64)? as usize)?;
        (place / of_part.len() as u64).checked_mul(self.size())?.checked_add(u64::from(*slot))
    }
}

/// How many slots each part has: whole multiples of the shortest period that makes all shares whole, else the closest
/// to the shares that fits in the longest block. A weight of 0 has none, where parts may `rest`.
///
/// # Errors
/// `Config` when there are no weights, too many, or one that is not above 0 or too small for a slot.
pub(super) fn slots_of_parts(weights: &[f64], rest: bool) -> Result<Vec<u64>> {
    let n_parts = weights.len();
    if n_parts == 0 || n_parts > MOST_PARTS {
        let found = if n_parts == 0 { "no parts".into() } else { format!("{n_parts} parts") };
        return Err(Error::config(format!("a mixture of {found}: expected 1 to {MOST_PARTS}")));
    }
    for (number, &weight) in weights.iter().enumerate() {
        if !(weight.is_finite() && (weight > 0.0 || (rest && weight == 0.0))) {
            return Err(Error::config(format!(
                "part {number} of the mixture has weight {weight}: expected a number above 0"
            ))
            .hint("a part that is not wanted is left out"));
        }
    }
    // Divided by the largest first, so that the sum of huge weights stays finite.
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return Err(Error::config("all parts of the mixture have weight 0"));
    }
    let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
    let shares: Vec<f64> = weights.iter().map(|weight| weight / largest / sum).collect();
    if let Some((period, mut counts)) = (1..=MOST).find_map(|period| Some((period, whole(&shares, period)?)))
    {
        let repeats = FEWEST.div_ceil(period);
        counts.iter_mut().for_each(|count| *count *= repeats);
        return Ok(counts);
    }
    let counts = closest(&shares);
    match counts.iter().zip(weights).position(|(&count, &weight)| count == 0 && weight > 0.0) {
        None => Ok(counts),
        Some(number) => Err(Error::config(format!(
            "part {number} of the mixture has weight {}, {:e} of the whole: expected at least 1/{MOST}",
            weights[number], shares[number]
        ))
        .hint("give it a larger weight, or leave it out")),
    }
}

/// The slots of each share in a block of `period`, when all are whole and none but a share of 0 has none.
fn whole(shares: &[f64], period: u64) -> Option<Vec<u64>> {
    let is_whole = |share: &f64| {
        let slots = share * period as f64;
        (slots.round() >= 1.0 || *share == 0.0) && (slots - slots.round()).abs() <= WHOLE
    };
    if !shares.iter().all(is_whole) {
        return None;
    }
    let counts: Vec<u64> = shares.iter().map(|share| (share * period as f64).round() as u64).collect();
    (counts.iter().sum::<u64>() == period).then_some(counts)
}

/// Largest remainders: everyone the whole part of his share of `MOST` slots, the rest to those who lost most by it.
fn closest(shares: &[f64]) -> Vec<u64> {
    let wanted: Vec<f64> = shares.iter().map(|share| share * MOST as f64).collect();
    let mut counts: Vec<u64> = wanted.iter().map(|slots| slots.floor() as u64).collect();
    let mut by_loss: Vec<usize> = (0..shares.len()).filter(|&part| shares[part] > 0.0).collect();
    by_loss.sort_by(|&i, &j| wanted[j].fract().total_cmp(&wanted[i].fract()).then(i.cmp(&j)));
    let left = MOST.saturating_sub(counts.iter().sum());
    for &part in by_loss.iter().cycle().take(left as usize) {
        counts[part] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(weights: &[f64]) -> Vec<u64> {
        slots_of_parts(weights, true).unwrap()
    }

    #[test]
    fn shares_become_slots() {
        assert_eq!(counts(&[3.0]), [1024]);
        assert_eq!(counts(&[0.7, 0.3]), [721, 309]);
        assert_eq!(counts(&[0.7, 0.0, 0.3]), [721, 0, 309]);
        assert_eq!(counts(&[1.0, 1.0, 1.0]), [342, 342, 342]);
        assert_eq!(counts(&[f64::MAX, f64::MAX]), [512, 512]);
        assert_eq!(counts(&[65_535.0, 1.0]), [65_535, 1]);
        assert_eq!(counts(&[0.333_333_3, 0.666_666_7]), [21_845, 43_691]);
        assert_eq!(counts(&[std::f64::consts::PI, 1.0, 1e-4]).iter().sum::<u64>(), MOST);
    }

    #[test]
    fn equal_weights_have_no_fixed_phase() {
        // With two equal parts each pair of slots holds both: 512 ties, each a fair coin, 256 ± 11.
        let block = Block::new(&[512, 512], 5);
        let firsts = block.slots.chunks(2).filter(|pair| pair[0].0 == 0).count();
        assert!((200..312).contains(&firsts), "{firsts} of 512");
        let other = Block::new(&[512, 512], 6);
        assert_ne!(block.slots, other.slots);
    }

    /// Every prefix of every block, for 400 drawn sets of 2 to 8 weights.
    #[test]
    fn no_part_is_ever_a_whole_turn_ahead_or_behind() {
        let draw = |case: u64, part: u64| keyed_hash(9, [case, part, 0]);
        for case in 0..400 {
            let n_parts = 2 + draw(case, 100) % 7;
            // Small whole weights give short periods with many ties; large ones give blocks without a period.
            let largest = [3, 20, 1000, 1 << 40][(case % 4) as usize];
            let weights: Vec<f64> = (0..n_parts)
                .map(|part| (1 + draw(case, part) % largest) as f64 + 0.1 * (case % 3) as f64)
                .collect();
            let Ok(counts) = slots_of_parts(&weights, false) else { continue };
            let block = Block::new(&counts, case);
            let size = block.size();
            assert!((FEWEST..=MOST).contains(&size));
            let mut had = vec![0u64; weights.len()];
            for (p, &(part, rank)) in (1u64..).zip(&block.slots) {
                assert_eq!(u64::from(rank), had[usize::from(part)]);
                had[usize::from(part)] += 1;
                for (number, &had) in (0u16..).zip(&had) {
                    let due = p * block.slots_of(number);
                    assert!(
                        (had * size).abs_diff(due) < size,
                        "weights {weights:?}, part {number}, prefix {p}"
                    );
                }
            }
            assert_eq!(block.slots.len() as u64, had.iter().sum::<u64>());
        }
    }
}
