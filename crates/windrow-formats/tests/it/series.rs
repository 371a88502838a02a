//! Reading series that other programs wrote: numpy's arrays, shards, and folders of both.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use windrow_core::format::Options;
use windrow_core::source::{Concat, SharedSource, Source, Subset, conformance};
use windrow_core::values::copy_values;
use windrow_core::{DType, Decode, Element, Kind, Lengths, Result, Span};

use super::alone::alone;
use super::disk::{both_ways, bytes_at, open, open_with};
use super::folder::folder_of;
use super::toy::Toy;

fn golden(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(folder)
}

fn json_at(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A record's numbers as its reader gets them.
fn numbers(source: &dyn Source, record: u64, dtype: DType) -> Result<Vec<f64>> {
    let span = Span { record, start: 0, len: source.length(record)? };
    let mut scratch = Vec::new();
    let values = source.read(span, &mut scratch)?;
    let n = values.bytes.len() / values.element.size();
    if dtype == DType::F32 {
        let mut out = vec![0f32; n];
        copy_values(&values, 0, bytemuck::cast_slice_mut(&mut out), dtype)?;
        return Ok(out.into_iter().map(f64::from).collect());
    }
    let mut out = vec![0f64; n];
    copy_values(&values, 0, bytemuck::cast_slice_mut(&mut out), DType::F64)?;
    Ok(out)
}

/// Numbers as they were recorded, channels one after the other.
fn told(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(told).collect(),
        Value::String(text) => vec![text.parse().unwrap()],
        number => vec![number.as_f64().unwrap()],
    }
}

#[track_caller]
fn same(found: &[f64], expected: &[f64], case: &str) {
    let bits = |numbers: &[f64]| -> Vec<u64> {
        numbers.iter().map(|x| if x.is_nan() { f64::NAN } else { *x }.to_bits()).collect()
    };
    assert_eq!(bits(found), bits(expected), "{case}: {found:?}, expected {expected:?}");
}

fn conforms(source: &SharedSource, located: bool, case: &str) {
    let checked = conformance::check(source.as_ref())
        .and_then(|()| if located { conformance::check_located(source.as_ref(), &bytes_at) } else { Ok(()) });
    checked.unwrap_or_else(|e| panic!("{case}: {e}"));
}

#[test]
fn arrays_are_what_numpy_reads() {
    alone("series::arrays_are_what_numpy_reads", |_| {
        let expected = json_at(&golden("numpy/expected.json"));
        for (name, expected) in expected.as_object().unwrap() {
            for options in both_ways(&Options::default()) {
                let source = open_with(&golden("numpy").join(name), &options).unwrap();
                let compressed = ["deflated.npz", "both_ways.npz", "i4.npy.gz"].contains(&name.as_str());
                conforms(&source, !compressed, name);
                let schema = source.schema();
                let channels = expected["channels"].as_u64();
                assert_eq!(schema.element.dtype.name(), expected["dtype"], "{name}");
                assert_eq!(schema.element.big_endian, expected["big_endian"], "{name}");
                assert_eq!(schema.channels.map(|c| c as u64), channels, "{name}");
                let records = expected["records"].as_array().unwrap();
                assert_eq!(source.len(), records.len() as u64, "{name}");
                for (record, expected) in (0..).zip(records) {
                    assert_eq!(source.length(record).unwrap(), expected.as_array().unwrap().len() as u64);
                    same(&numbers(source.as_ref(), record, DType::F64).unwrap(), &told(expected), name);
                }
            }
        }
        assert_eq!(expected.as_object().unwrap().len(), 30);
    });
}

#[test]
fn stored_members_are_borrowed_from_the_map_and_compressed_ones_expanded_once() {
    alone("series::stored_members_are_borrowed_from_the_map_and_compressed_ones_expanded_once", |cache| {
        let borrowed = |name: &str| {
            let source = open(&golden("numpy").join(name)).unwrap();
            let mut scratch = Vec::new();
            let span = Span { record: 0, start: 0, len: source.length(0).unwrap() };
            let n = source.read(span, &mut scratch).unwrap().bytes.len();
            assert!(n > 0);
            scratch.is_empty()
        };
        assert!(borrowed("stored.npz") && borrowed("f4.npy") && borrowed("big_f4.npy"));
        assert_eq!(fs::read_dir(cache).unwrap().count(), 0);
        for _ in 0..2 {
            assert!(borrowed("deflated.npz"));
            assert_eq!(fs::read_dir(cache).unwrap().count(), 1);
        }
        assert!(!borrowed("two_d_fortran.npy"));
    });
}

/// Cases of the original whose folder of shards opens here, and how many windows it tells of.
#[test]
fn shards_are_what_the_original_reads() {
    let mut sequences = 0;
    let mut windows = 0;
    for entry in fs::read_dir(golden("0_foundation_ts")).unwrap() {
        let case = entry.unwrap().path();
        let name = case.file_name().unwrap().to_str().unwrap().to_string();
        if !case.join("input/meta.json").is_file() {
            continue;
        }
        let told_case = json_at(&case.join("case.json"));
        for options in both_ways(&Options::default()) {
            let source = open_with(&case.join("input"), &options);
            if let Some((kind, says)) = refused(&name) {
                let error = source.err().unwrap_or_else(|| panic!("{name} opens"));
                assert_eq!(error.kind(), kind, "{name}: {error}");
                assert!(format!("{error:#}").contains(says), "{name}: {error}");
                continue;
            }
            let source = source.unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(source.format(), "shards", "{name}");
            let is_float = name.starts_with("14_dtype_float");
            conforms(&source, !is_float, &name);
            let ok = &told_case["expected"]["ok"];
            if let Some(expected) = ok["sequences"]["ok"].as_array() {
                assert_eq!(source.len(), expected.len() as u64, "{name}");
                for (record, expected) in (0..).zip(expected) {
                    let dtype = match expected["dtype"].as_str() {
                        Some("float32") => DType::F32,
                        _ => DType::F64,
                    };
                    let found = numbers(source.as_ref(), record, dtype).unwrap();
                    same(&found, &told(&expected["values"]), &name);
                    sequences += 1;
                }
            }
            windows += check_windows(&name, source.as_ref(), ok, &told_case["args"]);
        }
    }
    assert!(sequences > 50 && windows > 100, "{sequences} sequences, {windows} windows");
}

fn refused(case: &str) -> Option<(Kind, &'static str)> {
    Some(match case {
        "10_length_runs_past_end" => (Kind::Corrupt, "the shards hold"),
        "30_missing_shard" => (Kind::NotFound, "data-2-of-2.bin"),
        "35_meta_missing_dtype" => (Kind::Corrupt, "dtype"),
        _ => return None,
    })
}

// The original's windows that are not scaled: `W + 1` values from `k * stride`, the last of them a label only.
fn check_windows(case: &str, source: &dyn Source, ok: &Value, args: &Value) -> usize {
    let ok = ok.get("windowed").map_or(ok, |windowed| &windowed["ok"]);
    let listed = ok["windows"].as_array().or_else(|| ok["windows"]["ok"].as_array());
    let scaled = ["normalization_method", "transform"].iter().any(|key| args[*key].is_string());
    let packed = ["50_", "51_", "52_", "53_"].iter().any(|start| case.starts_with(start));
    let (Some(listed), false, false) = (listed, scaled, packed) else { return 0 };
    let width = match args["max_length"].as_u64() {
        Some(width) => width,
        None => args["context_length"].as_u64().unwrap() + args["prediction_length"].as_u64().unwrap_or(0),
    };
    let stride = match args["stride"].as_i64() {
        None | Some(0) => width,
        // Every sequence has one window then.
        Some(stride) => stride.max(1) as u64,
    };
    let counts: Vec<u64> =
        ok["window_counts"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let all = |record: u64| (0..counts[record as usize]).map(move |k| (record, k));
    let places: Vec<(u64, u64)> = (0..counts.len() as u64).flat_map(all).collect();
    for window in listed {
        let (record, k) = places[window["i"].as_u64().unwrap() as usize];
        let values = numbers(source, record, DType::F32).unwrap();
        let values: Vec<f64> =
            values.into_iter().skip((k * stride) as usize).take(width as usize + 1).collect();
        let padded = |values: &[f64]| -> Vec<f64> {
            values.iter().copied().chain(std::iter::repeat(0.0)).take(width as usize).collect()
        };
        same(&padded(&values[1.min(values.len())..]), &told(&window["labels"]), case);
        same(&padded(&values), &told(&window["input_ids"]), case);
    }
    listed.len()
}

#[test]
fn bfloat16_that_is_denormalised_is_float32() {
    let open_with_scale = |scale: &str| {
        let meta = format!(
            "{{\"num_sequences\": 1, \"dtype\": \"bfloat16\", \"files\": {{\"d-1-of-1.bin\": 1}}, \"scales\": [{scale}]}}"
        );
        let folder = folder_of(&[("meta.json", meta.as_bytes()), ("d-1-of-1.bin", &[0x80, 0x3f])]);
        let source = open(folder.path()).unwrap();
        conforms(&source, true, scale);
        source.schema().element
    };
    let scaled = open_with_scale(r#"{"offset": 0, "length": 1, "mean": 0.001, "std": 1}"#);
    assert_eq!(scaled, Element::little(DType::F32));
    assert_eq!(open_with_scale(r#"{"offset": 0, "length": 1}"#), Element::little(DType::Bf16));
}

#[test]
fn other_keys_of_a_scale_are_extras() {
    let source = open(&golden("0_foundation_ts/12_denorm_mean_std/input")).unwrap();
    let extras: Vec<Value> = (0..4).map(|r| Value::Object(source.extras(r).unwrap().shown())).collect();
    let expected = [
        serde_json::json!({}),
        serde_json::json!({"mean": -1.25}),
        serde_json::json!({"std": 3.0}),
        serde_json::json!({"id": "x"}),
    ];
    assert_eq!(extras, expected);
    // Found again among many, whatever stands between them.
    let scale = |i: usize| format!("{{ \"id\": [\"a,b\", {{\"n\": {i}}}],\"offset\":{i} ,\"length\":1}}");
    let scales: Vec<String> = (0..200).map(scale).collect();
    let meta = format!(
        "{{\"scales\": [{}], \"num_sequences\": 150, \"dtype\": \"uint8\",\n \"files\": {{\"d-1-of-1.bin\": 200}}}}",
        scales.join(" ,\n ")
    );
    let folder = folder_of(&[("meta.json", meta.as_bytes()), ("d-1-of-1.bin", &[7; 200])]);
    for options in both_ways(&Options::default()) {
        let source = open_with(folder.path(), &options).unwrap();
        assert_eq!((source.len(), source.uniform()), (150, Some(1)));
        for record in [0, 1, 31, 32, 33, 63, 64, 149] {
            let id = serde_json::json!(["a,b", {"n": record}]);
            assert_eq!(source.extras(record).unwrap().shown()["id"], id);
        }
        assert_eq!(source.extras(150).unwrap_err().kind(), Kind::OutOfRange);
        conforms(&source, true, "extras");
    }
}

#[test]
fn scales_are_kept_as_numbers_not_as_trees() {
    alone("series::scales_are_kept_as_numbers_not_as_trees", |_| {
        use std::fmt::Write;
        const N: usize = 100_000;
        let mut meta = String::from(
            "{\"num_sequences\": 100000, \"dtype\": \"float32\", \"files\": {\"d-1-of-1.bin\": 8}, \"scales\": [",
        );
        for i in 0..N {
            let comma = if i == 0 { "" } else { "," };
            write!(meta, "{comma}{{\"offset\": {}, \"length\": 3, \"id\": \"series {i}\"}}", i % 6).unwrap();
        }
        meta.push_str("]}");
        let folder = folder_of(&[("meta.json", meta.as_bytes()), ("d-1-of-1.bin", &[0; 32])]);
        let (source, most) = super::alone::most_memory(|| open(folder.path()).unwrap());
        assert_eq!(source.len(), N as u64);
        // While a list grows, it stands there twice; a tree of these scales takes 40 times as much.
        assert!(most < N * 16 * 3, "{most}");
        assert_eq!(source.extras(99_999).unwrap().shown()["id"], "series 99999");
    });
}

fn npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
    out.extend(bytes);
    out
}

#[test]
fn a_folder_of_series_is_all_of_them_in_natural_order() {
    let shards = golden("0_foundation_ts/08_three_shards/input");
    let mut files = vec![
        ("b/x10.npy".to_string(), npy("<i2", "(2,)", &[1, 0, 2, 0])),
        ("b/x9.npy".to_string(), npy(">f8", "(1, 1)", &3.5f64.to_be_bytes())),
        ("a.npy".to_string(), npy("|u1", "(3,)", &[7, 8, 9])),
        ("empty.npy".to_string(), npy("<f4", "(0, 3, 2)", &[])),
        ("notes.txt".to_string(), b"no series".to_vec()),
        (".hidden.npy".to_string(), b"broken".to_vec()),
        // A shard folder is a leaf: nothing else in it is looked at.
        ("c/shards/stray.npy".to_string(), b"broken".to_vec()),
        ("c/shards/deeper/stray.npy".to_string(), b"broken".to_vec()),
    ];
    for entry in fs::read_dir(&shards).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        files.push((format!("c/shards/{name}"), fs::read(&path).unwrap()));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (n.as_str(), b.as_slice())).collect();
    let folder = folder_of(&files);
    for options in both_ways(&Options::default()) {
        let source = open_with(folder.path(), &options).unwrap();
        assert_eq!(source.format(), "collection");
        assert_eq!(source.schema().element.dtype, DType::F32);
        conforms(&source, true, "collection");
        let alone = open_with(&shards, &options).unwrap();
        assert_eq!(source.len(), 3 + alone.len());
        same(&numbers(source.as_ref(), 0, DType::F32).unwrap(), &[7.0, 8.0, 9.0], "a.npy");
        same(&numbers(source.as_ref(), 1, DType::F32).unwrap(), &[3.5], "x9.npy");
        same(&numbers(source.as_ref(), 2, DType::F32).unwrap(), &[1.0, 2.0], "x10.npy");
        for record in 0..alone.len() {
            let expected = numbers(alone.as_ref(), record, DType::F32).unwrap();
            same(&numbers(source.as_ref(), 3 + record, DType::F32).unwrap(), &expected, "shards");
        }
        let names: Vec<String> = source.files().into_iter().map(|f| f.file).collect();
        let ends = |i: usize, end: &str| assert!(names[i].ends_with(end), "{names:?}");
        ends(0, "a.npy");
        ends(1, "b/x9.npy");
        ends(2, "b/x10.npy");
        ends(3, "c/shards/meta.json");
        ends(6, "c/shards/data-3-of-3.bin");
        assert_eq!(names.len(), 7);
    }
}

#[test]
fn folders_of_text_and_of_ids_stay_what_they_are() {
    let array = npy("<i2", "(2,)", &[1, 0, 2, 0]);
    for (files, format) in [
        (vec![("a.jsonl", &b"{\"text\": \"a\"}\n"[..])], "jsonl"),
        (vec![("a.jsonl", b"{\"text\": \"a\"}\n"), ("embedding.npy", array.as_slice())], "jsonl"),
        (vec![("a.bin", b"1234"), ("b.npy", array.as_slice())], "tokens"),
        (vec![("sub/a.bin", b"1234"), ("b.npy", array.as_slice())], "collection"),
        (vec![("sub/b.npy", array.as_slice())], "collection"),
    ] {
        let folder = folder_of(&files);
        assert_eq!(open(folder.path()).unwrap().format(), format, "{files:?}");
    }
}

#[test]
fn a_copy_of_series_has_the_same_fingerprint_and_an_edit_another() {
    let with = |bytes: &[u8]| {
        let folder =
            folder_of(&[("a.npy", npy("<i2", "(2,)", bytes)), ("b.npy", npy("<i2", "(1,)", &[5, 0]))]);
        open(folder.path()).unwrap().fingerprint().unwrap()
    };
    assert_eq!(with(&[1, 0, 2, 0]), with(&[1, 0, 2, 0]));
    assert_ne!(with(&[1, 0, 2, 0]), with(&[1, 0, 2, 1]));
    let shards = |mean: &str| {
        let meta = format!(
            "{{\"num_sequences\":1,\"dtype\":\"float32\",\"files\":{{\"d-1-of-1.bin\":2}},
            \"scales\":[{{\"offset\":0,\"length\":2,\"mean\":{mean},\"std\":1}}]}}"
        );
        let folder = folder_of(&[("meta.json", meta.as_bytes()), ("d-1-of-1.bin", &[0; 8])]);
        open(folder.path()).unwrap().fingerprint().unwrap()
    };
    assert_eq!(shards("1"), shards("1.0"));
    assert_ne!(shards("1"), shards("1.5"));
}

#[test]
fn joined_sources_count_their_records_through() {
    let toys = || {
        [Toy::tokens(&[2, 3]), Toy::tokens(&[]), Toy::tokens(&[4])]
            .map(|toy| toy.with_mask(&[&[1; 4], &[0; 4]]))
    };
    let [a, none, b] = toys();
    b.fail_after.store(1, std::sync::atomic::Ordering::Relaxed);
    let joined = Concat::new("joined", vec![Arc::new(a), Arc::new(none), Arc::new(b)]).unwrap();
    assert_eq!((joined.len(), joined.uniform(), joined.format()), (3, None, "joined"));
    assert_eq!(numbers(&joined, 1, DType::F64).unwrap(), [1000.0, 1001.0, 1002.0]);
    assert_eq!(numbers(&joined, 2, DType::F64).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    // The part says its first record, the whole its third.
    assert_eq!(numbers(&joined, 2, DType::F64).unwrap_err().place().record, Some(2));
    assert_eq!(joined.extras(2).unwrap().shown()["prompt"], "record 0");
    let span = Span { record: 2, start: 1, len: 3 };
    assert_eq!(joined.read_track(0, span, &mut Vec::new()).unwrap().bytes, [1, 1, 1]);
    assert_eq!(joined.locate(span).unwrap()[0].file, "toy/0");
    assert_eq!(joined.length(3).unwrap_err().kind(), Kind::OutOfRange);
    assert_eq!(Concat::new("joined", Vec::new()).err().unwrap().kind(), Kind::Config);
    let same = |lengths: &[u64]| -> SharedSource { Arc::new(Toy::tokens(lengths)) };
    assert_eq!(Concat::new("joined", vec![same(&[2, 2]), same(&[]), same(&[2])]).unwrap().uniform(), None);
    for (part, says) in [
        (Toy::json(), "records are Numbers"),
        (Toy::series(&[&[1.0, 2.0]], 2, &[Decode::Plain]), "[T] in , [T, 2] here"),
        (Toy::tokens(&[1]).with_mask(&[&[1]]), "arrays beside the values"),
    ] {
        let error = Concat::new("joined", vec![same(&[1]), Arc::new(part)]).err().unwrap();
        assert_eq!(error.kind(), Kind::Mismatch);
        assert!(format!("{error:#}").contains(says), "{error}");
    }
}

#[test]
fn a_subset_and_its_others_are_all_records() {
    alone("series::a_subset_and_its_others_are_all_records", |_| {
        let folder = tempfile::tempdir().unwrap();
        let records: Vec<Vec<u64>> = (0..9).map(|n| (0..n).collect()).collect();
        fs::write(folder.path().join("s.json"), serde_json::to_vec(&records).unwrap()).unwrap();
        let source = open(&folder.path().join("s.json")).unwrap();
        let subset = |numbers: Vec<u64>, others| Subset::new(source.clone(), numbers.into(), others);
        for numbers in
            [vec![], vec![0], vec![8], vec![0, 1, 2], vec![2, 5, 6, 8], (0..9).collect::<Vec<u64>>()]
        {
            let lengths = |others: bool| -> Vec<u64> {
                let subset = subset(numbers.clone(), others).unwrap();
                conformance::check(&subset).unwrap();
                assert!(subset.length(subset.len()).is_err());
                (0..subset.len()).map(|record| subset.length(record).unwrap()).collect()
            };
            assert_eq!(lengths(false), numbers);
            assert_eq!(lengths(true), (0..9).filter(|n| !numbers.contains(n)).collect::<Vec<_>>());
        }
        assert_eq!(subset(vec![9], false).err().unwrap().kind(), Kind::OutOfRange);
        assert_eq!(subset(vec![3, 3], true).err().unwrap().kind(), Kind::Config);
    });
}
