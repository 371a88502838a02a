//! Restart points, brought to the disk while the task continues: a slow disk holds nobody up.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::disk::Disk;
use super::files;
use crate::error::{Error, Kind, Result};

/// The checkpoint of a work folder. One is on its way to the disk at a time; until it is there, the one before it
/// counts.
pub struct Checkpoints {
    path: PathBuf,
    fsync: bool,
    going: Option<JoinHandle<Result<()>>>,
}

/// What is written once all files are on the disk.
struct Point {
    disk: Disk,
    text: Vec<u8>,
    path: PathBuf,
}

impl Checkpoints {
    pub(super) const NAME: &str = "progress.json";

    /// Those of a work folder.
    pub fn of(work: &Path, fsync: bool) -> Checkpoints {
        Checkpoints { path: work.join(Self::NAME), fsync, going: None }
    }

    /// The checkpoint that counts, where there is one.
    pub fn read(work: &Path) -> Option<Vec<u8>> {
        files::read(&work.join(Self::NAME))
    }

    /// Removes what a run could continue from.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn remove(work: &Path) -> Result<()> {
        files::remove(&work.join(Self::NAME))
    }

    /// Whether a run could continue from one.
    pub fn is_there(&self) -> bool {
        files::exists(&self.path)
    }

    /// Whether one is on its way.
    pub fn is_going(&self) -> bool {
        self.going.as_ref().is_some_and(|going| !going.is_finished())
    }

    /// Begins the next one, which counts once all files that `disk` brings are there.
    ///
    /// # Errors
    /// `Io`: those of the one before it, too.
    pub fn begin(&mut self, text: Vec<u8>, disk: Disk) -> Result<()> {
        self.wait()?;
        if !self.fsync {
            return files::replace(&self.path, &text, false).map(drop);
        }
        let point = Arc::new(Mutex::new(Some(Point { disk, text, path: self.path.clone() })));
        let elsewhere = Arc::clone(&point);
        match Builder::new().name("windrow-restart".to_string()).spawn(move || bring(&elsewhere)) {
            Ok(going) => self.going = Some(going),
            // Without a further thread it is done here.
            Err(_) => bring(&point)?,
        }
        Ok(())
    }

    /// Waits for the one that is on its way.
    ///
    /// # Errors
    /// `Io`. The one before it counts then.
    pub fn wait(&mut self) -> Result<()> {
        let Some(going) = self.going.take() else { return Ok(()) };
        let ended = || Error::new(Kind::Io, "the thread that writes checkpoints has ended");
        going.join().unwrap_or_else(|_| Err(ended()))
    }
}

fn bring(point: &Mutex<Option<Point>>) -> Result<()> {
    let point = point.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut point) = point else { return Ok(()) };
    point.disk.wait()?;
    files::replace(&point.path, &point.text, true).map(drop)
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        // Nobody may write to the folder any more. Whoever wants to know of an error has waited before.
        let _ = self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Growing;

    #[test]
    fn one_after_the_other_and_errors_are_error() {
        let folder = tempfile::tempdir().unwrap();
        for fsync in [true, false] {
            let mut file = Growing::create(folder.path().join("data")).unwrap();
            let mut points = Checkpoints::of(folder.path(), fsync);
            for n in 0..20 {
                file.write(b"some").unwrap();
                let mut disk = Disk::new(fsync);
                disk.bring(file.unsynced().unwrap()).unwrap();
                points.begin(format!("{n}").into_bytes(), disk).unwrap();
            }
            points.wait().unwrap();
            assert!(points.is_there() && !points.is_going());
            assert_eq!(Checkpoints::read(folder.path()).unwrap(), b"19");
            points.begin(b"last".to_vec(), Disk::new(fsync)).unwrap();
            drop(points);
            assert_eq!(Checkpoints::read(folder.path()).unwrap(), b"last");
        }
        let none = folder.path().join("none");
        let mut points = Checkpoints::of(&none, true);
        points.begin(Vec::new(), Disk::new(true)).unwrap();
        // Told by the next one, or by waiting.
        let error = points.begin(Vec::new(), Disk::new(true)).unwrap_err();
        assert!(error.place().file.as_ref().is_some_and(|f| f.contains("none")), "{error}");
        assert!(points.wait().is_ok() && !points.is_there());
    }
}
