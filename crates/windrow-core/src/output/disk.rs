//! Files on their way to the disk, several at once, while the next ones are written. One after the other, many small
//! files take as long as the disk takes for each of them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::handle::Unsynced;
use crate::error::{Error, Kind, Result};

/// Files that are brought at once; as many more wait, and are open meanwhile.
const AT_ONCE: usize = 16;

/// Brings files to the disk. Dropped, it waits for them.
pub struct Disk {
    fsync: bool,
    queue: Option<SyncSender<Unsynced>>,
    waiting: Arc<Mutex<Option<Receiver<Unsynced>>>>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Disk {
    /// For files that are to be durable; others are left to the system.
    pub fn new(fsync: bool) -> Disk {
        Disk { fsync, queue: None, waiting: Arc::default(), threads: Vec::new() }
    }

    /// Takes over a file. Where many wait already, this one waits, too.
    ///
    /// # Errors
    /// `Io`, also of files before.
    pub fn bring(&mut self, file: Unsynced) -> Result<()> {
        if !self.fsync {
            return Ok(());
        }
        // One that has ended has failed.
        if self.threads.iter().any(JoinHandle::is_finished) {
            self.wait()?;
        }
        let queue = self.queue.get_or_insert_with(|| {
            let (queue, waiting) = sync_channel(AT_ONCE);
            self.waiting = Arc::new(Mutex::new(Some(waiting)));
            queue
        });
        if self.threads.len() < AT_ONCE {
            let waiting = Arc::clone(&self.waiting);
            match Builder::new().name("windrow-disk".to_string()).spawn(move || serve(&waiting)) {
                Ok(thread) => self.threads.push(thread),
                // Without any thread it is done here.
                Err(_) if self.threads.is_empty() => return file.sync(),
                Err(_) => {}
            }
        }
        match queue.send(file) {
            Ok(()) => Ok(()),
            // Nobody is there to take it: they have failed.
            Err(back) => self.wait().and_then(|()| back.0.sync()),
        }
    }

    /// Waits until all are on the disk.
    ///
    /// # Errors
    /// `Io`.
    pub fn wait(&mut self) -> Result<()> {
        self.queue = None;
        let mut done = Ok(());
        for thread in self.threads.drain(..) {
            let ended = || Error::new(Kind::Io, "a thread that brings files to the disk has ended");
            done = done.and(thread.join().unwrap_or_else(|_| Err(ended())));
        }
        done
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whoever wants to know of an error has waited before.
        let _ = self.wait();
    }
}

fn serve(waiting: &Mutex<Option<Receiver<Unsynced>>>) -> Result<()> {
    let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        // Taken under the lock, brought without it.
        let taken = lock().as_ref().map(Receiver::recv);
        let Some(Ok(file)) = taken else { return Ok(()) };
        if let Err(e) = file.sync() {
            // What waits behind it is not brought: nobody may continue.
            *lock() = None;
            return Err(e);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use super::*;
    use crate::output::Growing;

    fn written(folder: &Path, name: &str) -> Unsynced {
        let mut file = Growing::create(folder.join(name)).unwrap();
        file.write(name.as_bytes()).unwrap();
        file.unsynced().unwrap()
    }

    #[test]
    fn many_files_and_none() {
        let folder = tempfile::tempdir().unwrap();
        for fsync in [true, false] {
            let mut disk = Disk::new(fsync);
            disk.wait().unwrap();
            for round in 0..3 {
                (0..100).for_each(|n| disk.bring(written(folder.path(), &format!("{n}"))).unwrap());
                assert_eq!(disk.threads.len(), if fsync { AT_ONCE } else { 0 }, "{round}");
                disk.wait().unwrap();
                assert!(disk.threads.is_empty());
            }
        }
    }

    #[test]
    fn a_file_that_fails_is_told_and_nothing_waits_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        // The system cannot bring a device to a disk.
        let bad = || Unsynced::new(File::open("/dev/null").unwrap(), "/dev/null".into());
        let is_told = |e: &Error| e.place().file.as_deref() == Some("/dev/null");
        for at in [0, 1, 30, 199] {
            let mut disk = Disk::new(true);
            let brought = (0..200).try_for_each(|n| {
                if n == at { disk.bring(bad()) } else { disk.bring(written(folder.path(), &format!("{n}"))) }
            });
            assert!(is_told(&brought.and_then(|()| disk.wait()).unwrap_err()));
            // Told once; a new beginning is one.
            disk.bring(written(folder.path(), "new")).unwrap();
            disk.wait().unwrap();
        }
        // All of them fail.
        let mut disk = Disk::new(true);
        let brought = (0..200).try_for_each(|_| disk.bring(bad()));
        assert!(is_told(&brought.and_then(|()| disk.wait()).unwrap_err()));
    }
}
