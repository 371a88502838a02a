//! Batches within a budget of tokens: as they were recorded of a program of its own, the same for any number of ranks, found by
//! number and backwards.

use std::num::NonZeroU64;
use std::sync::Arc;

use serde_json::Value;
use windrow_core::Kind;
use windrow_core::plan::{Cursor, LastBatch, Steps};
use windrow_core::record::keyed_hash;
use windrow_core::sampler::{
    Budget, Budgeted, Mix, MixOptions, MixPart, Order, PartOf, Permutation, Phase, RowLengths, Sampler,
    Sequential, Shard, Shuffle, Skipping, Stop, Turn, pool_of,
};

/// Samples in an order that was written down, in each epoch.
struct Listed(Vec<u64>);

impl Sampler for Listed {
    fn len(&self, _epoch: u64) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn turn(&self, _epoch: u64, position: u64) -> Turn {
        Turn { sample: self.0[position as usize], pass: 0 }
    }

    fn position(&self, _epoch: u64, turn: Turn) -> Option<u64> {
        self.0.iter().position(|sample| *sample == turn.sample).map(|at| at as u64)
    }

    fn describe(&self) -> String {
        "listed".into()
    }
}

fn multiple(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap()
}

fn steps(rank: u64, ranks: u64, last: LastBatch) -> Steps {
    let shard = Shard::new(rank, ranks).unwrap();
    Steps { global_batch_size: 1, shard, last, epochs: None, micro_batches: 1, is_balanced: false }
}

// The samples of all batches of an epoch, as one rank of one gets them.
fn batches(sampler: &dyn Sampler, epoch: u64) -> Vec<Vec<u64>> {
    let rule = steps(0, 1, LastBatch::Keep);
    let mut cursor = Cursor::at(epoch, 0);
    let mut found = Vec::new();
    while let Some(step) = rule.next(sampler, cursor).filter(|step| step.epoch == epoch) {
        let mut turns = Vec::new();
        sampler.turns(epoch, step.all.clone(), &mut turns);
        found.push(turns.iter().map(|turn| turn.sample).collect());
        cursor = step.after();
    }
    found
}

fn of_list(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn lengths(all: &[u64], buckets: &[u64]) -> Arc<RowLengths> {
    let all = all.iter().map(|length| u32::try_from(*length).unwrap()).collect();
    Arc::new(RowLengths::new(vec![all], buckets).unwrap())
}

#[test]
fn batches_are_those_that_were_recorded() {
    let text = include_str!("../../../../testdata/golden/orders/composition.json");
    let recorded: Value = serde_json::from_str(text).unwrap();
    let rows = recorded["budget"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let buckets = row["pad"].as_array().map_or(Vec::new(), |_| of_list(&row["pad"]));
        let budget = Budget {
            tokens: row["max_tokens"].as_u64().unwrap(),
            multiple: multiple(row["multiple"].as_u64().unwrap()),
            pool: row["pool"].as_u64().unwrap(),
        };
        let (order, seed) = (of_list(&row["order"]), row["seed"].as_str().unwrap().parse().unwrap());
        let lengths = lengths(&of_list(&row["lengths"]), &buckets);
        let order = Budgeted::new(Arc::new(Listed(order)), lengths, budget, seed).unwrap();
        let expected: Vec<_> = row["batches"].as_array().unwrap().iter().map(of_list).collect();
        assert_eq!(batches(&order, row["epoch"].as_u64().unwrap()), expected);
    }
}

#[test]
fn ten_thousand_random_budgets_are_those_of_the_other_program() {
    const CASES: u64 = 0x63_6173_6573;
    let text = include_str!("../../../../testdata/golden/orders/budget_cases.json");
    let recorded: Value = serde_json::from_str(text).unwrap();
    let number = |name: &str| recorded[name].as_u64().unwrap();
    let (mut hashes, mut into, mut n_rows, mut n_batches) = (Vec::new(), 0u64, 0, 0);
    for case in 0..number("cases") {
        let draw = |of: u64, below: u64| keyed_hash(case, [0, of, CASES]) % below;
        let (n, each) = (1 + draw(1, 300), 1 + draw(2, 8));
        let most = [4, 40, 4000][draw(3, 3) as usize];
        let all: Vec<u64> = (0..n).map(|i| keyed_hash(case, [i, 4, CASES]) % most).collect();
        let order = Permutation::new(keyed_hash(case, [0, 5, CASES]), n);
        let order = Listed((0..n).map(|i| order.apply(i)).collect());
        let buckets = if draw(6, 3) == 0 { vec![most / 4, most / 2, most] } else { Vec::new() };
        let longest = if buckets.is_empty() { all.iter().copied().max().unwrap().max(1) } else { most };
        let tokens = longest * each + draw(7, 6 * longest * each);
        let lengths = lengths(&all, &buckets);
        let pool = match draw(8, 2) {
            0 => pool_of(tokens, multiple(each), n, lengths.total()),
            _ => each * (1 + draw(9, 40)),
        };
        let budget = Budget { tokens, multiple: multiple(each), pool };
        let order = Budgeted::new(Arc::new(order), lengths.clone(), budget, draw(10, 1 << 40)).unwrap();
        for batch in batches(&order, draw(11, 5)) {
            let longest = batch.iter().map(|sample| u64::from(lengths.of(*sample))).max().unwrap();
            assert!(batch.len() as u64 * longest <= tokens, "case {case}");
            for number in [&[batch.len() as u64][..], &batch].concat() {
                into = (into ^ number).wrapping_mul(0x100_0000_01b3);
            }
            n_rows += batch.len() as u64;
            n_batches += 1;
        }
        if (case + 1) % number("each") == 0 {
            hashes.push(std::mem::take(&mut into).to_string());
        }
    }
    assert_eq!((n_rows, n_batches), (number("rows"), number("batches")));
    let expected = recorded["hashes"].as_array().unwrap().iter().map(|hash| hash.as_str().unwrap());
    assert!(expected.eq(hashes.iter().map(String::as_str)));
}

#[test]
fn the_rule_is_in_whole_numbers() {
    let rule = include_str!("../../src/sampler/budget/rule.rs");
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let code: Vec<&str> = rule.lines().filter(is_code).collect();
    assert!(code.len() > 60);
    let is_fraction = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.') && !word.contains("..")
            || word == "f32"
            || word == "f64"
    };
    for line in code {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '.' && c != '_');
        assert_eq!(words.filter(|word| is_fraction(word)).collect::<Vec<_>>(), [""; 0], "{line}");
    }
}

// Lengths of `n` rows, most of them short.
fn drawn(n: u64, most: u64) -> Vec<u64> {
    (0..n)
        .map(|i| 1 + (keyed_hash(11, [i, 0, 0]) % most) * (keyed_hash(12, [i, 0, 0]) % most) / most)
        .collect()
}

fn shuffled(n: u64, budget: Budget) -> Budgeted {
    Budgeted::new(Arc::new(Shuffle::new(n, 7)), lengths(&drawn(n, 60), &[]), budget, 7).unwrap()
}

#[test]
fn ranks_get_equally_many_rows_of_the_same_batches() {
    let budget = Budget { tokens: 960, multiple: multiple(8), pool: 200 };
    let order = shuffled(1003, budget);
    let alone = batches(&order, 3);
    assert_eq!(alone.iter().map(Vec::len).sum::<usize>(), 1003);
    assert_eq!(alone.last().map(Vec::len), Some(3));
    for ranks in [1, 2, 4, 8] {
        let mut cursors = vec![Cursor::at(3, 0); ranks as usize];
        for batch in &alone[..alone.len() - 1] {
            let mut rows = Vec::new();
            for rank in 0..ranks {
                let cursor = &mut cursors[rank as usize];
                let step = steps(rank, ranks, LastBatch::Drop).next(&order, *cursor).unwrap();
                assert_eq!(step.in_order().end - step.in_order().start, batch.len() as u64 / ranks);
                let mut turns = Vec::new();
                order.turns(3, step.in_order(), &mut turns);
                rows.extend(turns.iter().map(|turn| turn.sample));
                *cursor = step.after();
            }
            assert_eq!(rows, *batch);
        }
        // What is left of the epoch is no batch.
        let next = steps(0, ranks, LastBatch::Drop).next(&order, cursors[0]).unwrap();
        assert_eq!((next.epoch, next.all.start), (4, 0));
    }
}

#[test]
fn steps_by_number_and_backwards_are_those_of_a_walk() {
    const LEN: u64 = 203;
    let order = || shuffled(LEN, Budget { tokens: 480, multiple: multiple(4), pool: 48 });
    let rule = |last| steps(0, 1, last);
    let ends = |epoch| {
        let batches = batches(&order(), epoch);
        let ends = batches.iter().scan(epoch * LEN, |at, batch| {
            *at += batch.len() as u64;
            Some(*at)
        });
        ends.collect::<Vec<u64>>()
    };
    let (first, second) = (ends(0), ends(1));
    let skips = [
        vec![],
        vec![(first[2], first[4])],
        vec![(0, first[0]), (first[5], second[1])],
        vec![(first[1], first[2]), (LEN, 3 * LEN)],
    ];
    for skips in skips {
        for last in [LastBatch::Drop, LastBatch::Keep] {
            let order: Arc<dyn Sampler> = match skips.is_empty() {
                true => Arc::new(order()),
                false => Arc::new(Skipping::new(Arc::new(order()), &skips).unwrap()),
            };
            rule(last).check(&*order, Cursor::default()).unwrap();
            let (mut cursor, mut in_epoch) = (Cursor::default(), [0u64; 20]);
            for number in 0..90 {
                let step = rule(last).next(&*order, cursor).unwrap();
                assert_eq!(
                    rule(last).find(&*order, None, number).unwrap(),
                    step,
                    "{skips:?} {last:?} {number}"
                );
                let here = in_epoch[step.epoch as usize];
                in_epoch[step.epoch as usize] += 1;
                assert_eq!(rule(last).find(&*order, Some(step.epoch), here).unwrap(), step);
                for (row, position) in (0..).zip(step.all.clone()) {
                    let places: Vec<_> = rule(last).places(&*order, step.epoch, position).collect();
                    assert_eq!(places, [(here, row)], "{skips:?} {last:?} {number}");
                }
                assert_eq!(rule(last).number(&*order, step.epoch, step.all.start), Some(number));
                cursor = step.after();
            }
            assert!(cursor.epoch >= 2);
            for epoch in 0..cursor.epoch {
                assert_eq!(rule(last).in_epoch(&*order, epoch), Some(in_epoch[epoch as usize]));
            }
            // 203 is no multiple of 4.
            assert_eq!(rule(last).places(&*order, 4, LEN - 1).count(), usize::from(last == LastBatch::Keep));
        }
    }
}

#[test]
fn every_row_comes_once_an_epoch_and_is_found() {
    let budget = Budget { tokens: 500, multiple: multiple(3), pool: 60 };
    let order = shuffled(331, budget);
    for epoch in 0..3 {
        let mut seen: Vec<u64> = batches(&order, epoch).concat();
        for (position, sample) in (0..).zip(&seen) {
            assert_eq!(order.turn(epoch, position).sample, *sample);
            assert_eq!(order.position(epoch, Turn { sample: *sample, pass: 0 }), Some(position));
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..331));
    }
    assert_eq!(order.describe(), "shuffle:feistel-v1+budget-v1(tokens=500,multiple=3,pool=60)");
}

#[track_caller]
fn refused(result: windrow_core::Result<()>, expected: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    let text = format!("{error:#}");
    assert!(expected.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn what_would_not_fit_is_refused() {
    let budget = |tokens, each, pool| Budget { tokens, multiple: multiple(each), pool };
    let made = |budget| {
        let order = Arc::new(Sequential::new(4));
        Budgeted::new(order, lengths(&[3, 9, 2, 9], &[]), budget, 0).map(drop)
    };
    made(budget(18, 2, 2)).unwrap();
    refused(made(budget(17, 2, 2)), &["length 9", "max_tokens(17)", "max_tokens(18)", "record 1"]);
    refused(made(budget(18, 2, 3)), &["pool of 3", "multiples of 2", ".pool(4)"]);
    refused(made(budget(18, 2, 0)), &["pool of 0"]);
    let long = RowLengths::new(vec![vec![4, 5]], &[2, 4]).map(drop);
    refused(long, &["row of 5", "largest of pad is 4", "record 1"]);

    let order = shuffled(203, Budget { tokens: 480, multiple: multiple(4), pool: 48 });
    let check = |ranks, last, samples| steps(0, ranks, last).check(&order, Cursor::at(0, samples));
    for ranks in [1, 2, 4] {
        check(ranks, LastBatch::Drop, 0).unwrap();
    }
    refused(check(3, LastBatch::Drop, 0), &["multiple(4)", "3 ranks", ".multiple(3)"]);
    refused(check(8, LastBatch::Drop, 0), &["8 ranks", ".multiple(8)"]);
    refused(check(1, LastBatch::Repeat, 0), &[".last(LastBatch::Repeat)", "max_tokens"]);
    refused(check(4, LastBatch::Keep, 0), &["3 rows, for 4 ranks", ".drop_last(true)"]);
    check(2, LastBatch::Keep, 0).unwrap();
    let first = batches(&order, 0)[0].len() as u64;
    check(1, LastBatch::Drop, first).unwrap();
    refused(check(1, LastBatch::Drop, first - 1), &["within a batch", &format!("are 0 and {first}")]);

    let skipping = Skipping::new(Arc::new(order), &[(203, 203 + 2)]).unwrap();
    let error = steps(0, 1, LastBatch::Drop).check(&skipping, Cursor::default());
    refused(error, &["a skip ends at sample 205", "are 203 and "]);
    let few = shuffled(3, Budget { tokens: 480, multiple: multiple(4), pool: 48 });
    refused(steps(0, 1, LastBatch::Drop).check(&few, Cursor::default()), &["3 samples", "multiples of 4"]);
}

fn part(len: u64, weight: f64) -> MixPart {
    MixPart { of: PartOf::Samples { len, order: Order::Shuffle }, weight, most_passes: None }
}

#[test]
fn a_mixture_that_never_ends_has_batches_and_keeps_its_shares_pool_by_pool() {
    let parts = || vec![part(70, 0.75), part(300, 0.25)];
    let all = [drawn(70, 40), drawn(300, 60)].map(|view| view.iter().map(|length| *length as u32).collect());
    let lengths = Arc::new(RowLengths::new(all.to_vec(), &[]).unwrap());
    let budget = Budget { tokens: 600, multiple: multiple(2), pool: 80 };
    let mixed = |phases: Vec<Phase>| {
        let mix = Mix::of(&MixOptions { parts: parts(), stop: Stop::Never, phases, rows: None }, 5).unwrap();
        Budgeted::new(Arc::new(mix), lengths.clone(), budget, 5).unwrap()
    };
    let order = mixed(Vec::new());
    let rule = steps(0, 2, LastBatch::Drop);
    let (mut cursor, mut of_parts) = (Cursor::default(), [0u64; 2]);
    for number in 0..100 {
        let step = rule.next(&order, cursor).unwrap();
        assert_eq!(rule.find(&order, None, number).unwrap(), step);
        assert_eq!(rule.places(&order, 0, step.all.start).collect::<Vec<_>>(), [(number, 0)]);
        let mut turns = Vec::new();
        order.turns(0, step.all.clone(), &mut turns);
        turns.iter().for_each(|turn| of_parts[usize::from(turn.sample >= 70)] += 1);
        cursor = step.after();
        assert_eq!(order.samples_of_views_in(0, cursor.samples), of_parts);
        if cursor.samples % 80 == 0 {
            assert_eq!(of_parts[0], cursor.samples * 3 / 4);
        }
    }
    assert_eq!(rule.in_epoch(&order, 0), None);
    // A phase of a later pool decides nothing before; one within the pool does.
    let phase = |start| vec![Phase { start, weights: vec![1.0, 1.0] }];
    let before = |order: &Budgeted, at| order.described(at).words();
    assert_eq!(before(&order, 100), before(&mixed(phase(160)), 100));
    assert_ne!(before(&order, 100), before(&mixed(phase(150)), 100));
}

// Lengths of a law: median and sigma of a lognormal one, or from 50 to 1,000 alike.
fn of_law(law: Option<(f64, f64)>, n: u64) -> Vec<u64> {
    let draw = |i: u64, of: u64| (keyed_hash(17, [i, of, 0]) >> 11) as f64 / (1u64 << 53) as f64;
    let length = |i| match law {
        Some((median, sigma)) => {
            let normal = (-2.0 * (1.0 - draw(i, 0)).ln()).sqrt() * (std::f64::consts::TAU * draw(i, 1)).cos();
            ((median * (sigma * normal).exp()) as u64).clamp(1, 8192)
        }
        None => 50 + (draw(i, 0) * 951.0) as u64,
    };
    (0..n).map(length).collect()
}

#[test]
fn little_is_padding_whatever_the_law_of_lengths() {
    const N: u64 = 24_000;
    for law in [Some((400.0, 1.0)), Some((700.0, 1.2)), Some((900.0, 1.6)), None] {
        let all = of_law(law, N);
        let longest = all.iter().copied().max().unwrap();
        for (times, each) in [(16, 1), (16, 8), (64, 8), (64, 64)] {
            let (tokens, lengths) = (times * longest, lengths(&all, &[]));
            let pool = pool_of(tokens, multiple(each), N, lengths.total());
            let budget = Budget { tokens, multiple: multiple(each), pool };
            let order = Budgeted::new(Arc::new(Shuffle::new(N, 1)), lengths.clone(), budget, 1).unwrap();
            let (mut filled, mut positions, mut n_batches) = (0, 0, 0);
            for batch in batches(&order, 0) {
                let of = |sample: &u64| u64::from(lengths.of(*sample));
                let size = batch.iter().map(of).max().unwrap() * batch.len() as u64;
                assert!(size <= tokens);
                positions += size;
                filled += batch.iter().map(of).sum::<u64>();
                n_batches += 1;
            }
            let padding = 1.0 - filled as f64 / positions as f64;
            assert!(padding <= 0.07, "{law:?}, {times} times the longest, multiples of {each}: {padding:.3}");
            assert!(
                n_batches * tokens < positions * 3 / 2,
                "{law:?}: batches are about as large as they may be"
            );
        }
    }
}
