//! The files of shards: found, expanded where they are compressed, and where each sample is in them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use windrow_core::format::Probe;
use windrow_core::store::{Object, expanded_checked, expanded_with, key};
use windrow_core::{Error, Result};

use super::codec::Codec;
use super::index::{Index, Part, Shard, offsets_end};
use crate::firsts::Firsts;
use windrow_core::format::data_files::DataFiles;

/// The shards of an index, opened.
pub(super) struct Shards {
    pub(super) files: DataFiles,
    shards: Vec<Shard>,
    /// Whether the file of a shard is the compressed one.
    is_zip: Vec<bool>,
    /// The file with the samples of each shard, checked, once it was asked for.
    opened: Vec<OnceLock<Arc<dyn Object>>>,
    firsts: Firsts,
}

impl Shards {
    /// The files that the index names, below its folder; each has the size that it says.
    ///
    /// # Errors
    /// `NotFound` naming a file that is not there; `Corrupt` for one of another size.
    pub(super) fn open(probe: &Probe, index: &mut Index) -> Result<Shards> {
        let shards = std::mem::take(&mut index.shards);
        let folder = if probe.is_folder { probe.key.clone() } else { key::folder_of(&probe.key).to_string() };
        let size = |part: &Part| {
            let key = key::below(&folder, &part.basename);
            probe.file(&key).ok().flatten().map(|entry| entry.size)
        };
        let (mut keys, mut is_zip, mut firsts) = (Vec::new(), Vec::new(), Firsts::new());
        for (number, shard) in shards.iter().enumerate() {
            // What was expanded before is beside it.
            let (part, zipped, found) = match (size(&shard.raw), &shard.zip) {
                (Some(found), _) => (&shard.raw, false, found),
                (None, Some((zip, _))) if size(zip).is_some() => (zip, true, size(zip).unwrap_or(0)),
                (None, zip) => {
                    let part = zip.as_ref().map_or(&shard.raw, |(part, _)| part);
                    return Err(Error::not_found(format!("shard {number} of the index is not there"))
                        .at(probe.store.display(&key::below(&folder, &part.basename)))
                        .hint("the copy looks unfinished"));
                }
            };
            let key = key::below(&folder, &part.basename);
            if found != part.bytes {
                return Err(Error::corrupt(format!("{found} bytes, the index says {}", part.bytes))
                    .at(probe.store.display(&key))
                    .field("bytes")
                    .hint("the copy looks unfinished"));
            }
            if let Some((_, compression)) = shard.zip.as_ref().filter(|_| zipped) {
                let name = compression.split(':').next().unwrap_or_default();
                if !["zstd", "gz"].contains(&name) && Codec::named(name).is_none() {
                    return Err(Error::unsupported(format!(
                        "shards compressed with {name:?}; zstd, gz, br, bz2 and snappy are read"
                    ))
                    .at(probe.store.display(&key))
                    .field("compression")
                    .hint("expand them first: the expanded files are beside the compressed ones"));
                }
            }
            firsts.checked_push(shard.samples).ok_or_else(|| {
                Error::corrupt("more samples together than 64 bits count")
                    .at(probe.display())
                    .field("samples")
            })?;
            keys.push(key);
            is_zip.push(zipped);
        }
        let missing = |key: &str, _| Error::not_found("a shard of the index is gone").at(key);
        let opened = shards.iter().map(|_| OnceLock::new()).collect();
        let files = DataFiles::listed(probe, keys, missing)?;
        Ok(Shards { files, shards, is_zip, opened, firsts })
    }

    /// Samples of all shards.
    pub(super) fn len(&self) -> u64 {
        self.firsts.count()
    }

    /// The shard of a sample, and the sample's number in it.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub(super) fn find(&self, sample: u64) -> Result<(usize, u64)> {
        self.firsts.find(sample)
    }

    /// The file with the samples of a shard.
    ///
    /// # Errors
    /// `Corrupt` when it is not what the index says; what expanding says.
    pub(super) fn object(&self, number: usize) -> Result<&Arc<dyn Object>> {
        if let Some(opened) = self.opened[number].get() {
            return Ok(opened);
        }
        let shard = &self.shards[number];
        let object =
            if self.is_zip[number] { self.expand(number)? } else { self.files.object(number)?.clone() };
        check(object.as_ref(), shard)?;
        Ok(self.opened[number].get_or_init(|| object))
    }

    fn expand(&self, number: usize) -> Result<Arc<dyn Object>> {
        let shard = &self.shards[number];
        let stored = self.files.apart(number)?;
        // Frames of these files carry no checksum of their own: a flipped bit expands to another text.
        let check = || shard.zip.as_ref().map_or(Ok(()), |(zip, _)| check_hashes(stored.as_ref(), zip));
        let named = shard.zip.as_ref().and_then(|(_, name)| Codec::named(name.split(':').next()?));
        match named {
            None => expanded_checked(stored.as_ref(), shard.raw.bytes, &check),
            Some(codec) => expanded_with(stored.as_ref(), &check, &|out| {
                let bytes = codec.expand(stored.as_ref(), shard.raw.bytes)?;
                let failed = |e| Error::io("write what the shard expands to", stored.name(), e);
                out.write_all(&bytes).map_err(failed).map(|()| bytes.len() as u64)
            }),
        }
    }

    /// Where a sample is in the file of its shard.
    ///
    /// # Errors
    /// `Corrupt` for offsets that go back or leave the file.
    pub(super) fn place(&self, shard: usize, local: u64) -> Result<Range<u64>> {
        let object = self.object(shard)?;
        let mut scratch = Vec::new();
        // Below the end of the offsets, which were compared with the file.
        let at = 4 + 4 * local;
        let words = object.read(at, 8, &mut scratch)?;
        let (start, end) = (word(words, 0), word(words, 4));
        let begin = offsets_end(self.shards[shard].samples);
        if begin <= start && start <= end && end <= object.size() {
            Ok(start..end)
        } else {
            Err(Error::corrupt(format!(
                "a sample at bytes {start} to {end}, expected within {begin} to {}",
                object.size()
            ))
            .at(object.name())
            .byte(at)
            .hint("the shard is damaged: copy it again"))
        }
    }

    /// Each shard's file as it is stored, and what the index says of it.
    pub(super) fn stored(&self) -> impl Iterator<Item = (usize, &Part)> {
        self.shards.iter().zip(&self.is_zip).enumerate().map(|(number, (shard, zipped))| {
            match (&shard.zip, zipped) {
                (Some((part, _)), true) => (number, part),
                _ => (number, &shard.raw),
            }
        })
    }
}

// The number of samples, the place of the first and the end of the last, as the index and the file say them.
fn check(object: &dyn Object, shard: &Shard) -> Result<()> {
    let wrong = |what: String, byte: u64| {
        Err(Error::corrupt(what).at(object.name()).byte(byte).hint("the shard is damaged: copy it again"))
    };
    if object.size() != shard.raw.bytes {
        return wrong(format!("{} bytes, the index says {}", object.size(), shard.raw.bytes), 0);
    }
    let begin = offsets_end(shard.samples);
    if begin > object.size() {
        return wrong(
            format!("the index says {} samples, which {} bytes cannot hold", shard.samples, object.size()),
            0,
        );
    }
    let mut scratch = Vec::new();
    let count = word(object.read(0, 4, &mut scratch)?, 0);
    if count != shard.samples {
        return wrong(format!("{count} samples, the index says {}", shard.samples), 0);
    }
    let first = word(object.read(4, 4, &mut scratch)?, 0);
    if first < begin {
        return wrong(format!("the first sample at byte {first}, expected at {begin} or after it"), 4);
    }
    let at = begin - 4;
    let end = word(object.read(at, 4, &mut scratch)?, 0);
    if end == object.size() {
        Ok(())
    } else {
        wrong(format!("the last sample ends at byte {end} of {}", object.size()), at)
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 4).map_or(0, |word| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

/// Names of the hashes that can be compared.
const KNOWN: [&str; 3] = ["sha1", "xxh64", "xxh3_64"];

/// The name of a hash of a file that can be compared.
pub(super) fn known_hash(part: &Part) -> Option<&'static str> {
    KNOWN.into_iter().find(|name| part.hashes.contains_key(*name))
}

/// Compares a file with those hashes that the index says of it and that are known here.
///
/// # Errors
/// `Corrupt` naming the hash; `Io`.
pub(super) fn check_hashes(object: &dyn Object, part: &Part) -> Result<()> {
    const AT_ONCE: u64 = 1 << 20;
    let said = |name: &str| part.hashes.get(name);
    if KNOWN.iter().all(|name| said(name).is_none()) {
        return Ok(());
    }
    let mut sha1 = said("sha1").map(|_| sha1_smol::Sha1::new());
    let mut xxh64 = said("xxh64").map(|_| xxhash_rust::xxh64::Xxh64::new(0));
    let mut xxh3 = said("xxh3_64").map(|_| xxhash_rust::xxh3::Xxh3::new());
    let (mut at, mut scratch) = (0, Vec::new());
    while at < object.size() {
        let size = (object.size() - at).min(AT_ONCE);
        let bytes = object.read(at, size as usize, &mut scratch)?;
        if let Some(hash) = &mut sha1 {
            hash.update(bytes);
        }
        if let Some(hash) = &mut xxh64 {
            hash.update(bytes);
        }
        if let Some(hash) = &mut xxh3 {
            hash.update(bytes);
        }
        at += size;
    }
    let found = [
        ("sha1", sha1.map(|hash| hash.digest().to_string())),
        ("xxh64", xxh64.map(|hash| format!("{:016x}", hash.digest()))),
        ("xxh3_64", xxh3.map(|hash| format!("{:016x}", hash.digest()))),
    ];
    for (name, found) in found {
        if let (Some(found), Some(said)) = (found, said(name))
            && found != *said
        {
            return Err(Error::corrupt(format!("{name} is {found}, the index says {said}"))
                .at(object.name())
                .field(name)
                .hint("the shard is damaged: copy it again"));
        }
    }
    Ok(())
}
