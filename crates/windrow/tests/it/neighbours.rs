//! Neighbours kept from epoch to epoch are those that a plain count of batches finds.

use std::collections::BTreeSet;
use std::path::Path;

use windrow::{Bins, Dataset, Labels, LoaderBuilder, Neighbours, Pack, Samples, Scope};

const DOCUMENTS: i64 = 60;

// Documents of 1 to 9 values, each of which is the number of its document.
fn numbered(folder: &Path) -> Dataset {
    let documents: Vec<Vec<i64>> = (0..DOCUMENTS).map(|i| vec![i; 1 + i as usize * 7 % 9]).collect();
    let path = folder.join("documents.json");
    std::fs::write(&path, serde_json::to_string(&documents).unwrap()).unwrap();
    windrow::open(path).unwrap()
}

fn in_order(view: &Samples) -> LoaderBuilder {
    view.loader().shuffle(false).seed(3).rank(0, 1).epochs(Some(5))
}

// The inputs of each row, and its last label, epoch by epoch.
fn rows(view: &Samples) -> Vec<Vec<Vec<i64>>> {
    let loader = in_order(view).build().unwrap();
    let rows: Vec<Vec<i64>> = loader
        .map(|batch| {
            let batch = batch.unwrap();
            let read = batch.get::<i64>("input_ids").unwrap().to_vec();
            let label = batch.get::<i64>("labels").ok().and_then(|labels| labels.last().copied());
            read.into_iter().chain(label).collect()
        })
        .collect();
    rows.chunks(view.len() as usize).map(<[_]>::to_vec).collect()
}

#[track_caller]
fn check(view: &Samples, pairs: impl Fn(&[Vec<i64>]) -> BTreeSet<(i64, i64)>) -> Neighbours {
    let found = in_order(view).neighbours().unwrap().remove(0);
    let epochs = rows(view);
    let first = pairs(&epochs[0]);
    assert!(found.reshuffled && found.all_pairs);
    assert_eq!(found.pairs, first.len() as u64);
    let kept: Vec<f64> = epochs
        .iter()
        .map(|rows| pairs(rows).intersection(&first).count() as f64 / first.len() as f64)
        .collect();
    assert_eq!(found.kept, kept);
    for (coverage, rows) in found.coverage.iter().zip(&epochs) {
        let seen: BTreeSet<i64> = rows.iter().flatten().copied().filter(|document| *document >= 0).collect();
        assert_eq!(coverage.skipped_records, DOCUMENTS as u64 - seen.len() as u64);
    }
    found
}

// Documents of a pack, in the order of its stream.
fn follow(rows: &[Vec<i64>]) -> BTreeSet<(i64, i64)> {
    let mut documents = rows.concat();
    documents.dedup();
    documents.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

fn share_rows(rows: &[Vec<i64>]) -> BTreeSet<(i64, i64)> {
    let of_row = |row: &Vec<i64>| {
        let documents: BTreeSet<i64> = row.iter().copied().filter(|document| *document >= 0).collect();
        let documents: Vec<i64> = documents.into_iter().collect();
        let pairs =
            |at: usize| documents[at + 1..].iter().map(|other| (documents[at], *other)).collect::<Vec<_>>();
        (0..documents.len()).flat_map(pairs).collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_row).collect()
}

#[test]
fn documents_of_a_pack_have_other_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let data = numbered(folder.path());
    for scope in [Scope::All, Scope::Records(8)] {
        let pack = Pack::new(16).reshuffle(true).scope(scope);
        let found = check(&data.view(pack.clone(), None).unwrap(), follow);
        assert!(!found.in_rows && found.kept[1..].iter().all(|kept| *kept < 0.4), "{found:?}");
        // What is left at the end is of other documents, and of the same number of values.
        let apart = check(&data.view(pack.labels(Labels::Same), None).unwrap(), |rows| {
            follow(&rows.iter().map(|row| row[..16].to_vec()).collect::<Vec<_>>())
        });
        assert!(apart.coverage.iter().all(|coverage| coverage.unseen == apart.coverage[0].unseen));
    }
}

#[test]
fn documents_of_bins_share_rows_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let data = numbered(folder.path());
    let bins = Bins::new(16).reshuffle(true).pad_value(-1).labels(Labels::None);
    let found = check(&data.view(bins, None).unwrap(), share_rows);
    assert!(found.in_rows && found.kept[1..].iter().all(|kept| *kept < 0.6), "{found:?}");
}

#[test]
fn documents_that_keep_their_order_keep_their_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let found = in_order(&numbered(folder.path()).pack(16).unwrap()).neighbours().unwrap().remove(0);
    assert_eq!((found.reshuffled, found.pairs, found.kept), (false, 0, vec![1.0; 5]));
    let left_out: Vec<u64> = found.coverage.iter().map(|coverage| coverage.unseen).collect();
    assert!(left_out[0] > 0 && left_out == [left_out[0]; 5], "{left_out:?}");
}

#[test]
fn of_many_documents_some_are_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.npy");
    let mut bytes =
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '|u1', 'fortran_order': False, 'shape': (100000, 4), }".to_vec();
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    bytes.resize(128 + 400_000, 7);
    std::fs::write(&path, bytes).unwrap();
    let data = windrow::open(path).unwrap();
    let view = data.view(Pack::new(16).reshuffle(true), None).unwrap();
    let found = in_order(&view).neighbours().unwrap().remove(0);
    assert!(!found.all_pairs && found.pairs > 49_000 && found.pairs < 51_000, "{}", found.pairs);
    assert!(found.kept[1..].iter().all(|kept| *kept < 0.001), "{:?}", found.kept);
    // Three of four pairs are within a scope of four, and one in four of those stays.
    let view = data.view(Pack::new(16).reshuffle(true).scope(Scope::Records(4)), None).unwrap();
    let found = in_order(&view).neighbours().unwrap().remove(0);
    assert!(found.kept[1..].iter().all(|kept| (0.15..0.25).contains(kept)), "{:?}", found.kept);
}
