//! The orders of samples: bijections, statistically random, mixed in exact shares.
//!
//! Seeds are fixed, so each statistical test gives one number for ever. The threshold is 5 standard deviations: a truly
//! random order would miss it for fewer than one seed in a million where the number is normal; chi-square has a longer
//! tail, so one in 20,000 at 39 degrees of freedom, one in 1,000 at 5, one in 200 at 1.

use std::collections::HashSet;

use proptest::prelude::*;
use windrow_core::sampler::{Mix, Permutation, Sampler, Shard, Shuffle, Stop, Turn};

/// How many standard deviations chi-square lies above its mean, for equally likely cells: it has mean `freedom` and
/// variance `2 * freedom`. Far below its mean is as wrong as far above.
pub(crate) fn chi_square(counts: &[u64], freedom: usize) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let sum: f64 = counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
    (sum - freedom as f64) / (2.0 * freedom as f64).sqrt()
}

fn values(permutation: &Permutation, n: u64) -> Vec<u64> {
    (0..n).map(|i| permutation.apply(i)).collect()
}

fn inversions(values: &[u64]) -> usize {
    (0..values.len()).map(|i| values[i + 1..].iter().filter(|&&later| later < values[i]).count()).sum()
}

#[test]
fn every_small_size_is_a_bijection_with_its_inverse() {
    for n in 1..5000 {
        let permutation = Permutation::new(n ^ 0x5eed, n);
        let mut seen = vec![false; n as usize];
        for i in 0..n {
            let j = permutation.apply(i);
            assert!(!std::mem::replace(&mut seen[j as usize], true), "{j} comes twice, n = {n}");
            assert_eq!(permutation.invert(j), i, "n = {n}");
        }
    }
}

#[test]
fn sizes_around_powers_of_two_give_distinct_places_with_their_inverse() {
    for bits in 12..=40 {
        for n in [(1 << bits) - 1, 1 << bits, (1 << bits) + 1] {
            let permutation = Permutation::new(bits, n);
            let inputs: HashSet<u64> = (0..200).flat_map(|i| [i, n - 1 - i, n / 200 * i]).collect();
            let outputs: HashSet<u64> = inputs.iter().map(|&i| permutation.apply(i)).collect();
            assert_eq!(inputs.len(), outputs.len(), "n = {n}");
            assert!(outputs.iter().all(|&j| j < n));
            assert!(inputs.iter().all(|&i| permutation.invert(permutation.apply(i)) == i), "n = {n}");
        }
    }
}

#[test]
fn a_value_lands_anywhere() {
    // Position bucket against value bucket: 40 × 40 cells with fixed margins, 39² degrees of freedom.
    const BUCKETS: u64 = 40;
    for n in [10_000, 65_536, 100_000] {
        for key in 0..5 {
            let mut cells = vec![0; (BUCKETS * BUCKETS) as usize];
            for (i, j) in (0..).zip(values(&Permutation::new(key, n), n)) {
                cells[(i * BUCKETS / n * BUCKETS + j * BUCKETS / n) as usize] += 1;
            }
            let z = chi_square(&cells, 39 * 39);
            assert!(z.abs() < 5.0, "z = {z}, n = {n}, key {key}");
        }
    }
}

#[test]
fn neighbours_are_unrelated() {
    const BUCKETS: u64 = 40;
    for n in [1000, 10_000, 65_536, 100_000] {
        for key in 10..15 {
            let values = values(&Permutation::new(key, n), n);
            let mut differences = vec![0; BUCKETS as usize];
            let mut pairs = vec![0; (BUCKETS * BUCKETS) as usize];
            let mut ascents = 0u64;
            for pair in values.windows(2) {
                let [one, next] = [pair[0], pair[1]];
                // Mod n each difference but 0 is equally likely.
                differences[(((next + n - one) % n) * BUCKETS / n) as usize] += 1;
                pairs[(one * BUCKETS / n * BUCKETS + next * BUCKETS / n) as usize] += 1;
                ascents += u64::from(one < next);
            }
            let z = chi_square(&differences, 39);
            assert!(z.abs() < 5.0, "differences: z = {z}, n = {n}, key {key}");
            // A cell of fewer than 5 pairs is no normal variate.
            if n >= 10_000 {
                let z = chi_square(&pairs, 39 * 39);
                assert!(z.abs() < 5.0, "pairs: z = {z}, n = {n}, key {key}");
            }
            // Ascents have an Eulerian distribution: mean (n - 1) / 2, variance (n + 1) / 12.
            let z = (ascents as f64 - (n - 1) as f64 / 2.0) / ((n + 1) as f64 / 12.0).sqrt();
            assert!(z.abs() < 5.0, "ascents: z = {z}, n = {n}, key {key}");
        }
    }
}

#[test]
fn all_orders_of_few_are_equally_likely() {
    // n! cells, n! - 1 degrees of freedom, 200,000 neighbouring keys.
    for n in [2, 3, 4, 5, 6] {
        let mut cells = vec![0; (1..=n as usize).product()];
        for key in 0..200_000 {
            let values = values(&Permutation::new(key, n), n);
            // The rank of the order in the factorial number system.
            let rank = (0..values.len()).fold(0, |rank, i| {
                rank * (values.len() - i) + values[i + 1..].iter().filter(|&&later| later < values[i]).count()
            });
            cells[rank] += 1;
        }
        let z = chi_square(&cells, cells.len() - 1);
        assert!(z.abs() < 5.0, "z = {z}, n = {n}");
    }
}

#[test]
fn pairs_of_places_are_equally_likely_in_small_sizes() {
    // Over keys, (p(0), p(1)) takes n(n - 1) values.
    for n in [10, 13, 17, 64, 255, 256] {
        let mut cells = vec![0; (n * n) as usize];
        for key in 0..200_000.max(n * n * 10) {
            let permutation = Permutation::new(key, n);
            cells[(permutation.apply(0) * n + permutation.apply(1)) as usize] += 1;
        }
        let possible: Vec<u64> =
            (0..n * n).filter(|cell| cell / n != cell % n).map(|cell| cells[cell as usize]).collect();
        let z = chi_square(&possible, possible.len() - 1);
        assert!(z.abs() < 5.0, "z = {z}, n = {n}");
    }
}

#[test]
fn half_of_all_orders_are_odd() {
    // Binomial(20,000, 1/2): standard deviation 70.7.
    for n in [2, 3, 7, 16, 25, 64] {
        let odd =
            (0..20_000).filter(|&key| inversions(&values(&Permutation::new(key, n), n)) % 2 == 1).count();
        assert!(odd.abs_diff(10_000) < 354, "{odd} of 20000 orders of {n} are odd");
    }
}

#[test]
fn epochs_agree_as_often_as_chance_has_it() {
    // The fixed points between two random orders are Poisson(1): P(0) = P(1) = 1/e, P(2) = 1/2e, P(3) = 1/6e.
    const PAIRS: u64 = 2000;
    let n = 500;
    let order = Shuffle::new(n, 77);
    let mut seen = [0u64; 5];
    let mut before = Vec::new();
    order.turns(0, 0..n, &mut before);
    for epoch in 1..=PAIRS {
        let mut turns = Vec::new();
        order.turns(epoch, 0..n, &mut turns);
        let agreeing = turns.iter().zip(&before).filter(|(one, other)| one == other).count();
        seen[agreeing.min(4)] += 1;
        before = turns;
    }
    let first = (-1.0f64).exp();
    let chances = [1.0, 1.0, 0.5, 1.0 / 6.0].map(|factor| factor * first);
    let rest = 1.0 - chances.iter().sum::<f64>();
    let chi_square: f64 = chances
        .into_iter()
        .chain([rest])
        .zip(seen)
        .map(|(chance, seen)| (seen as f64 - chance * PAIRS as f64).powi(2) / (chance * PAIRS as f64))
        .sum();
    // 4 degrees of freedom: one in ten thousand lies above 23.5.
    assert!(chi_square < 23.5, "{chi_square}: {seen:?}");
}

/// Parts of up to 60 samples with whole weights from 1 to 9.
fn parts() -> impl Strategy<Value = Vec<(u64, f64)>> {
    prop::collection::vec((1..60u64, (1..10u32).prop_map(f64::from)), 1..7)
}

/// Enough positions for the first pass of every part: 60 samples of a share of at least 1/55.
const ENOUGH: u64 = 60 * 55 + 1024;

fn turns(order: &dyn Sampler, epoch: u64, positions: std::ops::Range<u64>) -> Vec<Turn> {
    let mut out = Vec::new();
    order.turns(epoch, positions, &mut out);
    out
}

/// The part of a sample.
fn part_of(parts: &[(u64, f64)], sample: u64) -> usize {
    let ends = parts.iter().scan(0, |end, part| {
        *end += part.0;
        Some(*end)
    });
    ends.take_while(|&end| end <= sample).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_mixture_keeps_its_shares_and_goes_through_each_part_whole(
        parts in parts(), shuffle: bool, seed: u64, epoch in 0..3u64,
    ) {
        let mix = Mix::new(&parts, shuffle, seed, Stop::Never).unwrap();
        prop_assert_eq!(mix.len(epoch), None);
        let whole: u64 = parts.iter().map(|part| part.1 as u64).sum();
        let mut had = vec![0u64; parts.len()];
        let mut seen = HashSet::new();
        for (position, turn) in (0u64..).zip(turns(&mix, epoch, 0..ENOUGH)) {
            let part = part_of(&parts, turn.sample);
            // A pass begins when the one before is complete, and no sample comes twice in it: each comes once.
            prop_assert_eq!(turn.pass, had[part] / parts[part].0);
            prop_assert!(seen.insert((turn.sample, turn.pass)));
            prop_assert_eq!(mix.position(epoch, turn), Some(position));
            had[part] += 1;
            for (had, part) in had.iter().zip(&parts) {
                prop_assert!((had * whole).abs_diff((position + 1) * part.1 as u64) < whole);
            }
        }
    }

    #[test]
    fn a_mixture_ends_where_counting_ends(parts in parts(), shuffle: bool, seed: u64) {
        let never = Mix::new(&parts, shuffle, seed, Stop::Never).unwrap();
        let turns = turns(&never, 0, 0..ENOUGH);
        let first_again = (0u64..).zip(&turns).find(|(_, turn)| turn.pass > 0).map(|(position, _)| position);
        let last_new = (0u64..).zip(&turns).filter(|(_, turn)| turn.pass == 0).map(|(position, _)| position).last();
        let first = Mix::new(&parts, shuffle, seed, Stop::First).unwrap();
        let all = Mix::new(&parts, shuffle, seed, Stop::All).unwrap();
        prop_assert_eq!(first.len(0), first_again);
        prop_assert_eq!(all.len(0), last_new.map(|last| last + 1));
        // The end does not move the turns, and a turn behind the end has no position.
        for (order, len) in [(&first, first.len(0)), (&all, all.len(0))] {
            let len = len.unwrap();
            prop_assert_eq!(order.turn(0, len - 1), turns[len as usize - 1]);
            prop_assert_eq!(order.position(0, turns[len as usize - 1]), Some(len - 1));
            prop_assert_eq!(order.position(0, turns[len as usize]), None);
        }
    }

    #[test]
    fn turns_at_once_are_turns_one_by_one(parts in parts(), shuffle: bool, seed: u64, cut in 0..500u64) {
        let n = parts.iter().map(|part| part.0).sum();
        let mix = Mix::new(&parts, shuffle, seed, Stop::Never).unwrap();
        let shuffled = Shuffle::new(n, seed);
        for (order, len) in [(&mix as &dyn Sampler, 500), (&shuffled, n)] {
            let one_by_one: Vec<Turn> = (0..len).map(|position| order.turn(3, position)).collect();
            let mut resumed = turns(order, 3, 0..cut.min(len));
            order.turns(3, cut.min(len)..len, &mut resumed);
            prop_assert_eq!(resumed, one_by_one);
        }
    }

    #[test]
    fn shuffled_passes_and_epochs_differ(len in 20..60u64, seed: u64) {
        let mix = Mix::new(&[(len, 1.0)], true, seed, Stop::Never).unwrap();
        let samples = |turns: Vec<Turn>| turns.into_iter().map(|turn| turn.sample).collect::<Vec<_>>();
        let first = samples(turns(&mix, 0, 0..len));
        prop_assert_ne!(&first, &samples(turns(&mix, 0, len..2 * len)));
        prop_assert_ne!(&first, &samples(turns(&mix, 1, 0..len)));
    }

    #[test]
    fn ranks_share_a_batch_without_gap_or_overlap(world_size in 1..100u64, batch_rows in 0..1000u64) {
        let ranks: Vec<_> =
            (0..world_size).map(|rank| Shard::new(rank, world_size).unwrap().rows(batch_rows)).collect();
        let mut end = 0;
        for rows in &ranks {
            prop_assert_eq!(rows.start, end);
            end = rows.end;
        }
        prop_assert_eq!(end, batch_rows);
        let sizes: Vec<u64> = ranks.iter().map(|rows| rows.end - rows.start).collect();
        prop_assert!(sizes.is_sorted_by(|one, next| one >= next) && sizes[0] - sizes[sizes.len() - 1] <= 1);
    }
}
