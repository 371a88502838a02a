//! The folder that is downloaded into: its files, the hidden folder with what is not finished, and the record of both.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use windrow_core::output::{Lock, files, hash_of};
use windrow_core::{Error, Result};

use super::digest::Digest;
use super::file::{HIDDEN, RemoteFile, checked_path};

const VERSION: u32 = 1;
const RECORD: &str = "record.json";

/// What was asked for here, and which files were found right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    /// `owner/name` of the Hub, or a URL.
    pub(super) repo: String,
    /// Empty where there are no revisions.
    pub(super) revision: String,
    /// What it points to.
    pub(super) commit: String,
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
    pub(super) fn new(repo: &str, revision: &str, commit: &str, before: Option<&Record>) -> Record {
        let (repo, revision, commit) = (repo.to_string(), revision.to_string(), commit.to_string());
        let files = before.filter(|before| before.repo == repo).map(|before| before.files.clone());
        Record { version: VERSION, repo, revision, commit, files: files.unwrap_or_default() }
    }

    /// The record that is in `folder`; none where it cannot be read, because then it can be made again.
    pub(super) fn read(folder: &Path) -> Option<Record> {
        let record: Record = serde_json::from_slice(&files::read(&folder.join(HIDDEN).join(RECORD))?).ok()?;
        let is_sound =
            record.version == VERSION && record.files.keys().all(|path| checked_path(path).is_ok());
        is_sound.then_some(record)
    }

    /// Notes that a file is asked for; what was put there before stays known.
    pub(super) fn ask(&mut self, file: &RemoteFile) {
        let placed = self.files.remove(&file.path).and_then(|row| row.placed);
        let (commit, size, digest) = (self.commit.clone(), file.size, file.digest.clone());
        self.files.insert(file.path.clone(), Row { commit, size, digest, placed });
    }

    /// Notes that the file at `path` was found right.
    pub(super) fn place(&mut self, file: &RemoteFile, path: &Path) {
        if let (Some(row), Some((size, modified_ns))) = (self.files.get_mut(&file.path), stamp(path)) {
            row.placed = Some(Placed { size, modified_ns, digest: file.digest.clone() });
        }
    }

    /// The digest of the file at `path`, if it was put there by a download and is untouched since.
    pub(super) fn placed(&self, name: &str, path: &Path) -> Option<&Digest> {
        let placed = self.files.get(name)?.placed.as_ref()?;
        (stamp(path)? == (placed.size, placed.modified_ns)).then_some(&placed.digest)
    }

    /// The files that were asked for in this commit.
    pub(super) fn asked(&self) -> impl Iterator<Item = RemoteFile> {
        let rows = self.files.iter().filter(|(_, row)| row.commit == self.commit);
        rows.map(|(path, row)| RemoteFile { path: path.clone(), size: row.size, digest: row.digest.clone() })
    }
}

/// A folder that this run alone writes into, as long as it lives.
pub(super) struct Folder {
    root: PathBuf,
    hidden: PathBuf,
    _lock: Lock,
}

impl Folder {
    /// Makes it where it is not there, and locks it.
    ///
    /// # Errors
    /// `Exists` when another run is writing there; `Io`.
    pub(super) fn take(root: &Path) -> Result<Folder> {
        let hidden = root.join(HIDDEN);
        files::make_folder_to_stay(&hidden, true)?;
        let lock = Lock::take(hidden.join("lock"))?;
        Ok(Folder { root: root.to_path_buf(), hidden, _lock: lock })
    }

    /// The folder itself.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where a file is to be.
    pub(super) fn target(&self, file: &RemoteFile) -> PathBuf {
        self.root.join(&file.path)
    }

    /// Where a file's bytes are gathered: by content, so that they fit any later commit, and by path, because files may be alike.
    pub(super) fn part(&self, file: &RemoteFile) -> PathBuf {
        self.hidden.join(format!("{}.part", hash_of(format!("{} {} {}", file.digest, file.size, file.path))))
    }

    /// Where bytes are put that turned out wrong.
    pub(super) fn bad(&self, file: &RemoteFile) -> PathBuf {
        self.part(file).with_extension("bad")
    }

    /// Moves what is on the disk and was found right to its place.
    pub(super) fn show(&self, part: &Path, file: &RemoteFile) -> Result<()> {
        let target = self.target(file);
        let above = target.parent().unwrap_or(&self.root);
        files::make_folder_to_stay(above, true)?;
        files::rename(part, &target)?;
        files::sync_folder(above, true)
    }

    /// Writes the record in place of the last one.
    pub(super) fn write(&self, record: &Record) -> Result<()> {
        let text = serde_json::to_vec_pretty(record)
            .map_err(|e| Error::corrupt("a record that is not JSON").caused_by(e))?;
        files::replace(&self.hidden.join(RECORD), &text, true).map(drop)
    }

    /// Removes parts that no download of what was asked for continues from.
    pub(super) fn tidy(&self, record: &Record) -> Result<()> {
        let kept: HashSet<PathBuf> = record.asked().map(|file| self.part(&file)).collect();
        let all = files::names(&self.hidden)?.into_iter().map(|name| self.hidden.join(name));
        let mut left =
            all.filter(|path| path.extension().is_some_and(|e| e == "part") && !kept.contains(path));
        left.try_for_each(|path| files::remove(&path))
    }

    /// That there is room for what is missing of these files.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn enough_room(&self, all: &[RemoteFile]) -> Result<()> {
        let here = |path: &Path| files::size(path).unwrap_or(0);
        let missing = |file: &RemoteFile| {
            if here(&self.target(file)) == file.size {
                0
            } else {
                file.size.saturating_sub(here(&self.part(file)))
            }
        };
        let needed = all.iter().map(missing).fold(0, u64::saturating_add);
        files::enough_room(&self.root, needed)
            .map_err(|e| e.hint("choose fewer files, or give @out@ on another disk"))
    }
}

// Size and time of the file at `path`, where there is one.
fn stamp(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((meta.len(), u64::try_from(since.as_nanos()).ok()?))
}
