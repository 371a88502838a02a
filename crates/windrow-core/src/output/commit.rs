//! What a complete work folder shows, and the renames that show it: all of it or nothing, also where they are broken off.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checkpoints::Checkpoints;
use super::files::{self, is_there};
use super::taken::exists;
use crate::error::{Error, Result};

/// What is to be renamed out of a work folder, in this order; the last one makes the others visible.
#[derive(Serialize, Deserialize)]
pub(super) struct Commit {
    targets: Vec<String>,
    /// What must not be there beside them.
    #[serde(default)]
    leaving: Vec<String>,
    overwrite: bool,
}

impl Commit {
    /// The file of a work folder that it is kept in: it is there once the folder is complete.
    pub(super) const NAME: &str = "commit.json";

    // Whether a work folder is complete.
    fn is_in(folder: &Path) -> Result<bool> {
        is_there(&folder.join(Self::NAME))
    }

    /// Whether a work folder has a file of this name beside what it shows: these two, and their drafts.
    pub(super) fn is_ours(name: &str) -> bool {
        let own = [Self::NAME, Checkpoints::NAME].map(Path::new);
        own.iter().any(|own| Path::new(name) == *own || Path::new(name) == own.with_extension("tmp"))
    }

    /// The error for an output of such a name.
    pub(super) fn needed(name: &str) -> Error {
        Error::config(format!("the name {name:?} is needed while an output is made"))
            .hint("write it under another name")
    }

    /// Says of a work folder that it is complete.
    ///
    /// # Errors
    /// `Config` for a target that has the name of something else in the work folder; `Io`.
    pub(super) fn write(
        folder: &Path,
        (targets, leaving): (&[&str], &[&str]),
        overwrite: bool,
        fsync: bool,
    ) -> Result<()> {
        let is_aside = |name: &str| targets.iter().chain(leaving).any(|other| aside(other) == name);
        if let Some(name) = targets.iter().find(|name| Self::is_ours(name) || is_aside(name)) {
            return Err(Self::needed(name).at(folder));
        }
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let commit = Commit { targets: owned(targets), leaving: owned(leaving), overwrite };
        let text = serde_json::to_vec(&commit).map_err(|e| Error::io("write it", folder, e.into()))?;
        files::replace(&folder.join(Self::NAME), &text, fsync)?;
        files::sync_folder(folder, fsync)
    }

    /// Says of a work folder, of which nothing was shown, that it is not complete.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn take_back(folder: &Path, fsync: bool) -> Result<()> {
        if Self::is_in(folder)? {
            files::remove(&folder.join(Self::NAME)).and_then(|()| files::sync_folder(folder, fsync))
        } else {
            Ok(())
        }
    }

    fn read(folder: &Path) -> Result<Commit> {
        let path = folder.join(Self::NAME);
        let text = files::read_what_is_there(&path)?;
        serde_json::from_slice(&text)
            .ok()
            .filter(|c: &Commit| c.targets.iter().chain(&c.leaving).all(|t| !t.contains('/') && t != ".."))
            .ok_or_else(|| {
                Error::corrupt("what a stopped run left cannot be understood")
                    .at(&path)
                    .hint("remove its folder")
            })
    }

    /// Whether a run was stopped between the first and the last of the renames that show a work folder.
    ///
    /// # Errors
    /// `Corrupt` when what it shows cannot be understood; `Io`.
    pub(super) fn is_half_shown(folder: &Path) -> Result<bool> {
        if !Self::is_in(folder)? {
            return Ok(false);
        }
        let (mut is_moved, mut is_left) = (false, false);
        let commit = Self::read(folder)?;
        for target in &commit.targets {
            let is_here = is_there(&folder.join(target))?;
            is_left |= is_here;
            is_moved |= !is_here || is_there(&folder.join(aside(target)))?;
        }
        for name in &commit.leaving {
            is_moved |= is_there(&folder.join(aside(name)))?;
        }
        Ok(is_moved && is_left)
    }

    /// Makes visible in `out` what is not yet, and removes the work folder.
    ///
    /// # Errors
    /// `Exists` when something is there and is not to be replaced; `Corrupt` as above; `Io`. What could be seen before is then
    /// seen again, or, where that is impossible, what the next run completes.
    pub(super) fn finish(folder: &Path, out: &Path, fsync: bool) -> Result<()> {
        let marker = folder.join(Self::NAME);
        let commit = Self::read(folder)?;
        // Those that are left to move, each with whether something has its place.
        let mut to_move = Vec::new();
        for target in &commit.targets {
            if is_there(&folder.join(target))? {
                to_move.push((target, is_there(&out.join(target))?));
            }
        }
        let mut to_leave = Vec::new();
        for name in &commit.leaving {
            if is_there(&out.join(name))? {
                to_leave.push(name);
            }
        }
        // One folder alone changes places with its old self: readers see the one or the other, never neither. The marker and the
        // checkpoint leave before, also on the disk: by them the next run would change the two back, or continue in the old
        // one.
        if let ([(target, true)], [], true) = (to_move.as_slice(), to_leave.as_slice(), commit.overwrite) {
            let text = files::read_what_is_there(&marker)?;
            Checkpoints::remove(folder)?;
            Self::take_back(folder, fsync)?;
            let exchange = || files::exchange(&folder.join(target), &out.join(target));
            let exchanged = exchange();
            if let Ok(true) = exchanged {
                if let Err(error) = files::sync_folder(out, fsync) {
                    // What fails is not done: repeated, it would be done twice. A disk that takes no change any more takes
                    // none back either.
                    return Err(match exchange() {
                        Ok(true) => error,
                        _ => error.hint("the new data is in place and could not be taken back: look at it before running this again"),
                    });
                }
                tidy_up(folder);
                return Ok(());
            }
            files::replace(&marker, &text, fsync)?;
            files::sync_folder(folder, fsync)?;
            exchanged?;
        }
        let taken = || {
            let replaced = to_move.iter().filter(|(_, is_taken)| *is_taken).map(|(target, _)| *target);
            replaced.chain(to_leave.iter().copied())
        };
        if let (Some(target), false) = (taken().next(), commit.overwrite) {
            // What a killed run had shown of it goes back: alone it would say something of what somebody else put there.
            let shown = |target: &&String| to_move.iter().all(|(left, _)| left != target);
            for target in commit.targets.iter().rev().filter(shown) {
                files::rename(&out.join(target), &folder.join(target))?;
            }
            files::sync_folder(out, fsync)?;
            Self::take_back(folder, fsync)?;
            return Err(exists(&out.join(target)));
        }
        taken().try_for_each(|target| files::remove(&folder.join(aside(target))))?;
        // The old ones leave before the new ones come, and what makes the others visible leaves first and comes last: never a
        // mixture. Between two syncs the disk takes renames in any order, and those of a killed run may not be on it yet: so
        // there is a sync after each step, also after one without a rename.
        let (shows, others): (Vec<_>, Vec<_>) =
            to_move.into_iter().partition(|(target, _)| commit.targets.last() == Some(*target));
        let leave = |targets: &[(&String, bool)]| -> Vec<(PathBuf, PathBuf)> {
            let old = targets.iter().rev().filter(|(_, is_taken)| *is_taken);
            old.map(|(target, _)| (out.join(target), folder.join(aside(target)))).collect()
        };
        let come = |targets: &[(&String, bool)]| -> Vec<(PathBuf, PathBuf)> {
            targets.iter().map(|(target, _)| (folder.join(target), out.join(target))).collect()
        };
        let gone = to_leave.iter().map(|name| (out.join(name), folder.join(aside(name)))).collect::<Vec<_>>();
        let steps = match (commit.targets.len(), gone.len()) {
            (1, 0) => vec![[leave(&shows), come(&shows)].concat()],
            _ => vec![leave(&shows), [gone, leave(&others), come(&others)].concat(), come(&shows)],
        };
        move_all(&steps, || files::sync_folder(out, fsync))?;
        tidy_up(folder);
        Ok(())
    }
}

// One after the other, with a sync after each step. Where one fails, those before it go back, in steps again: what fails is not
// done. If one cannot go back, it and all before it stay, and the next run completes them.
fn move_all(steps: &[Vec<(PathBuf, PathBuf)>], sync: impl Fn() -> Result<()>) -> Result<()> {
    let mut done = Vec::new();
    let mut all = || {
        for (step, moves) in steps.iter().enumerate() {
            for (from, to) in moves {
                files::rename(from, to)?;
                done.push((step, from, to));
            }
            sync()?;
        }
        Ok(())
    };
    let moved = all();
    if moved.is_err() {
        let mut last = None;
        for (step, from, to) in done.into_iter().rev() {
            if last.is_some_and(|last| last != step) {
                // What readers see is more than what a disk that fails may have.
                let _ = sync();
            }
            if files::rename(to, from).is_err() {
                break;
            }
            last = Some(step);
        }
    }
    moved
}

// The result is there, so what is left behind is not an error of the run: an append that is run again would be there twice.
fn tidy_up(folder: &Path) {
    if let Err(e) = Checkpoints::remove(folder).and_then(|()| files::remove(folder)) {
        log::info!("what the run left stays: {e:#}");
    }
}

// Where an old output waits until the new one is there.
fn aside(target: &str) -> String {
    format!("old-{target}")
}
