//! One at a time makes an entry: whoever asks for it meanwhile waits, as long as it grows.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::listing::{draft_prefix, files_in};

/// Without a byte more for so long, the other one is taken for stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// Held while an entry is made. What a killed process held is free.
pub(super) struct Turn {
    held: Option<(File, PathBuf)>,
    /// Whether another one had it before: the entry may be there now.
    pub(super) waited: bool,
}

impl Turn {
    /// The turn to make the entry `name`. Where it cannot be had, the entry is made nevertheless: a file system without
    /// locks, or another process that does not go on.
    pub(super) fn take(folder: &Path, name: &str) -> Turn {
        Turn::take_within(folder, name, PATIENCE)
    }

    pub(super) fn take_within(folder: &Path, name: &str, patience: Duration) -> Turn {
        let prefix = draft_prefix(name);
        let path = folder.join(format!("{prefix}turn"));
        let (mut waited, mut size, mut grew) = (false, 0, Instant::now());
        let mut pause = Duration::from_millis(5);
        loop {
            let Ok(file) = File::options().create(true).truncate(false).write(true).open(&path) else {
                return Turn { held: None, waited };
            };
            match file.try_lock() {
                // Its last holder may have removed the name between our opening and our locking.
                Ok(()) if is_at(&file, &path) => return Turn { held: Some((file, path)), waited },
                Ok(()) => continue,
                Err(TryLockError::Error(_)) => return Turn { held: None, waited },
                Err(TryLockError::WouldBlock) => {}
            }
            if !waited {
                log::info!("waiting for another process that makes {name} in {}", folder.display());
            }
            waited = true;
            let drafts = files_in(folder).unwrap_or_default();
            let now =
                drafts.iter().filter(|file| file.name.starts_with(&prefix)).map(|file| file.bytes).sum();
            if now != size {
                (size, grew) = (now, Instant::now());
            }
            if grew.elapsed() > patience {
                crate::warn!(
                    "{name} in {} is made again: another process stopped making it",
                    folder.display()
                );
                return Turn { held: None, waited };
            }
            thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(250));
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
    file.metadata().ok().map(id) == fs::metadata(path).ok().map(id)
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((file, path)) = self.held.take() {
            // Removed while it is held, so that nobody removes another one's. A name that stays is harmless.
            let _ = fs::remove_file(&path);
            // A child that was forked meanwhile has the file open, too.
            let _ = file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "0123456789abcdef.windrow";

    #[test]
    fn whoever_comes_later_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = Turn::take(folder.path(), NAME);
        assert!(first.held.is_some() && !first.waited);
        thread::scope(|scope| {
            let second = scope.spawn(|| Turn::take(folder.path(), NAME));
            thread::sleep(Duration::from_millis(20));
            drop(first);
            let second = second.join().unwrap();
            assert!(second.held.is_some());
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_that_stopped_is_not_waited_for_any_longer() {
        let folder = tempfile::tempdir().unwrap();
        let _first = Turn::take(folder.path(), NAME);
        let second = Turn::take_within(folder.path(), NAME, Duration::from_millis(30));
        assert!(second.held.is_none() && second.waited);
        // Another entry is nobody's turn.
        assert!(!Turn::take(folder.path(), "fedcba9876543210.windrow").waited);
    }

    #[test]
    fn what_a_killed_process_left_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(format!("{}turn", draft_prefix(NAME))), "").unwrap();
        assert!(Turn::take(folder.path(), NAME).held.is_some());
    }
}
