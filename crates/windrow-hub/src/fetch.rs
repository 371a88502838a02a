//! One file: what is here already, what the cache has, and the bytes that are missing, checked before they are shown.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use windrow_core::{Error, Kind, Result};

use crate::digest::Digest;
use crate::folder::{self, Folder, Record};
use crate::http::{Http, Origin, Part, escaped};
use crate::hub::Hub;
use crate::remote_file::RemoteFile;
use crate::repo::RepoName;
use crate::retry::{self, Trouble};

/// How a file came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// It was there.
    Unchanged,
    /// From the hub's cache on this machine.
    Cached,
    /// From the hub; so many of its bytes had an earlier run brought.
    Downloaded { resumed: u64 },
}

/// What all files of a run share.
pub(crate) struct Fetcher<'a> {
    pub(crate) hub: &'a Hub,
    /// None offline.
    pub(crate) http: Option<Http>,
    pub(crate) repo: &'a RepoName,
    pub(crate) commit: &'a str,
    pub(crate) folder: &'a Folder,
    /// What an earlier run left written.
    pub(crate) before: Option<&'a Record>,
    pub(crate) overwrite: bool,
    pub(crate) stop: &'a AtomicBool,
    /// Bytes in place or in parts.
    pub(crate) done_bytes: &'a AtomicU64,
}

impl Fetcher<'_> {
    /// Brings one file into the folder.
    pub(crate) fn bring(&self, file: &RemoteFile) -> Result<Came, Trouble> {
        if self.is_there(file)? {
            self.done_bytes.fetch_add(file.size, Ordering::Relaxed);
            return Ok(Came::Unchanged);
        }
        if self.copied(file)? {
            self.done_bytes.fetch_add(file.size, Ordering::Relaxed);
            return Ok(Came::Cached);
        }
        let Some(http) = &self.http else {
            return Err(Error::not_found("the file is not here, and HF_HUB_OFFLINE is set")
                .at(self.folder.target(file))
                .hint("unset HF_HUB_OFFLINE to download it")
                .into());
        };
        let part = self.folder.part(file);
        let resumed = size_of(&part).filter(|size| *size <= file.size).unwrap_or(0);
        let first = match self.filled(http, file, &part) {
            Err(Trouble::Wrong(error)) => error,
            done => return done.map(|()| Came::Downloaded { resumed }),
        };
        log::warn!(target: "windrow", "{}: {}; fetching it again", file.path, first.message());
        self.put_aside(file, &part)?;
        match self.filled(http, file, &part) {
            Ok(()) => Ok(Came::Downloaded { resumed: 0 }),
            Err(Trouble::Wrong(error)) => {
                self.put_aside(file, &part)?;
                Err(Trouble::Wrong(
                    error.hint("it came wrong twice: tell the data set's owner, or try again later"),
                ))
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Ends all that is under way, so that it can be gone on with later.
    pub(crate) fn halt(&self) {
        if !self.stop.swap(true, Ordering::Relaxed) {
            self.http.iter().for_each(Http::shut_down);
        }
    }

    // Whether the very file is there already.
    fn is_there(&self, file: &RemoteFile) -> Result<bool> {
        let target = self.folder.target(file);
        let Ok(meta) = fs::symlink_metadata(&target) else { return Ok(false) };
        let known = self.before.and_then(|record| record.placed(&file.path, &target));
        if known == Some(&file.digest) {
            return Ok(true);
        }
        if meta.is_file() && meta.len() == file.size && self.is_right(file, &target)? {
            return Ok(true);
        }
        // What an earlier run brought may be replaced by a newer commit's; what somebody else wrote may not.
        match known.is_some() || (self.overwrite && !meta.is_dir()) {
            true => Ok(false),
            false => Err(Error::new(Kind::Exists, "something else than the hub's file is there")
                .at(target)
                .hint("move it away, or give @overwrite=true@ to replace it")),
        }
    }

    // Whether the hub's cache had it.
    fn copied(&self, file: &RemoteFile) -> Result<bool> {
        let blob = self.hub.cache.repo(self.repo.at(self.commit)).blob_path(file.digest.hex());
        if size_of(&blob) != Some(file.size) {
            return Ok(false);
        }
        let part = self.folder.part(file);
        fs::copy(&blob, &part).map_err(|e| Error::io("copy the cached file", &blob, e))?;
        if !self.is_right(file, &part)? {
            log::warn!(target: "windrow", "{}: the hub's cache holds other bytes than its name says; not used", blob.display());
            folder::remove(&part)?;
            return Ok(false);
        }
        self.folder.show(&part, file)?;
        Ok(true)
    }

    // Fills the part to the file's size, checks it and shows it.
    fn filled(&self, http: &Http, file: &RemoteFile, part: &Path) -> Result<(), Trouble> {
        let mut gathered = Gathered::open(part, file.size, self.done_bytes)?;
        let url = http.url(&format!(
            "{}/resolve/{}/{}",
            self.repo.at(self.commit).url(),
            self.commit,
            escaped(&file.path)
        ));
        let mut tag = None;
        retry::trying(&http.patience, &|| self.is_stopped(), |reached| {
            let done = self.more(http, &url, file, &mut gathered, &mut tag);
            *reached = gathered.size.max(*reached);
            done
        })?;
        let found = self.hash(file, part)?;
        if found != file.digest {
            return Err(Trouble::Wrong(
                Error::corrupt(format!("the content hashes to {found}, the hub promises {}", file.digest))
                    .at(&file.path),
            ));
        }
        self.folder.show(part, file)?;
        folder::remove(&self.folder.bad(file))?;
        Ok(())
    }

    // One request: from the byte that is missing to the end, or to where the connection ends.
    fn more(
        &self,
        http: &Http,
        url: &str,
        file: &RemoteFile,
        gathered: &mut Gathered<'_>,
        tag: &mut Option<(Origin, String)>,
    ) -> Result<(), Trouble> {
        if gathered.size == file.size {
            return Ok(());
        }
        let wrong = |what: String| Trouble::Wrong(Error::corrupt(what).at(&file.path));
        let answer = http.get(url, &Part { start: gathered.size, tag: tag.clone() })?;
        if let Some(size) = answer.size.filter(|size| *size != file.size) {
            return Err(wrong(format!("the server sends {size} bytes, the hub promises {}", file.size)));
        }
        if answer.start == 0 {
            // The server does not know parts, or sends all for its own reasons.
            gathered.clear()?;
        } else if answer.start != gathered.size {
            let (asked, sent) = (gathered.size, answer.start);
            return Err(wrong(format!(
                "asked for the bytes from {asked} on, the server sends those from {sent} on"
            )));
        }
        tag.clone_from(&answer.tag);
        let mut reader = answer.into_reader();
        let mut buffer = vec![0; 256 << 10];
        loop {
            if self.is_stopped() {
                return Err(retry::interrupted());
            }
            let cut = |e: std::io::Error| {
                Trouble::passing(Error::new(Kind::Io, "the connection broke").at(&file.path).caused_by(e))
            };
            let n = reader.read(&mut buffer).map_err(cut)?;
            if n as u64 > file.size - gathered.size {
                return Err(wrong(format!(
                    "the server sends more than the {} bytes the hub promises",
                    file.size
                )));
            }
            match n {
                0 if gathered.size == file.size => return Ok(()),
                0 => {
                    let (found, size) = (gathered.size, file.size);
                    let error =
                        Error::new(Kind::Io, format!("the connection ended after {found} of {size} bytes"));
                    return Err(Trouble::passing(error.at(&file.path)));
                }
                _ => gathered.write(&buffer[..n])?,
            }
        }
    }

    fn put_aside(&self, file: &RemoteFile, part: &Path) -> Result<()> {
        self.done_bytes.fetch_sub(size_of(part).unwrap_or(0).min(file.size), Ordering::Relaxed);
        let bad = self.folder.bad(file);
        fs::rename(part, &bad).map_err(|e| Error::io("put the wrong bytes aside", &bad, e))
    }

    fn is_right(&self, file: &RemoteFile, path: &Path) -> Result<bool> {
        Ok(self.hash(file, path).map_err(Trouble::into_error)? == file.digest)
    }

    fn hash(&self, file: &RemoteFile, path: &Path) -> Result<Digest, Trouble> {
        let found = file.digest.of_file(path, file.size, &|| self.is_stopped())?;
        found.ok_or_else(retry::interrupted)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The bytes of a file that came so far, counted as they come.
struct Gathered<'a> {
    path: &'a Path,
    file: File,
    size: u64,
    done_bytes: &'a AtomicU64,
}

impl<'a> Gathered<'a> {
    fn open(path: &'a Path, most: u64, done_bytes: &'a AtomicU64) -> Result<Gathered<'a>> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|e| Error::io("open the file", path, e))?;
        let size = size_of(path).unwrap_or(0);
        let mut gathered = Gathered { path, file, size, done_bytes };
        done_bytes.fetch_add(size, Ordering::Relaxed);
        if size > most {
            gathered.clear()?;
        }
        Ok(gathered)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io("write the file", self.path, e))?;
        self.size += bytes.len() as u64;
        self.done_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        self.file.set_len(0).map_err(|e| Error::io("shorten the file", self.path, e))?;
        self.done_bytes.fetch_sub(self.size, Ordering::Relaxed);
        self.size = 0;
        Ok(())
    }
}

fn size_of(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|m| m.len())
}
