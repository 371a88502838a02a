//! Where a task writes: the lock, the hidden work folder, and the renames that make its result visible.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checkpoints::Checkpoints;
use super::files;
use super::growing::hash_of;
use super::lock::Lock;
use crate::error::{Error, Kind, Result};

const MARKER: &str = "commit.json";

/// A folder that one task writes into.
pub struct Site {
    out: PathBuf,
    task: String,
    durable: bool,
    is_new: bool,
    lock: Option<Lock>,
}

/// What is to be renamed out of a work folder, in this order; the last one makes the others visible.
#[derive(Serialize, Deserialize)]
struct Commit {
    targets: Vec<String>,
    overwrite: bool,
}

impl Site {
    /// Makes the folder, locks it for tasks of this name, and finishes what a killed run had begun to make visible.
    ///
    /// # Errors
    /// `Exists` when another run is writing here; `Io`.
    pub fn enter(out: &Path, task: &str, durable: bool) -> Result<Self> {
        let site = Self::lock(out, task, durable)?;
        for folder in site.leftovers()? {
            if files::exists(&folder.join(MARKER)) {
                site.finish(&folder)?;
            }
        }
        Ok(site)
    }

    /// The same for a task that begins anew each time: what a killed run had not begun to make visible is dropped. Finished
    /// by a run that then does the same again, it would be there twice.
    pub fn enter_anew(out: &Path, task: &str, durable: bool) -> Result<Self> {
        let site = Self::lock(out, task, durable)?;
        for folder in site.leftovers()? {
            if !files::exists(&folder.join(MARKER)) {
                // Killed before its result was complete, or while it tidied up after that.
                files::remove(&folder)?;
                continue;
            }
            let commit = Self::commit_of(&folder)?;
            let is_moved = |target: &String| {
                !files::exists(&folder.join(target)) || files::exists(&folder.join(aside(target)))
            };
            match commit.targets.iter().any(is_moved) {
                true => site.finish(&folder)?,
                false => files::remove(&folder)?,
            }
        }
        Ok(site)
    }

    /// Removes the work folder of this hash, where its result is there already: a run was killed while it tidied up. What
    /// cannot be removed stays: nothing has to be writable where nothing has to be done.
    pub fn tidy(out: &Path, task: &str, hash: &str) {
        let folder = Self::folder_of(out, task, hash);
        if files::exists(&folder)
            && let Ok(_site) = Self::lock(out, task, false)
            && let Err(e) = files::remove(&folder)
        {
            log::info!("what an earlier run left stays: {e}");
        }
    }

    fn folder_of(out: &Path, task: &str, hash: &str) -> PathBuf {
        out.join(format!(".{task}.tmp-{hash}"))
    }

    fn lock(out: &Path, task: &str, durable: bool) -> Result<Self> {
        let is_new = files::make_folder_to_stay(out, durable)?;
        let lock = Lock::take(lock_of(out, task))?;
        Ok(Site { out: out.to_path_buf(), task: task.to_string(), durable, is_new, lock: Some(lock) })
    }

    /// The work folder for inputs and options of this hash; those of other inputs or options are removed. It is empty unless a
    /// run can continue from a restart point in it: what else is there may be an old output, out of whose place a killed run
    /// had just taken it.
    pub fn work(&self, hash: &str) -> Result<PathBuf> {
        let folder = Self::folder_of(&self.out, &self.task, hash);
        for other in self.leftovers()? {
            if other != folder {
                log::info!("removing what an earlier run left: {}", other.display());
                files::remove(&other)?;
            }
        }
        if !Checkpoints::of(&folder, false).is_there() {
            files::remove(&folder)?;
        }
        files::make_folder(&folder)?;
        Ok(folder)
    }

    /// Work folders and unfinished files of this task that stopped runs left behind.
    pub fn leftovers(&self) -> Result<Vec<PathBuf>> {
        let mut found = Self::left_in(&self.out)?;
        found.retain(|(task, _)| *task == self.task);
        Ok(found.into_iter().map(|(_, folder)| folder).collect())
    }

    /// Work folders and unfinished files that stopped runs left in this folder, with their tasks. What only has such a name
    /// is not one: it may be somebody's own.
    pub fn left_in(out: &Path) -> Result<Vec<(String, PathBuf)>> {
        let mut found = Vec::new();
        for name in files::names(out)? {
            let path = out.join(&name);
            if let Some((task, hash)) = task_of(&name)
                && !path.is_symlink()
                && (path.is_dir() || (path.is_file() && hash == hash_of(task)))
            {
                found.push((task.to_string(), path));
            }
        }
        Ok(found)
    }

    /// Makes `targets` of a work folder visible, the last one last. A crash in between is fixed by the next run.
    ///
    /// # Errors
    /// `Exists` when one is there and `overwrite` is not set; `Io`.
    pub fn commit(&self, folder: &Path, targets: &[&str], overwrite: bool) -> Result<()> {
        let commit = Commit { targets: targets.iter().map(ToString::to_string).collect(), overwrite };
        files::sync_folder(folder, self.durable)?;
        let text = serde_json::to_vec(&commit).map_err(|e| Error::io("write it", folder, e.into()))?;
        files::replace(&folder.join(MARKER), &text, self.durable)?;
        files::sync_folder(folder, self.durable)?;
        // The work folder's own name: without it nobody would find the marker.
        files::sync_folder(&self.out, self.durable)?;
        self.finish(folder)
    }

    fn commit_of(folder: &Path) -> Result<Commit> {
        let marker = folder.join(MARKER);
        let text = files::read_what_is_there(&marker)?;
        serde_json::from_slice(&text)
            .ok()
            .filter(|c: &Commit| c.targets.iter().all(|t| !t.contains('/') && t != ".."))
            .ok_or_else(|| {
                Error::corrupt("what a stopped run left cannot be understood")
                    .at(&marker)
                    .hint("remove its folder")
            })
    }

    fn finish(&self, folder: &Path) -> Result<()> {
        let marker = folder.join(MARKER);
        let commit = Self::commit_of(folder)?;
        let to_move: Vec<_> = commit.targets.iter().filter(|t| files::exists(&folder.join(t))).collect();
        // One folder alone changes places with its old self: readers see the one or the other, never neither. What the next
        // run would go by leaves first, also on the disk: after the exchange it would change them back, or continue in the old
        // one.
        if let ([target], true) = (to_move.as_slice(), commit.overwrite)
            && files::exists(&self.out.join(target))
        {
            let text = files::read_what_is_there(&marker)?;
            Checkpoints::remove(folder)?;
            files::remove(&marker)?;
            files::sync_folder(folder, self.durable)?;
            let exchanged = files::exchange(&folder.join(target), &self.out.join(target));
            if let Ok(true) = exchanged {
                files::sync_folder(&self.out, self.durable)?;
                tidy_up(folder);
                return Ok(());
            }
            files::replace(&marker, &text, self.durable)?;
            files::sync_folder(folder, self.durable)?;
            exchanged?;
        }
        // The old ones leave before the new ones come, the one that makes them visible first: never a mixture.
        for target in to_move.iter().rev() {
            let old = self.out.join(target);
            if !files::exists(&old) {
                continue;
            }
            if !commit.overwrite {
                files::remove(&marker)?;
                return Err(exists(&old));
            }
            files::remove(&folder.join(aside(target)))?;
        }
        let old = to_move.iter().rev().map(|target| (self.out.join(target), folder.join(aside(target))));
        let new = to_move.iter().map(|target| (folder.join(target), self.out.join(target)));
        move_all(&old.filter(|(old, _)| files::exists(old)).chain(new).collect::<Vec<_>>())?;
        files::sync_folder(&self.out, self.durable)?;
        tidy_up(folder);
        Ok(())
    }
}

// One after the other; where one cannot be, those before it go back.
fn move_all(moves: &[(PathBuf, PathBuf)]) -> Result<()> {
    for (done, (from, to)) in moves.iter().enumerate() {
        if let Err(error) = files::rename(from, to) {
            for (from, to) in moves[..done].iter().rev() {
                // The next run does what is left.
                let _ = files::rename(to, from);
            }
            return Err(error);
        }
    }
    Ok(())
}

// The result is there, so what is left behind is no error of the run: repeated, it would append twice.
fn tidy_up(folder: &Path) {
    if let Err(e) = Checkpoints::remove(folder).and_then(|()| files::remove(folder)) {
        log::info!("what the run left stays: {e}");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.lock = None;
        if self.is_new {
            files::remove_if_empty(&self.out);
        }
    }
}

/// Where a file of this name is written until it is whole, and the lock on it; what a killed run left there is gone.
///
/// # Errors
/// `Exists` when another run is writing it; `Io`.
pub(super) fn unfinished(folder: &Path, name: &str) -> Result<(PathBuf, Lock)> {
    let lock = Lock::take(lock_of(folder, name))?;
    let path = Site::folder_of(folder, name, &hash_of(name));
    files::remove(&path)?;
    Ok((path, lock))
}

fn lock_of(folder: &Path, task: &str) -> PathBuf {
    folder.join(format!(".{task}.lock"))
}

// The task of the work folder of this name and the hash that it ends in, as `hash_of` writes it.
fn task_of(name: &str) -> Option<(&str, &str)> {
    let (task, hash) = name.strip_prefix('.')?.rsplit_once(".tmp-")?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then_some((task, hash))
}

// Where an old output waits until the new one is there.
fn aside(target: &str) -> String {
    format!("old-{target}")
}

/// The error for an output that is there already, and is not what would be written.
pub fn differs(path: &Path) -> Error {
    there(path, "the output exists already, from other inputs or options")
}

/// The error for an output that is there already, whatever it was made of.
pub fn exists(path: &Path) -> Error {
    there(path, "the output exists already")
}

fn there(path: &Path, message: &str) -> Error {
    Error::new(Kind::Exists, message)
        .at(path)
        .hint("write elsewhere, or replace it with --overwrite (overwrite=True)")
}
