//! A file as memory: counted among the maps that a program may have, and watched by whoever takes SIGBUS.

use std::fs::File;

use super::allowance::{MAPS, Taken};
use super::torn::Watched;

/// The first bytes of a file, mapped to be read. What others write to the file meanwhile shows in them.
///
/// ```
/// use windrow_core::store::{Map, whole};
///
/// let file = std::fs::File::open("Cargo.toml")?;
/// let map = Map::of(&file, 9).expect("it has more bytes");
/// let begin = whole(|| map.bytes().map(<[u8]>::to_vec));
/// assert_eq!(begin.as_deref(), Some(&b"[package]"[..]));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Map {
    /// Before the map, so that it goes before it.
    watched: Watched,
    map: memmap2::Mmap,
    _taken: Taken,
}

impl Map {
    /// The first `size` bytes, of a file that has as many. `None` where the file system cannot map it, `size` is 0, or the
    /// program has used up the maps that it may use: the rest of it needs those that are left.
    pub fn of(file: &File, size: u64) -> Option<Map> {
        let size = usize::try_from(size).ok().filter(|size| *size > 0)?;
        let taken = MAPS.take()?;
        // SAFETY: the map is read-only. What another process that truncates the file brings about is documented at `bytes`
        // and `Io::Mmap`; it cannot make memory unsafe, because every access is bounds-checked against the size at opening.
        let map = unsafe { memmap2::MmapOptions::new().len(size).map(file) }.ok()?;
        Some(Map { watched: Watched::new(&map), map, _taken: taken })
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.map.len()
    }

    /// All of it; `None` once some of it was found gone, because the file became shorter or its disk failed.
    ///
    /// Called, and read, inside of [`whole`](super::whole): elsewhere a file that another program truncates ends the process
    /// (SIGBUS).
    #[inline]
    pub fn bytes(&self) -> Option<&[u8]> {
        // What a page holds behind the end of its file reads as zeros, without a word; the last page, where it is gone,
        // does not.
        if let Some(last) = self.map.last() {
            // SAFETY: a reference may be read. Volatile, for nobody wants the byte.
            let _ = unsafe { std::ptr::read_volatile(last) };
        }
        if self.watched.is_torn() { None } else { Some(&self.map) }
    }

    /// Asks the processor for bytes that are read next.
    pub(super) fn touch(&self, start: u64, size: u64) {
        let end = start.saturating_add(size).min(self.map.len() as u64);
        if start < end {
            // Both below the map's length.
            crate::touch(&self.map[start as usize..end as usize]);
        }
    }

    /// Asks the operating system for bytes that are read soon. A hint: whether the system takes it does not matter.
    pub fn prefetch(&self, start: u64, size: u64) {
        let (Ok(start), Ok(size)) = (usize::try_from(start), usize::try_from(size)) else { return };
        if start < self.map.len() {
            let size = size.min(self.map.len() - start);
            let _ = self.map.advise_range(memmap2::Advice::WillNeed, start, size);
        }
    }

    /// Has the operating system read no more than it is asked for. A hint, too.
    pub(super) fn read_at_random(&self) {
        let _ = self.map.advise(memmap2::Advice::Random);
    }
}
