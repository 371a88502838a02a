//! Arrow IPC streams and files (Feather 2 is one), read in place: the schema, the places of all buffers, and values by
//! row, without building arrays.
//!
//! The layout is that of the Arrow columnar format (arrow.apache.org/docs/format/Columnar.html). Every place that a message
//! names is compared with the bytes there before it is used; offsets are checked when the row is read.
//!
//! # Modules
//!
//! * `file`: a stream or file, opened: its columns, and where the rows of each batch are;
//! * `message`: the messages of a stream, in order or as the footer lists them;
//! * `flat`: Flatbuffer tables, as far as Arrow messages need them;
//! * `schema`: columns: their types, and which buffers of a batch are theirs;
//! * `batch`: one record batch: its rows and the places of its buffers;
//! * `expand`: compressed buffers, expanded once into the cache;
//! * `value`: the value of a column in one row;
//! * `numbers`: a column of lists of numbers, as records;
//! * `lists`: lists of numbers as arrays of the stored dtype;
//! * `stacked`: lists of arrays as one array, as `datasets` stores several axes;
//! * `shaped`: flat columns with a shape beside them, transposed arrays, lists;
//! * `times`: dates, times and decimals as text;
//! * `joined`: several tables as the samples of one data set;
//! * `matched`: the columns of several tables, matched by name;
//! * `widened`: the type that holds the values of two types;
//! * `fitted`: values of one type as those of a wider one;
//! * `write`: records and rows as an Arrow stream.

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
