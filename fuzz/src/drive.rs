//! Everything an opened source can be asked: its promises, its records, views of it and their batches.

use std::sync::Arc;

use windrow_core::collate::{Collate, NextToken, Pairs, Raw, Segments};
use windrow_core::plan::{Feed, Plan, Workspace};
use windrow_core::sampler::Shuffle;
use windrow_core::source::{Kind, SharedSource, conformance};
use windrow_core::view::{Bins, Overlong, Strategy};
use windrow_core::{DType, Lengths, Place, Result, Span};
use windrow_formats::parse_json;

use crate::{Cut, check_view};

const MOST_RECORDS: u64 = 1_000;
const MOST_FOUND: usize = 1_000;
/// Values of all records that are looked at: overlapping rows could make many of a small file.
const MOST_READ: u64 = 4 << 20;

/// Puts a source through its promises, parses its JSON records, and assembles a batch of each cut.
pub fn drive(source: &SharedSource, cuts: &[Cut], dtype: Option<DType>, pad: i64) {
    records(source);
    for cut in cuts.iter().take(4) {
        let lengths: Arc<dyn Lengths> = source.clone();
        if let Ok(view) = cut.view(lengths.clone()) {
            check_view(*cut, view.as_ref(), lengths.as_ref());
        }
        let _ = batch(source, cut.small(), dtype, pad);
    }
}

/// All bytes of a record.
///
/// # Errors
/// What reading says.
pub fn values(source: &SharedSource, record: u64) -> Result<Vec<u8>> {
    let span = Span { record, start: 0, len: source.length(record)? };
    let mut scratch = Vec::new();
    Ok(source.read(span, &mut scratch)?.bytes.to_vec())
}

fn records(source: &SharedSource) {
    // Pages of Parquet without a checksum, and what says where their rows are, may contradict each other.
    let checked = match source.format() {
        "parquet" => conformance::check_damaged(source.as_ref()),
        _ => conformance::check(source.as_ref()),
    };
    if let Err(error) = checked {
        panic!("{error}");
    }
    let is_json = source.schema().kind == Kind::Json;
    let mut scratch = Vec::new();
    let mut left = MOST_READ;
    for record in 0..source.len().min(MOST_RECORDS) {
        let Ok(len) = source.length(record) else { continue };
        left = left.saturating_sub(len);
        if left == 0 {
            break;
        }
        let whole = Span { record, start: 0, len };
        match source.read(whole, &mut scratch) {
            Ok(values) if is_json => json(values.bytes, source, whole),
            Ok(_) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

// An error of a record names a byte within it.
fn json(text: &[u8], source: &SharedSource, span: Span) {
    let places = source.locate(span).expect("the place of a record that was read");
    let start = places.first().map_or(0, |place| place.start);
    let place = Place { byte: Some(start), record: Some(span.record), ..Place::default() };
    if let Err(error) = parse_json(text, &place) {
        let at = error.place().byte.expect("a byte");
        assert!((start..=start + text.len() as u64).contains(&at), "byte {at} of {start}+{}", text.len());
    }
}

fn batch(source: &SharedSource, cut: Cut, dtype: Option<DType>, pad: i64) -> Result<()> {
    let schema = source.schema();
    let lengths: Arc<dyn Lengths> = source.clone();
    let view = cut.view(lengths.clone())?;
    let length = view.positions();
    let collate: Arc<dyn Collate> = match cut {
        Cut::Pack { eos, .. } | Cut::PackReshuffled { eos, .. }
            if eos.is_some_and(|eos| !schema.element.dtype.holds(eos)) =>
        {
            return Ok(());
        }
        // Their rows have no position for a label.
        Cut::PackReshuffled { apart: true, .. } => return Ok(()),
        Cut::Pack { .. } | Cut::PackReshuffled { .. } | Cut::Cursor { .. } => {
            Arc::new(NextToken::new(schema, length, dtype, false, pad)?)
        }
        Cut::Records { .. } | Cut::Windows { .. } => {
            Arc::new(NextToken::new(schema, length, dtype, true, pad)?)
        }
        Cut::Crop { .. } => Arc::new(Raw::new(schema, length, dtype)?),
        Cut::Segments { .. } => Arc::new(Pairs::new(schema, length, &[], dtype)?),
        Cut::Bins { first_fit, .. } => {
            let strategy = if first_fit { Strategy::FirstFit } else { Strategy::BestFit };
            let most = Bins::new(lengths, length, strategy)?.max_segments();
            Arc::new(Segments::new(schema, length, most, dtype, pad)?)
        }
        Cut::BinsReshuffled { first_fit, scope, .. } => {
            let strategy = if first_fit { Strategy::FirstFit } else { Strategy::BestFit };
            let scope = scope.map(u64::from);
            let bins = Bins::reshuffled(lengths, length, strategy, Overlong::Cut, scope, true)?;
            Arc::new(Segments::new(schema, length, bins.max_segments(), dtype, pad)?)
        }
    };
    let feed = Feed::new(source.clone(), view, collate);
    let n = feed.len();
    assert!(feed.batch(&[n], 0).is_err());
    if n == 0 {
        return Ok(());
    }
    let batch = feed.batch(&[0, n / 2, n - 1], 7);
    if let Ok(batch) = &batch {
        assert_eq!(batch.rows(), 3);
        for (i, field) in batch.fields().iter().enumerate() {
            assert_eq!(batch.bytes(i).len(), 3 * field.row_size());
        }
    }
    let plan = Plan::new(vec![feed], Arc::new(Shuffle::new(n, 7)), 7)?;
    let identity = plan.identity()?;
    identity.check(&identity.to_string()).expect("its own identity");
    for position in [0, n - 1] {
        let traced = plan.trace(1, position)?;
        if let Some(span) = traced.spans.first() {
            let found = plan.find(0, span.record, 1, MOST_FOUND)?;
            assert!(found.len() >= MOST_FOUND || found.iter().any(|f| f.position == position));
        }
        plan.batch(1, position..position + 1, None, &mut Workspace::default())?;
    }
    batch.map(drop)
}
