//! What stands in the tensors, for every kind of record and view.

use std::sync::Arc;

use windrow_core::collate::{Batch, Collate, Labels, NextToken, Pairs, Raw, Segments, Shifted};
use windrow_core::plan::Feed;
use windrow_core::source::Source;
use windrow_core::view::{self, Bins, Crop, Mode, Overlong, Pack, Records, Strategy, Tail, View, Windows};
use windrow_core::{DType, Decode, Kind};

use crate::toy::Toy;

fn feed<V: View + 'static>(
    toy: Toy,
    view: impl FnOnce(Arc<Toy>) -> windrow_core::Result<V>,
    collate: impl FnOnce(&Toy, &V) -> Arc<dyn Collate>,
) -> Feed {
    let toy = Arc::new(toy);
    let view = view(toy.clone()).unwrap();
    let collate = collate(&toy, &view);
    Feed::new(toy, Arc::new(view), collate)
}

fn next_token(toy: &Toy, length: u64, short: bool) -> Arc<dyn Collate> {
    Arc::new(NextToken::new(toy.schema(), length, None, short, 0).unwrap())
}

#[test]
fn packs_shift_by_one_across_records() {
    let feed = feed(Toy::tokens(&[3, 0, 4]), |t| Pack::new(t, 3, None), |t, _| next_token(t, 3, false));
    let batch = feed.batch(&[0, 1], 0).unwrap();
    assert_eq!(batch.fields().len(), 2);
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), [0, 1, 2, 2000, 2001, 2002]);
    assert_eq!(batch.get::<i64>("labels").unwrap(), [1, 2, 2000, 2001, 2002, 2003]);
}

#[test]
fn packs_put_the_end_id_between_records() {
    let feed = feed(Toy::tokens(&[2, 1]), |t| Pack::new(t, 2, Some(9)), |t, _| next_token(t, 2, false));
    let batch = feed.batch(&[0, 1], 0).unwrap();
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), [0, 1, 9, 1000]);
    assert_eq!(batch.get::<i64>("labels").unwrap(), [1, 9, 1000, 9]);
}

#[test]
fn shifted_inputs_are_zero_where_a_row_or_a_record_starts() {
    let shifted = |toy: &Toy| -> Arc<dyn Collate> { Arc::new(Shifted::new(toy.schema(), 4, None).unwrap()) };
    let feed = feed(Toy::tokens(&[3, 0, 6]), |t| Pack::apart(t, 4, None), |t, _| shifted(t));
    let batch = feed.batch(&[0, 1], 0).unwrap();
    assert_eq!(batch.get::<i64>("targets").unwrap(), [0, 1, 2, 2000, 2001, 2002, 2003, 2004]);
    assert_eq!(batch.get::<i64>("inputs").unwrap(), [0, 0, 1, 0, 0, 2001, 2002, 2003]);
    assert_eq!(batch.bytes(2), [1, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(batch.get::<i32>("segment_ids").unwrap(), [1, 1, 1, 2, 0, 0, 0, 0]);
    assert_eq!(batch.get::<i32>("position_ids").unwrap(), [0, 1, 2, 0, 0, 1, 2, 3]);
    let toy = Toy::series(&[&[1., 2.]], 1, &[Decode::Plain]);
    assert_eq!(Shifted::new(toy.schema(), 4, None).unwrap_err().kind(), Kind::Config);
}

#[test]
fn shifted_rows_have_the_fields_that_are_asked_for() {
    let lengths = [3, 0, 6];
    let batch_of = |names: &[&str]| {
        let toy = Toy::tokens(&lengths);
        let collate = Shifted::new(toy.schema(), 4, Some(DType::U32)).unwrap().only(names).unwrap();
        let feed = feed(toy, |t| Pack::apart(t, 4, None), |_, _| Arc::new(collate) as Arc<dyn Collate>);
        feed.batch(&[1, 0], 0).unwrap()
    };
    let all = batch_of(&["targets", "inputs", "is_seq_start", "segment_ids", "position_ids"]);
    for names in [
        &["targets", "is_seq_start"][..],
        &["is_seq_start"],
        &["inputs"],
        &["position_ids", "targets", "inputs"],
    ] {
        let some = batch_of(names);
        assert_eq!(some.fields().iter().map(|f| &*f.name).collect::<Vec<_>>(), names);
        for (i, name) in names.iter().enumerate() {
            let there = all.fields().iter().position(|f| f.name == *name).unwrap();
            assert_eq!(some.bytes(i), all.bytes(there), "{name} of {names:?}");
        }
    }
    let toy = Toy::tokens(&lengths);
    for names in [["labels", "targets"], ["targets", "targets"]] {
        let error = Shifted::new(toy.schema(), 4, None).unwrap().only(&names).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
    }
}

#[test]
fn records_are_cut_or_padded_with_a_mask() {
    let feed = feed(Toy::tokens(&[5, 2, 1, 0]), |t| Records::new(t, 3), |t, _| next_token(t, 3, true));
    let batch = feed.batch(&[0, 1, 2, 3], 0).unwrap();
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), [0, 1, 2, 1000, 1001, 0, 2000, 0, 0, 0, 0, 0]);
    assert_eq!(batch.get::<i64>("labels").unwrap(), [1, 2, 3, 1001, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_track_excludes_values_from_the_loss() {
    let toy = Toy::tokens(&[4]).with_mask(&[&[1, 1, 0, 0]]);
    let feed = feed(toy, |t| Records::new(t, 4), |t, _| next_token(t, 4, true));
    let batch = feed.batch(&[0], 0).unwrap();
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0, 1, 1, 0]);
}

#[test]
fn multivariate_windows_are_scaled_while_they_are_copied() {
    let decode = Decode::Affine { mul: 1.0, add: 0.0, sub: 2.0, div: 2.0 };
    let toy = Toy::series(&[&[2., 4., 6., 8., 10., 12.]], 2, &[decode]);
    let feed = feed(toy, |t| Windows::new(t, 2, 2, Tail::Drop), |t, _| next_token(t, 2, true));
    let batch = feed.batch(&[0], 0).unwrap();
    assert_eq!(batch.fields()[0].shape, [2, 2]);
    assert_eq!(batch.get::<f32>("input_ids").unwrap(), [0., 1., 2., 3.]);
    assert_eq!(batch.get::<f32>("labels").unwrap(), [2., 3., 4., 5.]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [1, 1]);
}

#[test]
fn crops_keep_dtype_and_say_how_much_is_real() {
    let feed = feed(
        Toy::tokens(&[5, 2]),
        |t| Crop::new(t, 3, Mode::Start),
        |t, _| Arc::new(Raw::new(t.schema(), 3, None).unwrap()),
    );
    let batch = feed.batch(&[0, 1], 0).unwrap();
    assert_eq!(batch.get::<u32>("values").unwrap(), [0, 1, 2, 1000, 1001, 0]);
    assert_eq!(batch.get::<i64>("lengths").unwrap(), [3, 2]);
}

#[test]
fn bins_keep_records_apart() {
    let feed = feed(
        Toy::tokens(&[3, 7, 2]),
        |t| Bins::new(t, 5, Strategy::FirstFit),
        |t, v| Arc::new(Segments::new(t.schema(), 5, v.max_segments(), None, 0).unwrap()),
    );
    assert_eq!(feed.len(), 2);
    let batch = feed.batch(&[0, 1], 0).unwrap();
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), [0, 1, 2, 2000, 2001, 1000, 1001, 1002, 1003, 1004]);
    assert_eq!(batch.get::<i64>("labels").unwrap(), [1, 2, 0, 2001, 0, 1001, 1002, 1003, 1004, 1005]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [1, 1, 0, 1, 0, 1, 1, 1, 1, 1]);
    assert_eq!(batch.get::<i32>("position_ids").unwrap(), [0, 1, 2, 0, 1, 0, 1, 2, 3, 4]);
    assert_eq!(batch.get::<i32>("segment_ids").unwrap(), [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(batch.get::<i32>("cu_seqlens").unwrap(), [0, 3, 5, 0, 5, 5]);
}

#[test]
fn bins_have_the_fields_that_are_asked_for() {
    const NAMES: [&str; 8] = [
        "max_seqlen",
        "input_ids",
        "labels",
        "loss_masks",
        "position_ids",
        "segment_ids",
        "cu_seqlens",
        "attention_mask",
    ];
    let batch_of = |labels: Labels, names: &[&str]| {
        let toy = Arc::new(Toy::tokens(&[3, 7, 1]));
        let view =
            Bins::with(toy.clone(), 5, Strategy::FirstFit, Overlong::Split, None, labels == Labels::Next)
                .unwrap();
        let collate = Segments::new(toy.schema(), 5, view.max_segments(), None, 9).unwrap();
        let collate = collate.labels(labels).unwrap().only(names).unwrap();
        Feed::new(toy, Arc::new(view), Arc::new(collate)).batch(&[0, 1, 2], 0).unwrap()
    };
    for labels in [Labels::Next, Labels::Same] {
        let all = batch_of(labels, &NAMES);
        let of = |batch: &Batch, name: &str| {
            let field = batch.fields().iter().position(|field| field.name == name).unwrap();
            (batch.fields()[field].clone(), batch.bytes(field).to_vec())
        };
        let usual = batch_of(labels, &[]);
        assert_eq!(usual.fields().len(), 6);
        for field in usual.fields() {
            assert_eq!(of(&usual, &field.name), of(&all, &field.name));
        }
        for name in NAMES {
            assert_eq!(of(&batch_of(labels, &[name]), name), of(&all, name), "{name} alone");
        }
        assert_eq!(all.get::<i32>("max_seqlen").unwrap(), [5, 3, 1]);
        assert_eq!(all.get::<i64>("attention_mask").unwrap(), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
    }
    let unknown =
        Segments::new(Toy::tokens(&[1]).schema(), 5, 1, None, 0).unwrap().only(&["bins"]).unwrap_err();
    assert!(
        unknown.message().contains("no field \"bins\"")
            && unknown.hint_text().unwrap().contains("cu_seqlens")
    );
}

#[test]
fn rows_are_as_long_as_the_longest_of_their_batch() {
    let longest = |labels: Labels| {
        let cut =
            move |t: Arc<Toy>| if labels == Labels::Next { Records::new(t, 4) } else { Records::apart(t, 4) };
        feed(Toy::tokens(&[9, 3, 1, 0]), cut, |t, _| {
            Arc::new(
                NextToken::new(t.schema(), 4, None, true, 7).unwrap().labels(labels).unwrap().to_longest(),
            )
        })
    };
    let next = longest(Labels::Next);
    let batch = next.batch(&[1, 2, 3], 0).unwrap();
    assert_eq!(batch.fields()[0].shape, [2]);
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), [1000, 1001, 2000, 7, 7, 7]);
    assert_eq!(batch.get::<i64>("labels").unwrap(), [1001, 1002, 7, 7, 7, 7]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [1, 1, 0, 0, 0, 0]);
    assert_eq!(
        [&[0, 1][..], &[1], &[3]].map(|samples| next.batch(samples, 0).unwrap().fields()[0].shape[0]),
        [4, 2, 1]
    );
    let same = longest(Labels::Same).batch(&[1, 2], 0).unwrap();
    assert_eq!(same.get::<i64>("labels").unwrap(), [1000, 1001, 1002, 2000, -100, -100]);
    assert!(next.collate().describe().ends_with(",to=longest)"));
}

#[test]
fn inputs_are_their_own_labels_but_where_they_are_not_learned() {
    let same = |toy: &Toy, length, short| -> Arc<dyn Collate> {
        let layout = NextToken::new(toy.schema(), length, None, short, 7).unwrap();
        Arc::new(layout.labels(Labels::Same).unwrap())
    };
    let pack = feed(Toy::tokens(&[3, 0, 4]), |t| Pack::apart(t, 3, Some(9)), |t, _| same(t, 3, false));
    let batch = pack.batch(&[0, 1], 0).unwrap();
    assert_eq!(batch.get::<i64>("labels").unwrap(), batch.get::<i64>("input_ids").unwrap());
    assert_eq!(batch.get::<i64>("labels").unwrap(), [0, 1, 2, 9, 9, 2000]);
    let masked = Toy::tokens(&[4]).with_mask(&[&[1, 0, 1, 0]]);
    let pack = feed(masked, |t| Pack::apart(t, 5, Some(9)), |t, _| same(t, 5, false));
    let batch = pack.batch(&[0], 0).unwrap();
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), [0, 1, 2, 3, 9]);
    assert_eq!(batch.get::<i64>("labels").unwrap(), [-100, 1, -100, 3, 9]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0, 1, 0, 1, 1]);
    let records = feed(Toy::tokens(&[5, 1, 0]), |t| Records::apart(t, 3), |t, _| same(t, 3, true));
    let batch = records.batch(&[0, 1, 2], 0).unwrap();
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), [0, 1, 2, 1000, 7, 7, 7, 7, 7]);
    assert_eq!(batch.get::<i64>("labels").unwrap(), [0, 1, 2, 1000, -100, -100, -100, -100, -100]);
    let masked = Toy::tokens(&[3, 2]).with_mask(&[&[0, 0, 1], &[0, 0]]);
    let bins = feed(
        masked,
        |t| Bins::apart(t, 6, Strategy::FirstFit),
        |t, v| {
            let layout = Segments::new(t.schema(), 6, v.max_segments(), Some(DType::I16), 7).unwrap();
            Arc::new(layout.labels(Labels::Same).unwrap())
        },
    );
    let batch = bins.batch(&[0], 0).unwrap();
    assert_eq!(batch.get::<i16>("input_ids").unwrap(), [0, 1, 2, 1000, 1001, 7]);
    assert_eq!(batch.get::<i16>("labels").unwrap(), [-100, 1, -100, -100, 1001, -100]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0, 1, 0, 0, 1, 0]);
    let segments = feed(
        Toy::tokens(&[5, 2]),
        |t| view::Segments::apart(t, 4, &[]),
        |t, _| Arc::new(Pairs::new(t.schema(), 4, &[], None).unwrap().labels(Labels::Same).unwrap()),
    );
    let batch = segments.batch(&[0, 1], 0).unwrap();
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), [0, 1, 2, 3, 4, 1000, 1001, 0]);
    // A row that continues a record begins with one that is learned.
    assert_eq!(batch.get::<i64>("labels").unwrap(), [-100, 1, 2, 3, 4, -100, 1001, -100]);
}

#[test]
fn rows_without_labels_keep_the_masks_of_their_inputs() {
    let none = |toy: &Toy, short| -> Arc<dyn Collate> {
        let layout = NextToken::new(toy.schema(), 3, None, short, 0).unwrap();
        Arc::new(layout.labels(Labels::None).unwrap())
    };
    let names = |feed: &Feed| {
        feed.batch(&[0], 0).unwrap().fields().iter().map(|f| f.name.clone()).collect::<Vec<_>>()
    };
    let pack = feed(Toy::tokens(&[3, 4]), |t| Pack::apart(t, 3, None), |t, _| none(t, false));
    assert_eq!(names(&pack), ["input_ids"]);
    let records =
        feed(Toy::tokens(&[2]).with_mask(&[&[0, 1]]), |t| Records::apart(t, 3), |t, _| none(t, true));
    assert_eq!(names(&records), ["input_ids", "loss_masks"]);
    assert_eq!(records.batch(&[0], 0).unwrap().get::<i32>("loss_masks").unwrap(), [1, 0, 0]);
    let bins = feed(
        Toy::tokens(&[2, 1]),
        |t| Bins::apart(t, 4, Strategy::FirstFit),
        |t, v| {
            let layout = Segments::new(t.schema(), 4, v.max_segments(), None, 0).unwrap();
            Arc::new(layout.labels(Labels::None).unwrap())
        },
    );
    let batch = bins.batch(&[0], 0).unwrap();
    assert_eq!(names(&bins), ["input_ids", "loss_masks", "position_ids", "segment_ids", "cu_seqlens"]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [1, 1, 1, 0]);
    assert_eq!(batch.get::<i32>("cu_seqlens").unwrap(), [0, 2, 3]);
}

#[test]
fn unsigned_labels_hold_no_minus_100() {
    let toy = Toy::tokens(&[4]);
    let next_token = |short| NextToken::new(toy.schema(), 4, Some(DType::U32), short, 0).unwrap();
    assert!(next_token(false).labels(Labels::Same).is_ok());
    assert!(next_token(true).labels(Labels::None).is_ok());
    let refused = [
        next_token(true).labels(Labels::Same).err(),
        next_token(false).learn_from(2).labels(Labels::Same).err(),
        Segments::new(toy.schema(), 4, 1, Some(DType::U32), 0).unwrap().labels(Labels::Same).err(),
        Pairs::new(toy.schema(), 4, &[], Some(DType::U32)).unwrap().labels(Labels::Same).err(),
    ];
    for error in refused {
        let error = error.unwrap();
        assert!(error.kind() == Kind::Config && error.message().contains("-100"), "{error}");
    }
    let masked = Toy::tokens(&[4]).with_mask(&[&[0; 4]]);
    assert!(
        NextToken::new(masked.schema(), 4, Some(DType::U16), false, 0).unwrap().labels(Labels::Same).is_err()
    );
}

#[test]
fn rows_of_recycled_memory_hold_nothing_old() {
    let toy = Arc::new(Toy::tokens(&[9, 1]));
    let collate = next_token(&toy, 4, true);
    let plan = windrow_core::plan::Plan::new(
        vec![Feed::new(toy.clone(), Arc::new(Records::new(toy, 4).unwrap()), collate)],
        Arc::new(windrow_core::sampler::Sequential::new(2)),
        0,
    )
    .unwrap();
    let pool = windrow_core::collate::Pool::new(1);
    let mut workspace = windrow_core::plan::Workspace::default();
    drop(plan.batch(0, 0..1, Some(&pool), &mut workspace).unwrap());
    let batch = plan.batch(0, 1..2, Some(&pool), &mut workspace).unwrap();
    assert_eq!(batch.get::<i64>("input_ids").unwrap(), [1000, 0, 0, 0]);
    assert_eq!(batch.get::<i64>("labels").unwrap(), [0, 0, 0, 0]);
    assert_eq!(batch.get::<i32>("loss_masks").unwrap(), [0, 0, 0, 0]);
}

#[test]
fn what_cannot_be_assembled_is_refused_before_anything_is_read() {
    let json = NextToken::new(Toy::json().schema(), 4, None, false, 0).unwrap_err();
    assert_eq!(json.kind(), Kind::Config);
    assert!(json.hint_text().unwrap().contains("windrow tokenize"), "{json}");
    let series = Toy::series(&[&[0.]], 1, &[Decode::Plain]);
    assert!(NextToken::new(series.schema(), 4, Some(DType::I64), false, 0).is_err());
    assert!(Segments::new(series.schema(), 4, 1, None, 0).is_err());
    let tokens = Toy::tokens(&[1]);
    assert!(NextToken::new(tokens.schema(), 0, None, false, 0).is_err());
    assert!(NextToken::new(tokens.schema(), u64::MAX, None, false, 0).is_err());
    assert!(NextToken::new(tokens.schema(), 4, Some(DType::U8), true, 300).is_err());
}
