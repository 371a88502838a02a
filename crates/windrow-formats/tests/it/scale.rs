//! Records scaled by their own statistics, or by a function of the caller's: values, the cache, NaN, identity.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use windrow_core::collate::{Batch, Collate, NextToken, Pairs};
use windrow_core::format::Options;
use windrow_core::plan::{Feed, Plan};
use windrow_core::sampler::Sequential;
use windrow_core::source::{
    Custom, Fit, Nan, Precision, Scale, Scaled, Scaling, SharedSource, Source, Transformed, conformance,
};
use windrow_core::view::{Segments, Tail, Windows};
use windrow_core::{DType, Decode, Element, Error, Kind, Lengths, Result};

use super::alone::{alone, most_memory};
use super::disk::open_with;
use super::folder::{folder_of, put};
use super::toy::Toy;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn scaled(source: impl Source + 'static, scale: Scale, nan: Nan) -> Result<Scaled> {
    scaled_by(source, Scaling { nan, ..Scaling::by(scale) })
}

fn scaled_by(source: impl Source + 'static, scaling: Scaling) -> Result<Scaled> {
    Scaled::new(Arc::new(source), scaling, &|| false)
}

fn doubles(records: &[&[f64]]) -> Toy {
    let bytes = |record: &&[f64]| record.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    Toy::stored(Element::little(DType::F64), records.iter().map(|r| (bytes(r), Decode::Plain)).collect())
}

fn windows(
    source: SharedSource,
    width: u64,
    stride: u64,
    collate: impl FnOnce(NextToken) -> NextToken,
) -> Feed {
    let layout = NextToken::new(source.schema(), width, Some(DType::F32), true, 0).unwrap();
    let view = Windows::new(source.clone(), width, stride, Tail::Drop).unwrap();
    Feed::new(source, Arc::new(view), Arc::new(collate(layout)))
}

fn all(feed: &Feed) -> Batch {
    feed.batch(&(0..feed.len()).collect::<Vec<_>>(), 0).unwrap()
}

// One row: its inputs.
fn row(records: &[&[f32]], scale: Scale, nan: Nan) -> Vec<Vec<f32>> {
    let toy = Toy::series(records, 1, &vec![Decode::Plain; records.len()]);
    let source: SharedSource = Arc::new(scaled(toy, scale, nan).unwrap());
    let width = records.iter().map(|r| r.len()).max().unwrap() as u64;
    let batch = all(&windows(source, width, width, |layout| layout));
    batch.get::<f32>("input_ids").unwrap().chunks(width as usize).map(<[f32]>::to_vec).collect()
}

#[track_caller]
fn assert_same(found: &[f32], expected: &[f32], tolerance: f32) {
    let near = |(a, b): (&f32, &f32)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(near), "{found:?} {expected:?}");
}

#[test]
fn values_are_those_of_the_definition() {
    alone("scale::values_are_those_of_the_definition", |_| {
        let max = row(&[&[1.0, -4.0, 2.0], &[0.0, 0.0, 0.0], &[-0.5, 0.5, 0.25]], Scale::Max, Nan::Propagate);
        assert_eq!(max, [[0.25, -1.0, 0.5], [0.0; 3], [-1.0, 1.0, 0.5]]);
        let zero = row(&[&[1.0, 3.0, 1.0, 3.0], &[7.0; 4]], Scale::Zero, Nan::Propagate);
        assert_eq!(zero, [[-1.0, 1.0, -1.0, 1.0], [0.0; 4]]);
    });
}

#[test]
fn what_is_not_finite_spreads() {
    alone("scale::what_is_not_finite_spreads", |_| {
        let with_nan: &[f32] = &[1.0, NAN, 3.0];
        let with_inf: &[f32] = &[1.0, INF, -3.0];
        for scale in [Scale::Max, Scale::Zero] {
            assert_same(&row(&[with_nan], scale, Nan::Propagate)[0], &[NAN; 3], 0.0);
        }
        assert_same(&row(&[with_inf], Scale::Max, Nan::Propagate)[0], &[0.0, NAN, 0.0], 0.0);
        assert_same(&row(&[with_inf], Scale::Zero, Nan::Propagate)[0], &[-INF, NAN, -INF], 0.0);
    });
}

#[test]
fn what_is_missing_is_left_out_and_never_learned() {
    alone("scale::what_is_missing_is_left_out_and_never_learned", |_| {
        let records: &[&[f32]] = &[&[2.0, NAN, -4.0, 1.0, 2.0], &[NAN, NAN, NAN]];
        let toy = || Toy::series(records, 1, &[Decode::Plain; 2]);
        let source: SharedSource = Arc::new(scaled(toy(), Scale::Max, Nan::Mask).unwrap());
        let batch = all(&windows(source, 4, 4, NextToken::mask_nan));
        assert_eq!(batch.get::<f32>("input_ids").unwrap(), [0.5, 0.0, -1.0, 0.25, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(batch.get::<f32>("labels").unwrap(), [0.0, -1.0, 0.25, 0.5, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0, 1, 1, 1, 0, 0, 0, 0]);
        let zero: SharedSource = Arc::new(scaled(toy(), Scale::Zero, Nan::Mask).unwrap());
        let batch = all(&windows(zero, 4, 4, NextToken::mask_nan));
        let deviation = ((1.75f32.powi(2) * 2.0 + 4.25 * 4.25 + 0.75 * 0.75) / 4.0).sqrt();
        let expected = [1.75 / deviation, 0.0, -4.25 / deviation, 0.75 / deviation];
        assert_same(&batch.get::<f32>("input_ids").unwrap()[..4], &expected, 1e-6);
        // Without a scaler the values stay, but for what is missing.
        let batch = all(&windows(Arc::new(toy()), 4, 4, NextToken::mask_nan));
        assert_eq!(batch.get::<f32>("input_ids").unwrap()[..4], [2.0, 0.0, -4.0, 1.0]);
    });
}

#[test]
fn what_is_infinite_is_missing_too() {
    alone("scale::what_is_infinite_is_missing_too", |_| {
        let records: &[&[f32]] = &[&[2.0, INF, -4.0, 1.0, -INF], &[INF, INF, INF]];
        let toy = || Toy::series(records, 1, &[Decode::Plain; 2]);
        let sources: [(SharedSource, [f32; 3]); 3] = [
            (Arc::new(toy()), [2.0, -4.0, 1.0]),
            (Arc::new(scaled(toy(), Scale::Max, Nan::Mask).unwrap()), [0.5, -1.0, 0.25]),
            // Mean -1/3, deviation 2.6247…
            (Arc::new(scaled(toy(), Scale::Zero, Nan::Mask).unwrap()), [0.889_001, -1.397_001, 0.508_001]),
        ];
        for (source, [a, b, c]) in sources {
            let batch = all(&windows(source.clone(), 4, 4, NextToken::mask_nan));
            assert_same(batch.get::<f32>("input_ids").unwrap(), &[a, 0.0, b, c, 0.0, 0.0, 0.0, 0.0], 1e-6);
            assert_same(batch.get::<f32>("labels").unwrap(), &[0.0, b, c, 0.0, 0.0, 0.0, 0.0, 0.0], 1e-6);
            assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0, 1, 1, 0, 0, 0, 0, 0]);
            let layout = Pairs::new(source.schema(), 6, &[], Some(DType::F32)).unwrap().mask_nan();
            let view = Segments::new(source.clone(), 6, &[]).unwrap();
            let batch = Feed::new(source, Arc::new(view), Arc::new(layout)).batch(&[0], 0).unwrap();
            assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0, 1, 1, 0, 0, 0]);
            assert!(batch.get::<f32>("input_ids").unwrap().iter().all(|x| x.is_finite()));
        }
    });
}

#[test]
fn digits_beyond_float32_are_not_lost_before_scaling() {
    alone("scale::digits_beyond_float32_are_not_lost_before_scaling", |_| {
        // numpy: (x - x.mean()) / x.std() of 0..20, whatever is added to them.
        let expected: Vec<f32> = (0..20).map(|i| ((f64::from(i) - 9.5) / 33.25f64.sqrt()) as f32).collect();
        let whole = |offset: f64| (0..20).map(|i| offset + f64::from(i)).collect::<Vec<f64>>();
        let zero = |toy: Toy| -> Vec<f32> {
            let source: SharedSource = Arc::new(scaled(toy, Scale::Zero, Nan::Propagate).unwrap());
            all(&windows(source, 20, 20, |layout| layout)).get::<f32>("input_ids").unwrap().to_vec()
        };
        for offset in [1e9, -1e12, 1e15] {
            assert_same(&zero(doubles(&[&whole(offset)])), &expected, 1e-6);
        }
        let ids: Vec<u8> = (0..20i64).flat_map(|i| (1_000_000_000 + i).to_le_bytes()).collect();
        assert_same(
            &zero(Toy::stored(Element::little(DType::I64), vec![(ids, Decode::Plain)])),
            &expected,
            1e-6,
        );
        // De-normalised in float32 they would be 1e9 all.
        let far = Decode::Affine { mul: 1.0, add: 1e9, sub: 0.0, div: 1.0 };
        let near: Vec<f32> = whole(0.0).iter().map(|x| *x as f32).collect();
        assert_same(&zero(Toy::series(&[&near], 1, &[far])), &expected, 1e-6);
        // As the published scalers have it.
        let single = Scaling { precision: Precision::Single, ..Scaling::by(Scale::Zero) };
        let source: SharedSource = Arc::new(scaled_by(doubles(&[&whole(1e9)]), single).unwrap());
        let batch = all(&windows(source, 20, 20, |layout| layout));
        assert_eq!(batch.get::<f32>("input_ids").unwrap(), [0.0; 20]);
        // Of a constant nothing is left, not what rounding leaves.
        assert_eq!(zero(doubles(&[&[0.1; 20]])), [0.0; 20]);
        // One beyond float32 is a number like others.
        let large: &[f64] = &[1.0, 2.0, 3.0, 1e39, 5.0, 6.0];
        let max: SharedSource = Arc::new(scaled(doubles(&[large]), Scale::Max, Nan::Propagate).unwrap());
        let batch = all(&windows(max, 6, 6, |layout| layout));
        let expected = large.iter().map(|x| (x / 1e39) as f32).collect::<Vec<_>>();
        assert_eq!(batch.get::<f32>("input_ids").unwrap(), expected);
    });
}

#[test]
fn what_comes_after_the_fit_changes_nothing_before_it() {
    alone("scale::what_comes_after_the_fit_changes_nothing_before_it", |cache| {
        let row = |record: &[f64], scaling: Scaling| -> Vec<f32> {
            let source: SharedSource = Arc::new(scaled_by(doubles(&[record]), scaling).unwrap());
            let width = record.len() as u64;
            all(&windows(source, width, width, |layout| layout)).get::<f32>("input_ids").unwrap().to_vec()
        };
        let max = Scaling::by(Scale::Max);
        let fitted = |fit| Scaling { fit: Some(fit), ..max };
        let (calm, risen) = ([1.0, 2.0, -4.0, 3.0], [1.0, 2.0, -4.0, 100.0]);
        for fit in [Fit::Fraction(0.0, 0.75), Fit::Values(0, 3)] {
            assert_eq!(row(&calm, fitted(fit))[..3], [0.25, 0.5, -1.0]);
            assert_eq!(row(&risen, fitted(fit)), [0.25, 0.5, -1.0, 25.0]);
        }
        assert_eq!(row(&risen, max)[0], 0.01);
        assert_eq!(row(&risen, fitted(Fit::Values(1, 2)))[..2], [0.5, 1.0]);
        assert_eq!(
            row(&risen, Scaling { scale: Scale::Zero, ..fitted(Fit::Values(0, 2)) }),
            [-1.0, 1.0, -11.0, 197.0]
        );
        // Each part has its own statistics in the cache.
        assert_eq!(fs::read_dir(cache).unwrap().count(), 7);
        let fails =
            |record: &[f64], fit| scaled_by(doubles(&[&[1.0; 9], record]), fitted(fit)).err().unwrap();
        let e = fails(&[1.0, 2.0], Fit::Fraction(0.0, 0.3));
        assert_eq!((e.kind(), e.place().record), (Kind::Config, Some(1)));
        assert_eq!(fails(&[1.0], Fit::Fraction(0.7, 0.2)).kind(), Kind::Config);
        // One value can be a record of its own in a window; none is in no window.
        assert_eq!(fails(&[1.0], Fit::Fraction(0.0, 0.3)).place().record, Some(1));
        assert!(scaled_by(doubles(&[&[1.0; 9], &[]]), fitted(Fit::Fraction(0.0, 0.3))).is_ok());
        // Nothing is learned of a series without a number to measure.
        let nan = f64::NAN;
        let masked = Scaling { nan: Nan::Mask, ..fitted(Fit::Values(0, 2)) };
        let source: SharedSource = Arc::new(scaled_by(doubles(&[&[nan, nan, 3.0, 4.0]]), masked).unwrap());
        let batch = all(&windows(source, 3, 3, NextToken::mask_nan));
        assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0; 3]);
    });
}

#[test]
fn one_missing_channel_takes_the_step_out() {
    let toy = Toy::series(&[&[1.0, 2.0, 3.0, NAN, 5.0, 6.0]], 2, &[Decode::Plain]);
    let batch = all(&windows(Arc::new(toy), 2, 2, NextToken::mask_nan));
    assert_eq!(batch.get::<f32>("labels").unwrap(), [3.0, 0.0, 5.0, 6.0]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0, 1]);
}

#[test]
fn only_the_prediction_is_learned_where_asked() {
    let toy = || Arc::new(Toy::series(&[&[1.0; 9], &[1.0; 4]], 1, &[Decode::Plain; 2]));
    let feed = windows(toy(), 5, 5, |layout| layout.learn_from(2));
    assert_eq!(all(&feed).get::<i32>("loss_masks").unwrap(), [0, 0, 1, 1, 1, 0, 0, 1, 0, 0]);
    assert_eq!(feed.collate().describe(), "next_token(length=5,dtype=float32,pad=0,mask=real,from=2)");
    let both = windows(toy(), 5, 5, |layout| layout.mask_nan().learn_from(5));
    assert_eq!(all(&both).get::<i32>("loss_masks").unwrap(), [0; 10]);
    assert_eq!(
        both.collate().describe(),
        "next_token(length=5,dtype=float32,pad=0,mask=real,nan=mask+inf,from=5)"
    );
    // A layout without masks gets them.
    let layout = NextToken::new(toy().schema(), 3, None, false, 0).unwrap().learn_from(1);
    assert_eq!(layout.fields(&mut std::iter::empty()).unwrap().len(), 3);
}

/// The sequences of a shard data set with one shard, as the recorded program was given them.
fn recorded(folder: &Path) -> Toy {
    let meta: Value = serde_json::from_slice(&fs::read(folder.join("meta.json")).unwrap()).unwrap();
    let bytes = fs::read(folder.join("data-1-of-1.bin")).unwrap();
    let element = Element::little(DType::parse(meta["dtype"].as_str().unwrap()).unwrap());
    let records = meta["scales"].as_array().unwrap().iter().map(|scale| {
        let number = |key: &str| scale[key].as_u64().unwrap() as usize * element.size();
        let values = bytes[number("offset")..number("offset") + number("length")].to_vec();
        let decode = match (scale["mean"].as_f64(), scale["std"].as_f64()) {
            (Some(mean), Some(std)) => {
                Decode::Affine { mul: std as f32, add: mean as f32, sub: 0.0, div: 1.0 }
            }
            _ => Decode::Plain,
        };
        (values, decode)
    });
    Toy::stored(element, records.collect())
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/0_foundation_ts")
}

fn floats(list: &Value) -> Vec<f32> {
    let number = |x: &Value| x.as_f64().map_or_else(|| x.as_str().unwrap().parse().unwrap(), |x| x as f32);
    list.as_array().unwrap().iter().map(number).collect()
}

#[test]
fn scaled_windows_are_the_recorded_ones() {
    alone("scale::scaled_windows_are_the_recorded_ones", |_| {
        let cases = [
            ("13_denorm_then_max", Scale::Max, 0.0f32),
            ("13_denorm_then_zero", Scale::Zero, 1e-4),
            ("14_dtype_int32_zero", Scale::Zero, 1e-5),
            ("14_dtype_uint8_zero", Scale::Zero, 1e-5),
            ("15_zero_scaler", Scale::Zero, 1e-5),
            ("16_max_scaler", Scale::Max, 0.0),
            ("17_norm_name_case_insensitive", Scale::Zero, 1e-5),
            ("19_nan_inf_norm_max", Scale::Max, 0.0),
            ("19_nan_inf_norm_zero", Scale::Zero, 1e-5),
            ("20_bin_empty_seq_max", Scale::Max, 0.0),
        ];
        for (name, scale, tolerance) in cases {
            let case = golden().join(name);
            let told: Value = serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
            let single = Scaling { precision: Precision::Single, ..Scaling::by(scale) };
            let source: SharedSource = Arc::new(scaled_by(recorded(&case.join("input")), single).unwrap());
            let number = |key: &str| told["args"][key].as_u64().unwrap();
            let feed = windows(source, number("max_length"), number("stride"), |layout| layout);
            let expected = told["expected"]["ok"]["windows"].as_array().unwrap();
            assert_eq!(Some(feed.len()), told["expected"]["ok"]["num_windows"].as_u64(), "{name}");
            for window in expected {
                let batch = feed.batch(&[window["i"].as_u64().unwrap()], 0).unwrap();
                for field in ["input_ids", "labels"] {
                    let wanted = floats(&window[field]);
                    // One unit in the last place, or what the definition of a float32 mean leaves open.
                    let most = wanted.iter().filter(|x| x.is_finite()).fold(0.0f32, |m, x| m.max(x.abs()));
                    let tolerance = tolerance.max(f32::EPSILON * most.min(1.0));
                    assert_same(batch.get::<f32>(field).unwrap(), &wanted, tolerance);
                }
                let masks: Vec<f32> =
                    batch.get::<i32>("loss_masks").unwrap().iter().map(|m| *m as f32).collect();
                assert_same(&masks, &floats(&window["loss_masks"]), 0.0);
            }
            assert!(!expected.is_empty(), "{name}");
        }
    });
}

#[test]
fn packed_series_are_the_recorded_ones() {
    for name in ["50_pack_no_buckets", "51_pack_buckets", "53_pack_pred_len"] {
        let case = golden().join(name);
        let told: Value = serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
        let number = |key: &str| told["args"][key].as_u64().unwrap();
        let length = number("context_length") + number("prediction_length");
        let buckets = told["args"]["pack_buckets"]
            .as_array()
            .map_or(Vec::new(), |list| list.iter().map(|b| b.as_u64().unwrap()).collect());
        let source: SharedSource = Arc::new(recorded(&case.join("input")));
        let layout = Pairs::new(source.schema(), length, &buckets, None).unwrap();
        let view = Segments::new(source.clone(), length, &buckets).unwrap();
        let feed = Feed::new(source, Arc::new(view), Arc::new(layout));
        let expected = &told["expected"]["ok"];
        assert_eq!(Some(feed.len()), expected["num_windows"].as_u64(), "{name}");
        for window in expected["windows"].as_array().unwrap() {
            let batch = feed.batch(&[window["i"].as_u64().unwrap()], 0).unwrap();
            for field in ["input_ids", "labels"] {
                assert_eq!(batch.get::<f32>(field).unwrap(), floats(&window[field]), "{name} {field}");
            }
            for field in ["loss_masks", "segment_ids"] {
                let found = batch.get::<i32>(field).unwrap().iter().map(|x| *x as f32).collect::<Vec<_>>();
                assert_eq!(found, floats(&window[field]), "{name} {field}");
            }
            assert_eq!(
                i64::from(batch.get::<i32>("pack_bucket").unwrap()[0]),
                window["pack_bucket"],
                "{name}"
            );
        }
    }
}

#[test]
fn rows_of_one_batch_are_as_long_as_the_longest() {
    let toy = Arc::new(Toy::series(&[&[1.0, NAN, 3.0], &[4.0, 5.0, 6.0, 7.0]], 1, &[Decode::Plain; 2]));
    let layout = Pairs::new(toy.schema(), 4, &[4, 2], None).unwrap().mask_nan();
    assert_eq!(layout.describe(), "pairs(length=4,dtype=float32,buckets=2/4,nan=mask+inf)");
    let view = Segments::new(toy.clone(), 4, &[4, 2]).unwrap();
    let batch = Feed::new(toy, Arc::new(view), Arc::new(layout)).batch(&[0, 1], 0).unwrap();
    assert_eq!(batch.get::<f32>("input_ids").unwrap(), [1.0, 0.0, 0.0, 0.0, 4.0, 5.0, 6.0, 0.0]);
    assert_eq!(batch.get::<f32>("labels").unwrap(), [0.0, 3.0, 0.0, 0.0, 5.0, 6.0, 7.0, 0.0]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0, 1, 0, 0, 1, 1, 1, 0]);
    assert_eq!(batch.get::<i32>("segment_ids").unwrap(), [0, 0, -1, -1, 0, 0, 0, -1]);
    assert_eq!(batch.get::<i32>("pack_bucket").unwrap(), [2, 4]);
}

fn stream(folder: &Path) -> SharedSource {
    open_with(folder, &Options { dtype: Some(DType::U16), ..Options::default() }).unwrap()
}

fn some_streams() -> tempfile::TempDir {
    let ids = |n: u16| (0..n).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    folder_of(&[("a.bin", ids(5)), ("b.bin", ids(40_000)), ("c.bin", ids(2))])
}

#[test]
fn wrapped_sources_keep_every_promise() {
    alone("scale::wrapped_sources_keep_every_promise", |_| {
        let folder = some_streams();
        for scale in [Scale::Max, Scale::Zero] {
            let source = Scaled::new(stream(folder.path()), Scaling::by(scale), &|| false).unwrap();
            conformance::check(&source).unwrap();
        }
        let halved = Custom::new("halved", |whole| Ok(whole.values.iter().map(|x| x / 2.0).collect()));
        conformance::check(&Transformed::new(stream(folder.path()), halved).unwrap()).unwrap();
    });
}

#[test]
fn statistics_are_kept_and_made_again_when_the_data_changed() {
    alone("scale::statistics_are_kept_and_made_again_when_the_data_changed", |cache| {
        let folder = some_streams();
        let last = |folder: &Path| {
            let source: SharedSource =
                Arc::new(Scaled::new(stream(folder), Scaling::by(Scale::Max), &|| false).unwrap());
            let feed = windows(source, 4, 39_995, |layout| layout);
            all(&feed).get::<f32>("labels").unwrap()[11]
        };
        let kept = || fs::read_dir(cache).unwrap().count();
        assert_eq!((last(folder.path()), kept()), (39_999.0 / 39_999.0, 1));
        assert_eq!((last(folder.path()), kept()), (1.0, 1));
        // In the middle, where no fingerprint looks; the time tells.
        let mut bytes = fs::read(folder.path().join("b.bin")).unwrap();
        bytes[40_000..40_002].copy_from_slice(&50_000u16.to_le_bytes());
        put(folder.path(), "b.bin", &bytes);
        assert_eq!((last(folder.path()), kept()), (39_999.0 / 50_000.0, 2));
        // A damaged file of the cache is made again.
        for file in fs::read_dir(cache).unwrap() {
            fs::write(file.unwrap().path(), b"windrow").unwrap();
        }
        assert_eq!(last(folder.path()), 39_999.0 / 50_000.0);
    });
}

/// Many short records without a byte on the heap.
struct Many(Toy, u64);

impl Lengths for Many {
    fn len(&self) -> u64 {
        self.1
    }
    fn length(&self, record: u64) -> Result<u64> {
        self.0.length(record % 3)
    }
}

impl Source for Many {
    fn schema(&self) -> &windrow_core::source::Schema {
        self.0.schema()
    }
    fn read<'a>(
        &'a self,
        span: windrow_core::Span,
        scratch: &'a mut Vec<u8>,
    ) -> Result<windrow_core::Values<'a>> {
        self.0.read(windrow_core::Span { record: span.record % 3, ..span }, scratch)
    }
    fn locate(&self, span: windrow_core::Span) -> Result<Vec<windrow_core::source::Location>> {
        self.0.locate(span)
    }
    fn files(&self) -> Vec<windrow_core::source::FileInfo> {
        Vec::new()
    }
    fn fingerprint(&self) -> Result<u64> {
        Ok(self.1)
    }
    fn format(&self) -> &'static str {
        "many"
    }
}

#[test]
fn statistics_of_many_records_are_mapped_not_held() {
    alone("scale::statistics_of_many_records_are_mapped_not_held", |_| {
        let toy = Toy::series(&[&[1.0, 2.0], &[-5.0], &[]], 1, &[Decode::Plain; 3]);
        let (source, held) =
            most_memory(|| scaled(Many(toy, 1_000_000), Scale::Max, Nan::Propagate).unwrap());
        assert!(held < 4 << 20, "{held} bytes held");
        let span = windrow_core::Span { record: 999_998, start: 0, len: 1 };
        let mut scratch = Vec::new();
        let decode = source.read(span, &mut scratch).map(|v| v.decode);
        assert_eq!(source.length(999_997).unwrap(), 1);
        let five = Decode::Scaled { mul: 1.0, add: 0.0, sub: 0.0, div: 5.0 };
        assert_eq!(
            source.read(windrow_core::Span { record: 999_997, ..span }, &mut scratch).unwrap().decode,
            five
        );
        assert_eq!(decode.unwrap_err().kind(), Kind::OutOfRange);
    });
}

#[test]
fn what_cannot_be_scaled_is_an_error() {
    alone("scale::what_cannot_be_scaled_is_an_error", |cache| {
        let fails = |toy: Toy| scaled(toy, Scale::Zero, Nan::Propagate).err().unwrap();
        assert_eq!(fails(Toy::json()).kind(), Kind::Config);
        let shift = Toy::stored(Element::little(DType::U32), vec![(vec![0; 8], Decode::Shift { bits: 1 })]);
        let e = fails(shift);
        assert_eq!((e.kind(), e.place().record), (Kind::Unsupported, Some(0)));
        let twice = Decode::Affine { mul: 1.0, add: 0.0, sub: 2.0, div: 1.0 };
        assert_eq!(fails(Toy::series(&[&[1.0], &[2.0]], 1, &[Decode::Plain, twice])).place().record, Some(1));
        let failing = Toy::series(&[&[1.0][..]; 1000], 1, &[Decode::Plain; 1000]);
        failing.fail_after.store(700, Ordering::Relaxed);
        assert_eq!(fails(failing).kind(), Kind::Corrupt);
        let stopped = Scaled::new(
            Arc::new(Toy::series(&[&[1.0]], 1, &[Decode::Plain])),
            Scaling::by(Scale::Max),
            &|| true,
        );
        assert_eq!(stopped.err().unwrap().kind(), Kind::Interrupted);
        assert_eq!(fs::read_dir(cache).unwrap().count(), 0, "nothing half-made is kept");
    });
}

#[test]
fn a_function_sees_each_whole_record_once() {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let shifted = Custom::new("first\nis;zero", move |whole| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert_eq!(whole.channels, None);
        Ok(whole.values.iter().map(|x| x - whole.values[0]).collect())
    });
    assert_eq!(shifted.name(), "first_is_zero");
    let toy = Toy::stored(
        Element { dtype: DType::I16, big_endian: true },
        vec![
            (vec![0, 5, 0, 6, 255, 255, 0, 9], Decode::Plain),
            (vec![], Decode::Plain),
            (vec![1, 0, 1, 2], Decode::Plain),
        ],
    );
    let source: SharedSource = Arc::new(Transformed::new(Arc::new(toy), shifted).unwrap());
    let feed = windows(source, 2, 1, |layout| layout);
    let batch = all(&feed);
    assert_eq!(batch.get::<f32>("input_ids").unwrap(), [0.0, 1.0, 1.0, -6.0, 0.0, 2.0]);
    assert_eq!(batch.get::<f32>("labels").unwrap(), [1.0, -6.0, -6.0, 4.0, 2.0, 0.0]);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    let longer = Custom::new("longer", |whole| Ok([whole.values, &[0.0]].concat()));
    let failing = Custom::new("failing", |whole| Err(Error::config("no").record(whole.record)));
    for (custom, says) in [(longer, "\"longer\" gave 4 values for a record of 3"), (failing, "no")] {
        let toy = Toy::series(&[&[1.0; 3]], 1, &[Decode::Plain]);
        let source: SharedSource = Arc::new(Transformed::new(Arc::new(toy), custom).unwrap());
        let e = windows(source, 2, 2, |layout| layout).batch(&[0], 0).unwrap_err();
        assert_eq!((e.kind(), e.place().record), (Kind::Config, Some(0)));
        assert!(format!("{e:#}").contains(says), "{e}");
    }
}

#[test]
fn a_plan_names_what_happens_to_its_values() {
    alone("scale::a_plan_names_what_happens_to_its_values", |_| {
        let toy = || Arc::new(Toy::series(&[&[1.0, 2.0]], 1, &[Decode::Plain]));
        let identity = |source: SharedSource| {
            let feed = windows(source, 1, 1, |layout| layout);
            let n = feed.len();
            Plan::new(vec![feed], Arc::new(Sequential::new(n)), 0).unwrap().identity().unwrap().to_string()
        };
        let masked = Scaling { nan: Nan::Mask, ..Scaling::by(Scale::Max) };
        let single = Scaling { precision: Precision::Single, ..masked };
        let fitted = Scaling { fit: Some(Fit::Values(0, 1)), ..masked };
        let [max, single, fitted] = [masked, single, fitted]
            .map(|scaling| Scaled::new(toy(), scaling, &|| false).unwrap())
            .map(|scaled| identity(Arc::new(scaled)));
        let custom = Transformed::new(toy(), Custom::new("mine", |w| Ok(w.values.to_vec()))).unwrap();
        let (plain, custom) = (identity(toy()), identity(Arc::new(custom)));
        assert!(!plain.contains("scaler"), "{plain}");
        assert!(max.contains(":scaler=max/float64,nan=mask;view="), "{max}");
        // What older versions said of the same values.
        assert!(single.contains(":scaler=max,nan=mask;view="), "{single}");
        assert!(fitted.contains(":scaler=max/float64,nan=mask,fit=range(0, 1);view="), "{fitted}");
        assert!(custom.contains(":scaler=custom:mine;view="), "{custom}");
    });
}
