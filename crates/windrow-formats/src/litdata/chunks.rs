//! The files of chunks: found, expanded where they are compressed, and where each item is in them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use windrow_core::format::Probe;
use windrow_core::store::{Object, expanded_checked, key};
use windrow_core::{Error, Result};

use super::frames::{Frames, Kept, expand};
use super::index::{Chunk, Index, Items, Storage};
use crate::firsts::Firsts;
use windrow_core::format::data_files::DataFiles;

/// The chunks of an index, opened.
pub(super) struct Chunks {
    pub(super) files: DataFiles,
    chunks: Vec<Described>,
    storage: Storage,
    /// The file with the items of each chunk, checked, once it was asked for.
    opened: Vec<OnceLock<Opened>>,
    kept: Kept,
    firsts: Firsts,
}

struct Described {
    items: u64,
    bytes: u64,
    /// Bytes of all items, where they are tokens.
    tokens: Option<u64>,
}

struct Opened {
    object: Arc<dyn Object>,
    frames: Option<Frames>,
}

impl Chunks {
    /// The files that the index names, below its folder; each has the size that it says.
    ///
    /// # Errors
    /// `NotFound` naming a file that is not there; `Corrupt` for one of another size.
    pub(super) fn open(probe: &Probe, index: &Index) -> Result<Chunks> {
        let folder = if probe.is_folder { probe.key.clone() } else { key::folder_of(&probe.key).to_string() };
        let width = match &index.items {
            Items::Tokens(super::leaf::Leaf::Bare(dtype)) => Some(dtype.size() as u64),
            _ => None,
        };
        let missing = |key: &str, _| {
            Error::not_found("a chunk of the index is not there").at(key).hint("the copy looks unfinished")
        };
        let keys = index.chunks.iter().map(|chunk| key::below(&folder, &chunk.file)).collect();
        let files = DataFiles::listed(probe, keys, missing)?;
        let (mut chunks, mut firsts) = (Vec::new(), Firsts::new());
        for (file, Chunk { items, bytes, tokens, .. }) in index.chunks.iter().enumerate() {
            let size = files.size(file)?;
            if index.storage != Storage::Chunks && size != *bytes {
                return Err(Error::corrupt(format!("{size} bytes, the index says {bytes}"))
                    .at(files.name(file))
                    .hint("the copy looks unfinished"));
            }
            if offsets_end(*items) > *bytes {
                return Err(Error::corrupt(format!(
                    "the index says {items} items, which {bytes} bytes cannot hold"
                ))
                .at(files.name(file)));
            }
            firsts.checked_push(*items).ok_or_else(|| {
                Error::corrupt("more items together than 64 bits count").at(probe.display())
            })?;
            // More than 64 bits count is more than a file holds, too.
            let tokens = tokens.zip(width).map(|(tokens, width)| tokens.saturating_mul(width));
            chunks.push(Described { items: *items, bytes: *bytes, tokens });
        }
        let opened = chunks.iter().map(|_| OnceLock::new()).collect();
        Ok(Chunks { files, chunks, storage: index.storage, opened, kept: Kept::default(), firsts })
    }

    /// Items of all chunks.
    pub(super) fn count(&self) -> u64 {
        self.firsts.count()
    }

    /// Items of a chunk, as the index says.
    pub(super) fn items_of(&self, chunk: usize) -> u64 {
        self.chunks[chunk].items
    }

    /// The chunk of an item, and the item's number in it.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub(super) fn find(&self, item: u64) -> Result<(usize, u64)> {
        self.firsts.find(item)
    }

    fn opened(&self, number: usize) -> Result<&Opened> {
        if let Some(opened) = self.opened[number].get() {
            return Ok(opened);
        }
        let described = &self.chunks[number];
        let object = match self.storage {
            Storage::Chunks => {
                expanded_checked(self.files.apart(number)?.as_ref(), described.bytes, &|| Ok(()))?
            }
            _ => self.files.object(number)?.clone(),
        };
        let frames = match self.storage {
            Storage::Frames => Some(Frames::of(object.as_ref(), described.items)?),
            _ => {
                check(object.as_ref(), described, self.storage)?;
                None
            }
        };
        Ok(self.opened[number].get_or_init(|| Opened { object, frames }))
    }

    /// Whether items are in the files as they are.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.storage, Storage::Plain | Storage::Chunks)
    }

    /// The file of a chunk, in which items are as they are.
    ///
    /// # Errors
    /// `Corrupt` when it is not what the index says; what expanding says.
    pub(super) fn object(&self, chunk: usize) -> Result<&Arc<dyn Object>> {
        Ok(&self.opened(chunk)?.object)
    }

    /// Where an item is in the file of its chunk, or the frame that it is in.
    ///
    /// # Errors
    /// `Corrupt` for offsets that go back or leave the file.
    pub(super) fn place(&self, chunk: usize, local: u64) -> Result<Range<u64>> {
        let opened = self.opened(chunk)?;
        let object = opened.object.as_ref();
        if let Some(frames) = &opened.frames {
            return Ok(frames.place(object, local)?.0.place);
        }
        let mut scratch = Vec::new();
        // Below the end of the offsets, which were compared with the file.
        let at = 4 + 4 * local;
        let words = object.read(at, 8, &mut scratch)?;
        let (start, end) = (word(words, 0), word(words, 4));
        let begin = offsets_end(self.chunks[chunk].items);
        if begin <= start && start <= end && end <= object.size() {
            Ok(start..end)
        } else {
            Err(Error::corrupt(format!(
                "an item at bytes {start} to {end}, expected within {begin} to {}",
                object.size()
            ))
            .at(object.name())
            .byte(at)
            .hint("the chunk is damaged: copy it again"))
        }
    }

    /// The bytes of an item, expanded; borrowed where they are in memory as they are.
    ///
    /// # Errors
    /// As [`Chunks::place`]; `Corrupt` for what cannot be expanded.
    pub(super) fn item<'a>(&'a self, chunk: usize, local: u64, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let opened = self.opened(chunk)?;
        let object = opened.object.as_ref();
        if let Some(frames) = &opened.frames {
            let (frame, place) = frames.place(object, local)?;
            let expanded = self.kept.frame(object, chunk, &frame)?;
            scratch.clear();
            // Within the frame, whose size was compared.
            scratch.extend_from_slice(&expanded[place.start as usize..place.end as usize]);
            return Ok(scratch);
        }
        let place = self.place(chunk, local)?;
        let size = (place.end - place.start) as usize;
        match self.storage {
            Storage::Items => {
                let mut packed = Vec::new();
                let packed = object.read(place.start, size, &mut packed)?;
                *scratch = expand(object, packed, place.start)?;
                Ok(scratch)
            }
            _ => object.read(place.start, size, scratch),
        }
    }
}

// The number of items, the place of the first and the end of the last, as the index and the file say them.
fn check(object: &dyn Object, chunk: &Described, storage: Storage) -> Result<()> {
    let wrong = |what: String, byte: u64| {
        Error::corrupt(what).at(object.name()).byte(byte).hint("the chunk is damaged: copy it again")
    };
    if object.size() != chunk.bytes {
        return Err(wrong(format!("{} bytes, the index says {}", object.size(), chunk.bytes), 0));
    }
    let mut scratch = Vec::new();
    let begin = offsets_end(chunk.items);
    let count = word(object.read(0, 4, &mut scratch)?, 0);
    if count != chunk.items {
        return Err(wrong(format!("{count} items, the index says {}", chunk.items), 0));
    }
    let first = word(object.read(4, 4, &mut scratch)?, 0);
    if first != begin {
        return Err(wrong(format!("the first item at byte {first}, expected at {begin}"), 4));
    }
    let at = begin - 4;
    let end = word(object.read(at, 4, &mut scratch)?, 0);
    if end != object.size() {
        return Err(wrong(format!("the last item ends at byte {end} of {}", object.size()), at));
    }
    match chunk.tokens.filter(|_| storage != Storage::Items) {
        Some(bytes) if bytes != end - begin => {
            Err(wrong(format!("{} bytes of tokens, the index says {bytes}", end - begin), begin))
        }
        _ => Ok(()),
    }
}

// The first byte after the offsets of `items` items.
pub(super) fn offsets_end(items: u64) -> u64 {
    items.saturating_add(1).saturating_mul(4).saturating_add(4)
}

pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 4)
        .and_then(|word| word.first_chunk())
        .map_or(0, |word| u64::from(u32::from_le_bytes(*word)))
}
