//! Records of numbers, written: what stands in the files, what is refused, and that nothing half-written is seen.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use windrow_core::source::{Extras, Schema};
use windrow_core::{DType, Decode, Element, Error, Kind, Values};
use windrow_prepare::Writer;

use crate::writing::{To, Writing, create};

fn schema(channels: Option<usize>) -> Schema {
    Schema { channels, ..Schema::numbers(Element::little(DType::F32)) }
}

fn add(writer: &mut Writer, numbers: &[f32], channels: usize, extras: Value) -> Result<(), Error> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let values =
        Values { bytes: &bytes, element: Element::little(DType::F32), channels, decode: Decode::Plain };
    let Value::Object(extras) = extras else { return writer.add(&values, &Extras::new()) };
    writer.add(&values, &extras.into())
}

fn f32s(path: &Path) -> Vec<f32> {
    let bytes = fs::read(path).unwrap();
    bytes.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn shards_are_one_row_of_numbers_cut_at_the_cap() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("shards");
    let options = Writing { max_shard_bytes: Some(12), ..Writing::new(To::Shards) };
    let mut writer = create(&out, &schema(None), &options).unwrap();
    add(&mut writer, &[1.0, 2.0, 3.0, 4.0], 1, json!({"id": "a", "tags": [1, null]})).unwrap();
    add(&mut writer, &[], 1, json!({})).unwrap();
    add(&mut writer, &[5.0, 6.0, 7.0], 1, Value::Null).unwrap();
    assert_eq!(names(folder.path()).iter().filter(|n| !n.starts_with('.')).count(), 0);
    let report = writer.finish().unwrap();
    assert_eq!((report.records, report.files, report.output_bytes), (3, 3, 28));
    assert_eq!(names(folder.path()), ["shards"]);
    assert_eq!(
        names(&out),
        ["data-1-of-3.bin", "data-2-of-3.bin", "data-3-of-3.bin", "meta.json", "windrow.sums"]
    );
    let all: Vec<f32> = (1..=3).flat_map(|i| f32s(&out.join(format!("data-{i}-of-3.bin")))).collect();
    assert_eq!(all, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let mut meta: Value = serde_json::from_slice(&fs::read(out.join("meta.json")).unwrap()).unwrap();
    let told = meta.as_object_mut().unwrap().remove("windrow").unwrap();
    assert_eq!((told["files"].as_array().unwrap().len(), &told["files"][2]["size"]), (3, &json!(4)));
    assert_eq!(
        meta,
        json!({
            "num_sequences": 3,
            "dtype": "float32",
            "files": {"data-1-of-3.bin": 3, "data-2-of-3.bin": 3, "data-3-of-3.bin": 1},
            "scales": [
                {"offset": 0, "length": 4, "id": "a", "tags": [1, null]},
                {"offset": 4, "length": 0},
                {"offset": 4, "length": 3},
            ],
        })
    );
}

#[test]
fn normalised_shards_keep_mean_and_deviation() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("shards");
    let options = Writing { normalize: true, ..Writing::new(To::Shards) };
    let mut writer = create(&out, &schema(None), &options).unwrap();
    add(&mut writer, &[1.0, 3.0], 1, Value::Null).unwrap();
    add(&mut writer, &[5.0, 5.0], 1, Value::Null).unwrap();
    writer.finish().unwrap();
    assert_eq!(f32s(&out.join("data-1-of-1.bin")), [-1.0, 1.0, 0.0, 0.0]);
    let meta: Value = serde_json::from_slice(&fs::read(out.join("meta.json")).unwrap()).unwrap();
    assert_eq!(meta["scales"][0], json!({"offset": 0, "length": 2, "mean": 2.0, "std": 1.0}));
    assert_eq!(meta["scales"][1], json!({"offset": 2, "length": 2, "mean": 5.0, "std": 0.0}));
    let mut writer = create(&folder.path().join("other"), &schema(None), &options).unwrap();
    let e = add(&mut writer, &[1.0, f32::NAN], 1, Value::Null).unwrap_err();
    assert_eq!((e.kind(), e.place().record), (Kind::Config, Some(0)));
}

#[test]
fn an_option_of_shards_is_refused_where_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let lines = || Writing::new(To::Jsonl);
    for (option, options) in [
        ("normalize", Writing { normalize: true, ..lines() }),
        ("max_shard_bytes", Writing { max_shard_bytes: Some(1 << 20), ..lines() }),
    ] {
        let error = create(&folder.path().join("s.jsonl"), &schema(None), &options).err().unwrap();
        assert_eq!((error.kind(), error.place().field.as_deref()), (Kind::Config, Some(option)));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn lines_hold_the_shortest_digits_and_pythons_words() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("s.jsonl");
    let mut writer = create(&out, &schema(None), &Writing::new(To::Jsonl)).unwrap();
    add(&mut writer, &[0.1, -2.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY], 1, json!({"id": "é\""}))
        .unwrap();
    writer.finish().unwrap();
    let text = fs::read_to_string(&out).unwrap();
    assert_eq!(text, "{\"sequence\": [0.1, -2.0, NaN, Infinity, -Infinity], \"id\": \"é\\\"\"}\n");
    let out = folder.path().join("m.jsonl");
    let options = Writing { dtype: Some(DType::F64), ..Writing::new(To::Jsonl) };
    let mut writer = create(&out, &schema(Some(2)), &options).unwrap();
    add(&mut writer, &[1.0, 2.0, 3.0, 4.5], 2, Value::Null).unwrap();
    writer.finish().unwrap();
    assert_eq!(fs::read_to_string(&out).unwrap(), "{\"sequence\": [[1.0, 2.0], [3.0, 4.5]]}\n");
}

#[test]
fn an_array_has_a_header_that_numpy_documents() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.npy");
    let mut writer = create(&out, &schema(Some(2)), &Writing::new(To::Npy)).unwrap();
    add(&mut writer, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, Value::Null).unwrap();
    let e = add(&mut writer, &[1.0, 2.0], 2, Value::Null).unwrap_err();
    assert_eq!((e.kind(), e.place().record), (Kind::Config, Some(1)));
    drop(writer);
    assert_eq!(names(folder.path()), [""; 0]);
    let mut writer = create(&out, &schema(Some(2)), &Writing::new(To::Npy)).unwrap();
    add(&mut writer, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, Value::Null).unwrap();
    writer.finish().unwrap();
    let bytes = fs::read(&out).unwrap();
    assert_eq!(bytes.len(), 128 + 24);
    assert_eq!(&bytes[..10], b"\x93NUMPY\x01\x00\x76\x00");
    let text = String::from_utf8(bytes[10..128].to_vec()).unwrap();
    assert_eq!(text.trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 2), }");
    assert!(text.ends_with('\n'));
}

#[test]
fn what_cannot_be_written_is_refused_before_anything_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let kind = |name: &str, schema: &Schema, options: &Writing| {
        create(&folder.path().join(name), schema, options).map(drop).map_err(|e| e.kind())
    };
    let shards = Writing::new(To::Shards);
    let tokens = Writing::new(To::Tokens);
    assert_eq!(kind("a", &schema(Some(3)), &tokens), Err(Kind::Config));
    assert_eq!(kind("a", &schema(None), &tokens), Err(Kind::Config));
    let bf16 = Writing { dtype: Some(DType::Bf16), ..shards.clone() };
    assert_eq!(kind("a", &schema(None), &bf16), Err(Kind::Config));
    // Names by which nothing would open them again.
    for (layout, name) in
        [(To::Npz, "a"), (To::Jsonl, "a.json"), (To::Jsonl, "a.jsonl.gz"), (To::Npy, "a.npy.gz")]
    {
        let options = Writing::new(layout);
        assert_eq!(kind(name, &schema(Some(3)), &options), Err(Kind::Config), "{name}");
        assert_eq!(kind(name, &schema(None), &options), Err(Kind::Config), "{name}");
    }
    let mut writer = create(&folder.path().join("a"), &schema(None), &shards).unwrap();
    assert_eq!(add(&mut writer, &[1.0], 1, json!({"offset": 1})).unwrap_err().kind(), Kind::Config);
    // While one writes, another is told so.
    assert_eq!(kind("a", &schema(None), &shards), Err(Kind::Exists));
    drop(writer);
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn only_its_own_kind_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("mine");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("thesis.tex"), "years of work").unwrap();
    let replace = Writing { overwrite: true, ..Writing::new(To::Shards) };
    let write = |options: &Writing, numbers: &[f32]| {
        let mut writer = create(&out, &schema(None), options)?;
        add(&mut writer, numbers, 1, Value::Null)?;
        writer.finish()
    };
    assert_eq!(write(&replace, &[1.0]).unwrap_err().kind(), Kind::Exists);
    assert_eq!(fs::read(out.join("thesis.tex")).unwrap(), b"years of work");
    // Called as a shard is, without the file that describes shards.
    fs::rename(out.join("thesis.tex"), out.join("data-1-of-1.bin")).unwrap();
    assert_eq!(write(&replace, &[1.0]).unwrap_err().kind(), Kind::Exists);
    assert_eq!(fs::read(out.join("data-1-of-1.bin")).unwrap(), b"years of work");
    fs::remove_dir_all(&out).unwrap();
    write(&Writing { max_shard_bytes: Some(4), ..replace.clone() }, &[1.0, 2.0]).unwrap();
    let again = Writing { overwrite: false, ..replace.clone() };
    assert_eq!(write(&again, &[3.0]).unwrap_err().kind(), Kind::Exists);
    write(&replace, &[3.0]).unwrap();
    assert_eq!(names(&out), ["data-1-of-1.bin", "meta.json", "windrow.sums"]);
    assert_eq!(names(folder.path()), ["mine"]);
}
