//! The hash of an object, kept with it where the store keeps more than bytes.

use std::borrow::Cow;

use object_store::{Attribute, Attributes};

/// Under which name it is kept. Azure takes letters and digits alone.
const HASH: Attribute = Attribute::Metadata(Cow::Borrowed("windrowxxh3"));

/// What is kept with an object of this hash.
pub(super) fn with_hash(hash: &str) -> Attributes {
    Attributes::from_iter([(HASH, hash.to_string())])
}

/// The hash that was put there with an object.
pub(super) fn hash_among(attributes: &Attributes) -> Option<String> {
    attributes.get(&HASH).map(|hash| hash.to_string())
}
