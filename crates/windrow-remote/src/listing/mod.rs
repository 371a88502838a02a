//! What is in a store: listings, by a manifest or by the store itself, and the objects opened last.
//!
//! * `folder`: a folder, from its manifest or from the store;
//! * `entries`: a listed folder, and the entries in it;
//! * `manifest`: what a folder's manifest lists;
//! * `beside`: an object and its neighbours in one listing;
//! * `names`: objects whose names begin alike;
//! * `refusals`: what a store refused to say so far;
//! * `absent`: what counts as absent though a store refuses to say so;
//! * `opened`: objects opened last, so that they are not asked for again;
//! * `ahead`: objects that are opened one behind the other, asked for before they are read;
//! * `next`: which end of them is read first, and how many come next.

mod absent;
mod ahead;
mod beside;
mod entries;
mod folder;
mod manifest;
mod names;
mod next;
mod opened;
mod refusals;

pub(crate) use absent::is_own;
pub(crate) use entries::{Listed, entry, folder};
pub(crate) use names::Names;
pub(crate) use next::{FIRST_READS, Next};
pub(crate) use opened::Copies;
pub(crate) use refusals::Refusals;
