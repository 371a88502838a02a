//! Which of its two layouts a file of `torch.save` has.

use windrow_core::store::{Object, at_once};
use windrow_core::{Error, Result};

use super::TorchArchive;

const ARCHIVE_MAGIC: &[u8] = b"PK\x03\x04";
/// How the older stream begins: a pickle of a long number.
pub const TORCH_STREAM: &[u8] =
    &[0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, b'.'];

/// A file of `torch.save` in one of its layouts.
pub enum TorchSave<'a> {
    /// A zip archive, since torch 1.6.
    Archive(TorchArchive<'a>),
    /// All bytes of the older stream of pickles.
    Stream(&'a [u8]),
}

impl<'a> TorchSave<'a> {
    /// Whether a file that begins so may be one.
    pub fn begins(head: &[u8]) -> bool {
        head.starts_with(ARCHIVE_MAGIC) || head.starts_with(TORCH_STREAM)
    }

    /// Opens a file, by how it begins. `scratch` is for the bytes of a stream.
    ///
    /// # Errors
    /// `Corrupt` when it is neither, or damaged; `Unsupported`, `Io`.
    pub fn open(object: &'a dyn Object, scratch: &'a mut Vec<u8>) -> Result<Self> {
        let mut begin = Vec::new();
        let head = object.read(0, object.size().min(TORCH_STREAM.len() as u64) as usize, &mut begin)?;
        if head.starts_with(TORCH_STREAM) {
            return Ok(TorchSave::Stream(object.read(0, at_once(object.size())?, scratch)?));
        }
        if !head.starts_with(ARCHIVE_MAGIC) {
            let found: Vec<String> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            return Err(Error::corrupt(format!(
                "expected a file of torch.save, found {} bytes that begin {}",
                object.size(),
                if found.is_empty() { "with nothing".to_string() } else { found.join(" ") }
            ))
            .hint("the copy looks unfinished, or torch.save did not write it"));
        }
        Ok(TorchSave::Archive(TorchArchive::open(object)?))
    }
}
