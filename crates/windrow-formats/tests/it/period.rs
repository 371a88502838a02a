//! Parts of records in time.

use std::sync::Arc;

use tempfile::TempDir;
use windrow_core::format::Options;
use windrow_core::source::{Per, Period, Scale, Scaled, Scaling, SharedSource, Source, conformance};
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
