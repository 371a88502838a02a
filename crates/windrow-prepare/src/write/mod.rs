//! Records of numbers into any format that is written, one after the other or all of a source. What is written becomes
//! visible at once.

mod convert;
mod inputs;
mod mask;
mod origin;
mod writer;

pub use convert::convert;
pub(crate) use convert::{convert_from, refuse_empty, sum_of_lengths};
pub use inputs::refuse_inputs;
pub(crate) use origin::Origin;
pub use origin::manifest_of;
pub use writer::Writer;
pub(crate) use writer::{PART, copy_part, stored_dtype};
