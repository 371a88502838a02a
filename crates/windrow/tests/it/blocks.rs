//! Loaders in an order by blocks: numbers chosen and kept, resumed, on other ranks, traced, mixed.

use std::collections::BTreeSet;
use std::path::Path;

use windrow::dev::plan::Steps;
use windrow::dev::sampler::Shard;
use windrow::{Blocks, Kind, LastBatch, Loader, LoaderBuilder, Recipe, Samples, Shuffle, Stop, mix};

const LENGTH: u64 = 4;

/// `n` samples of four tokens; the first token of sample i is 4i.
fn samples(folder: &Path, name: &str, n: u64) -> Samples {
    let path = folder.join(name);
    let tokens = 0..(n * LENGTH + 1) as u32;
    std::fs::write(&path, tokens.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    windrow::open(&path).unwrap().pack(LENGTH).unwrap()
}

/// The samples of the next batch.
fn next(loader: &mut Loader) -> Vec<u64> {
    let batch = loader.next_batch().unwrap().unwrap();
    let ids = batch.get::<i64>("input_ids").unwrap();
    ids.chunks(LENGTH as usize).map(|row| row[0] as u64 / LENGTH).collect()
}

fn order(builder: &LoaderBuilder) -> String {
    builder.plan().unwrap().sampler().describe()
}

fn small(samples: &Samples) -> LoaderBuilder {
    samples.loader().shuffle(Blocks::new().size(10)).seed(3).global_batch_size(24).rank(0, 1)
}

#[test]
fn an_epoch_has_every_sample_once_and_stays_near_its_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples(folder.path(), "a.bin", 1000);
    let builder = small(&samples).drop_last(false);
    assert_eq!(order(&builder), "shuffle:block-v1(size=10,lanes=8,rows=3,pool=3)");
    let mut loader = builder.epochs(Some(2)).build().unwrap();
    let mut epochs = Vec::new();
    for _ in 0..2 {
        let batches: Vec<Vec<u64>> = (0..42).map(|_| next(&mut loader)).collect();
        for batch in &batches[..40] {
            let blocks: BTreeSet<u64> = batch.iter().map(|sample| sample / 10).collect();
            assert!(blocks.len() <= 24);
        }
        let all = batches.concat();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 1000);
        epochs.push(all);
    }
    assert_ne!(epochs[0], epochs[1]);
}

#[test]
fn a_run_continues_with_other_ranks_in_the_middle_of_an_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples(folder.path(), "a.bin", 1000);
    let mut alone = small(&samples).build().unwrap();
    let whole: Vec<Vec<u64>> = (0..60).map(|_| next(&mut alone)).collect();
    let mut state = small(&samples).build().unwrap().state();
    let mut got = Vec::new();
    for (steps, ranks) in [(7, 1), (13, 3), (30, 8), (10, 2)] {
        let mut loaders: Vec<Loader> =
            (0..ranks).map(|rank| small(&samples).rank(rank, ranks).build().unwrap()).collect();
        loaders.iter_mut().for_each(|loader| loader.resume(&state).unwrap());
        for _ in 0..steps {
            got.push(loaders.iter_mut().flat_map(next).collect::<Vec<u64>>());
        }
        state = loaders[0].state();
        assert!(loaders.iter().all(|loader| loader.state() == state));
    }
    assert_eq!(got, whole);
}

#[test]
fn a_rank_reads_its_own_blocks_in_every_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples(folder.path(), "a.bin", 960);
    let read = |rank: u64| -> Vec<BTreeSet<u64>> {
        let mut loader = small(&samples).rank(rank, 4).build().unwrap();
        (0..2).map(|_| (0..40).flat_map(|_| next(&mut loader)).map(|sample| sample / 10).collect()).collect()
    };
    let ranks: Vec<Vec<BTreeSet<u64>>> = (0..4).map(read).collect();
    for epochs in &ranks {
        assert_eq!(epochs[0], epochs[1]);
        assert_eq!(epochs[0].len(), 24, "a quarter of 96 blocks");
    }
}

#[test]
fn another_batch_size_names_the_numbers_to_pass() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples(folder.path(), "a.bin", 1000);
    let mut before = small(&samples).build().unwrap();
    next(&mut before);
    let state = before.state();
    let other = small(&samples).global_batch_size(32);
    let error = other.build().unwrap().resume(&state).unwrap_err();
    assert_eq!(error.kind(), Kind::Mismatch);
    let line = ".shuffle(Blocks::new().size(10).lanes(8).rows(3).pool(3))";
    assert!(format!("{error:#}").contains(line), "{error}");
    let numbers = Blocks::new().size(10).lanes(8).rows(3).pool(3);
    let mut loader = other.shuffle(numbers).build().unwrap();
    loader.resume(&state).unwrap();
    let after: Vec<u64> =
        [next(&mut before), next(&mut before), next(&mut before), next(&mut before)].concat();
    assert_eq!([next(&mut loader), next(&mut loader), next(&mut loader)].concat(), after);
    // Other data is another matter.
    let shorter = self::samples(folder.path(), "b.bin", 500);
    let error = small(&shorter).build().unwrap().resume(&state).unwrap_err();
    assert!(!format!("{error:#}").contains("Blocks::new"), "{error}");
    // A run that was shuffled as a whole has no numbers.
    let error = small(&samples).shuffle(true).build().unwrap().resume(&state).unwrap_err();
    assert!(format!("{error:#}").contains(line), "{error}");
}

#[test]
fn a_recipe_holds_the_numbers_and_opens_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples(folder.path(), "a.bin", 1000);
    let recipe = small(&samples).recipe().unwrap();
    let numbers = Blocks::new().size(10).lanes(8).rows(3).pool(3);
    assert_eq!(recipe.shuffle, Shuffle::Blocks(numbers));
    let text = recipe.to_json();
    let builder = Recipe::from_json(&text).unwrap().builder().unwrap().rank(0, 1);
    assert_eq!(next(&mut builder.build().unwrap()), next(&mut small(&samples).build().unwrap()));
    assert_eq!(builder.recipe().unwrap(), recipe);
    // For another batch the order stays, until it is asked for again.
    assert_eq!(order(&builder.clone().global_batch_size(1000)), order(&builder));
    assert_ne!(order(&builder.shuffle(Blocks::new())), order(&small(&samples)));
}

#[test]
fn the_batch_of_all_ranks_decides_where_the_numbers_are_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples(folder.path(), "a.bin", 1000);
    let each = small(&samples).batch_size(8).rank(1, 3);
    assert_eq!(order(&each), order(&small(&samples)));
    assert!(each.order_asks_for_ranks());
    let fixed = each.with_order_fixed().unwrap();
    assert!(!fixed.order_asks_for_ranks());
    assert_eq!(order(&fixed.rank(0, 1)), order(&each));
    assert!(!small(&samples).order_asks_for_ranks() && !each.shuffle(true).order_asks_for_ranks());
}

#[test]
fn a_row_is_traced_to_its_sample_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples(folder.path(), "a.bin", 1000);
    let plan = small(&samples).plan().unwrap();
    let steps = Steps {
        global_batch_size: 24,
        shard: Shard::new(0, 1).unwrap(),
        last: LastBatch::Drop,
        epochs: None,
        micro_batches: 1,
        is_balanced: false,
    };
    let mut loader = small(&samples).build().unwrap();
    for number in 0..50 {
        let batch = next(&mut loader);
        let step = steps.find(plan.sampler(), None, number).unwrap();
        for (row, sample) in (0..).zip(batch) {
            let position = step.position(plan.sampler(), row);
            assert_eq!(plan.trace(step.epoch, position).unwrap().sample, sample);
            let turn = windrow::dev::sampler::Turn { sample, pass: 0 };
            assert_eq!(plan.sampler().position(step.epoch, turn), Some(position));
        }
    }
    // Every sample reads from the one record.
    let found = plan.find(0, 0, 1, 2000).unwrap();
    assert_eq!(found.iter().map(|found| found.position).collect::<BTreeSet<_>>().len(), 1000);
    for found in found.iter().take(20) {
        assert_eq!(plan.trace(1, found.position).unwrap().sample, found.sample);
    }
}

#[test]
fn every_part_of_a_mixture_has_its_own_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let parts = [("a.bin", 900, 0.75), ("b.bin", 400, 0.25)]
        .map(|(name, n, weight)| (name.to_string(), samples(folder.path(), name, n), weight));
    let mixture = mix(parts.into(), Stop::All).unwrap();
    let builder =
        |shuffle: Shuffle| mixture.loader().shuffle(shuffle).seed(3).global_batch_size(16).rank(0, 1);
    // Shares of 12 and 4 rows.
    let both = builder(Blocks::new().size(10).into());
    let recipe = both.recipe().unwrap();
    let numbers = |lanes, rows, pool| Blocks::new().size(10).lanes(lanes).rows(rows).pool(pool);
    assert_eq!(recipe.shuffle, Shuffle::Parts(vec![numbers(4, 3, 5), numbers(4, 1, 2)]));
    let state = {
        let mut loader = both.build().unwrap();
        next(&mut loader);
        loader.state()
    };
    let mut resumed = Recipe::from_json(&recipe.to_json()).unwrap().builder().unwrap().build().unwrap();
    resumed.resume(&state).unwrap();
    assert_eq!(next(&mut resumed), {
        let mut loader = both.build().unwrap();
        next(&mut loader);
        next(&mut loader)
    });
    // 5 lanes divide neither share.
    let fallen = builder(Blocks::new().size(10).lanes(5).into()).recipe().unwrap();
    assert_eq!(fallen.shuffle, Shuffle::Parts(vec![numbers(1, 12, 22), numbers(1, 4, 10)]));
    // 10 rows: 7.5 and 2.5.
    let halves = builder(Blocks::new().size(10).into()).global_batch_size(10).recipe().unwrap();
    let Shuffle::Parts(halves) = halves.shuffle else { panic!() };
    assert!(halves.iter().all(|part| *part == part.lanes(1)));
    let error = builder(vec![Blocks::new()].into()).plan().err().unwrap();
    assert!(format!("{error:#}").contains("1 parts of 2"), "{error}");
    // A mixture of which each part is gone through, and a smaller one again.
    let plan = both.plan().unwrap();
    let len = plan.sampler().len(0).unwrap();
    let mut seen = BTreeSet::new();
    for position in 0..len {
        let turn = plan.sampler().turn(0, position);
        assert!(seen.insert((turn.sample, turn.pass)));
        assert_eq!(plan.sampler().position(0, turn), Some(position));
    }
    assert!((0..1300).all(|sample| seen.contains(&(sample, 0))));
}

#[test]
fn views_that_join_records_from_everywhere_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("series.jsonl");
    std::fs::write(&path, "[1.0, 2.0, 3.0]\n[4.0, 5.0]\n[6.0, 7.0, 8.0, 9.0]\n").unwrap();
    let data = windrow::open(&path).unwrap();
    let bins = data.view(windrow::Bins::new(4), None).unwrap();
    let segments = data.view(windrow::Segments::new(4), None).unwrap();
    for (samples, view) in [(&bins, "bins"), (&segments, "segments")] {
        let error = samples.loader().shuffle(Blocks::new()).rank(0, 1).build().err().unwrap();
        assert_eq!(error.kind(), Kind::Config);
        let text = format!("{error:#}");
        assert!(text.contains(view) && text.contains(".shuffle(true)"), "{text}");
    }
    let windows = data.view(windrow::Windows::new(2), None).unwrap();
    let error = windows.loader().shuffle(Blocks::new().lanes(99)).rank(0, 1).build().err().unwrap();
    assert!(format!("{error:#}").contains("99 lanes for 1 blocks"), "{error}");
}

/// The figures that the design of the order rests on: 1,024 blocks, batches of 256.
#[test]
fn mixing_is_what_lanes_and_pools_make_it() {
    let folder = tempfile::tempdir().unwrap();
    let samples = samples(folder.path(), "a.bin", 1024 * 64);
    let mixing = |shuffle: Shuffle| {
        let loader = samples.loader().shuffle(shuffle).seed(1).global_batch_size(256).rank(0, 1);
        loader.mixing().unwrap().remove(0)
    };
    let near =
        |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.05, "{found}, expected {wanted}");
    for (lanes, pool) in [(1, 64), (1, 256), (64, 4), (256, 4)] {
        let shape = Blocks::new().size(64).lanes(lanes).rows(256 / lanes).pool(pool);
        let found = mixing(shape.into());
        let open = (lanes * pool) as f64;
        assert_eq!((found.blocks, found.block_size, found.rows), (1024, 64, 256.0));
        assert_eq!(found.reach, lanes * pool * 64);
        // Rows of a lane come from its own pool alone.
        let rows = 256.0 / lanes as f64;
        near(found.effective_blocks, 256.0 / (1.0 + (rows - 1.0) / pool as f64));
        if lanes * pool < 1024 {
            near(found.neighbours_apart, open / 1024.0);
        }
        assert!(found.excess_variance < 1.0 + 255.0 / open + 0.05, "{found:?}");
    }
    // Blocks of 8 MiB would be all of it.
    let global = mixing(Shuffle::On);
    assert_eq!((global.blocks, global.reach), (1, 65_536));
    near(global.neighbours_apart, 1.0);
    near(global.excess_variance, 1.0);
    let off = mixing(Shuffle::Off);
    assert!(off.neighbours_apart < 0.001 && off.order == "sequential");
}

#[test]
fn mixing_of_a_mixture_is_that_of_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let parts = [("a.bin", 6400, 0.75), ("b.bin", 3200, 0.25)]
        .map(|(name, n, weight)| (name.to_string(), samples(folder.path(), name, n), weight));
    let mixture = mix(parts.into(), Stop::Never).unwrap();
    let loader = mixture.loader().shuffle(Blocks::new().size(10)).global_batch_size(64).rank(0, 1);
    let found = loader.mixing().unwrap();
    assert_eq!(found.len(), 2);
    for (mixing, (rows, blocks)) in found.iter().zip([(48.0, 640), (16.0, 320)]) {
        assert_eq!(mixing.blocks, blocks);
        assert!((mixing.rows - rows).abs() < 1.0, "{mixing:?}");
        assert!(mixing.effective_blocks <= rows + 1.0 && mixing.effective_blocks > rows / 2.0, "{mixing:?}");
        let wanted = mixing.reach as f64 / (mixing.blocks * mixing.block_size) as f64;
        assert!((mixing.neighbours_apart / wanted - 1.0).abs() < 0.1, "{mixing:?}");
    }
}
