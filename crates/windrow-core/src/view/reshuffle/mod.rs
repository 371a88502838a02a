//! Documents in another order in each pass: which one comes at each place, by arithmetic, and back.
//!
//! * `order`: the documents at the places of a pass, within scopes of neighbours;
//! * `stream`: where in the stream of these documents a number is;
//! * `narrow`: the lengths of all records in few bytes;
//! * `sums`: where every 16th place of a pass begins;
//! * `kept`: the passes whose sums are kept;
//! * `classes`: records of nearly equal size, which trade slots;
//! * `rows`: rows of slots, and the records in them in a pass;
//! * `pieces`: rows that a part of one long record fills.

mod classes;
mod kept;
mod narrow;
mod order;
mod pieces;
mod rows;
mod stream;
mod sums;

pub(super) use order::WORD;
pub(super) use pieces::Pieces;
pub(super) use rows::Rows;
pub(super) use stream::{Place, Places, Reshuffled, check_count};
