//! The folder that is downloaded into: its files, the hidden folder with what is not finished, and the record of both.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha1_smol::Sha1;
use windrow_core::{Error, Kind, Result};

use crate::digest::Digest;
use crate::remote_file::{HIDDEN, RemoteFile, checked_path};

const VERSION: u32 = 1;

/// What was asked for here, and which files were found right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    version: u32,
    pub(crate) repo: String,
    pub(crate) revision: String,
    pub(crate) commit: String,
    files: BTreeMap<String, Row>,
}

/// A file of the record: what was asked for, and what was put there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    /// The commit in which it was asked for.
    commit: String,
    size: u64,
    digest: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed: Option<Placed>,
}

/// A file that was found right, and how to tell that nobody has written to it since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Placed {
    size: u64,
    modified_ns: u64,
    digest: Digest,
}

impl Record {
    /// The record of a download of this commit, into a folder with the record `before`.
    pub(crate) fn new(repo: &str, revision: &str, commit: &str, before: Option<&Record>) -> Record {
        let (repo, revision, commit) = (repo.to_string(), revision.to_string(), commit.to_string());
        let files = before.filter(|before| before.repo == repo).map(|before| before.files.clone());
        Record { version: VERSION, repo, revision, commit, files: files.unwrap_or_default() }
    }

    /// The record that is in `folder`; none where it cannot be read, because then it can be made anew.
    pub(crate) fn read(folder: &Path) -> Option<Record> {
        let bytes = fs::read(folder.join(HIDDEN).join("record.json")).ok()?;
        let record: Record = serde_json::from_slice(&bytes).ok()?;
        let is_sound =
            record.version == VERSION && record.files.keys().all(|path| checked_path(path).is_ok());
        is_sound.then_some(record)
    }

    /// Notes that a file is asked for; what was put there before stays known.
    pub(crate) fn ask(&mut self, file: &RemoteFile) {
        let placed = self.files.remove(&file.path).and_then(|row| row.placed);
        let (commit, size, digest) = (self.commit.clone(), file.size, file.digest.clone());
        self.files.insert(file.path.clone(), Row { commit, size, digest, placed });
    }

    /// Notes that the file at `path` was found right.
    pub(crate) fn place(&mut self, file: &RemoteFile, path: &Path) {
        if let (Some(row), Some((size, modified_ns))) = (self.files.get_mut(&file.path), stamp(path)) {
            row.placed = Some(Placed { size, modified_ns, digest: file.digest.clone() });
        }
    }

    /// What the file at `path` hashes to, if it was put there by a download and is untouched since.
    pub(crate) fn placed(&self, name: &str, path: &Path) -> Option<&Digest> {
        let placed = self.files.get(name)?.placed.as_ref()?;
        (stamp(path)? == (placed.size, placed.modified_ns)).then_some(&placed.digest)
    }

    /// The files that were asked for in this commit.
    pub(crate) fn asked(&self) -> impl Iterator<Item = RemoteFile> {
        let rows = self.files.iter().filter(|(_, row)| row.commit == self.commit);
        rows.map(|(path, row)| RemoteFile { path: path.clone(), size: row.size, digest: row.digest.clone() })
    }
}

/// A folder that this run alone writes into, as long as it lives.
pub(crate) struct Folder {
    root: PathBuf,
    hidden: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes it where it is not there, and locks it.
    ///
    /// # Errors
    /// `Exists` when another run is writing there.
    pub(crate) fn take(root: &Path) -> Result<Folder> {
        let hidden = root.join(HIDDEN);
        fs::create_dir_all(&hidden).map_err(|e| Error::io("make the folder", &hidden, e))?;
        let path = hidden.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|e| Error::io("create the lock file", &path, e))?;
        match lock.try_lock() {
            Ok(()) => Ok(Folder { root: root.to_path_buf(), hidden, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(Error::new(Kind::Exists, "another windrow is downloading into it")
                    .at(root)
                    .hint("wait until it has ended, or download elsewhere"))
            }
            Err(TryLockError::Error(e)) => Err(Error::io("lock the file", &path, e)),
        }
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where a file is to stand.
    pub(crate) fn target(&self, file: &RemoteFile) -> PathBuf {
        self.root.join(&file.path)
    }

    /// Where a file's bytes are gathered.
    pub(crate) fn part(&self, file: &RemoteFile) -> PathBuf {
        self.hidden.join(format!("{}.part", own_name(file)))
    }

    /// Where bytes are put that turned out wrong.
    pub(crate) fn bad(&self, file: &RemoteFile) -> PathBuf {
        self.hidden.join(format!("{}.bad", own_name(file)))
    }

    /// Moves what was found right to where it is to stand, on the disk before it is seen.
    pub(crate) fn show(&self, part: &Path, file: &RemoteFile) -> Result<()> {
        let target = self.target(file);
        let above = target.parent().unwrap_or(&self.root);
        fs::create_dir_all(above).map_err(|e| Error::io("make the folder", above, e))?;
        let opened = File::open(part).map_err(|e| Error::io("open the file", part, e))?;
        opened.sync_all().map_err(|e| Error::io("bring it to the disk", part, e))?;
        fs::rename(part, &target).map_err(|e| Error::io("move the downloaded file to it", &target, e))
    }

    /// Writes the record in place of the last one.
    pub(crate) fn write(&self, record: &Record) -> Result<()> {
        let (path, beside) = (self.hidden.join("record.json"), self.hidden.join("record.tmp"));
        let text = serde_json::to_vec_pretty(record)
            .map_err(|e| Error::corrupt("a record that is not JSON").caused_by(e))?;
        let mut file = File::create(&beside).map_err(|e| Error::io("create the file", &beside, e))?;
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        written.map_err(|e| Error::io("write the file", &beside, e))?;
        fs::rename(&beside, &path).map_err(|e| Error::io("rename the record to it", &path, e))
    }

    /// Removes parts that no download of what was asked for continues from.
    pub(crate) fn tidy(&self, record: &Record) -> Result<()> {
        let listing =
            fs::read_dir(&self.hidden).map_err(|e| Error::io("list the folder", &self.hidden, e))?;
        let kept: HashSet<PathBuf> = record.asked().map(|file| self.part(&file)).collect();
        for path in listing.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|e| e == "part") && !kept.contains(&path) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Bytes that the disk has left.
    pub(crate) fn free(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(&self.root).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

// By content, so that a part fits any later commit, too; and by path, because files may be alike.
fn own_name(file: &RemoteFile) -> String {
    let path = Sha1::from(&file.path).digest().to_string()[..16].to_string();
    format!("{}-{path}", file.digest.hex())
}

/// Size and time of the file at `path`, where there is one.
pub(crate) fn stamp(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((meta.len(), u64::try_from(since.as_nanos()).ok()?))
}

/// Removes a file; none there is fine.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("remove the file", path, e)),
        _ => Ok(()),
    }
}
