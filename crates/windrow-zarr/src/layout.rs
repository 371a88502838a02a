//! How flat-tokens are recognised: the names of a group's arrays, its attribute, and the splits above it.

use windrow_core::format::Probe;
use windrow_core::store::{Store, key};

/// What describes an array, in version 3 and 2.
pub(crate) const METADATA_V3: &str = "zarr.json";
pub(crate) const METADATA_V2: &str = ".zarray";
/// The format's name.
pub(crate) const NAME: &str = "flat-tokens";
/// The array of token IDs, each with its flag.
pub(crate) const TOKENS: &str = "encoded_tokens";
/// What it is called in some groups.
const OTHER_TOKENS: &str = "tokens";
/// The array of where sequences start.
pub(crate) const STARTS: &str = "seq_starts";
/// The attribute that holds the largest token ID.
#[cfg(feature = "zarr")]
pub(crate) const MAX_ID: &str = "max_token_id";
/// Folders of a data set, a group in each.
pub(crate) const SPLITS: [&str; 2] = ["train", "validation"];
/// Ids are stored in 31 bits.
#[cfg(feature = "zarr")]
pub(crate) const LARGEST_ID: u64 = (1 << 31) - 1;

/// Whether a group has a file or folder of this name; zarr's own tools add the last one.
#[cfg(feature = "zarr")]
pub(crate) fn is_of_group(name: &str) -> bool {
    [TOKENS, STARTS, METADATA_V3, ".zgroup", ".zattrs", ".zmetadata"].contains(&name)
}

/// Whether a group is here, or in the folder of a split.
pub(crate) fn is_here(probe: &Probe) -> bool {
    let is_group = || tokens_name(probe.store.as_ref(), &probe.key).is_some();
    probe.is_folder && (is_group() || !parts(probe).is_empty())
}

/// Folders of splits that hold a group.
pub(crate) fn parts(probe: &Probe) -> Vec<String> {
    let store = probe.store.as_ref();
    let all = SPLITS.iter().map(|split| probe.below(split));
    all.filter(|folder| tokens_name(store, folder).is_some()).collect()
}

/// What the array of tokens is called here.
pub(crate) fn tokens_name(store: &dyn Store, folder: &str) -> Option<&'static str> {
    let by_another_name = || is_array(store, folder, OTHER_TOKENS) && is_array(store, folder, STARTS);
    if is_array(store, folder, TOKENS) { Some(TOKENS) } else { by_another_name().then_some(OTHER_TOKENS) }
}

fn is_array(store: &dyn Store, folder: &str, name: &str) -> bool {
    let array = key::below(folder, name);
    [METADATA_V3, METADATA_V2].iter().any(|file| store.entry(&key::below(&array, file)).is_ok())
}
