//! What is read once, from front to end: a pipe, the standard input, what a shell's `<(…)` gives.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Builder;

use crate::error::{Error, Result};
use crate::stop::{self, BETWEEN_QUESTIONS};
use crate::threads::refused;

/// Read at once, in bytes.
const PART: usize = 256 << 10;
/// How many parts wait in memory until they are asked for.
const PARTS: usize = 4;

/// Whether what is at a path of this machine is read once: a pipe, or a standard input that is a socket or a terminal. Other devices
/// have no end.
pub fn is_read_once(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_fifo() || (is_stdin(path) && (kind.is_socket() || kind.is_char_device()))
    })
}

fn is_stdin(path: &Path) -> bool {
    ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path == Path::new(name))
}

/// The bytes of a pipe, in their order. Another thread reads it, so that whoever waits for bytes that do not come can be stopped.
pub struct Pipe {
    parts: Receiver<io::Result<Vec<u8>>>,
    part: Vec<u8>,
    at: usize,
}

impl Pipe {
    /// Begins to read it. What was read belongs to this pipe: who opens it again gets what comes after.
    ///
    /// # Errors
    /// `Memory` where no thread can be started; errors of opening come with the first read.
    pub fn open(path: &Path) -> Result<Pipe> {
        let (sender, parts) = sync_channel(PARTS);
        let path = path.to_path_buf();
        let read = move || {
            // Nobody may be waiting any longer.
            if let Err(e) = each_part(&path, |part| sender.send(Ok(part)).is_ok()) {
                let _ = sender.send(Err(io::Error::other(Error::io("read the pipe", &path, e))));
            }
        };
        Builder::new().name("windrow-pipe".to_string()).spawn(read).map_err(refused)?;
        Ok(Pipe { parts, part: Vec::new(), at: 0 })
    }
}

// Hands over what comes until its end, or until `take` wants no more.
fn each_part(path: &Path, take: impl Fn(Vec<u8>) -> bool) -> io::Result<()> {
    // A standard input that is a socket, or another user's, cannot be opened by its name.
    let mut file = if is_stdin(path) {
        File::from(io::stdin().as_fd().try_clone_to_owned()?)
    } else {
        File::open(path)?
    };
    loop {
        let mut part = vec![0; PART];
        match file.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(size) => part.truncate(size),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if !take(part) {
            return Ok(());
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.part.len() {
            match self.parts.recv_timeout(BETWEEN_QUESTIONS) {
                Ok(part) => (self.part, self.at) = (part?, 0),
                Err(RecvTimeoutError::Timeout) => stop::go_on().map_err(io::Error::other)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let size = out.len().min(self.part.len() - self.at);
        out[..size].copy_from_slice(&self.part[self.at..self.at + size]);
        self.at += size;
        Ok(size)
    }
}
