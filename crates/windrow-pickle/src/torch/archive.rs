//! The archive that `torch.save` writes: where its pickle and its storages lie, every claim compared with the file's size.

use std::io::Read;

use windrow_core::store::Object;
use windrow_core::{Error, Result};
use zip::CompressionMethod;

use crate::archive::{Archive, archive};
use crate::described::Tensor;

/// An opened archive of torch.
pub struct TorchArchive<'a> {
    archive: Archive<'a>,
    /// What all members' names begin with: the folder that holds `data.pkl`.
    root: String,
    object: &'a dyn Object,
}

impl<'a> TorchArchive<'a> {
    /// Reads the archive's directory.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Io`.
    pub fn open(object: &'a dyn Object) -> Result<Self> {
        let archive = archive(object)?;
        if archive.has_duplicate_names() {
            return Err(Error::corrupt("two members of the archive have one name")
                .hint("which of them is meant cannot be known: save it again"));
        }
        let named =
            archive.file_names().filter_map(|name| name.ok()?.strip_suffix("data.pkl").map(str::to_string));
        let mut roots = named.filter(|root| root.is_empty() || root.ends_with('/'));
        let root = match (roots.next(), roots.next()) {
            (Some(root), None) => root,
            (None, _) => {
                return Err(Error::corrupt("expected data.pkl in the archive, found none")
                    .hint("the copy looks unfinished, or torch.save did not write it"));
            }
            _ => {
                return Err(Error::unsupported("an archive with several data.pkl")
                    .hint("save it again with torch.save"));
            }
        };
        drop(roots);
        Ok(TorchArchive { archive, root, object })
    }

    /// The pickle, of at most `most` bytes: more than `what` takes. The numbers beside it are compared to be
    /// little-endian.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported` with the hint when it is larger.
    pub fn pickle(&mut self, most: u64, what: &str, hint: &str) -> Result<Vec<u8>> {
        let pickle = self.small("data.pkl", most, what, hint)?;
        let order = "byteorder";
        if self.archive.index_for_name(&format!("{}{order}", self.root)).is_some()
            && self.small(order, 16, "a byte order", hint)?.trim_ascii() != b"little"
        {
            return Err(Error::unsupported("numbers with their most significant byte first")
                .field(order)
                .hint("load and save it on a little-endian machine"));
        }
        Ok(pickle)
    }

    /// The byte of the file at which the storage of a tensor begins; all that the tensor says of it is in the file.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub fn storage(&mut self, tensor: &Tensor) -> Result<u64> {
        let name = format!("{}data/{}", self.root, tensor.key);
        let damaged = |what: String| {
            Error::corrupt(what).field(name.clone()).hint("the copy looks unfinished: fetch it again")
        };
        let entry = self.archive.index_for_name(&name).map(|index| self.archive.by_index_raw(index));
        let entry = match entry {
            Some(Ok(entry)) => entry,
            Some(Err(cause)) => {
                return Err(damaged("the storage cannot be found".to_string()).caused_by(cause));
            }
            None => return Err(damaged("expected the tensor's storage, found none".to_string())),
        };
        if entry.compression() != CompressionMethod::Stored || entry.encrypted() {
            return Err(Error::unsupported("the storage is compressed or encrypted, which torch never does")
                .field(name)
                .hint("save it again with torch.save"));
        }
        let (size, start) = (entry.size(), entry.data_start().unwrap_or(u64::MAX));
        let wanted = tensor.counted.checked_mul(tensor.unit);
        let within = start.checked_add(size).is_some_and(|end| end <= self.object.size());
        if entry.compressed_size() != size || !within || wanted.is_none_or(|wanted| wanted > size) {
            return Err(damaged(format!(
                "expected a storage of {} {} numbers, found {size} bytes at byte {start} of a file of {}",
                tensor.held,
                tensor.element.dtype,
                self.object.size()
            )));
        }
        Ok(start)
    }

    fn small(&mut self, member: &str, most: u64, what: &str, hint: &str) -> Result<Vec<u8>> {
        let name = format!("{}{member}", self.root);
        let damaged = |what: String| Error::corrupt(what).at(self.object.name()).field(name.clone());
        let mut entry =
            self.archive.by_name(&name).map_err(|e| damaged(format!("it cannot be read: {e}")))?;
        if entry.size() > most {
            return Err(Error::unsupported(format!(
                "{} bytes, where {what} takes at most {most}",
                entry.size()
            ))
            .at(self.object.name())
            .field(name)
            .hint(hint));
        }
        let mut bytes = Vec::new();
        // Its declared size may be wrong.
        let read = (&mut entry).take(most + 1).read_to_end(&mut bytes);
        read.map_err(|e| damaged(format!("it is damaged: {e}")))?;
        if bytes.len() as u64 > most {
            Err(damaged(format!("it expands to more than {most} bytes")))
        } else {
            Ok(bytes)
        }
    }
}
