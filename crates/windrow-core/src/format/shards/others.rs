//! What a scale of `meta.json` holds besides its numbers: found again in the text.

use serde::de::IgnoredAny;

use super::meta::STEP;
use super::table::Table;
use crate::error::{Error, Result};
use crate::source::Extras;
use crate::store::Object;

/// What else stands beside the numbers of a sequence.
///
/// # Errors
/// `Corrupt` when the text is not what it was; `OutOfRange`.
pub(super) fn others(description: &dyn Object, table: &Table, record: u64) -> Result<Extras> {
    let changed = || {
        Error::corrupt("expected the scale that was there when it was opened")
            .at(description.name())
            .record(record)
            .field(format!("scales[{record}]"))
    };
    let Some((from, to)) = table.text(record)? else { return Ok(Extras::new()) };
    let size = to.checked_sub(from).and_then(|size| usize::try_from(size).ok()).ok_or_else(changed)?;
    let mut scratch = Vec::new();
    let mut rest = description.read(from, size, &mut scratch)?;
    for _ in 0..record % STEP {
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
        values.next().ok_or_else(changed)?.map_err(|_| changed())?;
        rest = &rest[values.byte_offset()..];
        let between = rest.iter().take_while(|b| b.is_ascii_whitespace() || **b == b',').count();
        rest = &rest[between..];
    }
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Extras>();
    let found = values.next().ok_or_else(changed)?;
    let mut extras = found.map_err(|cause| changed().caused_by(cause))?;
    let there = |key: &str| extras.get(key).is_some_and(|value| !value.is_null());
    let scaled = there("mean") && there("std");
    extras.retain(|key, value| match key.as_str() {
        "offset" | "length" => false,
        "mean" | "std" => !scaled && !value.is_null(),
        _ => true,
    });
    Ok(extras)
}
