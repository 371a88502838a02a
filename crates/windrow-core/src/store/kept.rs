//! What was computed from data, kept in the cache folder for the next run.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use super::cache::{Cache, Draft, Note, SUFFIX, cache_folder};
use super::{Memory, Object, Store, times};
use crate::error::{Error, Kind, Result};

/// The bytes kept under `name`, or made now and kept: `head`, then what `make` writes, `size` bytes together.
///
/// They are in the cache folder (`$WINDROW_CACHE`, else `$XDG_CACHE_HOME/windrow`, else `~/.cache/windrow`), appear
/// there by one rename and are mapped. `name` begins with 16 hexadecimal digits, and `of` says to people what the bytes
/// were computed from. What is there with another head or size is made again. Where there is no cache, or no space in it,
/// the bytes are held in memory for this run and a warning says so.
///
/// # Errors
/// What `make` says of its own.
pub fn kept(
    name: &str,
    of: &str,
    head: &[u8],
    size: u64,
    make: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<Arc<dyn Object>> {
    match cache_folder() {
        Ok(_) => kept_in(&Cache::of_environment()?, name, of, head, size, make),
        Err(_) => in_memory(name, head, size, make),
    }
}

/// What is kept under `name` behind this head, where there is such a file.
pub fn if_kept(name: &str, head: &[u8]) -> Option<Arc<dyn Object>> {
    cache_folder().ok()?;
    let object = Cache::of_environment().ok()?.open(&format!("{name}{SUFFIX}"), |_| Ok(true)).ok()??;
    let mut scratch = Vec::new();
    let is_behind = object.read(0, head.len(), &mut scratch).is_ok_and(|found| found == head);
    is_behind.then_some(object)
}

/// When a file was last changed, in nanoseconds since 1970, where that is known.
pub fn modified_ns(path: &str) -> Option<u64> {
    fs::metadata(path).ok().as_ref().and_then(times::modified_ns)
}

/// When a file, or a name or right of it, was last changed, in nanoseconds since 1970: nobody sets that back.
pub fn changed_ns(path: &str) -> Option<u64> {
    fs::metadata(path).ok().as_ref().and_then(times::changed_ns)
}

fn kept_in(
    cache: &Cache,
    name: &str,
    of: &str,
    head: &[u8],
    size: u64,
    make: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<Arc<dyn Object>> {
    let file = format!("{name}{SUFFIX}");
    let whole = |object: &Arc<dyn Object>| {
        let mut scratch = Vec::new();
        object.size() == size && object.read(0, head.len(), &mut scratch).is_ok_and(|found| found == head)
    };
    if let Some(found) = cache.open(&file, |_| Ok(true)).ok().flatten().filter(whole) {
        return Ok(found);
    }
    let failed = match write_into(cache, &file, of, head, make) {
        Ok(found) if whole(&found) => return Ok(found),
        Ok(_) => Error::new(Kind::Io, "the file of the cache is not as it was written"),
        Err(Stop::Cache(error)) => error,
        Err(Stop::Make(error)) => return Err(error),
    };
    let folder = cache.folder().display();
    crate::warn!("nothing can be kept in the cache {folder}, held in memory instead: {failed:#}");
    in_memory(name, head, size, make)
}

enum Stop {
    Cache(Error),
    Make(Error),
}

fn write_into(
    cache: &Cache,
    file: &str,
    of: &str,
    head: &[u8],
    make: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<Arc<dyn Object>, Stop> {
    let mut draft = cache.draft(file).map_err(Stop::Cache)?;
    draft.append(head).map_err(Stop::Cache)?;
    let mut noting = Noting { draft: &mut draft, failed: false };
    match make(&mut noting) {
        Err(error) if noting.failed => return Err(Stop::Cache(draft.take_refusal().unwrap_or(error))),
        made => made.map_err(Stop::Make)?,
    }
    draft.keep(Note::new(of, "statistics", 0)).map_err(Stop::Cache)
}

fn in_memory(
    name: &str,
    head: &[u8],
    size: u64,
    make: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<Arc<dyn Object>> {
    let mut bytes = Vec::new();
    let room = usize::try_from(size).ok().and_then(|size| bytes.try_reserve_exact(size).ok());
    room.ok_or_else(|| {
        Error::memory(format!("{size} bytes, and no cache folder"))
            .hint("set WINDROW_CACHE to a folder with more space")
    })?;
    bytes.extend_from_slice(head);
    make(&mut bytes)?;
    Memory::new().with(name, bytes).open(name)
}

/// Tells a cache that cannot be written from work that failed.
struct Noting<'a> {
    draft: &'a mut Draft,
    failed: bool,
}

impl Write for Noting<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.draft.write(bytes);
        self.failed |= written.as_ref().is_err_and(|e| e.kind() != std::io::ErrorKind::Interrupted);
        written
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.draft.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn keep(folder: &Path, head: &[u8], body: &[u8], asked: &mut u32) -> Arc<dyn Object> {
        let size = (head.len() + body.len()) as u64;
        let mut make = |out: &mut dyn Write| {
            *asked += 1;
            out.write_all(body).map_err(|e| Error::new(Kind::Io, "no space").caused_by(e))
        };
        kept_in(&Cache::at(folder), "a", "data", head, size, &mut make).unwrap()
    }

    #[test]
    fn what_was_made_once_is_not_made_again_unless_it_is_other() {
        let folder = tempfile::tempdir().unwrap();
        let mut asked = 0;
        for _ in 0..2 {
            assert_eq!(keep(folder.path(), b"v1", b"abc", &mut asked).mapped(), Some(&b"v1abc"[..]));
        }
        assert_eq!(asked, 1);
        assert_eq!(keep(folder.path(), b"v2", b"abc", &mut asked).mapped(), Some(&b"v2abc"[..]));
        fs::write(folder.path().join("a.windrow"), b"v2ab").unwrap();
        assert_eq!(keep(folder.path(), b"v2", b"abc", &mut asked).mapped(), Some(&b"v2abc"[..]));
        assert_eq!(asked, 3);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn without_a_place_for_it_memory_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        fs::write(&blocked, b"").unwrap();
        let mut asked = 0;
        let object = keep(&blocked.join("cache"), b"v1", b"abc", &mut asked);
        assert_eq!((object.mapped(), asked), (Some(&b"v1abc"[..]), 1));
    }

    #[test]
    fn work_that_fails_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let e = kept_in(&Cache::at(folder.path()), "a", "data", b"", 1, &mut |_| Err(Error::corrupt("bad")))
            .err()
            .unwrap();
        assert_eq!(e.kind(), Kind::Corrupt);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
