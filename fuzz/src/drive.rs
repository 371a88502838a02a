//! Everything an opened source can be asked: records, places, tracks, views and batches.

use std::sync::Arc;

use windrow_core::collate::{Collate, NextToken, Raw, Segments};
use windrow_core::format::parse_json;
use windrow_core::plan::{Feed, Plan, Workspace};
use windrow_core::sampler::Shuffle;
use windrow_core::source::{Kind, SharedSource};
use windrow_core::view::{Bins, Strategy};
use windrow_core::{DType, Lengths, Place, Result, Span};

use crate::{Cut, check_view};

const MOST_RECORDS: u64 = 1_000;
const MOST_FOUND: usize = 1_000;
/// Bytes of all records that are looked at: overlapping rows could make many of a small file.
const MOST_READ: u64 = 4 << 20;

/// Asks a source for its records, their places and their tracks, and lays a batch of each cut.
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
    let schema = source.schema();
    let files = source.files();
    assert_eq!(source.fingerprint().is_ok(), source.fingerprint().is_ok());
    let mut scratch = Vec::new();
    let mut left = MOST_READ;
    for record in 0..source.len().min(MOST_RECORDS) {
        let Ok(len) = source.length(record) else { continue };
        let whole = Span { record, start: 0, len };
        let width = schema.element.size() as u64 * schema.channels.unwrap_or(1) as u64;
        left = left.saturating_sub(len.saturating_mul(width));
        if left == 0 {
            break;
        }
        let found = source.read(whole, &mut scratch).map(|values| {
            assert_eq!(values.bytes.len() as u64, len * width);
            values.bytes.to_vec()
        });
        let places = source.locate(whole);
        assert!(places.is_ok() || found.is_err(), "record {record} is read but not located");
        for place in places.iter().flatten() {
            let end = place.start.checked_add(place.size).expect("a place within 64 bits");
            assert!(files.iter().any(|file| file.file == place.file && end <= file.size), "{place:?}");
        }
        match (&found, schema.kind == Kind::Json) {
            (Ok(text), true) => json(text, places.ok().and_then(|p| p.first().map(|p| p.start)), record),
            (Ok(_), false) => {
                let part = Span { record, start: len / 3, len: len - len / 3 };
                source.read(part, &mut scratch).expect("a part of a record that was read");
            }
            (Err(error), _) => assert!(!error.to_string().is_empty()),
        }
        for track in 0..=schema.tracks.len() {
            let _ = source.read_track(track, whole, &mut scratch);
            let _ = source.read_track(track, Span { start: 1, ..whole }, &mut scratch);
        }
        for (start, len) in [(0, len.saturating_add(1)), (len, 1), (u64::MAX, 1), (1, u64::MAX)] {
            let outside = Span { record, start, len };
            if start.checked_add(len).is_none_or(|end| end > whole.len) {
                assert!(source.read(outside, &mut scratch).is_err(), "{outside:?}");
                assert!(source.locate(outside).is_err(), "{outside:?}");
            }
        }
        source.advise(&[whole]);
        let _ = source.extras(record);
    }
    for record in [source.len(), u64::MAX] {
        let outside = Span { record, start: 0, len: 0 };
        assert!(source.length(record).is_err() && source.read(outside, &mut scratch).is_err());
        assert!(source.locate(outside).is_err());
        source.advise(&[outside, Span { record, start: u64::MAX, len: u64::MAX }]);
    }
}

// An error of a record names a byte within it.
fn json(text: &[u8], start: Option<u64>, record: u64) {
    let place = Place { byte: start, record: Some(record), ..Place::default() };
    if let Err(error) = parse_json(text, &place) {
        let at = error.place().byte.expect("a byte");
        let start = start.unwrap_or(0);
        assert!((start..=start + text.len() as u64).contains(&at), "byte {at} of {start}+{}", text.len());
    }
}

fn batch(source: &SharedSource, cut: Cut, dtype: Option<DType>, pad: i64) -> Result<()> {
    let schema = source.schema();
    let lengths: Arc<dyn Lengths> = source.clone();
    let view = cut.view(lengths.clone())?;
    let length = view.positions();
    let collate: Arc<dyn Collate> = match cut {
        Cut::Pack { eos, .. } if eos.is_some_and(|eos| !schema.element.dtype.holds(eos)) => return Ok(()),
        Cut::Pack { .. } => Arc::new(NextToken::new(schema, length, dtype, false, pad)?),
        Cut::Records { .. } | Cut::Windows { .. } => {
            Arc::new(NextToken::new(schema, length, dtype, true, pad)?)
        }
        Cut::Crop { .. } => Arc::new(Raw::new(schema, length, dtype)?),
        Cut::Bins { first_fit, .. } => {
            let strategy = if first_fit { Strategy::FirstFit } else { Strategy::BestFit };
            let most = Bins::new(lengths, length, strategy)?.max_segments();
            Arc::new(Segments::new(schema, length, most, dtype, pad)?)
        }
    };
    let feed = Feed::new(source.clone(), view, collate);
    let n = feed.len();
    assert!(feed.batch(&[n], 0).is_err());
    if n == 0 {
        return Ok(());
    }
    let laid = feed.batch(&[0, n / 2, n - 1], 7);
    if let Ok(laid) = &laid {
        assert_eq!(laid.rows(), 3);
        for (i, field) in laid.fields().iter().enumerate() {
            assert_eq!(laid.bytes(i).len(), 3 * field.row_size());
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
    laid.map(drop)
}
