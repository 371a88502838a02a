//! Every format of the table: golden data of it, what is written read equal, and cut anywhere an error or a beginning.
//!
//! Flipped bits are `windrow-cli/tests/it/flips.rs`, which walks the same table; rows of the docs are `docs.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, json};
use windrow::dev::format::write::writer;
use windrow::dev::source::{Extras, Kind, Schema, conformance};
use windrow::dev::values::copy_values;
use windrow::format::Options;
use windrow::format::{Takes, Target, WriteFormat, WriteOptions};
use windrow::formats;
use windrow::prepare::{VerifyOptions, Writer};
use windrow::{Array, Buffer, DType, Dataset, Decode, Element, Row, Value, Values, open_with};

const DTYPES: [DType; 13] = [
    DType::Bool,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::Bf16,
    DType::F32,
    DType::F64,
];

/// Numbers that every dtype holds; three records of four.
const NUMBERS: [[u8; 4]; 3] = [[0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0]];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

// Folders and files, each once, whatever they are.
fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, found);
        }
        found.push(path);
    }
}

// An index is recorded beside the folder of the data that it belongs to, not in it.
fn index_with_data(path: &Path) -> Option<tempfile::TempDir> {
    let input = path.parent()?.join("input");
    if !path.ends_with("expected_index") || !input.is_dir() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    below(&input, &mut files);
    let index = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let index = index.map(|file| (Path::new("index").join(file.file_name().unwrap()), file));
    let data = files.into_iter().map(|file| (file.strip_prefix(&input).unwrap().to_path_buf(), file));
    for (name, file) in data.chain(index).filter(|(_, file)| file.is_file()) {
        let to = folder.path().join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }
    Some(folder)
}

#[test]
fn every_format_has_golden_data_that_conforms() {
    let mut paths = Vec::new();
    below(&golden(), &mut paths);
    paths.sort();
    let mut of_formats: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths {
        const ENOUGH: usize = 6;
        let joined = index_with_data(&path);
        let at = joined.as_ref().map_or(path.as_path(), |folder| folder.path());
        // What is broken on purpose, or no data, does not open.
        let Ok(data) = windrow::open(at) else { continue };
        let count = of_formats.entry(data.source().format()).or_default();
        *count += 1;
        if *count <= ENOUGH && !data.is_empty() {
            conformance::check(data.source().as_ref()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
    let names = windrow::formats().iter().map(|format| format.name());
    let missing: Vec<&str> = names.filter(|name| !of_formats.contains_key(name)).collect();
    assert!(missing.is_empty(), "no golden data of {}", missing.join(", "));
}

/// A data set that was written.
struct Set {
    folder: tempfile::TempDir,
    path: PathBuf,
}

fn path_in(folder: &Path, format: &dyn WriteFormat) -> PathBuf {
    match format.info().target {
        Target::File(endings) => folder.join(format!("out{}", endings[0])),
        Target::Folder | Target::Pair(_) => folder.join("out"),
    }
}

// Numbers of this dtype, or `None` where the format refuses them.
fn write(format: &dyn WriteFormat, dtype: DType, channels: Option<usize>) -> Option<Set> {
    let folder = tempfile::tempdir().unwrap();
    let path = path_in(folder.path(), format);
    let schema = Schema { channels, ..Schema::numbers(Element::little(dtype)) };
    let stored = match format.stored_dtype(dtype, None) {
        Ok(stored) => stored,
        Err(e) => {
            assert_eq!(e.kind(), windrow::Kind::Config, "{}: {e}", format.name());
            return None;
        }
    };
    let mut writer = match Writer::create(&path, &schema, format, &WriteOptions::default()) {
        Ok(writer) => writer,
        Err(e) => {
            assert_eq!(e.kind(), windrow::Kind::Config, "{} {dtype} as {stored}: {e}", format.name());
            return None;
        }
    };
    for numbers in NUMBERS {
        let u8s = Values {
            bytes: &numbers,
            element: Element::little(DType::U8),
            channels: 1,
            decode: Decode::Plain,
        };
        let mut bytes = Buffer::zeroed(4 * dtype.size());
        // Bool is a byte of 0 or 1.
        let to = if dtype == DType::Bool { DType::U8 } else { dtype };
        copy_values(&u8s, 0, bytes.bytes_mut(), to).unwrap();
        let element = Element::little(dtype);
        let values =
            Values { bytes: bytes.bytes(), element, channels: channels.unwrap_or(1), decode: Decode::Plain };
        if let Err(e) = writer.add(&values, &Extras::new()) {
            assert_eq!(e.kind(), windrow::Kind::Config, "{} {dtype}: {e}", format.name());
            return None;
        }
    }
    writer.finish().unwrap();
    Some(Set { folder, path })
}

fn open(format: &dyn WriteFormat, path: &Path) -> windrow::Result<Dataset> {
    windrow::open_with(path, &Options { format: Some(format.name().to_string()), ..Options::default() })
}

// All numbers of all records, one after the other: a format of one stream keeps no borders.
fn numbers(data: &Dataset) -> windrow::Result<Vec<f64>> {
    let source = data.source();
    let (mut all, mut scratch) = (Vec::new(), Vec::new());
    for record in 0..source.len() {
        if source.schema().kind == Kind::Rows {
            source.row(record)?;
            continue;
        }
        source.extras(record)?;
        let values = source.read_whole(record, &mut scratch)?;
        let mut wide = Buffer::zeroed(values.bytes.len() / values.element.size() * 8);
        copy_values(&values, 0, wide.bytes_mut(), DType::F64)?;
        all.extend(wide.bytes().as_chunks::<8>().0.iter().map(|number| f64::from_le_bytes(*number)));
    }
    Ok(all)
}

fn written() -> impl Iterator<Item = std::sync::Arc<dyn WriteFormat>> {
    windrow::written().into_iter().map(|format| windrow::writer(format.to, &Map::new()).unwrap())
}

#[test]
fn what_is_written_is_read_equal_in_every_dtype() {
    let expected: Vec<f64> = NUMBERS.iter().flatten().map(|number| f64::from(*number)).collect();
    for format in written() {
        let mut taken = 0;
        for (dtype, channels) in DTYPES.into_iter().flat_map(|dtype| [(dtype, None), (dtype, Some(2))]) {
            let Some(set) = write(format.as_ref(), dtype, channels) else { continue };
            let what = format!("{} {dtype} {channels:?}", format.name());
            let data = open(format.as_ref(), &set.path).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(numbers(&data).unwrap(), expected, "{what}");
            // What holds channels only has one of them.
            let found = data.source().schema().channels;
            assert!(found == channels || (channels, found) == (None, Some(1)), "{what}: {found:?}");
            let found = windrow::verify(set.folder.path(), &VerifyOptions::default(), &()).unwrap();
            assert_eq!(found.problems, [], "{what}");
            taken += 1;
        }
        assert!(taken > 0, "{} takes no dtype", format.name());
    }
}

// A format may name each row, and say what a value is by an ending of its column's name.
fn without_endings(row: Row) -> Row {
    let plain = |name: String| name.split('.').next().unwrap_or_default().to_string();
    row.into_iter().filter(|(name, _)| name != "__key__").map(|(name, value)| (plain(name), value)).collect()
}

// A format of lists has one value as a list of it: numbers as an array, text as its bytes.
fn as_lists(row: Row) -> Row {
    let array = |dtype, bytes: &[u8]| Value::Array(Array { dtype, shape: vec![1], bytes: bytes.to_vec() });
    let list = |value: Value| match value {
        Value::I64(number) => array(DType::I64, &number.to_le_bytes()),
        Value::F64(number) => array(DType::F32, &(number as f32).to_le_bytes()),
        Value::Text(text) => Value::List(vec![text.into_bytes().into()]),
        Value::List(texts) => texts
            .into_iter()
            .map(|text| text.as_text().unwrap().as_bytes().to_vec().into())
            .collect::<Vec<Value>>()
            .into(),
        bytes => Value::List(vec![bytes]),
    };
    row.into_iter().map(|(name, value)| (name, list(value))).collect()
}

#[test]
fn rows_are_read_equal_where_a_format_holds_them() {
    let mut n_formats = 0;
    for format in written().filter(|format| format.info().holds_rows) {
        // JSON has no bytes, and the lists of tf.train.Example hold values of one kind.
        let (has_bytes, has_null, of_lists) = match format.name() {
            "bagz" | "series-jsonl" => (false, true, false),
            "tfrecord" | "array_record" => (true, false, true),
            _ => (true, true, false),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = path_in(folder.path(), format.as_ref());
        let row = |i: i64| -> Row {
            let text = format!("row {i}");
            let first = if has_null { Value::Null } else { text.clone().into() };
            let values: [(&str, Value); 5] = [
                ("bytes", vec![i as u8; 3].into()),
                ("fraction", (i as f64 / 2.0).into()),
                ("list", Value::List(vec![first, text.clone().into()])),
                ("text", text.into()),
                ("whole", (-i).into()),
            ];
            values.into_iter().filter(|(name, _)| has_bytes || *name != "bytes").collect()
        };
        let mut writer =
            Writer::create(&path, &Schema::rows(Vec::new()), format.as_ref(), &WriteOptions::default())
                .unwrap();
        for i in 0..10 {
            writer.add_row(&row(i)).unwrap();
        }
        writer.finish().unwrap();
        let mut data = windrow::open(&path).unwrap();
        if data.is_json() {
            let columns = row(0).names().map(str::to_string).collect();
            data = open_with(&path, &Options { columns: Some(columns), ..Options::default() }).unwrap();
        }
        assert!(data.is_rows() && data.len() == 10, "{}", format.name());
        for i in 0..10 {
            let expected = if of_lists { as_lists(row(i)) } else { row(i) };
            // A record that is one value is a row of one column, which has no name.
            let found = match data.row(i as u64).unwrap().into_iter().next() {
                Some((name, Value::Struct(row))) if name.is_empty() => row,
                _ => data.row(i as u64).unwrap(),
            };
            assert_eq!(without_endings(found), expected, "{}", format.name());
        }
        conformance::check(data.source().as_ref()).unwrap();
        n_formats += 1;
    }
    assert!(n_formats > 0);
}

#[test]
fn cut_anywhere_it_is_an_error_or_a_beginning_and_verify_finds_it() {
    for format in written() {
        let pairs = DTYPES.into_iter().flat_map(|dtype| [(dtype, None), (dtype, Some(2))]);
        let set =
            pairs.into_iter().find_map(|(dtype, channels)| write(format.as_ref(), dtype, channels)).unwrap();
        let whole = numbers(&open(format.as_ref(), &set.path).unwrap()).unwrap();
        let mut files = Vec::new();
        below(set.folder.path(), &mut files);
        files.retain(|path| path.is_file());
        for file in files {
            let bytes = fs::read(&file).unwrap();
            let place = |size: usize| format!("{}: {} cut to {size}", format.name(), file.display());
            for size in (0..bytes.len()).filter(|size| bytes.len() < 300 || size % (bytes.len() / 150) == 0) {
                fs::write(&file, &bytes[..size]).unwrap();
                if let Ok(data) = open(format.as_ref(), &set.path)
                    && let Ok(found) = numbers(&data)
                {
                    assert!(whole.starts_with(&found), "{}", place(size));
                }
                let verified = windrow::verify(set.folder.path(), &VerifyOptions::default(), &());
                // A text that ends in white space is whole without it.
                let is_trimmed = bytes[size..].iter().all(u8::is_ascii_whitespace);
                let is_found = verified.is_err() || verified.is_ok_and(|found| found.n_problems > 0);
                assert!(is_found || is_trimmed, "{}: called good", place(size));
            }
            fs::write(&file, &bytes).unwrap();
        }
    }
}

#[test]
fn every_format_has_a_fuzz_target() {
    let mut files = Vec::new();
    for folder in ["fuzz_targets", "src"] {
        below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(folder), &mut files);
    }
    let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for format in windrow::formats() {
        let name = format.name();
        // By its name, or by its type: `flat-tokens` is `FlatTokens`.
        let of_type: String = name
            .split('-')
            .filter_map(|part| Some(part.chars().next()?.to_ascii_uppercase().to_string() + &part[1..]))
            .collect();
        let is_there = code.contains(&format!("\"{name}\"")) || code.contains(&format!("{of_type}.open("));
        assert!(is_there, "no fuzz target opens {name}");
    }
}

#[test]
fn a_format_takes_the_options_that_its_info_lists() {
    for info in formats().iter().map(|format| format.info()) {
        let written = writer(formats(), info.name, &Map::new());
        assert_eq!(written.is_ok(), info.is_written(), "{}", info.name);
        for option in info.own_options() {
            let value = match option.takes {
                Takes::Number(_) | Takes::Bytes => json!(1 << 16),
                Takes::Text(_) => json!("abc"),
                Takes::On | Takes::Off => json!(false),
                other => panic!("{}: no format has an option that takes {other:?}", option.name),
            };
            let given = Map::from_iter([(option.name.to_string(), value)]);
            // Not every text is a value of it; that it is known is asked.
            let error = writer(formats(), info.name, &given).err().map_or(String::new(), |e| e.to_string());
            assert!(!error.contains("not an option"), "{}: {error}", info.name);
        }
        let unknown = Map::from_iter([("nobodys".to_string(), json!(1))]);
        assert!(writer(formats(), info.name, &unknown).is_err(), "{}", info.name);
    }
}
