//! Where a task writes: the lock, its hidden work folder, and the work folders that stopped runs left.

use std::path::{Path, PathBuf};

use super::checkpoints::Checkpoints;
use super::commit::Commit;
use super::files;
use super::growing::hash_of;
use super::lock::Lock;
use crate::error::Result;

/// A folder that one task writes into.
pub struct Site {
    out: PathBuf,
    task: String,
    fsync: bool,
    is_new: bool,
    lock: Option<Lock>,
}

impl Site {
    /// Makes the folder, locks it for tasks of this name, and finishes what a killed run had begun to make visible. What it had
    /// not is left to the run of this hash, which decides again whether it may replace what is there.
    ///
    /// # Errors
    /// `Exists` when another run is writing here, or something came into the place of what is to be finished; `Config` for a
    /// name that the work folder needs; `Corrupt` when what a killed run left cannot be understood; `Io`.
    pub fn enter(out: &Path, task: &str, hash: &str, fsync: bool) -> Result<Self> {
        let site = Self::lock(out, task, fsync)?;
        let own = Self::folder_of(out, task, hash);
        for folder in site.leftovers()? {
            if Commit::is_half_shown(&folder)? {
                site.finish(&folder)?
            } else if folder == own {
                Commit::take_back(&folder, fsync)?
            }
        }
        Ok(site)
    }

    /// Enters for a task that starts over each time: what a killed run had not begun to make visible is dropped. An append that
    /// is finished here and then made again would be there twice.
    ///
    /// # Errors
    /// As [`Site::enter`].
    pub fn start_over(out: &Path, task: &str, fsync: bool) -> Result<Self> {
        let site = Self::lock(out, task, fsync)?;
        site.leftovers()?.iter().try_for_each(|folder| site.settle(folder))?;
        Ok(site)
    }

    /// Removes the work folder of this hash, where its result is there already: a run was killed while it tidied up. What cannot
    /// be removed stays: nothing has to be writable where nothing has to be done.
    pub fn tidy(out: &Path, task: &str, hash: &str) {
        let folder = Self::folder_of(out, task, hash);
        if files::exists(&folder)
            && let Err(e) = Self::lock(out, task, true).and_then(|site| site.settle(&folder))
        {
            log::info!("what an earlier run left stays: {e:#}");
        }
    }

    /// Removes a work folder whose result is not wanted, or is there already. What the next run would go by leaves first, also on
    /// the disk: it would take the rest of a half-removed folder for something to continue or to make visible. One that is
    /// half shown stays, for the next run to finish.
    ///
    /// # Errors
    /// `Io`.
    pub fn discard(&self, folder: &Path) -> Result<()> {
        if !files::is_there(folder)? || Commit::is_half_shown(folder)? {
            return Ok(());
        }
        if folder.is_dir() {
            // Renames out of it, or back into it.
            files::sync_folder(&self.out, self.fsync)?;
            for name in [Commit::NAME, Checkpoints::NAME] {
                files::remove(&folder.join(name))?;
            }
            // Also where they are gone already: a run may have been killed before they were gone from the disk.
            files::sync_folder(folder, self.fsync)?;
        }
        files::remove(folder)
    }

    // Finishes a leftover, or drops it.
    fn settle(&self, folder: &Path) -> Result<()> {
        if Commit::is_half_shown(folder)? { self.finish(folder) } else { self.discard(folder) }
    }

    // Finishes a leftover. Whoever left it may have been killed before its name and what it says were on the disk.
    fn finish(&self, folder: &Path) -> Result<()> {
        files::sync_folder(folder, self.fsync)?;
        files::sync_folder(&self.out, self.fsync)?;
        Commit::finish(folder, &self.out, self.fsync)
    }

    fn folder_of(out: &Path, task: &str, hash: &str) -> PathBuf {
        out.join(format!(".{task}.tmp-{hash}"))
    }

    fn lock(out: &Path, task: &str, fsync: bool) -> Result<Self> {
        if Commit::is_ours(task) {
            return Err(Commit::needed(task).at(out.join(task)));
        }
        let is_new = files::make_folder_to_stay(out, fsync)?;
        let lock = Lock::take(lock_of(out, task))?;
        Ok(Site { out: out.to_path_buf(), task: task.to_string(), fsync, is_new, lock: Some(lock) })
    }

    /// The work folder for inputs and options of this hash; [`Site::discard`] is called for those of other inputs or options. It
    /// is empty unless a run can continue from a checkpoint in it: what else is there may be an old output, out of whose place a
    /// killed run had just taken it.
    pub fn work(&self, hash: &str) -> Result<PathBuf> {
        let folder = Self::folder_of(&self.out, &self.task, hash);
        for other in self.leftovers()? {
            if other != folder {
                log::info!("removing what an earlier run left: {}", other.display());
                self.discard(&other)?;
            }
        }
        if !Checkpoints::of(&folder, false).is_there() {
            self.discard(&folder)?;
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

    /// Makes `targets` of a work folder visible, the last one last, and takes away what has one of the names `leaving`. A crash in
    /// between is fixed by the next run.
    ///
    /// # Errors
    /// `Exists` when one of either is there and `overwrite` is not set; `Io`.
    pub fn commit(&self, folder: &Path, targets: &[&str], leaving: &[&str], overwrite: bool) -> Result<()> {
        files::sync_folder(folder, self.fsync)?;
        Commit::write(folder, (targets, leaving), overwrite, self.fsync)?;
        // The work folder's own name: without it nobody would find the marker.
        files::sync_folder(&self.out, self.fsync)?;
        Commit::finish(folder, &self.out, self.fsync)
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

/// Where a file of this name is written until it is whole, and the lock on it; what a killed run left there is gone, or finished.
///
/// # Errors
/// `Exists` when another run is writing it; `Io`.
pub(super) fn unfinished(folder: &Path, name: &str) -> Result<(PathBuf, Lock)> {
    if Site::folder_of(folder, name, &hash_of(name)).is_dir() {
        // Of a task that writes several files here.
        drop(Site::start_over(folder, name, true)?);
    }
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
