//! What a scale of `meta.json` holds besides its numbers: found again in the text.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use windrow_core::source::Extras;
use windrow_core::store::Object;
use windrow_core::{Error, Result};

use super::meta::STEP;
use super::table::Table;

/// What else is beside the numbers of a sequence.
///
/// # Errors
/// `Corrupt` when the text is not what it was; `OutOfRange`.
pub(super) fn others(description: &dyn Object, table: &Table, record: u64) -> Result<Extras> {
    let mut scratch = Vec::new();
    let Some(rest) = scale(description, table, record, &mut scratch)? else { return Ok(Extras::new()) };
    let scale: Map<String, Value> = first(rest, description, record)?;
    let mut extras = Extras::from(scale);
    let there = |key: &str| extras.get(key).is_some_and(|value| !value.is_null());
    let scaled = there("mean") && there("std");
    extras.retain(|key, value| match key {
        "offset" | "length" => false,
        "mean" | "std" => !scaled && !value.is_null(),
        _ => true,
    });
    Ok(extras)
}

/// The text beside the numbers of a sequence; the rest of what is there is skipped.
///
/// # Errors
/// As [`others`]; `Corrupt` when it is not text.
pub(super) fn text<'a>(
    description: &dyn Object,
    table: &Table,
    record: u64,
    out: &'a mut String,
) -> Result<&'a str> {
    #[derive(Deserialize)]
    struct Told<'t> {
        #[serde(borrow, default)]
        text: Option<Cow<'t, str>>,
    }
    out.clear();
    let mut scratch = Vec::new();
    if let Some(rest) = scale(description, table, record, &mut scratch)? {
        let told: Told<'_> = first(rest, description, record)
            .map_err(|e| e.field(format!("scales[{record}].text")).hint("\"text\" is a prompt, or null"))?;
        out.push_str(told.text.as_deref().unwrap_or_default());
    }
    Ok(out)
}

// The text from a sequence's scale on; `None` where no scale holds more than numbers.
fn scale<'s>(
    description: &'s dyn Object,
    table: &Table,
    record: u64,
    scratch: &'s mut Vec<u8>,
) -> Result<Option<&'s [u8]>> {
    let Some((from, to)) = table.text(record)? else { return Ok(None) };
    let size = to.checked_sub(from).and_then(|size| usize::try_from(size).ok());
    let size = size.ok_or_else(|| changed(description, record))?;
    let mut rest = description.read(from, size, scratch)?;
    for _ in 0..record % STEP {
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
        let skipped = values.next().is_some_and(|value| value.is_ok());
        rest = rest
            .get(values.byte_offset()..)
            .filter(|_| skipped)
            .ok_or_else(|| changed(description, record))?;
        let between = rest.iter().take_while(|b| b.is_ascii_whitespace() || **b == b',').count();
        rest = &rest[between..];
    }
    Ok(Some(rest))
}

// The value that a text begins with.
fn first<'t, T: Deserialize<'t>>(text: &'t [u8], description: &dyn Object, record: u64) -> Result<T> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<T>();
    match values.next() {
        Some(Ok(found)) => Ok(found),
        Some(Err(cause)) => Err(changed(description, record).caused_by(cause)),
        None => Err(changed(description, record)),
    }
}

fn changed(description: &dyn Object, record: u64) -> Error {
    Error::corrupt("expected the scale that was there when it was opened")
        .at(description.name())
        .record(record)
        .field(format!("scales[{record}]"))
}
