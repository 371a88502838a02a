//! Real series through every kind of file: the same windows from each.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use windrow::{DType, Scaler, Windows, open};

const IS_ALONE: &str = "WINDROW_TEST_IS_ALONE";

fn real() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/timeseries")
}

/// Runs a body in a process of its own, whose cache is an empty folder: some kinds of files are converted into it.
#[track_caller]
fn alone(name: &str, body: impl FnOnce()) {
    if std::env::var_os(IS_ALONE).is_some() {
        return body();
    }
    let cache = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--test-threads=1", "--nocapture"])
        .env(IS_ALONE, "1")
        .env("WINDROW_CACHE", cache.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{name}:\n{said}\n{complained}");
}

/// All windows of a file, under each scaler.
fn windows(path: &Path) -> Vec<Vec<u8>> {
    let series = open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(series.len(), 249, "{}", path.display());
    let mut all = Vec::new();
    for scaler in [Scaler::None, Scaler::Max, Scaler::Zero] {
        let windows = Windows::new(48).prediction_length(16).stride(16).scaler(scaler);
        let samples = series.view(windows, Some(DType::F32)).unwrap();
        assert!(samples.len() > 1_000);
        let numbers: Vec<u64> = (0..samples.len()).collect();
        let batch = samples.batch(&numbers, 0).unwrap();
        all.extend((0..batch.fields().len()).map(|field| batch.bytes(field).to_vec()));
    }
    all
}

fn npy(values: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.len() / 4);
    let header = format!("{header:<117}\n");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(header.as_bytes());
    file.extend(values);
    file
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(plain).unwrap();
    writer.finish().unwrap()
}

#[test]
fn every_kind_of_file_gives_the_same_windows() {
    alone("real_series::every_kind_of_file_gives_the_same_windows", || {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let shards = open(real().join("bin_f32")).unwrap();
        let (mut list, mut lines, mut yaml) = (Vec::new(), String::new(), String::new());
        fs::create_dir(at("arrays")).unwrap();
        for record in 0..shards.len() {
            let bytes = shards.bytes(record).unwrap();
            let numbers: Vec<f64> =
                bytes.chunks_exact(4).map(|x| f64::from(f32::from_le_bytes(x.try_into().unwrap()))).collect();
            let text = format!("{numbers:?}");
            writeln!(lines, "{{\"sequence\": {text}}}").unwrap();
            writeln!(yaml, "- {text}").unwrap();
            list.push(text);
            fs::write(at(&format!("arrays/{record:03}.npy")), npy(&bytes)).unwrap();
        }
        let list = format!("[{}]", list.join(",\n"));
        fs::write(at("a.json"), &list).unwrap();
        fs::write(at("a.jsonl"), &lines).unwrap();
        fs::write(at("a.yaml"), &yaml).unwrap();
        fs::write(at("b.jsonl.gz"), gzip(lines.as_bytes())).unwrap();
        fs::write(at("b.jsonl.zst"), zstd::encode_all(lines.as_bytes(), 1).unwrap()).unwrap();

        let expected = windows(&real().join("bin_f32"));
        let written = ["a.json", "a.jsonl", "a.yaml", "b.jsonl.gz", "b.jsonl.zst", "arrays"].map(at);
        let given = ["series_f32.npz", "series.pkl"].map(|name| real().join(name));
        let is_read =
            |path: &&PathBuf| cfg!(feature = "yaml") || path.extension().is_none_or(|end| end != "yaml");
        let all = written.iter().chain(&given).filter(is_read);
        let other: Vec<_> = all.filter(|path| windows(path) != expected).collect();
        assert!(other.is_empty(), "other windows from {other:?}");
        // Its numbers have more digits than float32, and a scaler measures them with all of them.
        let digits = windows(&real().join("series.jsonl"));
        let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
        for (number, (one, other)) in digits.iter().zip(&expected).enumerate() {
            let (is_scaled, is_mask) = (number >= 3, number % 3 == 2);
            let near = |(a, b): (&[u8], &[u8])| (float(a) - float(b)).abs() <= 1e-5 * float(b).abs().max(1.0);
            if is_scaled && !is_mask {
                assert!(one.chunks(4).zip(other.chunks(4)).all(near), "field {number}")
            } else {
                assert_eq!(one, other, "field {number}")
            }
        }
    });
}

#[test]
fn a_gap_is_named_by_record_and_byte() {
    alone("real_series::a_gap_is_named_by_record_and_byte", || {
        let path = real().join("series_with_gaps.jsonl");
        let error = open(&path).expect_err("a gap is no number");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(error.place().record, Some(0), "{error}");
        assert_eq!(error.place().byte, text.find("null").map(|at| at as u64), "{error}");
        assert!(format!("{error:#}").contains("null"), "{error}");
        assert!(format!("{error:#}").contains("NaN"), "{error}");
    });
}
