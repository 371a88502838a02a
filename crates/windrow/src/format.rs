//! How data is opened and written: options, and what is said of each format.

pub use windrow_core::format::write::{Target, WriteFormat, WriteOptions};
pub use windrow_core::format::{
    Axis, Format, FormatInfo, Holds, Options, Payload, Takes, Verify, WriteOption,
};
pub use windrow_core::store::Io;
pub use windrow_formats::{read_prompt, tensor_file};
