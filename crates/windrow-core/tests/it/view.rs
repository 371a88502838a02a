//! Views against slow and simple oracles: what a sample reads, who reads a record, what an epoch sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use windrow_core::view::{
    Bins, Coverage, Crop, Cursor, Mode, Overlong, Pack, Records, Segments, Strategy, Tail, View, Windows,
};
use windrow_core::{Draw, Error, Kind, Lengths, Pass, Piece, Result, Span};

use super::alone::{alone, most_memory};

/// Lengths that say that they are equal, where they are.
#[derive(Debug)]
struct Known(Vec<u64>, bool);

impl Lengths for Known {
    fn len(&self) -> u64 {
        Lengths::len(&self.0)
    }
    fn length(&self, record: u64) -> Result<u64> {
        self.0.length(record)
    }
    fn uniform(&self) -> Option<u64> {
        let first = self.0.first()?;
        (self.1 && self.0.iter().all(|len| len == first)).then_some(*first)
    }
}

/// The pass that samples are of.
const PASS: Pass = Pass { seed: 7, epoch: 1, pass: 0, view: 0 };

fn all_pieces(view: &dyn View) -> Vec<Vec<Piece>> {
    let pieces = |sample| {
        let mut out = Vec::new();
        view.pieces(sample, PASS.draw(sample), &mut out).unwrap();
        out
    };
    (0..view.len()).map(pieces).collect()
}

fn span(record: usize, start: u64, len: u64) -> Piece {
    Piece::Read(Span { record: record as u64, start, len })
}

fn lengths() -> impl proptest::strategy::Strategy<Value = Known> {
    let uneven = prop::collection::vec(prop_oneof![3 => 0..5u64, 2 => 0..40u64], 0..14);
    let even = (0..12u64, 0..20usize).prop_map(|(len, n)| vec![len; n]);
    (prop_oneof![3 => uneven, 1 => even], any::<bool>()).prop_map(|(list, known)| Known(list, known))
}

/// What holds for every view: pieces lie in their records, hold something, the inverse is exact, the coverage is what
/// the pieces say. `padded` is given: each view counts it its own way.
fn check(view: &dyn View, lengths: &[u64], padded: u64) {
    let samples = all_pieces(view);
    let mut seen = BTreeMap::<(u64, u64), u64>::new();
    let mut readers = vec![Vec::new(); lengths.len()];
    for (sample, pieces) in samples.iter().enumerate() {
        for piece in pieces {
            assert!(!piece.is_empty());
            let Piece::Read(span) = piece else { continue };
            assert!(span.start + span.len <= lengths[span.record as usize]);
            readers[span.record as usize].push(sample as u64);
            for value in span.start..span.start + span.len {
                *seen.entry((span.record, value)).or_default() += 1;
            }
        }
    }
    for (record, readers) in readers.iter_mut().enumerate() {
        readers.dedup();
        let inverse = view.samples_of(record as u64, PASS).unwrap();
        assert_eq!(inverse.collect::<Vec<_>>(), *readers, "record {record} in {}", view.describe());
    }
    let used = seen.len() as u64;
    let expected = Coverage {
        used,
        repeated: seen.values().sum::<u64>() - used,
        padded,
        unseen: lengths.iter().sum::<u64>() - used,
        skipped_records: readers.iter().filter(|r| r.is_empty()).count() as u64,
    };
    assert_eq!(view.coverage(PASS).unwrap(), expected, "{}", view.describe());
    assert!(view.pieces(view.len(), Draw::new(0, 0, 0, 0), &mut Vec::new()).is_err());
    assert!(view.samples_of(lengths.len() as u64, PASS).is_err());
}

fn values(pieces: &[Piece]) -> u64 {
    pieces.iter().map(Piece::len).sum()
}

fn without_label(view: &dyn View) -> u64 {
    all_pieces(view).iter().map(|p| view.positions() - values(p).saturating_sub(1)).sum()
}

proptest! {
    #[test]
    fn a_row_is_the_start_of_its_record(known in lengths(), length in 1..20u64) {
        let list = known.0.clone();
        let view = Records::new(Arc::new(known), length).unwrap();
        let rows = list.iter().enumerate().map(|(r, &len)| (len > 0).then(|| span(r, 0, len.min(length + 1))));
        prop_assert_eq!(all_pieces(&view), rows.map(|row| row.into_iter().collect::<Vec<_>>()).collect::<Vec<_>>());
        check(&view, &list, without_label(&view));
    }

    #[test]
    fn packs_are_the_joined_stream(known in lengths(), length in 1..20u64, eos in prop::option::of(-2..9i64)) {
        let list = known.0.clone();
        let view = Pack::new(Arc::new(known), length, eos).unwrap();
        let mut stream = Vec::new();
        for (record, &len) in list.iter().enumerate() {
            stream.extend((0..len).map(|value| span(record, value, 1)));
            stream.extend(eos.map(Piece::Value));
        }
        prop_assert_eq!(view.len(), (stream.len() as u64).saturating_sub(1) / length);
        let mut labels = 1;
        for (block, pieces) in all_pieces(&view).iter().enumerate() {
            let single: Vec<_> = pieces.iter().flat_map(|piece| match *piece {
                Piece::Read(s) => (s.start..s.start + s.len).map(|v| span(s.record as usize, v, 1)).collect(),
                value => vec![value],
            }).collect();
            let start = block * length as usize;
            prop_assert_eq!(&single[..], &stream[start..=start + length as usize]);
            // Every value but the stream's first is a label exactly once: labels follow each other without a gap.
            prop_assert_eq!(start + 1, labels);
            labels += length as usize;
            // One piece per stretch of a record.
            let mut records: Vec<_> = pieces.iter().filter_map(|p| match p {
                Piece::Read(s) => Some(s.record),
                Piece::Value(_) | Piece::Fill(_) => None,
            }).collect();
            let n = records.len();
            records.dedup();
            prop_assert_eq!(records.len(), n);
        }
        prop_assert!(stream.len() < labels + length as usize);
        check(&view, &list, 0);
    }

    #[test]
    fn a_cursor_moves_by_the_inputs_of_a_batch(
        known in lengths(), rows in 1..5u64, length in 1..6u64, rank in 0..3u64, more in 0..3u64,
    ) {
        let list = known.0.clone();
        let world_size = rank + 1 + more;
        let of = |(record, &len): (usize, &u64)| (0..len).map(move |value| (record as u64, value));
        let stream: Vec<(u64, u64)> = list.iter().enumerate().flat_map(of).collect();
        let part = stream.len() / world_size as usize;
        let start = rank as usize * part;
        let shard = if more == 0 { &stream[start..] } else { &stream[start..start + part] };
        let needed = (rows * (length + 1)) as usize;
        let made = Cursor::new(Arc::new(known), rows, length, (rank, world_size));
        prop_assert_eq!(made.is_ok(), shard.len() >= needed);
        let Ok(view) = made else { return Ok(()) };
        let mut expected = Vec::new();
        let mut cursor = 0;
        while cursor + needed <= shard.len() {
            expected.extend(shard[cursor..cursor + needed].chunks(length as usize + 1));
            cursor += (rows * length) as usize;
        }
        prop_assert_eq!(view.len(), expected.len() as u64);
        let mut seen = BTreeMap::<(u64, u64), u64>::new();
        for ((sample, pieces), row) in (0..).zip(all_pieces(&view)).zip(&expected) {
            let found: Vec<(u64, u64)> = pieces.iter().flat_map(|piece| match *piece {
                Piece::Read(s) => (s.start..s.start + s.len).map(|v| (s.record, v)).collect(),
                Piece::Value(_) | Piece::Fill(_) => Vec::new(),
            }).collect();
            prop_assert_eq!(&found[..], *row);
            for place in found {
                *seen.entry(place).or_default() += 1;
                prop_assert!(view.samples_of(place.0, PASS).unwrap().contains(&sample));
            }
        }
        let used = seen.len() as u64;
        let is_skipped = |record: &u64| seen.keys().all(|(seen, _)| seen != record);
        let coverage = Coverage {
            used,
            repeated: seen.values().sum::<u64>() - used,
            padded: 0,
            unseen: stream.len() as u64 - used,
            skipped_records: (0..list.len() as u64).filter(is_skipped).count() as u64,
        };
        prop_assert_eq!(view.coverage(PASS).unwrap(), coverage);
        prop_assert!(view.samples_of(list.len() as u64, PASS).is_err());
    }

    #[test]
    fn windows_slide_over_each_record(known in lengths(), width in 1..12u64, stride in 1..15u64, pad in any::<bool>()) {
        let list = known.0.clone();
        let tail = if pad { Tail::Pad } else { Tail::Drop };
        let view = Windows::new(Arc::new(known), width, stride, tail).unwrap();
        let mut expected = Vec::new();
        for (record, &len) in list.iter().enumerate().filter(|(_, len)| **len >= 2) {
            let mut start = 0;
            expected.push(vec![span(record, 0, len.min(width + 1))]);
            while start + stride + width < len {
                start += stride;
                expected.push(vec![span(record, start, width + 1)]);
            }
            let unlabelled = len > start + width + 1;
            if pad && unlabelled && start + stride + 2 <= len {
                expected.push(vec![span(record, start + stride, len - start - stride)]);
            }
        }
        prop_assert_eq!(all_pieces(&view), expected);
        check(&view, &list, without_label(&view));
    }

    #[test]
    fn a_crop_lies_within_its_record(known in lengths(), length in 1..20u64, random in any::<bool>()) {
        let list = known.0.clone();
        let view = Crop::new(Arc::new(known), length, if random { Mode::Random } else { Mode::Start }).unwrap();
        let crops = all_pieces(&view);
        for (record, (pieces, &len)) in crops.iter().zip(&list).enumerate() {
            prop_assert_eq!(values(pieces), len.min(length));
            prop_assert!(random || len == 0 || *pieces == [span(record, 0, len.min(length))]);
        }
        check(&view, &list, crops.iter().map(|p| length - values(p)).sum());
    }

    #[test]
    fn bins_hold_every_record_once(known in lengths(), length in 1..30u64, best in any::<bool>()) {
        let list = known.0.clone();
        let strategy = if best { Strategy::BestFit } else { Strategy::FirstFit };
        let view = Bins::new(Arc::new(known), length, strategy).unwrap();
        let bins = all_pieces(&view);
        let mut free = Vec::new();
        let mut held = vec![0; list.len()];
        let mut most = 0;
        for bin in &bins {
            let mut last = None;
            let mut left = length;
            for piece in bin {
                let Piece::Read(s) = *piece else { panic!("{piece:?}") };
                let all = list[s.record as usize];
                prop_assert_eq!((s.start, s.len), (0, all.min(length + 1)));
                prop_assert!(last < Some(s.record), "record order");
                last = Some(s.record);
                held[s.record as usize] += 1;
                left = left.checked_sub(all.min(length)).expect("no bin over its length");
            }
            most = most.max(bin.len() as u64);
            free.push(left);
        }
        prop_assert!(held.iter().zip(&list).all(|(&n, &len)| n == u64::from(len > 0)));
        prop_assert_eq!(view.max_segments(), most);
        prop_assert_eq!(bin_records(&bins), slow_bins(&list, length, best));
        let volume: u64 = list.iter().map(|len| (*len).min(length)).sum();
        prop_assert!(view.len() <= 2 * volume.div_ceil(length));
        check(&view, &list, free.iter().sum());
    }
}

proptest! {
    #[test]
    fn split_and_dropped_records_are_told(
        known in lengths(), length in 1..12u64, best in any::<bool>(), split in any::<bool>(),
        scope in prop::option::of(1..9u64), is_next in any::<bool>(),
    ) {
        let list = known.0.clone();
        let uniform = known.uniform().is_some();
        let strategy = if best { Strategy::BestFit } else { Strategy::FirstFit };
        let overlong = if split { Overlong::Split } else { Overlong::Drop };
        let view = Bins::with(Arc::new(known), length, strategy, overlong, scope, is_next).unwrap();
        let bins = all_pieces(&view);
        let mut seen = BTreeMap::<(u64, u64), u64>::new();
        let mut readers = vec![Vec::new(); list.len()];
        let (mut inputs, mut labels, mut last_scope) = (0, 0, 0);
        for (sample, bin) in (0..).zip(&bins) {
            let mut left = length;
            if let Some(records) = scope.filter(|_| !uniform) {
                let of = |piece: &Piece| match piece { Piece::Read(s) => s.record / records, _ => u64::MAX };
                prop_assert!(bin.iter().all(|piece| of(piece) == of(&bin[0])), "neighbours alone");
                prop_assert!(last_scope <= of(&bin[0]));
                last_scope = of(&bin[0]);
            }
            for piece in bin {
                let Piece::Read(s) = *piece else { panic!("{piece:?}") };
                let end = s.start + s.len;
                // A piece after which its record continues is a bin by itself, and ends with a label.
                let taken = if end - s.start > length { length } else { s.len };
                let continues = is_next && s.start + taken < list[s.record as usize];
                prop_assert_eq!(s.len, taken + u64::from(continues));
                prop_assert!(s.start % length == 0 && (taken == length || s.start + taken == list[s.record as usize]));
                left = left.checked_sub(taken).expect("no bin over its length");
                (inputs, labels) = (inputs + taken, labels + u64::from(continues));
                (s.start..s.start + taken).for_each(|value| *seen.entry((s.record, value)).or_default() += 1);
                readers[s.record as usize].push(sample);
            }
        }
        // Each value of what is not dropped is an input once.
        let kept = |len: u64| split || len <= length;
        prop_assert!(seen.values().all(|n| *n == 1));
        prop_assert_eq!(inputs, list.iter().filter(|len| kept(**len)).sum::<u64>());
        for (record, readers) in readers.iter().enumerate() {
            let found = view.samples_of(record as u64, PASS).unwrap();
            prop_assert!(readers.iter().all(|sample| found.contains(sample)));
            let ends = readers.first().map_or(0..0, |first| *first..readers[readers.len() - 1] + 1);
            prop_assert_eq!(ends, found);
        }
        prop_assert_eq!(view.coverage(PASS).unwrap(), Coverage {
            used: inputs,
            repeated: labels,
            padded: view.len() * length - inputs,
            unseen: list.iter().sum::<u64>() - inputs,
            skipped_records: list.iter().filter(|len| **len == 0 || !kept(**len)).count() as u64,
        });
        prop_assert_eq!(view.overlong(), list.iter().filter(|len| **len > length).count() as u64);
        prop_assert_eq!(view.max_segments(), bins.iter().map(Vec::len).max().unwrap_or(0) as u64);
    }
}

proptest! {
    #[test]
    fn segments_hold_every_pair_once(
        known in lengths(),
        length in 1..20u64,
        buckets in prop::collection::btree_set(1..20u64, 0..4),
    ) {
        let list = known.0.clone();
        let buckets: Vec<u64> = buckets.into_iter().filter(|b| *b <= length).collect();
        let view = Segments::new(Arc::new(known), length, &buckets).unwrap();
        let (rows, targets) = slow_segments(&list, length, &buckets);
        prop_assert_eq!(all_pieces(&view), rows.clone());
        prop_assert_eq!((0..view.len()).map(|row| view.target(row)).collect::<Vec<_>>(), targets.clone());
        let pairs = |row: &Vec<Piece>| row.iter().map(|piece| piece.len() - 1).sum::<u64>();
        // Every row but the last is full.
        prop_assert!(rows.iter().zip(&targets).rev().skip(1).all(|(row, target)| pairs(row) == *target));
        check(&view, &list, rows.iter().zip(&targets).map(|(row, target)| target - pairs(row)).sum());
    }
}

proptest! {
    #[test]
    fn cuts_apart_read_each_value_for_its_own_sake(
        known in lengths(), length in 1..12u64, stride in 1..15u64, pad in any::<bool>(), best in any::<bool>(),
    ) {
        let list = known.0.clone();
        let known: Arc<dyn Lengths> = Arc::new(known);
        let view = Records::apart(known.clone(), length).unwrap();
        let rows = all_pieces(&view);
        prop_assert!(rows.iter().zip(&list).all(|(row, len)| values(row) == *len.min(&length)));
        check(&view, &list, rows.iter().map(|row| length - values(row)).sum());

        let tail = if pad { Tail::Pad } else { Tail::Drop };
        let view = Windows::apart(known.clone(), length, stride, tail).unwrap();
        let mut expected = Vec::new();
        for (record, &len) in list.iter().enumerate().filter(|(_, len)| **len >= 1) {
            let mut start = 0;
            expected.push(vec![span(record, 0, len.min(length))]);
            while start + stride + length <= len {
                start += stride;
                expected.push(vec![span(record, start, length)]);
            }
            if pad && len > start + length && start + stride < len {
                expected.push(vec![span(record, start + stride, len - start - stride)]);
            }
        }
        prop_assert_eq!(all_pieces(&view), expected.clone());
        check(&view, &list, expected.iter().map(|row| length - values(row)).sum());

        let strategy = if best { Strategy::BestFit } else { Strategy::FirstFit };
        let view = Bins::apart(known.clone(), length, strategy).unwrap();
        let bins = all_pieces(&view);
        prop_assert_eq!(bin_records(&bins), slow_bins(&list, length, best));
        prop_assert!(bins.iter().all(|bin| values(bin) <= length));
        check(&view, &list, bins.iter().map(|bin| length - values(bin)).sum());

        // A record of one value more has as many pairs as this one has values.
        let longer: Vec<u64> = list.iter().map(|len| len + u64::from(*len > 0)).collect();
        for buckets in [&[][..], &[length], &[1, length]] {
            let view = Segments::apart(known.clone(), length, buckets).unwrap();
            let (rows, targets) = slow_segments(&longer, length, buckets);
            let shorter = |row: &Vec<Piece>| -> Vec<Piece> {
                row.iter().map(|piece| match *piece {
                    Piece::Read(s) => span(s.record as usize, s.start, s.len - 1),
                    value => value,
                }).collect()
            };
            let rows: Vec<_> = rows.iter().map(shorter).collect();
            prop_assert_eq!(all_pieces(&view), rows.clone());
            check(&view, &list, rows.iter().zip(&targets).map(|(row, target)| target - values(row)).sum());
        }
    }
}

/// Row by row, record by record, pair by pair; and the rows' lengths.
fn slow_segments(lengths: &[u64], length: u64, buckets: &[u64]) -> (Vec<Vec<Piece>>, Vec<u64>) {
    let (mut rows, mut targets) = (Vec::<Vec<Piece>>::new(), Vec::new());
    let mut free = 0;
    for (record, &len) in lengths.iter().enumerate() {
        let mut start = 0;
        while start + 1 < len {
            let left = len - 1 - start;
            if free == 0 {
                let fitting = buckets.iter().find(|b| **b >= left).or(buckets.last());
                free = *fitting.unwrap_or(&length);
                rows.push(Vec::new());
                targets.push(free);
            }
            let pairs = left.min(free);
            rows.last_mut().unwrap().push(span(record, start, pairs + 1));
            start += pairs;
            free -= pairs;
        }
    }
    (rows, targets)
}

fn bin_records(bins: &[Vec<Piece>]) -> Vec<Vec<usize>> {
    let records = |bin: &Vec<Piece>| {
        bin.iter()
            .filter_map(|p| if let Piece::Read(s) = p { Some(s.record as usize) } else { None })
            .collect()
    };
    bins.iter().map(records).collect()
}

/// Both strategies as their documentation has them, every bin looked at for every record.
fn slow_bins(lengths: &[u64], length: u64, best: bool) -> Vec<Vec<usize>> {
    let mut turns: Vec<usize> = (0..lengths.len()).filter(|&r| lengths[r] > 0).collect();
    if best {
        turns.sort_by_key(|&r| (u64::MAX - lengths[r].min(length), r));
    }
    // What is free, when it was filled last, and what is in it.
    let mut bins: Vec<(u64, usize, Vec<usize>)> = Vec::new();
    for (turn, record) in turns.into_iter().enumerate() {
        let size = lengths[record].min(length);
        let fits = (0..bins.len()).filter(|&b| bins[b].0 >= size);
        let found = if best { fits.min_by_key(|&b| (bins[b].0, usize::MAX - bins[b].1)) } else { fits.min() };
        let bin = found.unwrap_or_else(|| {
            bins.push((length, 0, Vec::new()));
            bins.len() - 1
        });
        bins[bin].0 -= size;
        bins[bin].1 = turn;
        bins[bin].2.push(record);
    }
    bins.into_iter()
        .map(|(_, _, mut records)| {
            records.sort_unstable();
            records
        })
        .collect()
}

#[test]
fn window_counts_follow_the_formula_at_its_edges() {
    let (width, stride) = (16u64, 5u64);
    for (len, drop, pad) in [
        (0, 0, 0),
        (1, 0, 0),
        (2, 1, 1),
        (width, 1, 1),
        (width + 1, 1, 1),
        (width + 2, 1, 2),
        (width + stride, 1, 2),
        (width + 1 + stride, 2, 2),
        (width + 2 + stride, 2, 3),
        (width + 1 + 2 * stride, 3, 3),
    ] {
        let count = |tail| Windows::new(Arc::new(vec![len, len + 1, 0]), width, stride, tail).unwrap();
        let of_first = |tail| count(tail).samples_of(0, PASS).unwrap();
        assert_eq!((of_first(Tail::Drop), of_first(Tail::Pad)), (0..drop, 0..pad), "length {len}");
    }
}

#[test]
fn a_million_records_fill_bins_close_to_their_volume() {
    // A spread of lengths without a generator: most short, some long.
    let list: Vec<u64> = (0..1_000_000u64).map(|i| 1 + (i * 2_654_435_761 % 4_093) * (i % 7) / 6).collect();
    let volume: u64 = list.iter().map(|len| len.min(&2_048)).sum();
    let source: Arc<dyn Lengths> = Arc::new(list);
    for (strategy, most) in [(Strategy::BestFit, 1.02), (Strategy::FirstFit, 1.10)] {
        let view = Bins::new(source.clone(), 2_048, strategy).unwrap();
        let ratio = view.len() as f64 / volume.div_ceil(2_048) as f64;
        assert!(ratio < most, "{}: {ratio}", view.describe());
        let c = view.coverage(PASS).unwrap();
        assert_eq!((view.len() * 2_048 - c.padded, c.skipped_records), (volume, 0));
    }
}

#[test]
fn segments_of_nearly_all_positions_are_counted() {
    let lengths: Vec<u64> = vec![1 << 63, 1 << 62];
    let coverage = Segments::new(Arc::new(lengths), 1, &[]).unwrap().coverage(PASS).unwrap();
    // Each record's values but its ends are a label and an input.
    assert_eq!(coverage.repeated, (1 << 63) - 2 + (1 << 62) - 2);
}

/// Three billion records, of which two are there: the third is refused.
struct Claims;

impl Lengths for Claims {
    fn len(&self) -> u64 {
        3_000_000_000
    }
    fn length(&self, record: u64) -> Result<u64> {
        if record < 2 { Ok(5 + record) } else { Err(Error::corrupt("there are 2 records").record(record)) }
    }
}

#[test]
fn records_that_are_only_claimed_take_no_memory() {
    alone("view::records_that_are_only_claimed_take_no_memory", |_| {
        let claims = || -> Arc<dyn Lengths> { Arc::new(Claims) };
        let bins = |strategy| move |claims| Bins::new(claims, 8, strategy).map(drop);
        type Make<'m> = &'m dyn Fn(Arc<dyn Lengths>) -> Result<()>;
        let views: [(&str, Make<'_>); 5] = [
            ("pack", &|claims| Pack::new(claims, 4, Some(0)).map(drop)),
            ("windows", &|claims| Windows::new(claims, 4, 1, Tail::Drop).map(drop)),
            ("segments", &|claims| Segments::new(claims, 4, &[4]).map(drop)),
            ("bins, best fit", &bins(Strategy::BestFit)),
            ("bins, first fit", &bins(Strategy::FirstFit)),
        ];
        for (name, view) in views {
            let (error, memory) = most_memory(|| view(claims()).err().unwrap());
            assert_eq!((error.kind(), error.place().record), (Kind::Corrupt, Some(2)), "{name}");
            assert!(memory < 16 << 20, "{name}: {memory}");
        }
    });
}
