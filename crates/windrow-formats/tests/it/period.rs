//! Parts of records in time.

use std::sync::Arc;

use tempfile::TempDir;
use windrow_core::format::Options;
use windrow_core::source::{
    Apart, Border, Per, Period, Scale, Scaled, Scaling, SharedSource, Source, conformance,
};
use windrow_core::{Kind, Lengths, Span};

use super::alone::alone;
use super::disk::open_with;
use super::folder::folder_of;

// Two channels, as GluonTS writes them: `[C, T]`.
fn series() -> (TempDir, SharedSource) {
    let channel = |n: u64, by: f64| (0..n).map(|x| (x as f64 * by).to_string()).collect::<Vec<_>>().join(",");
    let line = |n: u64| {
        format!("{{\"start\":\"2021\",\"target\":[[{}],[{}]]}}\n", channel(n, 0.5), channel(n, -3.0))
    };
    let folder = folder_of(&[("series.jsonl", [20, 1, 9].map(line).concat().into_bytes())]);
    let source = open_with(&folder.path().join("series.jsonl"), &Options::default()).unwrap();
    (folder, source)
}

#[test]
fn a_part_is_a_source_like_any_other() {
    alone("period::a_part_is_a_source_like_any_other", |_| parts());
}

fn parts() {
    let (_folder, whole) = series();
    for (from, to, before) in [(0.0, 0.7, 0), (0.7, 0.8, 0), (0.7, 0.8, 3), (0.5, 1.0, 100)] {
        let part = Period::new(whole.clone(), from, to, before).unwrap();
        conformance::check(&part).unwrap();
        for record in 0..whole.len() {
            let all = whole.length(record).unwrap();
            let [start, end] = [from, to].map(|fraction| (all as f64 * fraction) as u64);
            let start = start.saturating_sub(before);
            assert_eq!(part.length(record).unwrap(), end - start, "{record}");
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let expected = whole.read(Span { record, start, len: end - start }, &mut a).unwrap();
            assert_eq!(part.read_whole(record, &mut b).unwrap().bytes, expected.bytes);
        }
        let beyond = Span { record: 0, start: 0, len: part.length(0).unwrap() + 1 };
        assert_eq!(part.read(beyond, &mut Vec::new()).unwrap_err().kind(), Kind::OutOfRange);
    }
    for (from, to) in [(0.5, 0.5), (-0.1, 0.5), (0.2, 1.1), (f64::NAN, 1.0)] {
        assert_eq!(Period::new(whole.clone(), from, to, 0).err().unwrap().kind(), Kind::Config);
    }
}

#[test]
fn a_part_between_any_borders_is_a_source_like_any_other() {
    alone("period::a_part_between_any_borders_is_a_source_like_any_other", |_| {
        let (_folder, whole) = series();
        let at = |before: [u64; 3]| Border::Time { at: "2021".into(), before: before.into() };
        for (from, to, before, lengths) in [
            (Border::Fraction(0.0), Border::Last(4), 0, [16, 0, 5]),
            (Border::Last(4), Border::Fraction(1.0), 2, [6, 1, 6]),
            (at([3, 0, 9]), at([20, 1, 9]), 0, [17, 1, 0]),
            (at([3, 0, 9]), Border::Last(100), 0, [0, 0, 0]),
            (at([u64::MAX; 3]), Border::Fraction(1.0), 1, [1, 1, 1]),
        ] {
            let part = Period::between(whole.clone(), from, to, before).unwrap();
            conformance::check(&part).unwrap();
            assert_eq!([0, 1, 2].map(|record| part.length(record).unwrap()), lengths);
        }
        let words = |border: Border| {
            let part = Period::between(whole.clone(), Border::Fraction(0.0), border, 0).unwrap();
            part.fingerprint().unwrap()
        };
        let hashes = [at([3, 0, 9]), at([3, 1, 9]), Border::Last(3), Border::Fraction(0.3)].map(words);
        assert!(hashes.iter().enumerate().all(|(n, hash)| !hashes[..n].contains(hash)), "{hashes:?}");
    });
}

#[test]
fn channels_apart_are_a_source_like_any_other() {
    alone("period::channels_apart_are_a_source_like_any_other", |_| {
        let (_folder, whole) = series();
        let apart = Apart::of(whole.clone()).unwrap();
        conformance::check(apart.as_ref()).unwrap();
        assert_eq!((apart.len(), apart.schema().channels), (6, None));
        for record in 0..apart.len() {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            let all = whole.read_whole(record / 2, &mut a).unwrap();
            let one = apart.read_whole(record, &mut b).unwrap();
            let size = all.element.size();
            let expected = all.bytes.chunks(size).skip(record as usize % 2).step_by(2).flatten();
            assert!(one.bytes.iter().eq(expected), "{record}");
        }
        let beyond = Span { record: 3, start: 0, len: 2 };
        let error = apart.read(beyond, &mut Vec::new()).unwrap_err();
        assert_eq!((error.kind(), error.place().record), (Kind::OutOfRange, Some(3)));
        assert_eq!(apart.length(6).unwrap_err().kind(), Kind::OutOfRange);
        let until = Border::Time { at: "2021".into(), before: [20, 1, 9].into() }.repeated(2);
        let scaled = Scaled::until(apart.clone(), until, Scaling::by(Scale::Zero), &|| false).unwrap();
        conformance::check(&scaled).unwrap();
        // What has one channel, or none, stays as it is.
        assert_eq!(Apart::of(apart.clone()).unwrap().len(), 6);
    });
}

#[test]
fn channels_that_are_scaled_each_by_its_own_are_a_source_like_any_other() {
    alone("period::channels_that_are_scaled_each_by_its_own_are_a_source_like_any_other", |_| {
        let (_folder, whole) = series();
        for scale in [Scale::Max, Scale::Zero, Scale::MinMax, Scale::Robust, Scale::MeanAbs] {
            let scaling = Scaling { per: Per::Channel, ..Scaling::by(scale) };
            let scaled = Scaled::new(whole.clone(), scaling, &|| false).unwrap();
            conformance::check(&scaled).unwrap();
            conformance::check(&Period::new(Arc::new(scaled), 0.2, 0.9, 2).unwrap()).unwrap();
        }
    });
}
