//! A zip archive, its claims compared with the file before memory is taken for them: what torch.save and numpy.savez write.

use std::io::BufReader;

use windrow_core::store::{Object, Stream};
use windrow_core::{Error, Result};
use zip::ZipArchive;
use zip::read::{ArchiveOffset, Config};
use zip::result::ZipError;

/// numpy writes one per array; a zip of more needs another layout, and more memory than its members justify.
pub const MOST_MEMBERS: u64 = 65_536;

/// An archive whose bytes are an object's.
pub type Archive<'a> = ZipArchive<BufReader<Stream<'a>>>;

/// Opens the archive in an object; its directory is read, and what it claims compared with the object's size.
///
/// # Errors
/// `Corrupt`, `Unsupported`; `Io`.
pub fn archive(object: &dyn Object) -> Result<Archive<'_>> {
    check_count(object)?;
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    ZipArchive::with_config(config, BufReader::new(Stream::new(object)))
        .map_err(|e| broken(object, "the archive cannot be understood", e))
}

// The number of entries is claimed at the end of the archive, and memory is taken for it before one is read.
fn check_count(object: &dyn Object) -> Result<()> {
    const END: u64 = 22 + 65_535;
    let size = object.size();
    let start = size.saturating_sub(END + 20);
    let mut scratch = Vec::new();
    // Bounded above, so it fits.
    let tail = object.read(start, (size - start) as usize, &mut scratch)?.to_vec();
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    for at in memchr::memmem::find_iter(&tail, b"PK\x06\x07") {
        // The locator of a 64-bit end, if the end follows it.
        if tail.get(at + 20..at + 24) != Some(b"PK\x05\x06") {
            continue;
        }
        let byte = number(&tail, at + 8);
        let lies = || {
            Error::corrupt("the ZIP end record points outside the file")
                .at(object.name())
                .byte(start + at as u64)
                .hint("the copy looks unfinished")
        };
        if byte.checked_add(56).is_none_or(|end| end > size) {
            return Err(lies());
        }
        let mut scratch = Vec::new();
        let end = object.read(byte, 56, &mut scratch)?;
        if !end.starts_with(b"PK\x06\x06") {
            return Err(lies());
        }
        too_many(number(end, 32), object)?;
    }
    Ok(())
}

/// That a zip holds no more members than one reads.
///
/// # Errors
/// `Unsupported` naming the number.
pub fn too_many(count: u64, object: &dyn Object) -> Result<()> {
    if count > MOST_MEMBERS {
        Err(Error::unsupported(format!("{count} members; expected at most {MOST_MEMBERS}"))
            .at(object.name())
            .hint("save the sequences as rows of one array, or as shards"))
    } else {
        Ok(())
    }
}

/// The error of a zip that cannot be understood; one of the store keeps its own kind and place.
pub fn broken(object: &dyn Object, what: &str, cause: ZipError) -> Error {
    // An error of the store keeps its own kind and place.
    if let ZipError::Io(io) = cause {
        return match io.downcast::<Error>() {
            Ok(own) => own,
            Err(io) => Error::corrupt(what).at(object.name()).caused_by(io).hint("the copy looks unfinished"),
        };
    }
    Error::corrupt(format!("{what}: found {} bytes", object.size()))
        .at(object.name())
        .caused_by(cause)
        .hint("the copy looks unfinished")
}
