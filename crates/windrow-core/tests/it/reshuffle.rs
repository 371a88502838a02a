//! Documents in another order in each pass, against oracles that build the stream and the rows of a pass whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use windrow_core::collate::NextToken;
use windrow_core::loader::{BatchSize, Loader, Options};
use windrow_core::plan::{Cursor, Feed, LastBatch, Plan};
use windrow_core::record::keyed_hash;
use windrow_core::sampler::{
    Mix, MixOptions, MixPart, Order, PartOf, Permutation, Phase, Sampler, Shard, Shuffle, Stop,
};
use windrow_core::source::Source;
use windrow_core::view::{Bins, Coverage, Overlong, Pack, RowLength, Strategy, View};
use windrow_core::{Draw, Error, Kind, Lengths, Pass, Piece, Result, Span};

use crate::toy::Toy;

const DOCS: u64 = 0x646f_6373_3100_0000;

/// The documents at the places of a pass, as the order is defined.
fn order(n: u64, scope: Option<u64>, pass: Pass) -> Vec<u64> {
    let key = keyed_hash(pass.seed, [pass.epoch, pass.pass, DOCS]);
    let each = scope.unwrap_or(n).max(1);
    let document = |place: u64| {
        let (scope, first) = (place / each, place / each * each);
        let of_scope = keyed_hash(key, [scope, pass.view, 0]);
        first + Permutation::new(of_scope, each.min(n - first)).apply(place - first)
    };
    (0..n).map(document).collect()
}

/// The stream of a pass, value by value; each record is filled up to a multiple.
fn stream(lengths: &[u64], order: &[u64], eos: Option<i64>, multiple: u64) -> Vec<Piece> {
    let values = |record: &u64| {
        let (record, len) = (*record, lengths[*record as usize]);
        let ends = len + u64::from(eos.is_some());
        let span = move |start| Span { record, start, len: 1 };
        let own = (0..len).map(move |start| Piece::Read(span(start)));
        let filled = (ends..ends.next_multiple_of(multiple)).map(move |start| Piece::Fill(span(start)));
        own.chain(eos.map(Piece::Value)).chain(filled)
    };
    order.iter().flat_map(values).collect()
}

fn pieces(view: &dyn View, sample: u64, pass: Pass) -> Vec<Piece> {
    let mut pieces = Vec::new();
    view.pieces(sample, pass.draw(sample), &mut pieces).unwrap();
    pieces
}

fn single(pieces: &[Piece]) -> Vec<Piece> {
    let values = |piece: &Piece| match *piece {
        Piece::Read(span) => (span.start..span.start + span.len)
            .map(|start| Piece::Read(Span { start, len: 1, ..span }))
            .collect(),
        Piece::Fill(span) => (span.start..span.start + span.len)
            .map(|start| Piece::Fill(Span { start, len: 1, ..span }))
            .collect(),
        value @ Piece::Value(_) => vec![value],
    };
    pieces.iter().flat_map(values).collect()
}

/// What holds for every view in every pass: the inverse, and the coverage but for padding. `is_exact`: a record's samples are all of a
/// range.
fn check(view: &dyn View, lengths: &[u64], pass: Pass, is_exact: bool) {
    let (mut seen, mut readers) = (BTreeMap::<(u64, u64), u64>::new(), vec![BTreeSet::new(); lengths.len()]);
    for sample in 0..view.len() {
        for piece in pieces(view, sample, pass) {
            let Piece::Read(span) = piece else { continue };
            assert!(span.len > 0 && span.start + span.len <= lengths[span.record as usize]);
            readers[span.record as usize].insert(sample);
            for value in span.start..span.start + span.len {
                *seen.entry((span.record, value)).or_default() += 1;
            }
        }
    }
    for (record, readers) in (0..).zip(&readers) {
        let found: BTreeSet<u64> = view.samples_of(record, pass).unwrap().collect();
        assert!(
            found.is_superset(readers) && (!is_exact || found == *readers),
            "{record}: {found:?} {readers:?}"
        );
    }
    let used = seen.len() as u64;
    let expected = Coverage {
        used,
        repeated: seen.values().sum::<u64>() - used,
        padded: view.coverage(pass).unwrap().padded,
        unseen: lengths.iter().sum::<u64>() - used,
        skipped_records: readers.iter().filter(|readers| readers.is_empty()).count() as u64,
    };
    assert_eq!(view.coverage(pass).unwrap(), expected, "{} {pass:?}", view.describe());
    assert!(view.samples_of(lengths.len() as u64, pass).is_err());
    assert!(view.pieces(view.len(), pass.draw(0), &mut Vec::new()).is_err());
}

/// What holds for bins: each record takes positions up to a multiple, and what no value fills is padding.
fn check_filled(view: &Bins, pass: Pass, (length, multiple): (u64, u64), is_next: bool) {
    let mut filled = 0;
    for sample in 0..view.len() {
        let pieces = pieces(view, sample, pass);
        let mut at = 0;
        for (i, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Read(span) => {
                    assert_eq!(at % multiple, 0, "row {sample}: {pieces:?}");
                    // The value after the last position is only a label.
                    let len = if is_next && span.len > length { length } else { span.len };
                    (at, filled) = (at + len, filled + len);
                }
                Piece::Fill(span) => {
                    let Some(Piece::Read(read)) = pieces.get(i.wrapping_sub(1)) else { panic!("{pieces:?}") };
                    assert!((1..multiple).contains(&span.len), "{pieces:?}");
                    assert_eq!((span.record, span.start), (read.record, read.start + read.len));
                    at += span.len;
                }
                Piece::Value(_) => panic!("{pieces:?}"),
            }
        }
        assert!(at <= length && at % multiple == 0, "row {sample}: {pieces:?}");
    }
    assert_eq!(view.coverage(pass).unwrap().padded, view.len() * length - filled, "{}", view.describe());
}

/// Lengths that say that they are equal, where they are.
#[derive(Clone, Debug)]
struct Told(Vec<u64>, bool);

impl Lengths for Told {
    fn len(&self) -> u64 {
        Lengths::len(&self.0)
    }
    fn length(&self, record: u64) -> Result<u64> {
        self.0.length(record)
    }
    fn uniform(&self) -> Option<u64> {
        self.1.then_some(self.0[0])
    }
}

fn lengths() -> impl proptest::strategy::Strategy<Value = Told> {
    let uneven = prop::collection::vec(prop_oneof![3 => 0..5u64, 2 => 0..40u64], 2..90);
    let even = (0..12u64, 2..50usize).prop_map(|(len, n)| vec![len; n]);
    prop_oneof![
        3 => uneven.prop_map(|list| Told(list, false)),
        1 => even.clone().prop_map(|list| Told(list, true)),
        1 => even.prop_map(|list| Told(list, false)),
    ]
}

fn passes() -> impl proptest::strategy::Strategy<Value = Pass> {
    (any::<u64>(), 0..5u64, 0..3u64, 0..3u64).prop_map(|(seed, epoch, pass, view)| Pass {
        seed,
        epoch,
        pass,
        view,
    })
}

proptest! {
    #[test]
    fn packs_are_the_stream_of_their_pass(
        told in lengths(), length in 1..20u64, eos in prop::option::of(-2..9i64), is_next: bool,
        scope in prop::option::of(1..60u64), pass in passes(), multiple in prop_oneof![Just(1u64), 1..7u64],
    ) {
        let length = length * multiple;
        let list = told.0.clone();
        let n = list.len() as u64;
        let row = RowLength::filled(length, multiple);
        let stored = match is_next {
            true => Pack::new(Arc::new(told.clone()), row, eos),
            false => Pack::apart(Arc::new(told.clone()), row, eos),
        }.unwrap();
        let view = Pack::reshuffled(Arc::new(told), row, eos, is_next, scope).unwrap();
        let in_order: Vec<u64> = (0..n).collect();
        let shared = u64::from(is_next);
        for pass in [pass, Pass { epoch: pass.epoch + 1, ..pass }] {
            for (view, order) in [(&view, &order(n, scope, pass)), (&stored, &in_order)] {
                let stream = stream(&list, order, eos, multiple);
                prop_assert_eq!(view.len(), (stream.len() as u64).saturating_sub(shared) / length);
                let mut padded = 0;
                for sample in 0..view.len() {
                    let start = (sample * length) as usize;
                    let expected = &stream[start..start + (length + shared) as usize];
                    prop_assert_eq!(single(&pieces(view, sample, pass)), expected);
                    let inputs = &expected[..length as usize];
                    padded += inputs.iter().filter(|piece| matches!(piece, Piece::Fill(_))).count() as u64;
                }
                prop_assert_eq!(view.coverage(pass).unwrap().padded, padded);
                check(view, &list, pass, true);
            }
        }
    }

    #[test]
    fn bins_keep_their_shape_and_hold_each_record_once(
        told in lengths(), length in 1..30u64, is_next: bool, scope in prop::option::of(1..60u64), pass in passes(),
        strategy in prop::sample::select(&[Strategy::BestFit, Strategy::FirstFit][..]),
        overlong in prop::sample::select(&[Overlong::Cut, Overlong::Split, Overlong::Drop][..]),
        multiple in prop_oneof![Just(1u64), 1..7u64],
    ) {
        let length = length * multiple;
        let list = told.0.clone();
        let row = RowLength::filled(length, multiple);
        let stored = Bins::with(Arc::new(told.clone()), row, strategy, overlong, scope, is_next).unwrap();
        check_filled(&stored, pass, (length, multiple), is_next);
        let view = Bins::reshuffled(Arc::new(told), row, strategy, overlong, scope, is_next).unwrap();
        check_filled(&view, pass, (length, multiple), is_next);
        let n_segments = |pass| -> Vec<usize> {
            let reads = |piece: &&Piece| matches!(piece, Piece::Read(_));
            (0..view.len()).map(|sample| pieces(&view, sample, pass).iter().filter(reads).count()).collect()
        };
        prop_assert_eq!(n_segments(pass), n_segments(Pass { epoch: 9, ..pass }), "rows hold as many in each pass");
        let most = n_segments(pass).into_iter().max().unwrap_or(0);
        prop_assert_eq!(view.max_segments(), if most == 1 { view.max_segments().min(1) } else { most as u64 });
        for sample in 0..view.len() {
            // The value after the last input is only a label.
            let labels = u64::from(is_next && overlong != Overlong::Drop);
            let taken: u64 = pieces(&view, sample, pass).iter().map(Piece::len).sum();
            prop_assert!(taken <= length + labels, "row {} takes {} positions", sample, taken);
        }
        check(&view, &list, pass, overlong != Overlong::Split);
        if let Some(scope) = scope.filter(|_| !view.describe().contains("split")) {
            for sample in 0..view.len() {
                let scopes: BTreeSet<u64> = pieces(&view, sample, pass).iter().filter_map(|piece| match piece {
                    Piece::Read(span) => Some(span.record / scope),
                    Piece::Value(_) | Piece::Fill(_) => None,
                }).collect();
                let is_even = list.iter().all(|len| *len == list[0]);
                prop_assert!(scopes.len() <= 1 || is_even, "row {} holds records of scopes {:?}", sample, scopes);
            }
        }
    }
}

#[test]
fn an_order_of_many_documents_is_the_same_by_sums_and_by_arithmetic() {
    // More than one piece of the work, and of more than one scope.
    let n = 150_000;
    let pass = Pass { seed: 3, epoch: 4, ..Pass::default() };
    let even = Pack::reshuffled(Arc::new(Told(vec![7; n], true)), 64, Some(0), true, None).unwrap();
    let summed = Pack::reshuffled(Arc::new(Told(vec![7; n], false)), 64, Some(0), true, None).unwrap();
    assert!(!even.has_preparation() && summed.has_preparation());
    for sample in (0..even.len()).step_by(97) {
        assert_eq!(pieces(&even, sample, pass), pieces(&summed, sample, pass), "sample {sample}");
    }
    assert_eq!(even.coverage(pass).unwrap(), summed.coverage(pass).unwrap());
    for record in (0..n as u64).step_by(991) {
        assert_eq!(even.samples_of(record, pass).unwrap(), summed.samples_of(record, pass).unwrap());
    }
}

/// A length that needs eight bytes: then none are kept, and each is asked for when it is needed.
const LONG: u64 = 1 << 33;

#[test]
fn threads_that_need_the_same_pass_share_its_work() {
    /// Counts how often it is asked for lengths in bulk.
    struct Counting(Vec<u64>, AtomicU64);
    impl Lengths for Counting {
        fn len(&self) -> u64 {
            Lengths::len(&self.0)
        }
        fn length(&self, record: u64) -> Result<u64> {
            self.0.length(record)
        }
        fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
            self.1.fetch_add(out.len() as u64, Ordering::Relaxed);
            self.0.lengths(first, out)
        }
    }
    let n = 300_000;
    let short: Vec<u64> = (0..n).map(|i| i % 9).collect();
    let lengths = Arc::new(Counting(short.clone(), AtomicU64::new(0)));
    let kept = Pack::reshuffled(lengths.clone(), 64, None, true, None).unwrap();
    pieces(&kept, 999, Pass::default());
    assert_eq!(lengths.1.load(Ordering::Relaxed), n, "short ones are kept");
    let with_long = [&[LONG], &short[1..]].concat();
    let lengths = Arc::new(Counting(with_long, AtomicU64::new(0)));
    let view = Pack::reshuffled(lengths.clone(), 64, None, true, None).unwrap();
    let at_first = lengths.1.swap(0, Ordering::Relaxed);
    assert_eq!(at_first, n);
    let pass = Pass { seed: 1, ..Pass::default() };
    let all: Vec<Vec<Piece>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| pieces(&view, 999, pass))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(all.iter().all(|found| *found == all[0]));
    assert_eq!(lengths.1.load(Ordering::Relaxed), n, "each length is added up once");
    // What was prepared is not made again.
    let next = Pass { epoch: 1, ..pass };
    view.prepare(next, &|| true).unwrap();
    pieces(&view, 0, next);
    pieces(&view, 0, pass);
    assert_eq!(lengths.1.load(Ordering::Relaxed), 2 * n);
    // What is not wanted any more is left, and made by whoever needs it.
    let later = Pass { epoch: 2, ..pass };
    view.prepare(later, &|| false).unwrap();
    assert_eq!(lengths.1.load(Ordering::Relaxed), 2 * n);
    pieces(&view, 0, later);
    assert_eq!(lengths.1.load(Ordering::Relaxed), 3 * n);
}

#[test]
fn a_length_that_cannot_be_read_is_an_error_of_each_pass_and_others_go_on() {
    /// Fails once it is told to.
    struct Failing(Vec<u64>, AtomicU64);
    impl Lengths for Failing {
        fn len(&self) -> u64 {
            Lengths::len(&self.0)
        }
        fn length(&self, record: u64) -> Result<u64> {
            match self.1.load(Ordering::Relaxed) {
                0 => self.0.length(record),
                _ => Err(Error::corrupt("an index that is gone").record(record)),
            }
        }
    }
    let all = (0..1000).map(|i| if i == 500 { LONG } else { 1 + i % 9 });
    let lengths = Arc::new(Failing(all.collect(), AtomicU64::new(0)));
    for scope in [None, Some(100)] {
        lengths.1.store(0, Ordering::Relaxed);
        let view = Pack::reshuffled(lengths.clone(), 8, None, true, scope).unwrap();
        lengths.1.store(1, Ordering::Relaxed);
        let read = || view.pieces(3, Draw::new(0, 0, 0, 3), &mut Vec::new());
        assert_eq!([read(), read()].map(|read| read.unwrap_err().kind()), [Kind::Corrupt; 2]);
        lengths.1.store(0, Ordering::Relaxed);
        read().unwrap();
    }
}

#[test]
fn lengths_that_changed_are_an_error_and_no_panic() {
    struct Growing(AtomicU64);
    impl Lengths for Growing {
        fn len(&self) -> u64 {
            500
        }
        fn length(&self, record: u64) -> Result<u64> {
            Ok(self.0.load(Ordering::Relaxed) + record % 2)
        }
    }
    for scope in [None, Some(60)] {
        for then in [0, 4, u64::MAX - 1] {
            let lengths = Arc::new(Growing(AtomicU64::new(LONG)));
            let view = Pack::reshuffled(lengths.clone(), 8, Some(0), true, scope).unwrap();
            lengths.0.store(then, Ordering::Relaxed);
            for sample in (0..view.len()).step_by(view.len() as usize / 500) {
                let error = view.pieces(sample, Draw::new(0, 0, 0, sample), &mut Vec::new()).unwrap_err();
                assert_eq!(error.kind(), Kind::Corrupt);
            }
        }
    }
}

#[test]
fn what_cannot_be_put_in_another_order_is_refused() {
    let pack =
        |lengths: Vec<u64>, scope| Pack::reshuffled(Arc::new(lengths), 4, None, true, scope).err().unwrap();
    for lengths in [vec![], vec![90]] {
        let error = pack(lengths.clone(), None);
        assert_eq!(error.kind(), Kind::Config);
        assert!(error.hint_text().unwrap().contains(".document_eos(ID)"), "{error:#}");
        let bins = Bins::reshuffled(Arc::new(lengths), 4, Strategy::BestFit, Overlong::Cut, None, true);
        assert_eq!(bins.err().unwrap().kind(), Kind::Config);
    }
    assert!(pack(vec![9, 9], Some(0)).message().contains("scope is 0"));
    assert_eq!(pack(vec![u64::MAX, 9], None).kind(), Kind::Corrupt);
}

#[test]
fn plans_name_the_order() {
    let pack = |scope, eos, is_next| {
        Pack::reshuffled(Arc::new(vec![3, 4, 5]), 4, eos, is_next, scope).unwrap().describe()
    };
    assert_eq!(pack(None, Some(2), true), "pack(length=4,eos=2,reshuffle=docs-v1)");
    assert_eq!(pack(Some(2), None, false), "pack(length=4,eos=none,apart,reshuffle=docs-v1(scope=2))");
    let bins = |scope| {
        Bins::reshuffled(Arc::new(vec![3, 4, 5]), 8, Strategy::BestFit, Overlong::Split, scope, true)
            .unwrap()
            .describe()
    };
    assert_eq!(bins(None), "bins(length=8,strategy=best_fit,overlong=split,reshuffle=docs-v1)");
    assert_eq!(bins(Some(2)), "bins(length=8,strategy=best_fit,overlong=split,scope=2,reshuffle=docs-v1)");
}

/// Neighbours in the stream of one epoch that are neighbours again in the next.
fn kept_in_pack(n: u64, scope: Option<u64>) -> f64 {
    let (mut kept, mut all) = (0, 0);
    for epoch in 0..5 {
        let pairs = |epoch| -> BTreeSet<(u64, u64)> {
            let order = order(n, scope, Pass { seed: n, epoch, ..Pass::default() });
            order.windows(2).map(|pair| (pair[0].min(pair[1]), pair[0].max(pair[1]))).collect()
        };
        let (before, after) = (pairs(epoch), pairs(epoch + 1));
        (kept, all) = (kept + before.intersection(&after).count(), all + before.len());
    }
    kept as f64 / all as f64
}

#[test]
fn few_neighbours_stay_neighbours() {
    // Of 100 documents 2 % do so by chance; in one order of two, as documents follow each other, half of it.
    for (n, scope, most) in [
        (100, None, 0.04),
        (1_000, None, 0.01),
        (100_000, None, 0.001),
        (100_000, Some(256), 0.01),
        (100_000, Some(4096), 0.001),
    ] {
        let kept = kept_in_pack(n, scope);
        assert!(kept < most, "{n} documents, scope {scope:?}: {kept}");
    }
}

#[test]
fn few_documents_of_bins_share_a_row_again_at_hardly_more_rows() {
    // Lengths as of chats: their logarithm is spread as usual.
    let lengths: Vec<u64> = (0..10_000u64)
        .map(|i| {
            let unit = |of: u64| (keyed_hash(8, [i, of, 0]) >> 11) as f64 / (1u64 << 53) as f64;
            let normal = (-2.0 * (1.0 - unit(0)).ln()).sqrt() * (std::f64::consts::TAU * unit(1)).cos();
            (400.0 * normal.exp()) as u64 + 1
        })
        .collect();
    let lengths = Arc::new(lengths);
    for length in [2048, 8192] {
        let plain = Bins::apart(lengths.clone(), length, Strategy::BestFit).unwrap();
        let view =
            Bins::reshuffled(lengths.clone(), length, Strategy::BestFit, Overlong::Cut, None, false).unwrap();
        let more = view.len() as f64 / plain.len() as f64 - 1.0;
        assert!(more < 0.015, "{more} more rows of {length}");
        let pairs = |epoch| -> BTreeSet<(u64, u64)> {
            let pass = Pass { epoch, ..Pass::default() };
            (0..view.len())
                .flat_map(|sample| {
                    let records: Vec<u64> = pieces(&view, sample, pass)
                        .iter()
                        .filter_map(|piece| match piece {
                            Piece::Read(span) => Some(span.record),
                            Piece::Value(_) | Piece::Fill(_) => None,
                        })
                        .collect();
                    records
                        .windows(2)
                        .map(|pair| (pair[0].min(pair[1]), pair[0].max(pair[1])))
                        .collect::<Vec<_>>()
                })
                .collect()
        };
        let (mut kept, mut all) = (0, 0);
        for epoch in 0..5 {
            let (before, after) = (pairs(epoch), pairs(epoch + 1));
            (kept, all) = (kept + before.intersection(&after).count(), all + before.len());
        }
        assert!((kept as f64) < 0.01 * all as f64, "{kept} of {all} pairs in rows of {length}");
    }
}

fn feed(lengths: &[u64]) -> Feed {
    let toy = Arc::new(Toy::tokens(lengths));
    let collate = NextToken::new(toy.schema(), 4, None, false, 0).unwrap();
    let view = Pack::reshuffled(toy.clone(), 4, None, true, None).unwrap();
    Feed::new(toy, Arc::new(view), Arc::new(collate))
}

fn plan(seed: u64) -> Arc<Plan> {
    let feed = feed(&(0..60).map(|i| i % 7 + 1).collect::<Vec<_>>());
    let order: Arc<dyn Sampler> = Arc::new(Shuffle::new(feed.len(), seed));
    Arc::new(Plan::new(vec![feed], order, seed).unwrap())
}

// Two parts, the smaller of which is gone through several times an epoch.
fn mixed(seed: u64) -> Arc<Plan> {
    let feeds = vec![feed(&[5, 9, 4, 8, 6]), feed(&(0..70).map(|i| i % 5 + 2).collect::<Vec<_>>())];
    let parts = [(feeds[0].len(), 0.5), (feeds[1].len(), 0.5)];
    let mix = Mix::new(&parts, true, seed, Stop::All).unwrap();
    Arc::new(Plan::new(feeds, Arc::new(mix), seed).unwrap())
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

fn rows(loader: &mut Loader, most: usize) -> Vec<Vec<i64>> {
    let batches = loader.take(most).map(|batch| batch.unwrap().get::<i64>("input_ids").unwrap().to_vec());
    batches.flat_map(|batch| batch.chunks(4).map(<[i64]>::to_vec).collect::<Vec<_>>()).collect()
}

#[test]
fn a_run_is_the_same_for_any_threads_and_ranks_and_places_where_it_resumes() {
    for plan in [plan(5), mixed(5)] {
        let whole = rows(&mut Loader::new(plan.clone(), &options(6, 0, 1, 0)).unwrap(), usize::MAX);
        assert_eq!(rows(&mut Loader::new(plan.clone(), &options(6, 0, 1, 4)).unwrap(), usize::MAX), whole);
        for stop in [1, 7, 20, 31] {
            let mut before = Loader::new(plan.clone(), &options(6, 0, 1, 2)).unwrap();
            let first = rows(&mut before, stop);
            let mut after: Vec<Loader> =
                (0..3).map(|rank| Loader::new(plan.clone(), &options(6, rank, 3, 1)).unwrap()).collect();
            after.iter_mut().for_each(|loader| loader.resume(&before.state()).unwrap());
            let mut joined = first;
            loop {
                let step: Vec<_> = after.iter_mut().flat_map(|loader| rows(loader, 1)).collect();
                if step.is_empty() {
                    break;
                }
                joined.extend(step);
            }
            assert_eq!(joined, whole, "stopped after {stop} steps");
        }
    }
}

#[test]
fn what_a_position_read_is_traced_and_each_reader_of_a_record_is_found() {
    for plan in [plan(2), mixed(2)] {
        for epoch in 0..2 {
            let n = plan.sampler().len(epoch).unwrap();
            let mut readers = BTreeMap::<(usize, u64), BTreeSet<u64>>::new();
            for position in 0..n {
                let traced = plan.trace(epoch, position).unwrap();
                let pass = Pass { seed: 2, epoch, pass: traced.pass, view: traced.feed as u64 };
                assert_eq!(traced.pieces, pieces(plan.feeds()[traced.feed].view(), traced.sample, pass));
                for span in traced.spans {
                    readers.entry((traced.feed, span.record)).or_default().insert(position);
                }
            }
            for (feed, from) in (0..).zip(plan.feeds()) {
                for record in 0..from.numbers() {
                    let found: BTreeSet<u64> = plan
                        .find(feed, record, epoch, 1000)
                        .unwrap()
                        .iter()
                        .map(|found| found.position)
                        .collect();
                    let expected = readers.get(&(feed, record)).cloned().unwrap_or_default();
                    assert_eq!(found, expected, "record {record} of view {feed} in epoch {epoch}");
                    assert_eq!(plan.find(feed, record, epoch, 1).unwrap().len(), found.len().min(1));
                }
            }
        }
    }
}

#[test]
fn a_part_that_rests_for_ever_has_no_passes_to_search() {
    let feeds = vec![feed(&[5, 9, 4, 8, 6]), feed(&[7, 3, 9])];
    let part = |feed: &Feed| MixPart {
        of: PartOf::Samples { len: feed.len(), order: Order::Shuffle },
        weight: 1.0,
        most_passes: None,
    };
    let options = MixOptions {
        parts: feeds.iter().map(part).collect(),
        stop: Stop::Never,
        phases: vec![Phase { start: 60, weights: vec![1.0, 0.0] }],
        rows: None,
    };
    let plan = Plan::new(feeds, Arc::new(Mix::of(&options, 1).unwrap()), 1).unwrap();
    let found = plan.find(1, 0, 0, 1000).unwrap();
    assert!(!found.is_empty() && found.iter().all(|found| found.position < 60), "{found:?}");
    assert_eq!(plan.find(0, 0, 0, 1000).unwrap().len(), 1000, "the other part never ends");
}

#[test]
fn the_next_pass_is_prepared_once_this_one_is_under_way() {
    let at = |epoch, samples| Cursor::at(epoch, samples);
    let alone = plan(9);
    let n = alone.sampler().len(0).unwrap();
    let pass = |epoch, pass, view| Pass { seed: 9, epoch, pass, view };
    assert!(alone.has_preparation());
    assert_eq!(alone.passes_to_prepare(at(0, n / 8 - 1), None), []);
    assert_eq!(alone.passes_to_prepare(at(0, n / 8), None), [pass(1, 0, 0)]);
    assert_eq!(alone.passes_to_prepare(at(4, n), Some(6)), [pass(5, 0, 0)]);
    assert_eq!(alone.passes_to_prepare(at(5, n), Some(6)), [], "there is no epoch after it");
    let both = mixed(9);
    let (first, all) = (both.feeds()[0].len(), both.sampler().len(0).unwrap());
    // Each part has every second turn: the first one is in its second pass, the other one in its only one.
    let later = both.passes_to_prepare(at(0, 2 * first + 4), None);
    assert_eq!(later, [pass(0, 2, 0), pass(1, 0, 1)]);
    assert_eq!(both.passes_to_prepare(at(0, all), None), [pass(1, 0, 0), pass(1, 0, 1)]);
    // It is a hint: nothing is there of a view that does not exist.
    both.prepare(pass(0, 0, 7), &|| true).unwrap();
}
