//! Records whole through the facade: rows of columns and JSON, as they are and stacked.

use std::path::{Path, PathBuf};

use windrow::{Batch, Kind, Samples, Stop, Value, mix, open, trace_row};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/6_foreign").join(name)
}

fn pages(n: u64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.jsonl");
    let lines: String = (0..n)
        .map(|i| format!("{{\"text\": \"page {i}\", \"label\": {i}, \"box\": [{i}, 0.5]}}\n"))
        .collect();
    std::fs::write(&path, lines).unwrap();
    (folder, path)
}

fn batches(samples: &Samples, threads: usize) -> Vec<Batch> {
    let loader = samples.loader().batch_size(4).seed(3).rank(0, 1).epochs(Some(1));
    let loader = loader.drop_last(false).num_threads(Some(threads)).build().unwrap();
    loader.map(Result::unwrap).collect()
}

#[test]
fn an_epoch_holds_each_record_once_whatever_the_threads() {
    let names = ["mds/encodings", "webdataset/mixed", "parquet/kinds", "arrow/saved_kinds", "records/ar_big"];
    for name in names.into_iter().filter(|name| cfg!(feature = "parquet") || !name.starts_with("parquet")) {
        let data = match golden(name) {
            path if name.starts_with("records") => open(path.join("data.array_record")),
            path => open(path),
        }
        .unwrap_or_else(|e| panic!("{name}: {e}"));
        let samples = data.rows(&[]).unwrap();
        let all = |threads| -> Vec<String> {
            batches(&samples, threads).iter().flat_map(Batch::records).map(|r| format!("{r:?}")).collect()
        };
        let delivered = all(0);
        assert_eq!(delivered, all(3), "{name}");
        let record = |i| format!("{:?}", samples.record(i).unwrap());
        let mut expected: Vec<String> = (0..data.len()).map(record).collect();
        let mut sorted = delivered;
        expected.sort();
        sorted.sort();
        assert_eq!(sorted, expected, "{name}");
    }
}

#[test]
fn columns_are_those_asked_for_in_that_order() {
    let data = open(golden("webdataset/mixed")).unwrap();
    let Value::Struct(whole) = data.rows(&[]).unwrap().record(1).unwrap() else { panic!("a row") };
    let samples = data.rows(&["txt", "__key__"]).unwrap();
    let Value::Struct(row) = samples.record(1).unwrap() else { panic!("a row") };
    assert_eq!(row.names().collect::<Vec<_>>(), ["txt", "__key__"]);
    assert!(row.iter().all(|(name, value)| whole.get(name) == Some(value)));
    let e = data.rows(&["none"]).err().unwrap();
    assert!(e.kind() == Kind::Config && e.hint_text().unwrap().contains("__key__, "), "{e}");
}

#[test]
fn stacked_rows_are_tensors_and_lists() {
    let (_folder, path) = pages(9);
    let data = open(&path).unwrap();
    let samples = data.rows(windrow::Rows::from(&["text", "label", "box"]).stack(true)).unwrap();
    let batch = samples.batch(&[3, 8], 0).unwrap();
    assert_eq!(batch.get::<i64>("label").unwrap(), [3, 8]);
    assert_eq!(batch.get::<f64>("box").unwrap(), [3.0, 0.5, 8.0, 0.5]);
    assert_eq!(batch.list("text").unwrap(), [Value::from("page 3"), "page 8".into()]);
    assert_eq!((batch.records().len(), batch.rows()), (0, 2));
    // A sample is a record with either.
    assert_eq!(samples.record(3).unwrap(), data.rows(&["text", "label", "box"]).unwrap().record(3).unwrap());
    assert_eq!(batches(&samples, 2).iter().map(Batch::rows).sum::<usize>(), 9);
}

#[test]
fn a_run_continues_where_it_stood_and_a_mix_keeps_its_shares() {
    let (_folder, path) = pages(40);
    let data = open(&path).unwrap();
    let part = || data.rows(&["label"]).unwrap();
    let mixed = mix(vec![("a".into(), part(), 3.0), ("b".into(), part(), 1.0)], Stop::All).unwrap();
    let loader = |rank, ranks| mixed.loader().global_batch_size(6).seed(2).rank(rank, ranks).build().unwrap();
    let mut alone = loader(0, 1);
    for _ in 0..4 {
        alone.next_batch().unwrap().unwrap();
    }
    let state = alone.state();
    let expected = alone.next_batch().unwrap().unwrap();
    let halves: Vec<Value> = (0..2)
        .flat_map(|rank| {
            let mut part = loader(rank, 2);
            part.resume(&state).unwrap();
            part.next_batch().unwrap().unwrap().records().to_vec()
        })
        .collect();
    assert_eq!(halves, expected.records());
    let other = data.rows(&[]).unwrap().loader().global_batch_size(6).seed(2).rank(0, 1).build();
    assert_eq!(other.unwrap().resume(&state).unwrap_err().kind(), Kind::Mismatch);
}

#[test]
fn a_row_is_traced_to_its_bytes() {
    let (_folder, path) = pages(12);
    let samples = open(&path).unwrap().rows(&[]).unwrap();
    let plan = samples.loader().shuffle(false).rank(0, 1).plan().unwrap();
    let read = trace_row(&plan, 0, 7, 0).unwrap().reads.remove(0);
    assert_eq!(read.record, 7);
    let text = std::fs::read(&path).unwrap();
    let place = &read.locations[0];
    let line = &text[place.start as usize..][..place.size as usize];
    assert!(line.starts_with(b"{\"text\": \"page 7\""), "{place:?}");
    assert_eq!(plan.find(0, 7, 0, 9).unwrap().len(), 1);
    assert_eq!(samples.coverage().unwrap().used, 12);
}

#[test]
fn what_is_no_row_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.bin");
    windrow::prepare::dummy(&path, 100, 50, 0, true).unwrap();
    let tokens = open(&path).unwrap();
    let e = tokens.rows(&[]).err().unwrap();
    assert!(e.kind() == Kind::Config && e.hint_text().unwrap().starts_with("the view records"), "{e}");
    let (_folder, pages) = pages(4);
    let rows = open(&pages).unwrap().rows(&[]).unwrap();
    assert_eq!(rows.with_dtype(windrow::DType::F32).err().unwrap().kind(), Kind::Config);
    assert_eq!(rows.with_labels(windrow::Labels::None).err().unwrap().kind(), Kind::Config);
    assert_eq!(tokens.pack(4).unwrap().record(0).unwrap_err().kind(), Kind::Config);
    let e = mix(vec![("r".into(), rows, 1.0), ("t".into(), tokens.pack(4).unwrap(), 1.0)], Stop::All)
        .err()
        .unwrap();
    assert_eq!(e.message(), "\"r\" gives rows, \"t\" tensors");
}

#[test]
fn what_users_hold_shows_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.jsonl");
    std::fs::write(&path, "{\"text\": \"one\"}\n{\"text\": \"two\"}\n").unwrap();
    let data = open(&path).unwrap();
    assert!(format!("{data:?}").contains("records: 2"), "{data:?}");
    let rows = data.rows(&["text"]).unwrap();
    let builder = rows.loader().batch_size(2).rank(0, 1);
    let loader = builder.build().unwrap();
    for shown in [format!("{rows:?}"), format!("{builder:?}")] {
        assert!(shown.contains("columns: Some([\"text\"])"), "{shown}");
    }
    assert!(format!("{loader:?}").contains("seed: 0"), "{loader:?}");
    // Results of them can be asked for their errors.
    assert_eq!(open(folder.path().join("none")).unwrap_err().kind(), windrow::Kind::NotFound);
}
