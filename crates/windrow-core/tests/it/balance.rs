//! Rows that are dealt to ranks by what they cost: the rule against the reference, and loaders of any ranks against one rank.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use windrow_core::collate::NextToken;
use windrow_core::loader::{BatchSize, Loader, Options};
use windrow_core::plan::{Balance, Cost, Feed, LastBatch, Plan, Steps};
use windrow_core::record::keyed_hash;
use windrow_core::sampler::{Mix, Sampler, Shard, Shuffle, Stop, balanced, micro_batches};
use windrow_core::source::Source;
use windrow_core::view::{Bins, Crop, Mode, Pack, Records, Segments, Strategy, View};
use windrow_core::{Draw, Error, Kind, Lengths, Result};

use crate::toy::Toy;

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn rows_are_dealt_as_the_reference_deals_them() {
    let text = include_str!("../../../../testdata/golden/orders/composition.json");
    let recorded: Value = serde_json::from_str(text).unwrap();
    let cases = recorded["balance"].as_array().unwrap();
    assert!(cases.len() >= 7, "{} cases", cases.len());
    for case in cases {
        let costs: Vec<u128> = numbers(&case["costs"]).into_iter().map(u128::from).collect();
        let ranks = case["ranks"].as_u64().unwrap() as usize;
        let expected: Vec<Vec<usize>> = serde_json::from_value(case["rows"].clone()).unwrap();
        assert_eq!(balanced(&costs, ranks).unwrap(), expected, "{case}");
    }
}

#[test]
fn ten_thousand_batches_are_dealt_as_the_reference_deals_them() {
    let text = include_str!("../../../../testdata/golden/orders/balance.json");
    let recorded: Value = serde_json::from_str(text).unwrap();
    let expected: Vec<String> = serde_json::from_value(recorded["digests"].clone()).unwrap();
    assert_eq!(expected.len(), 10);
    for (thousand, expected) in (0u64..).zip(expected) {
        let mut found = 0;
        for case in thousand * 1000..(thousand + 1) * 1000 {
            let draw = |what| keyed_hash(case, [what, 0, 0]);
            let (ranks, accumulate) = (1 + draw(0) % 12, [1, 1, 2, 3][(draw(1) % 4) as usize]);
            let rows = ranks * accumulate * (1 + draw(2) % 5);
            let below = [7, 1000, 1_000_000_000, 1 << 40][(draw(3) % 4) as usize];
            let power = 1 + (draw(4) % 2) as u32;
            let cost = |row| u128::from(keyed_hash(case, [5, row, 0]) % below).pow(power);
            let costs: Vec<u128> = (0..rows).map(cost).collect();
            for (rank, rows) in (0..).zip(balanced(&costs, ranks as usize).unwrap()) {
                for (number, batch) in (0..).zip(micro_batches(&costs, &rows, accumulate as usize)) {
                    for row in batch {
                        found = keyed_hash(found, [row as u64, rank, number]);
                    }
                }
            }
        }
        assert_eq!(found.to_string(), expected, "cases {thousand},000 and after");
    }
}

#[test]
fn the_rule_has_whole_numbers_only() {
    for file in ["src/sampler/balance.rs", "src/plan/balance.rs", "src/plan/own.rs"] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let has_fraction = |line: &str| {
            let around = line.as_bytes().windows(3);
            let mut dots = around.filter(|three| three[1] == b'.' && three[0].is_ascii_digit());
            ["f32", "f64", "sqrt", ".round("].iter().any(|word| line.contains(word))
                || dots.any(|three| three[2].is_ascii_digit())
        };
        let found: Vec<&str> = lines.filter(|line| has_fraction(line)).collect();
        assert_eq!(found, [""; 0], "{file}");
    }
}

#[test]
fn costs_that_cannot_be_counted_and_ranks_that_divide_nothing_are_errors() {
    for (costs, ranks) in [(vec![u128::MAX / 2; 4], 2), (vec![1; 5], 2), (vec![1; 5], 0)] {
        assert_eq!(balanced(&costs, ranks).unwrap_err().kind(), Kind::Config);
    }
    assert_eq!(balanced(&[0; 4], 2).unwrap(), [[0, 3], [1, 2]]);
    assert_eq!(balanced(&[], 3).unwrap(), [[0; 0]; 3]);
    assert_eq!(Balance::Attention(u64::MAX).cost(&[u64::MAX; 2]).unwrap_err().kind(), Kind::Config);
}

#[test]
fn a_balance_is_read_as_it_is_written() {
    for (text, cost) in [("tokens", 5), ("attention", 24_576 * 5 + 13), ("7", 35 + 13), ("0", 13)] {
        let balance: Balance = text.parse().unwrap();
        assert_eq!((balance.to_string(), balance.cost(&[2, 3]).unwrap()), (text.to_string(), cost));
    }
    assert_eq!("24576".parse::<Balance>().unwrap().to_string(), "attention");
    for text in ["", "words", "-1", "1.5"] {
        assert_eq!(text.parse::<Balance>().unwrap_err().kind(), Kind::Config, "{text}");
    }
}

#[track_caller]
fn check_documents(view: &dyn View, expected: &[&[u64]]) {
    let found: Vec<Vec<u64>> = (0..view.len())
        .map(|sample| {
            let (mut pieces, mut lengths) = (Vec::new(), Vec::new());
            view.pieces(sample, Draw::new(0, 0, 0, sample), &mut pieces).unwrap();
            view.documents(&pieces, &mut lengths);
            lengths
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn documents_are_as_long_as_what_they_fill_of_a_row() {
    let lengths = |lengths: &[u64]| -> Arc<dyn Lengths> { Arc::new(lengths.to_vec()) };
    let few = || lengths(&[3, 0, 4, 1, 6]);
    // 0 0 0 . | . 2 2 2 | 2 . 3 . | 4 4 4 4 and one value more, which is a label.
    let pack = Pack::new(few(), 4, Some(9)).unwrap();
    let rows: &[&[u64]] = &[&[4], &[1, 3], &[2, 2], &[4]];
    check_documents(&pack, rows);
    check_documents(&pack.telling_record(), rows);
    check_documents(&Pack::apart(few(), 4, Some(9)).unwrap(), rows);
    check_documents(&Pack::new(few(), 4, None).unwrap(), &[&[3, 1], &[3, 1], &[4]]);
    check_documents(&Bins::new(few(), 4, Strategy::BestFit).unwrap(), &[&[4], &[4], &[3, 1]]);
    check_documents(&Segments::new(few(), 4, &[]).unwrap(), &[&[2, 2], &[1, 3], &[2]]);
    check_documents(&Segments::apart(few(), 4, &[]).unwrap(), &[&[3, 1], &[3, 1], &[4], &[2]]);
    check_documents(&Records::new(few(), 4).unwrap(), &[&[2], &[], &[3], &[], &[4]]);
    check_documents(&Records::apart(few(), 4).unwrap(), &[&[3], &[], &[4], &[1], &[4]]);
    let crop = Crop::new(few(), 4, Mode::Random).unwrap();
    check_documents(&crop.keep_empty(), &[&[3], &[], &[4], &[1], &[4]]);
}

const LENGTH: u64 = 16;

fn feed(lengths: &[u64]) -> Feed {
    let toy: Arc<dyn Source> = Arc::new(Toy::tokens(lengths));
    let collate = NextToken::new(toy.schema(), LENGTH, None, false, 0).unwrap();
    let lengths: Arc<dyn Lengths> = toy.clone();
    Feed::new(toy, Arc::new(Pack::new(lengths, LENGTH, Some(7)).unwrap()), Arc::new(collate))
}

/// 250 rows or so of documents of 1 to 40 tokens, the costs of which differ.
fn plan(by: Option<Balance>) -> Arc<Plan> {
    let feed = feed(&(0..210).map(|n| 1 + keyed_hash(3, [n, 0, 0]) % 40).collect::<Vec<_>>());
    let order: Arc<dyn Sampler> = Arc::new(Shuffle::new(feed.len(), 5));
    Arc::new(Plan::new(vec![feed], order, 5).unwrap().balanced(by, None))
}

fn mixed(by: Option<Balance>) -> Arc<Plan> {
    let lengths = |below: u64| (0..120).map(|n| 1 + keyed_hash(below, [n, 0, 0]) % below).collect::<Vec<_>>();
    let feeds = vec![feed(&lengths(12)), feed(&lengths(60))];
    let parts = [(feeds[0].len(), 0.5), (feeds[1].len(), 0.5)];
    let mix = Mix::new(&parts, true, 5, Stop::All).unwrap();
    Arc::new(Plan::new(feeds, Arc::new(mix), 5).unwrap().balanced(by, None))
}

fn attention() -> Option<Balance> {
    Some(Balance::Attention(4))
}

fn options(rows: u64, rank: u64, world: u64, threads: usize) -> Options {
    Options {
        batch: BatchSize::Global(rows),
        shard: Shard::new(rank, world).unwrap(),
        last: LastBatch::Drop,
        epochs: Some(2),
        num_threads: Some(threads),
        prefetch: 3,
        accumulate: 1,
    }
}

type Rows = Vec<Vec<i64>>;

fn rows_of(batch: &windrow_core::collate::Batch) -> Rows {
    batch.get::<i64>("input_ids").unwrap().chunks(LENGTH as usize).map(<[i64]>::to_vec).collect()
}

fn next(loader: &mut Loader) -> Option<Rows> {
    loader.next_batch().map(|batch| rows_of(&batch.unwrap()))
}

fn rest(loader: &mut Loader) -> Vec<Rows> {
    std::iter::from_fn(|| next(loader)).collect()
}

fn all(plan: &Arc<Plan>, options: &Options) -> Vec<Rows> {
    rest(&mut Loader::new(plan.clone(), options).unwrap())
}

fn sorted(rows: impl IntoIterator<Item = Vec<i64>>) -> Rows {
    let mut rows: Rows = rows.into_iter().collect();
    rows.sort_unstable();
    rows
}

#[test]
fn the_rows_of_all_ranks_are_those_of_one_in_the_order_of_the_batch() {
    for (plan, plain) in [(plan(attention()), plan(None)), (mixed(attention()), mixed(None))] {
        for (last, rows) in [(LastBatch::Drop, 16), (LastBatch::Repeat, 16), (LastBatch::Drop, 24)] {
            let one = all(&plain, &Options { last, ..options(rows, 0, 1, 0) });
            assert_eq!(all(&plan, &Options { last, ..options(rows, 0, 1, 0) }), one, "one rank");
            let mut n_moved = 0;
            for world in [2, 4, 8] {
                let of = |rank, threads| all(&plan, &Options { last, ..options(rows, rank, world, threads) });
                let ranks: Vec<_> = (0..world).map(|rank| of(rank, 0)).collect();
                assert_eq!(of(1, 3), ranks[1], "threads");
                for (step, batch) in one.iter().enumerate() {
                    let joined = ranks.iter().flat_map(|rank| rank[step].clone());
                    assert_eq!(sorted(joined.clone()), sorted(batch.clone()), "step {step}");
                    n_moved += usize::from(joined.collect::<Rows>() != *batch);
                    for rank in &ranks {
                        assert_eq!(rank[step].len() as u64, rows / world);
                        let mut left = batch.iter();
                        assert!(rank[step].iter().all(|row| left.any(|other| other == row)), "in order");
                    }
                }
            }
            assert!(n_moved > one.len(), "{n_moved} of {} batches", one.len());
        }
    }
}

#[test]
fn ranks_get_what_the_rule_deals_them_of_what_rows_cost() {
    let plan = plan(attention());
    let steps = *Loader::new(plan.clone(), &options(32, 0, 8, 0)).unwrap().steps();
    let mut totals = [[0u128; 8]; 2];
    for number in 0..steps.in_epoch(plan.sampler(), 0).unwrap() {
        let step = steps.find(plan.sampler(), Some(0), number).unwrap();
        let costs: Vec<u128> = (0..32)
            .map(|row| {
                let traced = plan.trace(0, step.position(plan.sampler(), row)).unwrap();
                let mut lengths = Vec::new();
                plan.feeds()[0].view().documents(&traced.pieces, &mut lengths);
                Balance::Attention(4).cost(&lengths).unwrap()
            })
            .collect();
        let dealt = balanced(&costs, 8).unwrap();
        let ranks = plan.ranks(&step, 8).unwrap();
        for (rank, rows) in (0..8).zip(&dealt) {
            let own = plan.own(
                &Steps { shard: Shard::new(rank, 8).unwrap(), ..steps }
                    .find(plan.sampler(), Some(0), number)
                    .unwrap(),
            );
            let own: Vec<u64> = own.unwrap().positions().collect();
            assert_eq!(own, rows.iter().map(|row| step.all.start + *row as u64).collect::<Vec<_>>());
            assert!(rows.iter().all(|row| ranks[*row] == rank));
            totals[0][rank as usize] += rows.iter().map(|row| costs[*row]).sum::<u128>();
            totals[1][rank as usize] += costs[rank as usize * 4..][..4].iter().sum::<u128>();
        }
    }
    let apart = totals.map(|of| of.iter().max().unwrap() - of.iter().min().unwrap());
    assert!(apart[0] * 4 < apart[1], "{totals:?}");
}

#[test]
fn a_run_resumes_on_other_ranks_and_without_balance() {
    let one = all(&plan(None), &options(16, 0, 1, 0));
    let mut state = None;
    let mut step = 0;
    for (world, is_balanced) in [(8, true), (4, true), (2, false), (8, true), (4, false), (2, true)] {
        let plan = plan(attention().filter(|_| is_balanced));
        let mut ranks: Vec<Loader> = (0..world)
            .map(|rank| Loader::new(plan.clone(), &options(16, rank, world, (rank % 3) as usize)).unwrap())
            .collect();
        for loader in &mut ranks {
            state.iter().for_each(|state| loader.resume(state).unwrap());
        }
        for _ in 0..4 {
            let joined = ranks.iter_mut().flat_map(|loader| next(loader).unwrap());
            assert_eq!(sorted(joined), sorted(one[step].clone()), "step {step}, {world} ranks");
            step += 1;
        }
        assert!(ranks.iter().all(|loader| loader.state() == ranks[0].state()));
        state = Some(ranks[0].state());
    }
}

#[test]
fn micro_batches_of_a_step_are_its_rows_and_a_state_within_it_is_that_of_its_beginning() {
    for by in [None, attention()] {
        let plan = plan(by);
        for (world, accumulate) in [(1, 4), (2, 2), (4, 2)] {
            let of = |rank, accumulate, threads| Options { accumulate, ..options(16, rank, world, threads) };
            for rank in 0..world {
                let whole = all(&plan, &of(rank, 1, 0));
                let batches = all(&plan, &of(rank, accumulate, 0));
                assert_eq!(all(&plan, &of(rank, accumulate, 2)), batches, "threads");
                assert_eq!(batches.len(), whole.len() * accumulate as usize);
                for (whole, batches) in whole.iter().zip(batches.chunks(accumulate as usize)) {
                    assert!(batches.iter().all(|batch| batch.len() as u64 == 16 / world / accumulate));
                    if plan.balance().is_none() {
                        assert_eq!(batches.concat(), *whole);
                    }
                    assert_eq!(sorted(batches.concat()), sorted(whole.clone()));
                }
                for threads in [0, 2] {
                    let mut loader = Loader::new(plan.clone(), &of(rank, accumulate, threads)).unwrap();
                    for (number, batch) in (0u64..).zip(&batches[..11]) {
                        let begun = number / accumulate * 16;
                        assert_eq!((loader.state().samples, loader.cursor().samples), (begun, begun));
                        assert_eq!(next(&mut loader).as_ref(), Some(batch));
                        let before = loader.cursor();
                        next(&mut loader);
                        loader.back_to(before);
                    }
                    let mut again = Loader::new(plan.clone(), &of(rank, accumulate, threads)).unwrap();
                    again.resume(&loader.state()).unwrap();
                    let at = 11 / accumulate as usize * accumulate as usize;
                    assert_eq!(next(&mut again).as_ref(), Some(&batches[at]));
                }
            }
        }
    }
}

#[test]
fn a_rank_counts_its_rows_of_a_micro_batch() {
    let per_rank = Options { batch: BatchSize::PerRank(2), accumulate: 3, ..options(0, 1, 4, 0) };
    let mut loader = Loader::new(plan(attention()), &per_rank).unwrap();
    assert_eq!(loader.steps().global_batch_size, 2 * 4 * 3);
    assert_eq!(next(&mut loader).unwrap().len(), 2);
    loader.set_shard(Shard::new(0, 2).unwrap()).unwrap();
    assert_eq!((loader.steps().global_batch_size, loader.cursor().micro_batches), (12, 0));
    assert_eq!(next(&mut loader).unwrap().len(), 2);
}

#[test]
fn rows_that_ranks_and_micro_batches_do_not_divide_are_refused() {
    let new = |by: Option<Balance>, options: Options| Loader::new(plan(by), &options).map(|_| ());
    for (by, rows, world, accumulate, said) in [
        (attention(), 18, 4, 1, ".balance(…) with a batch of 18 rows over 4 ranks"),
        (None, 16, 4, 3, ".accumulate(3) with a batch of 16 rows over 4 ranks"),
        (attention(), 16, 1, 3, ".accumulate(3)"),
        (None, 16, 1, 0, ".accumulate(0)"),
        (None, 16, 4, u64::MAX, ".accumulate("),
    ] {
        let error = new(by, Options { accumulate, ..options(rows, 0, world, 0) }).unwrap_err();
        assert!(error.kind() == Kind::Config && error.message().contains(said), "{error}");
    }
    let len = plan(None).sampler().len(0).unwrap();
    assert_eq!(len % 16, 6, "4 ranks do not divide the rows of the last batch");
    let keep = |by| new(by, Options { last: LastBatch::Keep, ..options(16, 0, 4, 0) });
    assert!(keep(None).is_ok());
    let error = keep(attention()).unwrap_err();
    assert!(
        error.message().contains("the last batch of an epoch")
            && error.hint_text().unwrap().contains("Repeat"),
        "{error:#}"
    );
}

/// A function that counts its calls, and fails at one of them.
struct Counting {
    calls: AtomicU64,
    fails_at: u64,
}

impl Cost for Counting {
    fn cost(&self, lengths: &[u64]) -> Result<u128> {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            call if call == self.fails_at => Err(Error::config("the function failed")),
            _ => Ok(lengths.iter().map(|len| u128::from(*len).pow(3)).sum()),
        }
    }

    fn name(&self) -> String {
        "counting".to_string()
    }
}

#[test]
fn a_function_is_called_once_a_row_and_its_error_is_that_of_the_batch() {
    for (threads, accumulate) in [(0, 1), (2, 1), (0, 2), (3, 2)] {
        let counting = Arc::new(Counting { calls: AtomicU64::new(0), fails_at: u64::MAX });
        let counted = plan(Some(Balance::By(counting.clone())));
        let of = Options { accumulate, ..options(16, 1, 4, threads) };
        let batches = all(&counted, &of);
        assert_eq!(counting.calls.load(Ordering::Relaxed), batches.len() as u64 / accumulate * 16);
        let failing = Arc::new(Counting { calls: AtomicU64::new(0), fails_at: 40 });
        let mut loader = Loader::new(plan(Some(Balance::By(failing))), &of).unwrap();
        let (mut found, mut n_errors) = (Vec::new(), 0);
        while let Some(batch) = loader.next_batch() {
            match batch {
                Ok(batch) => found.push(rows_of(&batch)),
                Err(error) => {
                    assert_eq!(error.message(), "the function failed");
                    // Threads come to the steps in any order: which of them has call 40 is known without them alone.
                    let steps = found.len() as u64 / accumulate;
                    assert!(steps * accumulate == found.len() as u64 && (threads > 0 || steps == 2));
                    n_errors += 1;
                }
            }
        }
        assert_eq!((found, n_errors), (batches, 1), "the same batches, once it no longer fails");
    }
}

#[test]
fn rows_that_fill_a_last_batch_are_counted_on_the_rank_that_has_them() {
    let plan = plan(attention());
    let len = plan.sampler().len(0).unwrap();
    let mut counts = BTreeMap::new();
    for rank in 0..8 {
        let of = Options { last: LastBatch::Repeat, epochs: Some(1), ..options(64, rank, 8, 0) };
        let mut loader = Loader::new(plan.clone(), &of).unwrap();
        rest(&mut loader);
        counts.insert(rank, loader.stats().repeated);
    }
    assert_eq!(counts.values().sum::<u64>(), len.next_multiple_of(64) - len);
}
