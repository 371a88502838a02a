//! The error about a chunk that does not decode to what its array declares.

use windrow_core::Error;

/// Its bytes are not what its codec writes.
pub(crate) fn broken(cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::corrupt("the chunk cannot be decoded").caused_by(cause)
}

/// It decodes to another number of bytes.
pub(crate) fn wrong_size(found: u64, expected: u64) -> Error {
    Error::corrupt(format!("the chunk decodes to {found} bytes, expected {expected}"))
}
