//! What is known of an object that is read, and whether an answer is of it.

use crate::backend::{Backend, Got};
use crate::trouble::{Trouble, What};

/// What is known of the object that is read.
pub(crate) struct Known<'a> {
    pub(crate) key: &'a str,
    pub(crate) url: &'a str,
    pub(crate) size: u64,
    pub(crate) tag: Option<&'a str>,
}

/// Whether the answer is of the version that is known.
///
/// # Errors
/// That it is another one.
pub(crate) fn check(got: &Got, known: &Known<'_>) -> Result<(), Trouble> {
    if let (Some(found), Some(expected)) = (&got.tag, known.tag)
        && found != expected
    {
        return Err(Trouble::new(What::Changed, format!("expected version {expected}, found {found}")));
    }
    match got.total {
        Some(total) if total != known.size => {
            Err(Trouble::new(What::Changed, format!("expected {} bytes, found {total}", known.size)))
        }
        _ => Ok(()),
    }
}

/// A server that packs what it sends, and says how large it is unpacked.
pub(crate) fn or_packed(trouble: Trouble, backend: &dyn Backend, known: &Known<'_>) -> Trouble {
    match (trouble.what, backend.encoding(known.key)) {
        (What::Changed | What::NoRanges, Some(encoding)) => Trouble::new(What::Encoded, encoding),
        _ => trouble,
    }
}
