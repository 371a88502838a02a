//! Mixtures in which each batch is of one part, against mixtures of today's kind with batches in place of samples.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;

use windrow_core::Kind;
use windrow_core::collate::{Batch, NextToken};
use windrow_core::loader::{BatchSize, Loader, Options};
use windrow_core::plan::{Cursor, Feed, LastBatch, Plan, Steps, Workspace};
use windrow_core::sampler::{
    BlockShape, Mix, MixOptions, MixPart, Order, PartOf, Phase, Sampler, Shard, Skipping, Stop, Turn,
};
use windrow_core::source::Source;
use windrow_core::view::Pack;

use crate::mixtures::Dice;
use crate::toy::Toy;

fn part(len: u64, weight: f64) -> MixPart {
    MixPart { of: PartOf::Samples { len, order: Order::Shuffle }, weight, most_passes: None }
}

fn options(parts: Vec<MixPart>, stop: Stop, rows: u64) -> MixOptions {
    MixOptions { parts, stop, rows: NonZeroU64::new(rows), ..MixOptions::default() }
}

/// Which of the parts has each of the first `n` batches, of which each is of one part.
fn parts_of_batches(mix: &Mix, rows: u64, n: u64) -> Vec<usize> {
    let mut turns = Vec::new();
    let of_batch = |batch: u64| {
        turns.clear();
        mix.turns(0, batch * rows..(batch + 1) * rows, &mut turns);
        let parts: BTreeSet<usize> = turns.iter().map(|turn| mix.view_of(turn.sample).0).collect();
        assert_eq!(parts.len(), 1, "batch {batch}");
        parts.into_iter().next().unwrap()
    };
    (0..n).map(of_batch).collect()
}

#[test]
fn thirty_five_parts_have_their_shares_of_every_prefix_to_within_one_batch() {
    let mut dice = Dice(35);
    let weights: Vec<f64> = (0..35).map(|_| (1 + dice.below(400)) as f64 / 400.0).collect();
    let all: f64 = weights.iter().sum();
    let parts = |most: u64| weights.iter().map(move |weight| part(most, *weight)).collect::<Vec<_>>();
    let mix = Mix::of(&options(parts(777), Stop::Never, 8), 5).unwrap();
    let found = parts_of_batches(&mix, 8, 100_000);
    let mut had = [0u64; 35];
    for (before, part) in found.iter().enumerate() {
        had[*part] += 1;
        for (had, weight) in had.iter().zip(&weights) {
            let due = (before + 1) as f64 * weight / all;
            assert!((*had as f64 - due).abs() < 1.0 + 1e-6, "after {} batches", before + 1);
        }
    }
    // The interleaving of a mixture of samples.
    let plain = Mix::of(&MixOptions { rows: None, ..options(parts(777), Stop::Never, 8) }, 5).unwrap();
    let of_samples: Vec<usize> = (0..100_000).map(|p| plain.view_of(plain.turn(0, p).sample).0).collect();
    assert_eq!(found, of_samples);
}

/// Turn number `n` of each part is that of a mixture of samples, whatever batches they come in.
#[test]
fn a_part_is_gone_through_pass_after_pass_across_batches() {
    let mut dice = Dice(1);
    for case in 0..60 {
        let rows = 1 + dice.below(9);
        let n_parts = 1 + dice.below(4);
        let parts: Vec<MixPart> = (0..n_parts)
            .map(|_| {
                let len = 1 + dice.below(40);
                let order = match dice.below(3) {
                    0 => Order::Sequential,
                    1 => Order::Shuffle,
                    _ => Order::Blocks(BlockShape { size: 3, lanes: 1, rows: 1, pool: 2 }),
                };
                let most_passes = None;
                MixPart {
                    of: PartOf::Samples { len, order },
                    weight: (1 + dice.below(5)) as f64,
                    most_passes,
                }
            })
            .collect();
        let mix = Mix::of(&options(parts.clone(), Stop::Never, rows), case).unwrap();
        let plain =
            Mix::of(&MixOptions { rows: None, ..options(parts.clone(), Stop::Never, 1) }, case).unwrap();
        let of_parts = |mix: &Mix, n: u64| {
            let mut turns = Vec::new();
            mix.turns(0, 0..n, &mut turns);
            let mut of_parts = vec![Vec::new(); parts.len()];
            for (position, turn) in (0..).zip(turns) {
                assert_eq!(mix.turn(0, position), turn);
                assert_eq!(mix.position(0, turn), Some(position), "{parts:?}");
                let counts: Vec<u64> =
                    of_parts.iter().map(|of_part: &Vec<Turn>| of_part.len() as u64).collect();
                assert_eq!(mix.samples_of_views(position), counts);
                of_parts[mix.view_of(turn.sample).0].push(turn);
            }
            of_parts
        };
        let (found, expected) = (of_parts(&mix, 60 * rows), of_parts(&plain, 60 * rows));
        for (found, expected) in found.iter().zip(&expected) {
            let n = found.len().min(expected.len());
            assert!(n > 0);
            assert_eq!(found[..n], expected[..n]);
        }
    }
}

/// Where an epoch ends, by counting batch for batch.
#[test]
fn epochs_end_with_whole_batches() {
    let mut dice = Dice(2);
    let mut n_refused = 0;
    for case in 0..400 {
        let rows = 1 + dice.below(7);
        let lens: Vec<u64> = (0..1 + dice.below(4)).map(|_| 1 + dice.below(30)).collect();
        let parts: Vec<MixPart> = lens.iter().map(|len| part(*len, (1 + dice.below(4)) as f64)).collect();
        let endless = Mix::of(&options(parts.clone(), Stop::Never, rows), case).unwrap();
        let whose = parts_of_batches(&endless, rows, 400);
        let mut had = vec![0u64; lens.len()];
        let (mut first, mut all) = (None, None);
        for (batch, part) in (0..).zip(&whose) {
            if first.is_none() && had[*part] + rows > lens[*part] {
                first = Some(batch * rows);
            }
            had[*part] += rows;
            if all.is_none() && had.iter().zip(&lens).all(|(had, len)| had >= len) {
                all = Some((batch + 1) * rows);
            }
        }
        let len = |stop| Mix::of(&options(parts.clone(), stop, rows), case).map(|mix| mix.len(0));
        assert_eq!(len(Stop::All).unwrap(), all);
        match len(Stop::First) {
            Ok(found) => assert_eq!(found, first),
            Err(error) => {
                n_refused += 1;
                assert_eq!((error.kind(), first), (Kind::Config, Some(0)));
                assert!(error.message().contains(&format!("each batch {rows} rows")), "{error}");
            }
        }
        assert_eq!(len(Stop::Never).unwrap(), None);
        // Of a part's most passes, only whole batches come; its share goes to the others then.
        let capped = parts.iter().cloned().map(|part| MixPart { most_passes: Some(2), ..part }).collect();
        let batches: u64 = lens.iter().map(|len| 2 * len / rows).sum();
        match Mix::of(&options(capped, Stop::Never, rows), case) {
            Ok(capped) => {
                assert_eq!(capped.len(0), Some(batches * rows));
                let of_views: Vec<u64> = lens.iter().map(|len| 2 * len / rows * rows).collect();
                assert_eq!(capped.samples_of_views(batches * rows), of_views);
            }
            Err(error) => {
                assert!(lens.iter().any(|len| 2 * len < rows), "{error}");
                assert!(error.message().contains("it would never have one"), "{error}");
            }
        }
    }
    assert!((20..300).contains(&n_refused), "{n_refused}");
}

#[test]
fn a_part_continues_in_the_next_epoch_where_it_ended() {
    let mix = Mix::of(&options(vec![part(70, 0.75), part(9, 0.25)], Stop::All, 4), 3).unwrap();
    let len = mix.len(0).unwrap();
    let mut had = [Vec::new(), Vec::new()];
    for (epoch, position) in (0..3).flat_map(|epoch| (0..len).map(move |position| (epoch, position))) {
        let turn = mix.onward(epoch, position);
        had[mix.view_of(turn.sample).0].push(turn.pass);
    }
    for (passes, n) in had.iter().zip([70, 9]) {
        let expected: Vec<u64> = (0..passes.len() as u64).map(|place| place / n).collect();
        assert_eq!(*passes, expected);
    }
}

#[test]
fn a_mixture_is_one_part_or_its_parts_are_kept_apart() {
    let inner = |rows| MixPart {
        of: PartOf::Mix(options(vec![part(30, 0.5), part(20, 0.5)], Stop::All, rows)),
        weight: 0.5,
        most_passes: None,
    };
    let outer = |inner, rows| Mix::of(&options(vec![part(40, 0.5), inner], Stop::Never, rows), 7);
    let views_of = |mix: &Mix, batch: u64| -> BTreeSet<usize> {
        (batch * 4..batch * 4 + 4).map(|position| mix.view_of(mix.turn(0, position).sample).0).collect()
    };
    let one = outer(inner(0), 4).unwrap();
    assert_eq!(one.views_of_batches(), [0..1, 1..3]);
    assert!((0..100).all(|batch| views_of(&one, batch).len() == 1 || !views_of(&one, batch).contains(&0)));
    assert!((0..100).any(|batch| views_of(&one, batch).len() == 2));
    assert_eq!(one.samples_of_views(800), [400, 200, 200]);
    let apart = outer(inner(4), 4).unwrap();
    assert_eq!(apart.views_of_batches(), [0..1, 1..2, 2..3]);
    assert!((0..100).all(|batch| views_of(&apart, batch).len() == 1));
    assert_eq!(apart.samples_of_views(800), [400, 200, 200]);
    for (inner, rows) in [(inner(8), 4), (inner(4), 0)] {
        let error = outer(inner, rows).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        assert!(error.message().contains("part 1 is a mixture in batches of "), "{error}");
    }
}

#[test]
fn words_name_the_rows_of_a_batch() {
    let mix = |rows| Mix::of(&options(vec![part(5, 0.7), part(9, 0.3)], Stop::Never, rows), 1).unwrap();
    assert_eq!(
        mix(4).describe(),
        "mix-v1:shuffle:feistel-v1,stop=never,slots=1030,len*slots=5*721+9*309,batches=part(rows=4)"
    );
    assert_eq!(mix(0).describe(), "mix-v1:shuffle:feistel-v1,stop=never,slots=1030,len*slots=5*721+9*309");
    let phases = vec![Phase { start: 80, weights: vec![0.5, 0.5] }];
    let changing = |rows| MixOptions {
        phases: phases.clone(),
        ..options(vec![part(5, 1.0), part(9, 1.0)], Stop::Never, rows)
    };
    let found = Mix::of(&changing(4), 1).unwrap();
    assert!(
        found.describe().starts_with(
            "mix-v2:5*shuffle:feistel-v1+9*shuffle:feistel-v1,stop=never,batches=part(rows=4),phases=0:"
        ),
        "{}",
        found.describe()
    );
    assert_eq!(found.shares()[1].start, 80);
    let error = Mix::of(&changing(3), 1).unwrap_err();
    assert!(error.message().contains("a phase begins at sample 80, inside a batch"), "{error}");
    assert!(error.hint_text().unwrap().contains("78 or 81"), "{error:#}");
}

#[test]
fn phases_change_shares_at_a_batch_and_a_late_one_is_refused() {
    let phases = |start| vec![Phase { start, weights: vec![0.0, 1.0] }];
    let mixed = |start| {
        let options = options(vec![part(50, 1.0), part(9, 1.0)], Stop::Never, 4);
        Mix::of(&MixOptions { phases: phases(start), ..options }, 1).unwrap()
    };
    let mix = mixed(80);
    assert_eq!(mix.samples_of_views(80), [40, 40]);
    assert_eq!(mix.samples_of_views(82), [40, 42]);
    assert_eq!(mix.samples_of_views(160), [40, 120]);
    // Until it begins, the words are those of another phase.
    assert_eq!(mix.described(80).words(), mixed(400).described(80).words());
    assert_ne!(mix.described(84).words(), mixed(400).described(84).words());
    let capped = options(
        vec![
            MixPart { most_passes: Some(1), ..part(9, 1.0) },
            MixPart { most_passes: Some(1), ..part(9, 1.0) },
        ],
        Stop::Never,
        4,
    );
    let error = Mix::of(&MixOptions { phases: phases(400), ..capped }, 1).unwrap_err();
    assert!(error.message().contains("begins at sample 400, and no part is left at sample 16"), "{error}");
}

#[test]
fn blocks_are_those_that_the_batches_of_a_part_need() {
    let order = Order::Blocks(BlockShape { size: 5, lanes: 1, rows: 1, pool: 2 });
    let of = |len| MixPart { of: PartOf::Samples { len, order }, weight: 1.0, most_passes: None };
    let mix = Mix::of(&options(vec![of(40), of(60)], Stop::Never, 4), 3).unwrap();
    for start in (0..400).step_by(4) {
        let mut needed = Vec::new();
        assert!(mix.blocks(0, start..start + 4, &mut needed));
        for position in start..start + 4 {
            let sample = mix.turn(0, position).sample;
            assert!(needed.iter().any(|run| run.contains(&sample)), "{start}: {sample} in {needed:?}");
        }
        // Those of one part: at most two pools, where one ends.
        assert!(needed.len() <= 4, "{needed:?}");
        assert!(needed.iter().all(|run| (run.end <= 40) == (needed[0].end <= 40)), "{needed:?}");
    }
}

fn steps(global_batch_size: u64, last: LastBatch) -> Steps {
    Steps { global_batch_size, shard: Shard::ALONE, last, epochs: None, micro_batches: 1, is_balanced: false }
}

#[test]
fn steps_of_other_batches_are_refused() {
    let mix = || Arc::new(Mix::of(&options(vec![part(50, 0.5), part(70, 0.5)], Stop::First, 4), 1).unwrap());
    let at = |samples| Cursor::at(0, samples);
    for last in [LastBatch::Drop, LastBatch::Keep, LastBatch::Repeat] {
        steps(4, last).check(mix().as_ref(), at(40)).unwrap();
        let n = steps(4, last).in_epoch(mix().as_ref(), 0).unwrap();
        assert_eq!(4 * n, mix().len(0).unwrap());
        let error = steps(8, last).check(mix().as_ref(), at(0)).unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch);
        assert!(
            error.message().contains("a batch of 8 rows") && error.message().contains("of 4 rows"),
            "{error}"
        );
    }
    let error = steps(4, LastBatch::Drop).check(mix().as_ref(), at(41)).unwrap_err();
    assert!(error.kind() == Kind::Mismatch && error.message().contains("sample 41"), "{error}");
    let skipping = |from, to| Skipping::new(mix(), &[(from, to)]).unwrap();
    steps(4, LastBatch::Keep).check(&skipping(8, 24), at(0)).unwrap();
    for (from, to, between) in [(6, 12, "4 and 8"), (8, 13, "12 and 16")] {
        let error = steps(4, LastBatch::Drop).check(&skipping(from, to), at(0)).unwrap_err();
        assert!(error.kind() == Kind::Config && error.hint_text().unwrap().contains(between), "{error:#}");
    }
}

/// One view for each length, cut from 40 records of 100 values.
fn feeds(lengths: &[u64]) -> Vec<Feed> {
    let feed = |length: &u64| {
        let toy = Arc::new(Toy::tokens(&[100; 40]));
        let collate = NextToken::new(toy.schema(), *length, None, true, 0).unwrap();
        Feed::new(toy.clone(), Arc::new(Pack::new(toy, *length, None).unwrap()), Arc::new(collate))
    };
    lengths.iter().map(feed).collect()
}

fn plan(lengths: &[u64], weights: &[f64], rows: u64) -> windrow_core::Result<Plan> {
    let feeds = feeds(lengths);
    let parts = feeds.iter().zip(weights).map(|(feed, weight)| part(feed.len(), *weight)).collect();
    let mix = Mix::of(&options(parts, Stop::First, rows), 1)?;
    Plan::new(feeds, Arc::new(mix), 1)
}

fn loader(plan: &Arc<Plan>, rank: u64, world_size: u64, rows: BatchSize) -> windrow_core::Result<Loader> {
    let options = Options {
        batch: rows,
        shard: Shard::new(rank, world_size)?,
        last: LastBatch::Drop,
        epochs: Some(1),
        accumulate: 1,
        num_threads: Some(2),
        prefetch: 2,
    };
    Loader::new(plan.clone(), &options)
}

#[test]
fn batches_of_parts_have_lengths_of_their_own_on_any_number_of_ranks() {
    assert_eq!(plan(&[7, 31], &[0.7, 0.3], 0).unwrap_err().kind(), Kind::Mismatch);
    let plan = Arc::new(plan(&[7, 31], &[0.7, 0.3], 8).unwrap());
    let run = |rank, world_size| {
        let loader = loader(&plan, rank, world_size, BatchSize::Global(8)).unwrap();
        let batches: Vec<_> = loader.map(Result::unwrap).collect();
        let shape = |batch: &Batch| batch.fields()[0].shape.to_vec();
        let values = |batch: &Batch| batch.get::<i64>("input_ids").unwrap().to_vec();
        batches.iter().map(|batch| (shape(batch), values(batch))).collect::<Vec<_>>()
    };
    let alone = run(0, 1);
    let long = alone.iter().filter(|(shape, _)| *shape == [31]).count();
    let due = 3 * alone.len();
    assert!(alone.len() > 30 && due.abs_diff(10 * long) <= 10, "{long} of {}", alone.len());
    assert!(alone.iter().all(|(shape, values)| values.len() == 8 * shape[0]));
    for world_size in [2, 4] {
        let ranks: Vec<_> = (0..world_size).map(|rank| run(rank, world_size)).collect();
        for (step, (shape, values)) in alone.iter().enumerate() {
            assert!(ranks.iter().all(|rank| rank[step].0 == *shape));
            let together: Vec<i64> = ranks.iter().flat_map(|rank| rank[step].1.clone()).collect();
            assert_eq!(together, *values);
        }
    }
    // Rows of two parts in one batch are an error, not memory of another length.
    let mix = plan.sampler();
    let border = (0..)
        .find(|batch| plan.trace(0, batch * 8).unwrap().feed != plan.trace(0, batch * 8 + 8).unwrap().feed);
    let across = border.unwrap() * 8 + 4;
    let error = plan.batch(0, across..across + 8, None, &mut Workspace::default()).unwrap_err();
    assert_eq!((error.kind(), mix.batch_rows().map(NonZeroU64::get)), (Kind::Mismatch, Some(8)));
    // Another number of ranks makes batches of another size.
    let mut each = loader(&plan, 0, 2, BatchSize::PerRank(4)).unwrap();
    each.next_batch().unwrap().unwrap();
    let error = each.set_shard(Shard::new(0, 4).unwrap()).unwrap_err();
    assert!(error.kind() == Kind::Mismatch && error.message().contains("of 8 rows"), "{error}");
    let error = loader(&plan, 0, 1, BatchSize::Global(16)).unwrap_err();
    assert!(error.kind() == Kind::Mismatch && format!("{error:#}").contains("(8)"), "{error:#}");
}

#[test]
fn a_state_of_other_batches_is_refused_by_their_rows_also_where_words_are_a_hash() {
    for n_parts in [2, 35] {
        let lengths: Vec<u64> = (0..n_parts).map(|part| 3 + part % 5).collect();
        let of = |rows| Arc::new(plan(&lengths, &vec![1.0; lengths.len()], rows).unwrap());
        let (plan, other) = (of(4), of(8));
        let mut run = loader(&plan, 0, 1, BatchSize::Global(4)).unwrap();
        run.next_batch().unwrap().unwrap();
        run.next_batch().unwrap().unwrap();
        let state = run.state();
        assert!(state.plan.contains(",batches=part(rows=4);"), "{}", state.plan);
        assert_eq!(state.plan.contains("order=#"), n_parts == 35);
        assert!(serde_json::to_string(&state).unwrap().len() < 1024);
        let error = loader(&other, 0, 1, BatchSize::Global(8)).unwrap().resume(&state).unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch);
        assert!(
            error.message().contains("batches of 4 rows") && error.message().contains("of 8 rows"),
            "{error}"
        );
        let mut again = loader(&plan, 0, 1, BatchSize::Global(4)).unwrap();
        again.resume(&state).unwrap();
        assert_eq!(
            again.next_batch().unwrap().unwrap().get::<i64>("labels").unwrap(),
            run.next_batch().unwrap().unwrap().get::<i64>("labels").unwrap()
        );
    }
}
