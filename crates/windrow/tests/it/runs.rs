//! Documents that lie end to end are packed as the runs that they make; what a sample is made of is still told by document.

use std::path::Path;
use std::sync::Arc;

use serde_json::Map;
use windrow::dev::record::{Piece, Span};
use windrow::dev::source::{Extras, Runs};
use windrow::dev::{Decode, Element, Lengths, Values};
use windrow::format::WriteOptions;
use windrow::prepare::Writer;
use windrow::{DType, Dataset};

// 500 documents of `least` to 12 IDs, written as this format.
fn written(format: &str, path: &Path, least: u32) -> (Dataset, Vec<Vec<u32>>) {
    let document = |i: u32| (0..(i * 7 % 13).max(least)).map(|at| 13 * i + at).collect();
    let documents: Vec<Vec<u32>> = (0..500).map(document).collect();
    let format = windrow::writer(format, &Map::new()).unwrap();
    let element = Element::little(DType::U32);
    let schema = windrow::dev::source::Schema::numbers(element);
    let options = WriteOptions { fsync: false, ..WriteOptions::default() };
    let mut writer = Writer::create(path, &schema, format.as_ref(), &options).unwrap();
    for document in &documents {
        let bytes: Vec<u8> = document.iter().flat_map(|id| id.to_le_bytes()).collect();
        let values = Values { bytes: &bytes, element, channels: 1, decode: Decode::Plain };
        writer.add(&values, &Extras::new()).unwrap();
    }
    writer.finish().unwrap();
    (windrow::open(path).unwrap(), documents)
}

#[test]
fn packed_runs_are_packed_documents() {
    let folder = tempfile::tempdir().unwrap();
    // MDS holds no empty arrays, and each lies apart.
    for format in ["datatrove", "olmo", "mds"] {
        let (data, documents) = written(format, &folder.path().join(format), u32::from(format == "mds"));
        let runs = Runs::of(data.source()).unwrap();
        assert_eq!(runs.len() == 1, format != "mds", "{format}");
        let all: Vec<i64> = documents.iter().flatten().map(|id| i64::from(*id)).collect();
        assert_eq!((0..runs.len()).map(|run| runs.length(run).unwrap()).sum::<u64>(), all.len() as u64);

        let samples = data.pack(16).unwrap();
        let loader = samples.loader().shuffle(false).batch_size(5).epochs(Some(1)).build().unwrap();
        let mut rows = 0;
        for batch in loader {
            for row in batch.unwrap().get::<i64>("input_ids").unwrap().chunks(16) {
                assert_eq!(row, &all[16 * rows..16 * rows + 16], "{format}, row {rows}");
                rows += 1;
            }
        }
        assert_eq!(rows, (all.len() - 1) / 16 / 5 * 5);

        // What row 3 is made of: document by document.
        let mut pieces = Vec::new();
        let draw = windrow::dev::record::Draw::new(0, 0, 0, 3);
        samples.feed().view().pieces(3, draw, &mut pieces).unwrap();
        let read = pieces.iter().flat_map(|piece| match piece {
            Piece::Read(Span { record, start, len }) => {
                &documents[*record as usize][*start as usize..(start + len) as usize]
            }
            Piece::Value(_) | Piece::Fill(_) => &[],
        });
        assert!(read.map(|id| i64::from(*id)).eq(all[48..65].iter().copied()), "{format}");
        assert!(pieces.len() > 2, "{format}");
    }
}

#[test]
fn records_that_lie_apart_are_a_run_each() {
    let folder = tempfile::tempdir().unwrap();
    // Every second one: none begins where another ends.
    let (data, _) = written("datatrove", &folder.path().join("ds"), 1);
    let some: Arc<[u64]> = (0..250).map(|i| 2 * i).collect();
    let some = windrow::dev::source::Subset::new(data.source().clone(), some, false).unwrap();
    let some: windrow::dev::source::SharedSource = Arc::new(some);
    let runs = Runs::of(&some).unwrap();
    let lengths = (0..250).map(|record| some.length(record).unwrap());
    assert!((0..runs.len()).map(|run| runs.length(run).unwrap()).eq(lengths));
}
