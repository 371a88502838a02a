//! Which bytes are taken for a compressed stream.

use windrow_core::store::{Compression, Memory, Store};

/// Whether the first bytes are those of a compressed stream: such a file is expanded before it is read.
pub fn is_compressed(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(8)];
    let object = Memory::new().with("x", head).open("x").expect("an object that was put there");
    Compression::of(object.as_ref()).expect("memory").is_some()
}
