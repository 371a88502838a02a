//! What an entry is found by: the version of the file it was made from, and the way it was made.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use xxhash_rust::xxh3::Xxh3;

use super::BUFFER;
use super::entry::{Note, SUFFIX};
use crate::error::{Error, Kind, Result};
use crate::store::file_system::FileSystem;
use crate::store::{Object, Version};

/// Bytes of a part of the object that is looked at.
const PART: u64 = 4096;
/// Parts looked at where times may say nothing.
const PARTS: u64 = 16;
/// The longest step of the clocks of file systems, in nanoseconds.
const TICK_NS: u64 = 20_000_000;
const SECOND_NS: u64 = 1_000_000_000;

pub(super) struct Key {
    hash: u128,
    version: Option<Version>,
    /// The object changed within the step of the clock that was going on: a change that follows may have the same time.
    is_young: bool,
}

impl Key {
    pub(super) fn of(object: &dyn Object, kind: &str, what: &str) -> Result<Key> {
        if let Some(tag) = object.tag() {
            return Ok(Key::of_tagged(object, tag, kind, what));
        }
        let version = object.version();
        let mut hash = Xxh3::new();
        for word in [kind, what] {
            hash.update(&(word.len() as u64).to_le_bytes());
            hash.update(word.as_bytes());
        }
        hash.update(&object.size().to_le_bytes());
        hash.update(&[u8::from(version.is_some_and(|version| version.is_expanded))]);
        match version {
            Some(version) if version.names_itself() => {
                hash.update(b"inode");
                hash.update(&version.inode.to_le_bytes());
            }
            // Inodes are made up at each mount, or say nothing together with times that were all set alike.
            _ => {
                hash.update(b"path");
                let name = object.name();
                let path = std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name));
                hash.update(path.as_os_str().as_encoded_bytes());
            }
        }
        match object.modified_ns() {
            Some(time) => {
                hash.update(&time.to_le_bytes());
                // An edit may set the time back.
                hash.update(&object.changed_ns().unwrap_or(0).to_le_bytes());
                // The end of a gzip stream, and of an archive, holds checksums of the content.
                let parts = match version {
                    Some(version) if version.names_itself() => 1,
                    // Each part may be a question to another machine.
                    Some(version) if version.file_system == FileSystem::Remote => 1,
                    _ => PARTS,
                };
                update_with_parts(&mut hash, object, parts)?;
            }
            // Where no time is known, the content itself tells two versions apart.
            None => update_with_all(&mut hash, object)?,
        }
        let is_young = version.is_some_and(|version| is_young(&version, SystemTime::now()));
        Ok(Key { hash: hash.digest128(), version, is_young })
    }

    // What a store names by a version of its own needs no look at the content.
    fn of_tagged(object: &dyn Object, tag: &str, kind: &str, what: &str) -> Key {
        let mut hash = Xxh3::new();
        for word in ["tag", kind, what, object.name(), tag] {
            hash.update(&(word.len() as u64).to_le_bytes());
            hash.update(word.as_bytes());
        }
        hash.update(&object.size().to_le_bytes());
        Key { hash: hash.digest128(), version: None, is_young: false }
    }

    /// The name of its entry.
    pub(super) fn name(&self) -> String {
        format!("{:032x}{SUFFIX}", self.hash)
    }

    /// The hash of the content that must be there when the entry is opened again; 0 where time and inode are enough.
    pub(super) fn content_to_verify(&self, object: &dyn Object) -> Result<u64> {
        if self.is_young { content_hash(object) } else { Ok(0) }
    }

    /// Whether an entry of this name is of this object, which is so unless it was made while a change could stay unseen.
    pub(super) fn is_of(&self, note: &mut Note, object: &dyn Object) -> Result<bool> {
        if note.content == 0 {
            return Ok(true);
        }
        let same = note.content == content_hash(object)?;
        if same && !self.is_young {
            // A change that follows has another time.
            note.content = 0;
        }
        Ok(same)
    }

    /// # Errors
    /// `Stale` when the file that the object was opened from is not what it was: what was made may be of neither version.
    pub(super) fn check_unchanged(&self, object: &dyn Object) -> Result<()> {
        let Some(version) = self.version else { return Ok(()) };
        let later = fs::metadata(object.name());
        if later.is_ok_and(|later| version.is_still(&later)) {
            Ok(())
        } else {
            Err(Error::new(Kind::Stale, "the file was changed or removed while it was read into the cache")
                .at(object.name())
                .hint("open the data again"))
        }
    }
}

fn is_young(version: &Version, now: SystemTime) -> bool {
    if version.file_system != FileSystem::Kept {
        return false;
    }
    let now = now.duration_since(UNIX_EPOCH).map_or(u64::MAX, |now| now.as_nanos() as u64);
    let step = if version.changed_ns.is_multiple_of(SECOND_NS) { SECOND_NS + TICK_NS } else { TICK_NS };
    now < version.changed_ns.saturating_add(step)
}

fn content_hash(object: &dyn Object) -> Result<u64> {
    let mut hash = Xxh3::new();
    update_with_all(&mut hash, object)?;
    Ok(hash.digest().max(1))
}

fn update_with_all(hash: &mut Xxh3, object: &dyn Object) -> Result<()> {
    let mut scratch = Vec::new();
    let mut at = 0;
    while at < object.size() {
        let part = (object.size() - at).min(BUFFER as u64);
        hash.update(object.read(at, part as usize, &mut scratch)?);
        at += part;
    }
    Ok(())
}

/// Some parts of an object, the last of which is its end.
fn update_with_parts(hash: &mut Xxh3, object: &dyn Object, parts: u64) -> Result<()> {
    let mut scratch = Vec::new();
    let part = object.size().min(PART);
    let last = object.size() - part;
    for i in 1..=parts {
        // Both numbers are far below 2^60.
        let at = (u128::from(last) * u128::from(i) / u128::from(parts)) as u64;
        hash.update(object.read(at, part as usize, &mut scratch)?);
    }
    Ok(())
}
