//! The promises of the loader: the same batches for any number of threads and ranks, resumed or not; no hang.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_core::collate::Batch;
use windrow_core::collate::{Documents, DocumentsLayout, Labels, NextToken};
use windrow_core::loader::{BatchSize, Finish, Loader, Next, Options, Origin};
use windrow_core::plan::{Feed, LastBatch, Plan, State, Steps};
use windrow_core::sampler::{Mix, Sampler, Sequential, Shard, Shuffle, Stop};
use windrow_core::source::Source;
use windrow_core::view::{Pack, Records};
use windrow_core::{Error, Kind, Lengths, Result};

use crate::toy::Toy;

fn feed(toy: Arc<Toy>) -> Feed {
    let collate = NextToken::new(toy.schema(), 2, None, false, 0).unwrap();
    let lengths: Arc<dyn Lengths> = toy.clone();
    Feed::new(toy, Arc::new(Pack::new(lengths, 2, None).unwrap()), Arc::new(collate))
}

fn plan_of(toy: Toy, seed: u64) -> Arc<Plan> {
    let feed = feed(Arc::new(toy));
    let order: Arc<dyn Sampler> = Arc::new(Shuffle::new(feed.len(), seed));
    Arc::new(Plan::new(vec![feed], order, seed).unwrap())
}

// 53 samples of length 2.
fn plan() -> Arc<Plan> {
    plan_of(Toy::tokens(&[50, 7, 50]), 3)
}

fn options(rows: u64, rank: u64, world: u64, threads: usize) -> Options {
    Options {
        batch: BatchSize::Global(rows),
        shard: Shard::new(rank, world).unwrap(),
        last: LastBatch::Keep,
        epochs: Some(3),
        num_threads: Some(threads),
        prefetch: 3,
        accumulate: 1,
    }
}

fn rest(loader: &mut Loader) -> Vec<Vec<i64>> {
    loader.map(|b| b.unwrap().get::<i64>("input_ids").unwrap().to_vec()).collect()
}

fn all(plan: &Arc<Plan>, options: &Options) -> Vec<Vec<i64>> {
    rest(&mut Loader::new(plan.clone(), options).unwrap())
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let plan = plan();
    let inline = all(&plan, &options(8, 0, 1, 0));
    assert_eq!(inline.len(), 3 * 7);
    for threads in [1, 2, 7] {
        assert_eq!(all(&plan, &options(8, 0, 1, threads)), inline, "{threads} threads");
    }
}

#[test]
fn every_sample_comes_once_an_epoch_in_another_order() {
    let batches = all(&plan(), &options(8, 0, 1, 2));
    let mut epochs: Vec<Vec<i64>> = batches.chunks(7).map(|epoch| epoch.concat()).collect();
    assert_ne!(epochs[0], epochs[1]);
    let sequential = feed(Arc::new(Toy::tokens(&[50, 7, 50])));
    let numbers: Vec<u64> = (0..sequential.len()).collect();
    let mut expected = sequential.batch(&numbers, 0).unwrap().get::<i64>("input_ids").unwrap().to_vec();
    expected.sort_unstable();
    for epoch in &mut epochs {
        epoch.sort_unstable();
        assert_eq!(*epoch, expected);
    }
}

#[test]
fn ranks_share_out_the_batches_of_one() {
    let plan = plan();
    // Some of 11 would get nothing, at every step.
    let many = Loader::new(plan.clone(), &options(8, 0, 11, 1)).err();
    assert_eq!(many.unwrap().kind(), Kind::Config);
    for (world, last) in [
        (2, LastBatch::Keep),
        (3, LastBatch::Keep),
        (5, LastBatch::Keep),
        (8, LastBatch::Repeat),
        (8, LastBatch::Drop),
    ] {
        let options = |rank, world| Options { last, ..options(8, rank, world, 1) };
        let alone = all(&plan, &options(0, 1));
        let ranks: Vec<_> = (0..world).map(|rank| all(&plan, &options(rank, world))).collect();
        for (step, expected) in alone.iter().enumerate() {
            let together: Vec<i64> = ranks.iter().flat_map(|rank| rank[step].clone()).collect();
            assert_eq!(together, *expected, "step {step} of {world} ranks");
        }
    }
}

#[test]
fn resumed_equals_never_stopped_at_every_step_and_rank_count() {
    let plan = plan();
    let unbroken = all(&plan, &options(8, 0, 1, 2));
    for k in 0..=unbroken.len() {
        let mut first = Loader::new(plan.clone(), &options(8, 0, 1, 2)).unwrap();
        for _ in 0..k {
            first.next_batch().unwrap().unwrap();
        }
        let state = State::from_json(&serde_json::to_string(&first.state()).unwrap()).unwrap();
        for world in [1, 2, 3] {
            let ranks: Vec<Vec<Vec<i64>>> = (0..world)
                .map(|rank| {
                    let mut loader = Loader::new(plan.clone(), &options(8, rank, world, 2)).unwrap();
                    loader.resume(&state).unwrap();
                    assert_eq!(loader.state(), state);
                    rest(&mut loader)
                })
                .collect();
            let together: Vec<i64> =
                (0..unbroken.len() - k).flat_map(|s| ranks.iter().flat_map(move |r| r[s].clone())).collect();
            assert_eq!(together, unbroken[k..].concat(), "k = {k}, {world} ranks");
        }
        // Another batch size keeps the order of the samples.
        let mut other = Loader::new(plan.clone(), &options(5, 0, 1, 1)).unwrap();
        other.resume(&state).unwrap();
        assert_eq!(rest(&mut other).concat(), unbroken[k..].concat(), "k = {k}, batch size 5");
    }
}

#[test]
fn a_mixture_of_records_with_and_without_a_loss_mask_says_so() {
    let [plain, masked] = [Toy::tokens(&[3]), Toy::tokens(&[3]).with_mask(&[&[1, 0, 1]])].map(|toy| {
        let toy = Arc::new(toy);
        let collate = NextToken::new(toy.schema(), 2, None, true, 0).unwrap();
        let lengths: Arc<dyn Lengths> = toy.clone();
        Feed::new(toy, Arc::new(Records::new(lengths, 2).unwrap()), Arc::new(collate))
    });
    let error = plain.check_rows(&masked, ["a", "b"]).unwrap_err();
    assert_eq!(error.kind(), Kind::Mismatch);
    assert!(error.message().contains("mask=real") && error.message().contains("mask=track"), "{error}");
    assert!(
        error.hint_text().is_some_and(|hint| hint.contains("a loss mask beside the tokens of all")),
        "{error}"
    );
}

#[test]
fn mixtures_resume_and_share_out_like_one_view() {
    let parts = [feed(Arc::new(Toy::tokens(&[40]))), feed(Arc::new(Toy::tokens(&[7, 9])))];
    let sizes = [(parts[0].len(), 0.7), (parts[1].len(), 0.3)];
    for stop in [Stop::First, Stop::All, Stop::Never] {
        let order: Arc<dyn Sampler> = Arc::new(Mix::new(&sizes, true, 5, stop).unwrap());
        let plan = Arc::new(Plan::new(parts.to_vec(), order, 5).unwrap());
        let take = |rank, world, from: Option<&State>| {
            let mut loader =
                Loader::new(plan.clone(), &with_last(LastBatch::Repeat, 6, rank, world)).unwrap();
            if let Some(state) = from {
                loader.resume(state).unwrap();
            }
            let rows: Vec<Vec<i64>> =
                loader.by_ref().take(9).map(|b| b.unwrap().get::<i64>("labels").unwrap().to_vec()).collect();
            (rows, loader.state())
        };
        let (first, state) = take(0, 1, None);
        let (second, _) = take(0, 1, Some(&state));
        let halves = [take(0, 2, Some(&state)).0, take(1, 2, Some(&state)).0];
        assert_ne!(first, second);
        let together: Vec<Vec<i64>> =
            (0..second.len()).map(|i| [halves[0][i].clone(), halves[1][i].clone()].concat()).collect();
        assert_eq!(together, second, "{stop:?}");
    }
}

#[test]
fn an_error_comes_once_in_its_place_and_the_loader_continues() {
    for threads in [0, 1, 3] {
        let toy = Toy::tokens(&[50, 7, 50]);
        let plan = plan_of(toy, 3);
        let expected = all(&plan, &options(8, 0, 1, 0));
        let toy = Toy::tokens(&[50, 7, 50]);
        toy.fail_after.store(30, Ordering::Relaxed);
        let mut loader = Loader::new(plan_of(toy, 3), &options(8, 0, 1, threads)).unwrap();
        let mut errors = 0;
        let mut batches = Vec::new();
        while let Some(batch) = loader.next_batch() {
            match batch {
                Ok(batch) => batches.push(batch.get::<i64>("input_ids").unwrap().to_vec()),
                Err(e) => {
                    assert_eq!(e.message(), "the disk caught fire");
                    errors += 1;
                }
            }
        }
        assert_eq!((errors, &batches), (1, &expected), "{threads} threads");
    }
}

#[test]
fn iterating_ends_after_an_error_and_the_next_batch_is_the_one_that_failed() {
    let toy = Toy::tokens(&[50, 7, 50]);
    toy.fail_after.store(30, Ordering::Relaxed);
    let mut loader = Loader::new(plan_of(toy, 3), &options(8, 0, 1, 0)).unwrap();
    let found: Vec<bool> = loader.by_ref().take(1000).map(|batch| batch.is_ok()).collect();
    assert_eq!(found.iter().filter(|is_ok| !**is_ok).count(), 1);
    assert_eq!(found.last(), Some(&false));
    assert!(loader.next().is_none());
    let state = loader.state();
    assert!(loader.next_batch().unwrap().is_ok());
    loader.resume(&state).unwrap();
    assert!(loader.next().unwrap().is_ok());
}

#[test]
fn a_panic_in_a_thread_is_an_error_not_a_hang() {
    let mut toy = Toy::tokens(&[50]);
    toy.panics = true;
    toy.fail_after.store(5, Ordering::Relaxed);
    let mut loader = Loader::new(plan_of(toy, 0), &options(4, 0, 1, 2)).unwrap();
    let error = loader.by_ref().find_map(Result::err).unwrap();
    assert!(error.message().contains("the disk caught fire"), "{error}");
}

#[test]
fn a_loader_that_is_dropped_early_ends_its_threads() {
    for _ in 0..50 {
        let mut loader = Loader::new(plan(), &options(8, 0, 1, 3)).unwrap();
        loader.next_batch().unwrap().unwrap();
        assert_eq!(loader.stats().threads, 3);
    }
}

#[test]
fn batches_outlive_the_loader_and_its_pool() {
    let mut loader = Loader::new(plan(), &options(8, 0, 1, 2)).unwrap();
    let kept: Vec<_> = loader.by_ref().map(|b| b.unwrap()).collect();
    drop(loader);
    let values: Vec<_> = kept.iter().map(|b| b.get::<i64>("input_ids").unwrap().to_vec()).collect();
    assert_eq!(values, all(&plan(), &options(8, 0, 1, 0)));
}

#[test]
fn waiting_can_be_cut_short() {
    let mut loader = Loader::new(plan(), &options(8, 0, 1, 1)).unwrap();
    let mut seen = 0;
    loop {
        match loader.next_within(std::time::Duration::ZERO).unwrap() {
            Next::Batch(_) | Next::Unfinished(..) => seen += 1,
            Next::End => break,
            Next::NotYet => std::thread::yield_now(),
        }
    }
    assert_eq!(seen, 21);
}

#[test]
fn a_state_of_another_plan_is_refused_with_the_difference() {
    let mut loader = Loader::new(plan(), &options(8, 0, 1, 0)).unwrap();
    let state = loader.state();
    assert!(serde_json::to_string(&state).unwrap().len() < 1000);
    for (other, word) in [
        (State { seed: 4, ..state.clone() }, "seed"),
        (State { samples: 54, ..state.clone() }, "sample 54"),
        (State { plan: state.plan.replace("length=2", "length=3"), ..state.clone() }, "length=3"),
        (
            Loader::new(plan_of(Toy::tokens(&[50, 7, 51]), 3), &options(8, 0, 1, 0)).unwrap().state(),
            "source=toy",
        ),
    ] {
        let error = loader.resume(&other).unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch);
        assert!(error.message().contains(word), "{error} should name {word}");
    }
    assert!(State::from_json("{}").is_err());
    assert!(State::from_json(&serde_json::to_string(&State { version: 9, ..state }).unwrap()).is_err());
}

#[test]
fn impossible_options_are_refused() {
    let new = |f: &dyn Fn(&mut Options)| {
        let mut o = options(8, 0, 1, 0);
        f(&mut o);
        Loader::new(plan(), &o).map(|_| ()).map_err(|e| e.kind())
    };
    assert_eq!(new(&|_| ()), Ok(()));
    assert_eq!(new(&|o| o.batch = BatchSize::Global(0)), Err(Kind::Config));
    assert_eq!(new(&|o| o.prefetch = 0), Err(Kind::Config));
    assert_eq!(new(&|o| o.num_threads = Some(1024)), Ok(()));
    assert_eq!(new(&|o| o.num_threads = Some(1025)), Err(Kind::Config));
    assert_eq!(new(&|o| (o.batch, o.last) = (BatchSize::Global(54), LastBatch::Drop)), Err(Kind::Config));
    assert_eq!(new(&|o| (o.batch, o.last) = (BatchSize::Global(54), LastBatch::Keep)), Ok(()));
    let empty = Plan::new(vec![feed(Arc::new(Toy::tokens(&[1])))], Arc::new(Sequential::new(0)), 0).unwrap();
    assert!(Loader::new(Arc::new(empty), &options(1, 0, 1, 0)).is_err());
}

#[test]
fn trace_names_what_a_row_read_and_find_is_its_inverse() {
    let plan = plan();
    for position in 0..53 {
        let traced = plan.trace(1, position).unwrap();
        let batch = plan.batch(1, position..position + 1, None, &mut Default::default()).unwrap();
        let first = batch.get::<i64>("input_ids").unwrap()[0];
        assert_eq!((traced.spans[0].record as i64) * 1000 + traced.spans[0].start as i64, first);
        assert_eq!(traced.locations[0].file, format!("toy/{}", traced.spans[0].record));
        let found = plan.find(0, traced.spans[0].record, 1, 1000).unwrap();
        assert!(found.iter().any(|f| f.position == position && f.sample == traced.sample));
    }
    assert!(plan.trace(0, 53).is_err());
    assert!(plan.find(1, 0, 0, 10).is_err());
}

#[test]
fn a_record_whose_eos_begins_a_row_is_not_read_by_it() {
    // [0..3] | eos 1[0..2] | 1[2..4] eos | eos 3[0..2]: record 0 ends before row 1, and 2 is empty.
    let toy = Arc::new(Toy::tokens(&[3, 4, 0, 2]));
    let documents = Documents::new(toy.schema(), 3, None, Some(0), DocumentsLayout::default()).unwrap();
    let view = Pack::apart(toy.clone(), 3, Some(0)).unwrap().telling_record();
    let collate = Arc::new(documents.labels(Labels::None).unwrap());
    let feed = Feed::new(toy, Arc::new(view), collate);
    let plan = Plan::new(vec![feed], Arc::new(Sequential::new(4)), 0).unwrap();
    let read = |position| -> Vec<(u64, u64, u64)> {
        let spans = plan.trace(0, position).unwrap().spans;
        spans.iter().map(|span| (span.record, span.start, span.len)).collect()
    };
    assert_eq!([0, 1, 2, 3].map(read), [vec![(0, 0, 3)], vec![(1, 0, 2)], vec![(1, 2, 2)], vec![(3, 0, 2)]]);
    let found = |record| plan.find(0, record, 0, 9).unwrap().iter().map(|f| f.position).collect::<Vec<_>>();
    assert_eq!([0, 1, 2, 3].map(found), [vec![0], vec![1, 2], vec![], vec![3]]);
    let steps = Steps {
        global_batch_size: 1,
        shard: Shard::ALONE,
        last: LastBatch::Keep,
        epochs: None,
        micro_batches: 1,
        is_balanced: false,
    };
    let covered = plan.covered(&steps, 1..2, true, &()).unwrap();
    assert_eq!((covered.parts[0].records, covered.parts[0].values), (1, 2));
}

#[test]
fn a_batch_that_no_memory_holds_is_an_error_and_does_not_end_the_process() {
    let feed = feed(Arc::new(Toy::tokens(&[50, 7, 50])));
    let mix: Arc<dyn Sampler> = Arc::new(Mix::new(&[(feed.len(), 1.0)], true, 3, Stop::Never).unwrap());
    let endless = Arc::new(Plan::new(vec![feed], mix, 3).unwrap());
    for (plan, last) in [(endless, LastBatch::Drop), (plan(), LastBatch::Repeat)] {
        for threads in [0, 2] {
            let options = Options { last, ..options(1 << 60, 0, 1, threads) };
            let error = Loader::new(plan.clone(), &options).unwrap().next_batch().unwrap().unwrap_err();
            assert_eq!(error.kind(), Kind::Memory);
            assert!(
                format!("{error:#}").starts_with("no memory for a batch of 1152921504606846976 rows"),
                "{error}"
            );
            assert_eq!(error.hint_text(), Some("choose a smaller batch size"));
        }
    }
}

fn with_last(last: LastBatch, rows: u64, rank: u64, world: u64) -> Options {
    Options { last, ..options(rows, rank, world, 0) }
}

#[test]
fn a_last_batch_without_a_row_for_each_rank_is_refused_unless_it_is_filled_or_left_out() {
    // 53 samples: the last batch of 10 has 3 rows.
    let new = |last, world| Loader::new(plan(), &with_last(last, 10, 0, world)).map(|_| ());
    for world in 1..=3 {
        assert!(new(LastBatch::Keep, world).is_ok(), "{world} ranks");
    }
    let error = new(LastBatch::Keep, 4).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(format!("{error:#}").contains("3 of 10 rows, for 4 ranks"), "{error}");
    assert!(format!("{error:#}").contains("LastBatch::Repeat"), "{error}");
    assert!(new(LastBatch::Repeat, 4).is_ok() && new(LastBatch::Drop, 4).is_ok());
}

#[test]
fn resuming_into_a_last_batch_without_a_row_for_each_rank_is_refused_and_nothing_moves() {
    let mut six = Loader::new(plan(), &with_last(LastBatch::Keep, 6, 0, 1)).unwrap();
    six.next_batch().unwrap().unwrap();
    // 47 are left: batches of 15 end with 2 rows. From the beginning they end with 8.
    let mut fifteen = Loader::new(plan(), &with_last(LastBatch::Keep, 15, 0, 4)).unwrap();
    let before = fifteen.state();
    assert_eq!(fifteen.resume(&six.state()).unwrap_err().kind(), Kind::Config);
    assert_eq!(fifteen.state(), before);
}

#[test]
fn a_filled_last_batch_repeats_the_first_samples_of_its_epoch() {
    let plan = plan();
    for (rows, world) in [(10, 1), (10, 4), (53, 2), (54, 3), (200, 7)] {
        let mut ranks: Vec<Loader> = (0..world)
            .map(|rank| Loader::new(plan.clone(), &with_last(LastBatch::Repeat, rows, rank, world)).unwrap())
            .collect();
        let n_steps = 53_u64.div_ceil(rows);
        for epoch in 0..2 {
            let mut all = Vec::new();
            for _ in 0..n_steps {
                let before = all.len();
                for loader in &mut ranks {
                    let batch = loader.next_batch().unwrap().unwrap();
                    all.extend(batch.get::<i64>("input_ids").unwrap().chunks(2).map(<[i64]>::to_vec));
                }
                assert_eq!((all.len() - before) as u64, rows);
            }
            let own: Vec<Vec<i64>> = all[..53].to_vec();
            assert!(
                own.iter().cycle().zip(&all).all(|(one, row)| one == row),
                "batches of {rows}, epoch {epoch}"
            );
            let mut sorted = own.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 53);
            assert!(ranks.iter().all(|loader| loader.state() == ranks[0].state()));
            assert_eq!((ranks[0].cursor().epoch, ranks[0].cursor().samples), (epoch, 53));
        }
        let repeated: u64 = ranks.iter().map(|loader| loader.stats().repeated).sum();
        assert_eq!(repeated, 2 * (n_steps * rows - 53));
    }
}

#[test]
fn where_a_sample_is_delivered_counts_what_is_repeated_and_what_is_left_out() {
    let plan = plan();
    for (last, rows) in
        [(LastBatch::Drop, 10), (LastBatch::Keep, 10), (LastBatch::Repeat, 10), (LastBatch::Repeat, 200)]
    {
        let loader = Loader::new(plan.clone(), &with_last(last, rows, 0, 1));
        let Ok(loader) = loader else { continue };
        let steps = loader.steps();
        let mut delivered = Vec::new();
        for number in 0..steps.in_epoch(plan.sampler(), 1).unwrap() {
            let step = steps.find(plan.sampler(), Some(1), number).unwrap();
            let own = plan.batch_of(&step, None, &mut Default::default()).unwrap();
            for row in 0..step.all.end - step.all.start {
                let one = plan
                    .batch(
                        1,
                        step.position(plan.sampler(), row)..step.position(plan.sampler(), row) + 1,
                        None,
                        &mut Default::default(),
                    )
                    .unwrap();
                let at = row as usize * 2;
                assert_eq!(
                    own.get::<i64>("input_ids").unwrap()[at..at + 2],
                    one.get::<i64>("input_ids").unwrap()[..]
                );
                delivered.push((step.position(plan.sampler(), row), number, row));
            }
        }
        let mut places: Vec<_> = (0..53)
            .flat_map(|at| steps.places(plan.sampler(), 1, at).map(move |(step, row)| (at, step, row)))
            .collect();
        delivered.sort_unstable();
        places.sort_unstable();
        assert_eq!(places, delivered, "{last:?}");
    }
}

#[test]
fn a_loader_that_learns_its_rank_late_continues_from_where_it_stands() {
    let per_rank = Options { batch: BatchSize::PerRank(5), ..options(0, 0, 1, 2) };
    let mut late = Loader::new(plan(), &per_rank).unwrap();
    late.set_shard(Shard::new(1, 2).unwrap()).unwrap();
    let known = Options { shard: Shard::new(1, 2).unwrap(), ..per_rank };
    assert_eq!(rest(&mut late), all(&plan(), &known));
    // 53 samples in batches over 20 ranks of 5 rows: the only one has a row for each; over 60 it has not.
    let mut one = Loader::new(plan(), &per_rank).unwrap();
    assert!(one.set_shard(Shard::new(1, 20).unwrap()).is_ok());
    assert_eq!(one.set_shard(Shard::new(1, 60).unwrap()).unwrap_err().kind(), Kind::Config);
    assert_eq!(one.steps().shard, Shard::new(1, 20).unwrap());
}

#[test]
fn the_upcoming_epoch_is_that_of_the_next_batch() {
    let mut loader = Loader::new(plan(), &options(8, 0, 1, 2)).unwrap();
    for epoch in 0..3 {
        for _ in 0..7 {
            assert_eq!(loader.upcoming_epoch(), Some(epoch));
            loader.next_batch().unwrap().unwrap();
        }
    }
    assert_eq!(loader.upcoming_epoch(), None);
}

/// Gives the numbers of a batch's samples; refuses one sample, as long as it is bad.
struct Numbers {
    bad: AtomicU64,
    calls: AtomicU64,
}

impl Numbers {
    fn with(bad: u64) -> Arc<Numbers> {
        Arc::new(Numbers { bad: AtomicU64::new(bad), calls: AtomicU64::new(0) })
    }
}

impl Finish for Numbers {
    fn finish(&self, batch: Batch, origin: &Origin, is_wanted: &dyn Fn() -> bool) -> Result<Batch> {
        assert_eq!(batch.rows(), origin.turns.len());
        self.calls.fetch_add(1, Ordering::Relaxed);
        let numbers: Vec<u64> = origin.turns.iter().map(|turn| turn.sample).collect();
        if !is_wanted() || numbers.contains(&self.bad.load(Ordering::Relaxed)) {
            return Err(Error::config("a bad sample"));
        }
        Ok(batch.counted().with_made(Box::new(numbers)))
    }
}

fn made(batch: &mut Batch) -> Vec<u64> {
    *batch.take_made().unwrap().downcast().unwrap()
}

#[test]
fn what_is_made_of_a_batch_comes_in_its_order() {
    let plan = plan();
    let mut expected = Vec::new();
    for epoch in 0..3 {
        for batch in (0..53).collect::<Vec<u64>>().chunks(8) {
            expected.push(batch.iter().map(|at| plan.sampler().turn(epoch, *at).sample).collect::<Vec<_>>());
        }
    }
    for threads in [0, 1, 3] {
        let loader = Loader::new(plan.clone(), &options(8, 0, 1, threads)).unwrap();
        let mut loader = loader.finished_by(Numbers::with(u64::MAX));
        let found: Vec<Vec<u64>> = loader.by_ref().map(|batch| made(&mut batch.unwrap())).collect();
        assert_eq!(found, expected, "{threads} threads");
        assert_eq!((loader.stats().batches, loader.stats().samples), (21, 159));
        assert_eq!(loader.stats().bytes, 159 * 2 * 2 * 8);
    }
}

#[test]
fn a_batch_that_is_refused_is_tried_again() {
    let plan = plan();
    let bad = plan.sampler().turn(0, 17).sample;
    for threads in [0, 2] {
        let numbers = Numbers::with(bad);
        let loader = Loader::new(plan.clone(), &options(8, 0, 1, threads)).unwrap();
        let mut loader = loader.finished_by(numbers.clone());
        for _ in 0..2 {
            loader.next_batch().unwrap().unwrap();
        }
        let state = loader.state();
        for _ in 0..2 {
            let error = loader.next_batch().unwrap().unwrap_err();
            assert_eq!(error.message(), "a bad sample");
            assert_eq!(loader.state(), state);
        }
        numbers.bad.store(u64::MAX, Ordering::Relaxed);
        assert!(made(&mut loader.next_batch().unwrap().unwrap()).contains(&bad));
    }
}

/// Is held back until it may go on.
struct Held {
    begun: AtomicU64,
    may_go: std::sync::Mutex<bool>,
    goes: std::sync::Condvar,
}

impl Finish for Held {
    fn finish(&self, batch: Batch, _: &Origin, _: &dyn Fn() -> bool) -> Result<Batch> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        drop(self.goes.wait_while(self.may_go.lock().unwrap(), |may| !*may).unwrap());
        Ok(batch)
    }
}

#[test]
fn a_call_that_hangs_holds_up_neither_stop_nor_who_waits() {
    let held = Arc::new(Held { begun: AtomicU64::new(0), may_go: false.into(), goes: Default::default() });
    let loader = Loader::new(plan(), &options(8, 0, 1, 2)).unwrap();
    let mut loader = loader.finished_by(held.clone());
    let wait = std::time::Duration::from_millis(10);
    while held.begun.load(Ordering::SeqCst) < 2 {
        assert!(matches!(loader.next_within(wait).unwrap(), Next::NotYet));
    }
    assert!(!loader.stop_within(wait));
    loader.leave();
    *held.may_go.lock().unwrap() = true;
    held.goes.notify_all();
    // It begins again where it stood.
    assert_eq!(loader.next_batch().unwrap().unwrap().rows(), 8);
    assert!(loader.stop_within(std::time::Duration::from_secs(60)));
    assert_eq!(loader.stats().batches, 1);
}

#[test]
fn a_step_has_the_number_that_it_is_found_by() {
    for skips in [&[][..], &[(3, 21), (60, 80)]] {
        let plan = Arc::try_unwrap(plan()).unwrap().skipping(skips).unwrap();
        let loader = Loader::new(Arc::new(plan), &options(8, 0, 1, 0)).unwrap();
        let steps = loader.steps();
        for number in 0..12 {
            let step = steps.find(loader.plan().sampler(), None, number).unwrap();
            let found = steps.number(loader.plan().sampler(), step.epoch, step.all.start);
            assert_eq!(found, Some(number), "{skips:?}");
        }
    }
}

#[test]
fn a_name_is_the_last_word_of_a_plan() {
    let named = |name| Arc::try_unwrap(plan()).unwrap().mapped(Some(name));
    let (plain, one) = (plan().identity().unwrap(), named("crop-2").unwrap().identity().unwrap());
    assert_eq!(one.to_string(), format!("{plain};map=crop-2"));
    for (ours, theirs, said) in [
        (&plain, &one, "the state has map=crop-2, this plan has nothing"),
        (&one, &plain, "the state has nothing, this plan has map=crop-2"),
    ] {
        let error = ours.check(&theirs.to_string()).unwrap_err();
        assert_eq!(error.kind(), Kind::Mismatch);
        assert!(error.message().ends_with(said), "{error}");
        assert_eq!(
            error.hint_text(),
            Some("give the loader the .map_name(…) of the run that saved the state")
        );
    }
    for name in ["", "a;b", "a\nb", &"n".repeat(81)] {
        assert_eq!(named(name).unwrap_err().kind(), Kind::Config, "{name:?}");
    }
}
