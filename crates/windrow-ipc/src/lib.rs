//! Arrow IPC streams and files (Feather 2 is one), read in place: the schema, the places of all buffers, and values by
//! row, without building arrays.
//!
//! The layout is that of the Arrow columnar format (arrow.apache.org/docs/format/Columnar.html). Every place that a message
//! names is compared with the bytes there before it is used; offsets are checked when the row is read.

mod batch;
mod expand;
mod file;
mod fitted;
mod flat;
mod joined;
mod lists;
mod matched;
mod message;
mod numbers;
mod schema;
mod shaped;
mod stacked;
mod times;
mod value;
mod widened;
mod write;

pub use file::Table;
pub use joined::Joined;
pub use matched::{Columns, SHAPE};
pub use numbers::Run;
pub use schema::{Kind, Node};
pub use write::{StreamWriter, check_dtype};
