//! flat-tokens through the face: splits, rows of the stream, plans that open again, and what a step read.

use std::path::{Path, PathBuf};

use serde_json::json;
use windrow::dev::source::{Extras, Schema};
use windrow::format::Options;
use windrow::prepare::VerifyOptions;
use windrow::prepare::Writer;
use windrow::{DType, Kind, Recipe, open, open_with};
use windrow::{Decode, Element, Values};

fn written(folder: &Path) -> PathBuf {
    let root = folder.join("corpus.zarr");
    let own = json!({ "tokens_chunk_size": 16, "seq_starts_chunk_size": 4 });
    let format = windrow::writer("flat-tokens", own.as_object().unwrap()).unwrap();
    let schema = Schema::numbers(Element::little(DType::U32));
    for (split, first) in [("train", 0), ("validation", 1000)] {
        let mut writer =
            Writer::create(&root.join(split), &schema, format.as_ref(), &Default::default()).unwrap();
        for n in 0..20u32 {
            let ids: Vec<u8> = (0..n % 7).flat_map(|i| (first + n * 10 + i).to_le_bytes()).collect();
            let values = Values { bytes: &ids, element: schema.element, channels: 1, decode: Decode::Plain };
            writer.add(&values, &Extras::new()).unwrap();
        }
        writer.finish().unwrap();
    }
    root
}

fn split(name: &str) -> Options {
    Options { split: Some(name.to_string()), ..Options::default() }
}

#[test]
fn a_split_is_opened_by_name_and_a_plan_remembers_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = written(folder.path());
    let train = open_with(&root, &split("train")).unwrap();
    assert_eq!(train.paths().only().unwrap(), root.join("train"));
    let view = train.pack(windrow::Pack::new(8).shifted(true)).unwrap();
    let builder = view.loader().batch_size(4).seed(3);
    let text = builder.recipe().unwrap().to_json();
    let again = Recipe::from_json(&text).unwrap().builder().unwrap();
    let mut loaders = [builder.build().unwrap(), again.build().unwrap()];
    for _ in 0..20 {
        let [a, b] = loaders.each_mut().map(|loader| loader.next_batch().unwrap().unwrap());
        assert_eq!(a.get::<i64>("targets").unwrap(), b.get::<i64>("targets").unwrap());
        assert_eq!(a.get::<i64>("inputs").unwrap(), b.get::<i64>("inputs").unwrap());
    }
    for name in ["../corpus.zarr", "..", ""] {
        assert_eq!(open_with(&root, &split(name)).err().unwrap().kind(), Kind::Config, "{name}");
    }
    assert_eq!(open(&root).err().unwrap().kind(), Kind::NotFound);
}

#[test]
fn every_token_is_a_target_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = open(written(folder.path()).join("validation")).unwrap();
    let view = data.pack(windrow::Pack::new(5).shifted(true)).unwrap();
    let total: u64 = (0..data.len()).map(|record| data.length(record).unwrap()).sum();
    assert_eq!(view.len(), total / 5);
    let all: Vec<u64> = (0..view.len()).collect();
    let batch = view.batch(&all, 0).unwrap();
    let mut targets = batch.get::<i64>("targets").unwrap().to_vec();
    let coverage = view.coverage().unwrap();
    assert_eq!((coverage.used, coverage.repeated), (targets.len() as u64, 0));
    targets.dedup();
    assert_eq!(targets.len() as u64, coverage.used);
}

#[test]
fn verify_reads_all_splits_and_names_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let root = written(folder.path());
    let found = |path: &Path| windrow::verify(path, &VerifyOptions::default(), &()).unwrap();
    let good = found(&root);
    assert_eq!((good.n_problems, good.checked_records), (0, 40));
    std::fs::remove_file(root.join("validation/seq_starts/2")).unwrap();
    let bad = found(&root);
    assert!(bad.n_problems > 0 && bad.checked_records == 20);
    assert!(bad.problems.iter().all(|p| p.file.contains("validation/seq_starts/2")), "{:?}", bad.problems);
}
