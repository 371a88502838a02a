//! Series in notations that are converted once: what other programs read is what is read here.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windrow_core::format::Options;
use windrow_core::source::{Source, conformance};
use windrow_core::values::copy_values;
use windrow_core::{Buffer, DType, Decode, Kind, Result, Span, Values};

use super::alone::{alone, most_memory};
use super::disk::{both_ways, open, open_with};
use super::folder::{folder_of, names, put};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// A record as numbers of the source's dtype; those that JSON does not write are their names.
pub(crate) fn numbers(source: &dyn Source, record: u64) -> Result<Value> {
    read_as(source, record, source.schema().element.dtype)
}

fn read_as(source: &dyn Source, record: u64, dtype: DType) -> Result<Value> {
    let span = Span { record, start: 0, len: source.length(record)? };
    let mut scratch = Vec::new();
    let values = source.read(span, &mut scratch)?;
    let mut read = Buffer::zeroed(values.bytes.len() / values.element.size() * dtype.size());
    copy_values(&values, 0, read.bytes_mut(), dtype)?;
    let bytes = read.bytes();
    let values: Vec<Value> = match dtype {
        DType::I64 => bytes.as_chunks().0.iter().map(|word| i64::from_le_bytes(*word).into()).collect(),
        DType::F32 => {
            bytes.as_chunks().0.iter().map(|word| float(f32::from_le_bytes(*word).into())).collect()
        }
        DType::F64 => bytes.as_chunks().0.iter().map(|word| float(f64::from_le_bytes(*word))).collect(),
        other => panic!("{other}"),
    };
    Ok(match source.schema().channels {
        None => values.into(),
        Some(width) => values.chunks(width).map(<[Value]>::to_vec).collect::<Vec<_>>().into(),
    })
}

/// The dtype that a record is stored in, and its numbers, widened from it.
fn stored(source: &dyn Source, record: u64) -> (DType, Value) {
    let span = Span { record, start: 0, len: source.length(record).unwrap() };
    let mut scratch = Vec::new();
    let values = source.read(span, &mut scratch).unwrap();
    let element = values.element;
    if values.decode == Decode::Literal {
        assert_eq!(element.dtype, DType::F64);
        return (DType::F32, read_as(source, record, DType::F32).unwrap());
    }
    let read = values.bytes.chunks(element.size()).map(|bytes| {
        let one = Values { bytes, channels: 1, decode: Decode::Plain, ..values };
        let mut word = Buffer::zeroed(8);
        let dtype = if element.dtype.is_integer() { DType::I64 } else { DType::F64 };
        copy_values(&one, 0, word.bytes_mut(), dtype).unwrap();
        let word = word.bytes().as_chunks().0[0];
        if element.dtype.is_integer() {
            i64::from_le_bytes(word).into()
        } else {
            float(f64::from_le_bytes(word))
        }
    });
    let read: Vec<Value> = read.collect();
    let read = match source.schema().channels {
        None => read.into(),
        Some(width) => read.chunks(width).map(<[Value]>::to_vec).collect::<Vec<_>>().into(),
    };
    (element.dtype, read)
}

fn float(number: f64) -> Value {
    match number {
        n if n.is_nan() => "nan".into(),
        n if n.is_infinite() => if n > 0.0 { "inf" } else { "-inf" }.into(),
        n => n.into(),
    }
}

/// All records.
pub(crate) fn all(source: &dyn Source) -> Value {
    (0..source.len()).map(|record| numbers(source, record).unwrap()).collect::<Vec<_>>().into()
}

// A whole number where the file holds int64, the nearest float32 where it holds those.
fn as_read(expected: &Value, dtype: DType) -> Value {
    match expected {
        Value::Array(values) => values.iter().map(|v| as_read(v, dtype)).collect::<Vec<_>>().into(),
        Value::Bool(flag) => i64::from(*flag).into(),
        Value::Number(number) if dtype == DType::F32 => float(f64::from(number.as_f64().unwrap() as f32)),
        other => other.clone(),
    }
}

#[test]
fn recorded_files_give_the_recorded_sequences() {
    alone("converted::recorded_files_give_the_recorded_sequences", |_| {
        let mut seen = 0;
        for entry in fs::read_dir(testdata("golden/0_foundation_ts")).unwrap() {
            let folder = entry.unwrap().path();
            let name = folder.file_name().unwrap().to_str().unwrap().to_string();
            let converted = ["json", "jsonl", "yaml", "yml", "pkl", "pickle"];
            let is_one = converted.iter().any(|suffix| name.ends_with(&format!("_{suffix}")));
            if !name.starts_with("21_file_") || !is_one {
                continue;
            }
            let case: Value = serde_json::from_slice(&fs::read(folder.join("case.json")).unwrap()).unwrap();
            let path = folder.join(case["data_path"].as_str().unwrap());
            // The original looks for one key; here the only list of numbers is found by itself.
            let column = name.contains("dict_without_sequence").then(|| "sequence".to_string());
            for options in both_ways(&Options { column, ..Options::default() }) {
                check_case(&name, &path, &options, &case["expected"]);
            }
            seen += 1;
        }
        assert_eq!(seen, 17);
    });
}

fn check_case(name: &str, path: &Path, options: &Options, expected: &Value) {
    let source = open_with(path, options);
    let sequences = expected["ok"]["sequences"]["ok"].as_array();
    // Decided otherwise than the original: numbers at the top are one sequence.
    let flat = vec![json!({"dtype": "int64", "values": [1, 2, 3]})];
    let sequences = if name.contains("flat_scalars") { Some(&flat) } else { sequences };
    let Some(sequences) = sequences else {
        let error = source.err().unwrap_or_else(|| panic!("{name} opens"));
        assert_eq!(error.kind(), Kind::Corrupt, "{name}: {error}");
        assert!(error.hint_text().is_some() && error.place().file.is_some(), "{name}: {error}");
        return;
    };
    let source = source.unwrap_or_else(|e| panic!("{name}: {e}"));
    conformance::check(source.as_ref()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let dtype = source.schema().element.dtype;
    let whole = sequences.iter().all(|s| matches!(s["dtype"].as_str(), Some("int64" | "bool")));
    assert_eq!(dtype, if whole { DType::I64 } else { DType::F32 }, "{name}");
    let wanted: Vec<Value> = sequences.iter().map(|s| as_read(&s["values"], dtype)).collect();
    assert_eq!(all(source.as_ref()), Value::from(wanted), "{name}");
    for (record, sequence) in (0..).zip(sequences) {
        let (dtype, found) = stored(source.as_ref(), record);
        assert_eq!(dtype.name(), sequence["dtype"], "{name} {record}");
        assert_eq!(found, as_read(&sequence["values"], dtype), "{name} {record}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn json_is_read_from_lists_lines_and_streams_alike() {
    alone("converted::json_is_read_from_lists_lines_and_streams_alike", |_| {
        let list = "[{\"id\": \"a\", \"sequence\": [1, 2.5]}, [NaN], [], {\"sequence\": [3], \"x\": {\"y\": [null, NaN]}}]";
        let lines = "{\"id\": \"a\", \"sequence\": [1, 2.5]}\r\n[NaN]\n[]\n{\"sequence\": [3], \"x\": {\"y\": [null, NaN]}}";
        let folder = folder_of(&[
            ("a.json", list.as_bytes().to_vec()),
            ("a.json.gz", gzip(list.as_bytes())),
            ("a.json.zst", zstd::bulk::compress(list.as_bytes(), 3).unwrap()),
            ("a.jsonl", lines.as_bytes().to_vec()),
            ("a.jsonl.gz", gzip(lines.as_bytes())),
            ("a.ndjson.zst", zstd::bulk::compress(lines.as_bytes(), 3).unwrap()),
        ]);
        for path in names(folder.path()) {
            for options in both_ways(&Options::default()) {
                let source = open_with(&path, &options).unwrap();
                conformance::check(source.as_ref()).unwrap();
                assert_eq!(all(source.as_ref()), json!([[1.0, 2.5], ["nan"], [], [3.0]]), "{path:?}");
                let extras = |record| Value::Object(source.extras(record).unwrap().shown());
                assert_eq!(extras(0), json!({"id": "a"}));
                assert_eq!([extras(1), extras(2)], [json!({}), json!({})]);
                assert_eq!(extras(3), json!({"x": {"y": [null, null]}}));
            }
        }
        // A record is located where it was written.
        let source = open(&folder.path().join("a.jsonl")).unwrap();
        let span = Span { record: 1, start: 0, len: 1 };
        let place = source.locate(span).unwrap().remove(0);
        assert_eq!(&lines[place.start as usize..(place.start + place.size) as usize], "[NaN]");
    });
}

#[test]
fn a_file_is_converted_once_and_again_when_it_changed() {
    alone("converted::a_file_is_converted_once_and_again_when_it_changed", |cache| {
        let folder = folder_of(&[("a.json", "[[1, 2], [3]]")]);
        let path = folder.path().join("a.json");
        let first = open(&path).unwrap();
        let made = names(cache);
        assert_eq!(made.len(), 1);
        let again = open(&path).unwrap();
        assert_eq!(names(cache), made);
        assert_eq!(first.fingerprint().unwrap(), again.fingerprint().unwrap());
        let copy = folder_of(&[("b.json", "[[1, 2], [3]]")]);
        let copy = open(&copy.path().join("b.json")).unwrap();
        assert_eq!(first.fingerprint().unwrap(), copy.fingerprint().unwrap());
        put(folder.path(), "a.json", b"[[1, 5], [3]]");
        let edited = open(&path).unwrap();
        assert_eq!(all(edited.as_ref()), json!([[1, 5], [3]]));
        assert_ne!(first.fingerprint().unwrap(), edited.fingerprint().unwrap());
        // What stood there before is still read by who had opened it.
        assert_eq!(all(first.as_ref()), json!([[1, 2], [3]]));
    });
}

#[test]
fn whole_numbers_become_float32_with_the_first_that_is_not() {
    alone("converted::whole_numbers_become_float32_with_the_first_that_is_not", |_| {
        // More than one part is rewritten in its place.
        let many: Vec<String> = (0..50_000).map(|i| i.to_string()).collect();
        let many = many.join(",");
        let folder =
            folder_of(&[("i.json", format!("[[{many}]]")), ("f.json", format!("[[{many}], [0.5, 7]]"))]);
        let whole = open(&folder.path().join("i.json")).unwrap();
        assert_eq!(whole.schema().element.dtype, DType::I64);
        assert_eq!(numbers(whole.as_ref(), 0).unwrap(), json!((0..50_000).collect::<Vec<_>>()));
        let mixed = open(&folder.path().join("f.json")).unwrap();
        assert_eq!(mixed.schema().element.dtype, DType::F32);
        let wanted: Vec<f64> = (0..50_000).map(f64::from).collect();
        assert_eq!(all(mixed.as_ref()), json!([wanted, [0.5, 7.0]]));
    });
}

#[test]
fn every_record_keeps_the_dtype_that_holds_its_numbers() {
    alone("converted::every_record_keeps_the_dtype_that_holds_its_numbers", |_| {
        let flags = vec!["true"; 70_000].join(",");
        let text = format!(
            "[[16777217, 9007199254740993], [0.1], [], [true, false], [true, 7], [1, 2.5], [{flags}], [{flags}, -3], \
             [{flags}, -3, 0.5], [-9223372036854775808]]"
        );
        let folder = folder_of(&[("a.json", text)]);
        let source = open(&folder.path().join("a.json")).unwrap();
        conformance::check(source.as_ref()).unwrap();
        let ones = vec![1; 70_000];
        let wanted = [
            (DType::I64, json!([16_777_217, 9_007_199_254_740_993i64])),
            (DType::F32, json!([f64::from(0.1f32)])),
            (DType::F32, json!([])),
            (DType::Bool, json!([1, 0])),
            (DType::I64, json!([1, 7])),
            (DType::F32, json!([1.0, 2.5])),
            (DType::Bool, json!(ones)),
            (DType::I64, json!([&ones[..], &[-3]].concat())),
            (DType::F32, json!([vec![1.0; 70_000], vec![-3.0, 0.5]].concat())),
            (DType::I64, json!([i64::MIN])),
        ];
        for (record, wanted) in (0..).zip(&wanted) {
            assert_eq!(&stored(source.as_ref(), record), wanted, "{record}");
        }
        // Read as they always are, they are all of one dtype; float64 has all digits, and says where it has too few.
        assert_eq!(source.schema().element.dtype, DType::F32);
        assert_eq!(numbers(source.as_ref(), 0).unwrap(), json!([16_777_216.0, 9_007_199_254_740_992.0]));
        let error = read_as(source.as_ref(), 0, DType::F64).unwrap_err();
        assert!(error.message().starts_with("the number 9007199254740993 does not fit float64"), "{error}");
        assert_eq!(read_as(source.as_ref(), 1, DType::F64).unwrap(), json!([0.1]));
        assert_eq!(read_as(source.as_ref(), 3, DType::F32).unwrap(), json!([1.0, 0.0]));
    });
}

#[test]
fn lines_of_other_things_stay_json_lines() {
    let folder =
        folder_of(&[("t.jsonl", "{\"text\": \"a\"}\n[1]\n"), ("s.jsonl", "{\"sequence\": \"ACGT\"}\n")]);
    for name in ["t.jsonl", "s.jsonl", ""] {
        assert_eq!(open(&folder.path().join(name)).unwrap().format(), "jsonl");
    }
    let forced = Options { format: Some("series-jsonl".to_string()), ..Options::default() };
    alone("converted::lines_of_other_things_stay_json_lines", |_| {
        let error = open_with(&folder.path().join("t.jsonl"), &forced).err().unwrap();
        assert!(format!("{error:#}").contains("expected the key `sequence`"), "{error}");
    });
}

#[test]
fn whole_numbers_beside_the_values_keep_all_their_digits() {
    alone("converted::whole_numbers_beside_the_values_keep_all_their_digits", |_| {
        let text = "[{\"sequence\": [1], \"a\": [18446744073709551615, 18446744073709551616, -9223372036854775809, 1.5]}]";
        let folder = folder_of(&[("a.json", text.as_bytes())]);
        let source = open(&folder.path().join("a.json")).unwrap();
        let wanted =
            json!([18_446_744_073_709_551_615u64, "18446744073709551616", "-9223372036854775809", 1.5]);
        assert_eq!(source.extras(0).unwrap().shown()["a"], wanted);
    });
}

#[test]
fn whole_numbers_of_yaml_are_those_of_pyyaml() {
    alone("converted::whole_numbers_of_yaml_are_those_of_pyyaml", |_| {
        // What yaml.safe_load of PyYAML 6 gives.
        let text = "- [010, -010, 0x10, 0b101, 1_000, 0_7, 00, 0, 8, -0x10]\n";
        let folder =
            folder_of(&[("a.yaml", text.as_bytes()), ("b.yaml", b"- [1:30]\n"), ("c.yaml", b"- [1_0.5]\n")]);
        let source = open(&folder.path().join("a.yaml")).unwrap();
        assert_eq!(source.schema().element.dtype, DType::I64);
        assert_eq!(all(source.as_ref()), json!([[8, -8, 16, 5, 1000, 7, 0, 0, 8, -16]]));
        for name in ["b.yaml", "c.yaml"] {
            assert_eq!(open(&folder.path().join(name)).err().unwrap().kind(), Kind::Corrupt, "{name}");
        }
    });
}

#[test]
fn yaml_gives_what_json_gives() {
    alone("converted::yaml_gives_what_json_gives", |_| {
        let block = "- id: a\n  sequence: [1, 2.5]\n- [.nan, -.inf, 1e3]\n- []\n- sequence:\n  - 3\n  x: {y: [null, 'z', true]}\n";
        for text in [block.to_string(), format!("---\n{block}...\n"), block.replace('\n', "\r\n")] {
            let folder =
                folder_of(&[("a.yaml", text.as_bytes().to_vec()), ("a.yml.gz", gzip(text.as_bytes()))]);
            for path in names(folder.path()) {
                for options in both_ways(&Options::default()) {
                    let source = open_with(&path, &options).unwrap();
                    assert_eq!(source.format(), "yaml");
                    conformance::check(source.as_ref()).unwrap();
                    assert_eq!(all(source.as_ref()), json!([[1.0, 2.5], ["nan", "-inf", 1000.0], [], [3.0]]));
                    let extras = |record| Value::Object(source.extras(record).unwrap().shown());
                    assert_eq!(extras(0), json!({"id": "a"}));
                    assert_eq!(extras(3), json!({"x": {"y": [null, "z", true]}}));
                }
            }
        }
        // More nodes than the usual budget of a configuration file, in lists of both styles.
        let flow: String = (0..3000).map(|_| format!("- [{}]\n", vec!["1.5"; 100].join(", "))).collect();
        let rows: String = (0..300).map(|_| format!("-\n{}", "  - [1, 2, -3]\n".repeat(100))).collect();
        let folder = folder_of(&[("f.yaml", flow), ("r.yaml", rows)]);
        let source = open(&folder.path().join("f.yaml")).unwrap();
        assert_eq!((source.len(), source.uniform()), (3000, Some(100)));
        let source = open(&folder.path().join("r.yaml")).unwrap();
        assert_eq!((source.len(), source.length(299).unwrap()), (300, 100));
        assert_eq!((source.schema().channels, source.schema().element.dtype), (Some(3), DType::I64));
    });
}

#[test]
fn pickles_hold_what_python_put_in() {
    alone("converted::pickles_hold_what_python_put_in", |_| {
        let expected: Value =
            serde_json::from_slice(&fs::read(testdata("series/expected.json")).unwrap()).unwrap();
        let expected = expected.as_object().unwrap();
        assert_eq!(expected.len(), 18);
        for (name, values) in expected {
            for options in both_ways(&Options::default()) {
                let source = open_with(&testdata("series").join(name), &options)
                    .unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(source.format(), "pickle");
                conformance::check(source.as_ref()).unwrap_or_else(|e| panic!("{name}: {e}"));
                let dtype = source.schema().element.dtype;
                let whole = ["cube", "flat", "objects", "several"].iter().any(|kind| name.starts_with(kind));
                assert_eq!(dtype, if whole { DType::I64 } else { DType::F32 }, "{name}");
                // A flat array is one sequence.
                let wanted = if name.starts_with("flat") { json!([values]) } else { values.clone() };
                assert_eq!(all(source.as_ref()), as_read(&wanted, dtype), "{name}");
                for record in 0..source.len() {
                    check_kept(name, source.as_ref(), record, &wanted[record as usize]);
                }
                if name.starts_with("numbers") {
                    let extras = Value::Object(source.extras(4).unwrap().shown());
                    let wanted = json!({"id": "série ☃", "tags": [null, {"a": [1, 2]}], "big": (1u128 << 70).to_string(), "7": "seven"});
                    assert_eq!(extras, wanted, "{name}");
                }
            }
        }
    });
}

// What numpy and torch gave a dtype has it, and its numbers as they are; `dtype` stands beside some, as numpy's letter.
fn check_kept(name: &str, source: &dyn Source, record: u64, wanted: &Value) {
    let (dtype, found) = stored(source, record);
    let kept = match source.extras(record).unwrap().shown().get("dtype").and_then(Value::as_str) {
        Some("?") => DType::Bool,
        Some("b") => DType::I8,
        Some("B") => DType::U8,
        Some("h") => DType::I16,
        Some("H") => DType::U16,
        Some("i") => DType::I32,
        Some("I" | ">u4") => DType::U32,
        Some("q" | ">i8") => DType::I64,
        Some("Q") => DType::U64,
        Some("e") => DType::F16,
        Some("f" | ">f4") => DType::F32,
        Some("d" | ">f8") => DType::F64,
        Some(">i2") => DType::I16,
        Some(other) => panic!("{other}"),
        None => match name.split(['-', '.']).next().unwrap() {
            // Lists of Python's numbers first; those of numpy's, and arrays, follow.
            "numbers" if record < 6 => {
                [DType::F32, DType::I64, DType::F32, DType::F32, DType::F32, DType::F32][record as usize]
            }
            "numbers" => DType::F64,
            "cube" => DType::I32,
            "rows" => DType::F32,
            "flat" => DType::U16,
            "objects" | "several" => DType::I64,
            "torch" => [
                DType::F32,
                DType::F32,
                DType::F32,
                DType::Bf16,
                DType::F16,
                DType::F64,
                DType::I64,
                DType::Bool,
            ][record as usize],
            other => panic!("{other}"),
        },
    };
    assert_eq!(dtype, kept, "{name} {record}");
    let is_float = !dtype.is_integer();
    assert_eq!(found, if is_float { as_floats(wanted, dtype) } else { wanted.clone() }, "{name} {record}");
}

fn as_floats(expected: &Value, dtype: DType) -> Value {
    match expected {
        Value::Array(values) => values.iter().map(|v| as_floats(v, dtype)).collect::<Vec<_>>().into(),
        Value::Number(number) if dtype == DType::F32 => float(f64::from(number.as_f64().unwrap() as f32)),
        Value::Number(number) => float(number.as_f64().unwrap()),
        other => other.clone(),
    }
}

#[test]
fn converting_takes_little_memory() {
    alone("converted::converting_takes_little_memory", |_| {
        let rows: String = (0..400_000).map(|i| format!("[{i}, 0.5, -1e3],\n")).collect();
        let text = format!("[{}[]]", rows);
        let folder = folder_of(&[("a.json", text.as_bytes()), ("a.yaml", text.as_bytes())]);
        for name in ["a.json", "a.yaml"] {
            let (source, memory) = most_memory(|| open(&folder.path().join(name)).unwrap());
            assert_eq!((source.len(), source.length(399_999).unwrap()), (400_001, 3));
            assert!(memory < 4 << 20, "{name}: {memory} bytes for a file of {}", text.len());
        }
    });
}
