//! Records of numbers into any format that is written, one after the other or all of a source. What is written becomes
//! visible at once.

mod convert;
mod origin;
mod writer;

pub use convert::convert;
pub use origin::manifest_of;
pub use writer::Writer;
