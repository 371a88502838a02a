//! The fields of a layout that are asked for by name.

use super::Field;
use crate::error::{Error, Result};

/// The parts of these names, in the order of the names.
///
/// # Errors
/// `Config` for a name that none of them has, or that is there twice.
pub(super) fn chosen<P: Copy + PartialEq>(
    parts: &[P],
    name_of: impl Fn(P) -> &'static str,
    names: &[impl AsRef<str>],
    rows: &str,
) -> Result<Vec<P>> {
    let mut found = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        match parts.iter().find(|part| name_of(**part) == name) {
            Some(part) if !found.contains(part) => found.push(*part),
            Some(_) => {
                return Err(Error::config(format!("the field {name:?} is asked for twice")).field("fields"));
            }
            None => {
                let all: Vec<&str> = parts.iter().map(|part| name_of(*part)).collect();
                return Err(Error::config(format!("no field {name:?} in {rows}"))
                    .field("fields")
                    .hint(format!("choose of {}", all.join(", "))));
            }
        }
    }
    Ok(found)
}

/// What tells a layout of these chosen fields from one of all of them.
pub(super) fn described(fields: &[Field]) -> String {
    format!(",fields={}", fields.iter().map(|field| &*field.name).collect::<Vec<_>>().join("/"))
}
