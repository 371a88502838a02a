//! One file: what is here already, what the Hub's cache has, and the bytes that are missing, checked before they are shown.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_core::output::{Growing, files};
use windrow_core::{Error, Kind, Result};

use super::digest::Digest;
use super::file::RemoteFile;
use super::folder::{Folder, Record};
use super::hub::Cached;
use super::origin::Objects;

/// How a file came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It was there.
    Unchanged,
    /// From the Hub's cache on this machine.
    Cached,
    /// From the store; `resumed` of its bytes were brought by an earlier run.
    Downloaded { resumed: u64 },
}

/// What all files of a run share.
pub(super) struct Fetcher<'a> {
    /// None offline.
    pub(super) objects: Option<Objects>,
    /// What the Hub's cache has.
    pub(super) cached: Option<Cached>,
    pub(super) folder: &'a Folder,
    /// What an earlier run left written.
    pub(super) before: Option<&'a Record>,
    pub(super) overwrite: bool,
    /// Bytes in place or in parts.
    pub(super) done_bytes: &'a AtomicU64,
}

impl Fetcher<'_> {
    /// Brings one file into the folder.
    ///
    /// # Errors
    /// `Exists` where something else is there; `Corrupt` or `Stale` where it came wrong twice; `NotFound`; `Io`; `Interrupted`.
    pub(super) fn bring(&self, file: &RemoteFile) -> Result<Came> {
        if self.is_there(file)? {
            self.done_bytes.fetch_add(file.size, Ordering::Relaxed);
            return Ok(Came::Unchanged);
        }
        if self.copied(file)? {
            self.done_bytes.fetch_add(file.size, Ordering::Relaxed);
            return Ok(Came::Cached);
        }
        let Some(objects) = &self.objects else {
            return Err(Error::not_found("the file is not here, and HF_HUB_OFFLINE is set")
                .at(self.folder.target(file))
                .hint("unset HF_HUB_OFFLINE to download it"));
        };
        let is_wrong = |e: &Error| matches!(e.kind(), Kind::Corrupt | Kind::Stale);
        let part = self.folder.part(file);
        let first = match self.filled(objects, file, &part) {
            Err(e) if is_wrong(&e) => e,
            done => return done.map(|resumed| Came::Downloaded { resumed }),
        };
        log::warn!(target: "windrow", "{}: {}; fetching it again", file.path, first.message());
        self.put_aside(file, &part)?;
        match self.filled(objects, file, &part) {
            Ok(_) => Ok(Came::Downloaded { resumed: 0 }),
            Err(e) if is_wrong(&e) => {
                self.put_aside(file, &part)?;
                Err(e
                    .at(&file.path)
                    .hint("it came wrong twice: tell the owner of the data, or try again later"))
            }
            Err(e) => Err(e),
        }
    }

    // Whether the very file is there already.
    fn is_there(&self, file: &RemoteFile) -> Result<bool> {
        let target = self.folder.target(file);
        let Ok(meta) = fs::symlink_metadata(&target) else { return Ok(false) };
        let known = self.before.and_then(|record| record.placed(&file.path, &target));
        if known == Some(&file.digest) && file.digest.tells() {
            return Ok(true);
        }
        if meta.is_file() && meta.len() == file.size && self.is_right(file, &target)? {
            return Ok(true);
        }
        // What an earlier run brought may be replaced by a newer version; what somebody else wrote may not.
        if known.is_some() || (self.overwrite && !meta.is_dir()) {
            Ok(false)
        } else {
            Err(Error::new(Kind::Exists, "something else than the file to download is there")
                .at(target)
                .hint("move it away, or give @overwrite=true@ to replace it"))
        }
    }

    // Whether the Hub's cache had it.
    fn copied(&self, file: &RemoteFile) -> Result<bool> {
        let Some(blob) = self.cached.as_ref().map(|cached| cached.blob(&file.digest)) else {
            return Ok(false);
        };
        if files::size(&blob) != Some(file.size) {
            return Ok(false);
        }
        let part = self.folder.part(file);
        fs::copy(&blob, &part).map_err(|e| Error::io("copy the cached file", &blob, e))?;
        if !self.is_right(file, &part)? {
            log::warn!(target: "windrow", "{}: the Hub's cache holds other bytes than its name says; not used", blob.display());
            files::remove(&part)?;
            return Ok(false);
        }
        files::finish(&part, true)?;
        self.folder.show(&part, file)?;
        Ok(true)
    }

    // Fills the part to the file's size, checks it and shows it; how much of it an earlier run had brought.
    fn filled(&self, objects: &Objects, file: &RemoteFile, part: &Path) -> Result<u64> {
        let may_continue = |size: &u64| *size <= file.size && file.digest.tells();
        let resumed = files::size(part).filter(may_continue).unwrap_or(0);
        let mut grown = Growing::at(part, resumed)?;
        self.done_bytes.fetch_add(resumed, Ordering::Relaxed);
        let told = objects.stream(file, resumed, &mut |at, bytes| {
            if at < grown.size() {
                self.done_bytes.fetch_sub(grown.size(), Ordering::Relaxed);
                grown = Growing::create(part)?;
            }
            grown.write(bytes)?;
            // What is in the file stays, however this ends.
            grown.sync(false)?;
            grown.begin_sync();
            self.done_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            Ok(())
        })?;
        let row = grown.finish(true)?.row;
        let wrong = |found: String, promised: String| {
            let what = format!("the content hashes to {found}, its store promises {promised}");
            Err(Error::corrupt(what).at(&file.path))
        };
        match (file.digest.of_file(part, file.size)?, told, row.xxh3) {
            (Some(found), ..) if found != file.digest => wrong(found.to_string(), file.digest.to_string()),
            (None, Some(told), Some(found)) if found != told => {
                wrong(format!("xxh3 {found}"), format!("xxh3 {told}"))
            }
            _ => {
                self.folder.show(part, file)?;
                files::remove(&self.folder.bad(file))?;
                Ok(resumed)
            }
        }
    }

    fn put_aside(&self, file: &RemoteFile, part: &Path) -> Result<()> {
        self.done_bytes.fetch_sub(files::size(part).unwrap_or(0).min(file.size), Ordering::Relaxed);
        if files::exists(part) { files::rename(part, &self.folder.bad(file)) } else { Ok(()) }
    }

    // Whether the content is known to be right.
    fn is_right(&self, file: &RemoteFile, path: &Path) -> Result<bool> {
        let found: Option<Digest> = file.digest.of_file(path, file.size)?;
        Ok(found.as_ref() == Some(&file.digest))
    }
}
