//! A whole download: what to get, several files at a time, how far it is, and what came of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use windrow_core::threads::refused;
use windrow_core::{Error, Kind, Result};
use windrow_core::{Progress, Watch};

use crate::fetch::{Came, Fetcher};
use crate::folder::{self, Folder, Record};
use crate::http::Http;
use crate::hub::Hub;
use crate::listing::{self, Listing};
use crate::offline;
use crate::remote_file::RemoteFile;
use crate::repo::RepoName;
use crate::retry::{self, Trouble};
use crate::select::Selection;

/// How often the watcher is called.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// How often the record is written while files come in.
const BETWEEN_RECORDS: Duration = Duration::from_secs(5);

/// What to download, and where to.
#[derive(Clone, Debug)]
pub struct Request {
    /// The data set.
    pub repo: RepoName,
    /// A branch, a tag or a commit.
    pub revision: String,
    /// Patterns of the paths to get; all without any.
    pub include: Vec<String>,
    /// Patterns of the paths to leave out.
    pub exclude: Vec<String>,
    /// The folder, which may hold an earlier download.
    pub output: PathBuf,
    /// Replaces files that hold something else.
    pub overwrite: bool,
    /// Files that are fetched at the same time.
    pub n_connections: usize,
}

impl Request {
    /// All files of the branch `main`.
    pub fn new(repo: RepoName, output: impl Into<PathBuf>) -> Request {
        Request {
            repo,
            revision: "main".to_string(),
            include: Vec::new(),
            exclude: Vec::new(),
            output: output.into(),
            overwrite: false,
            n_connections: 8,
        }
    }
}

/// What a download did.
#[derive(Debug, Default)]
pub struct Report {
    /// The commit whose files these are.
    pub commit: String,
    /// Files that were chosen.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// Of them: files that were there already.
    pub unchanged_files: u64,
    /// Files that were copied from the hub's cache on this machine.
    pub cached_files: u64,
    /// Files that came from the hub.
    pub downloaded_files: u64,
    /// Their size.
    pub downloaded_bytes: u64,
    /// What of that an earlier, stopped run had brought.
    pub resumed_bytes: u64,
    /// Files that could not be had.
    pub failed: Vec<Failed>,
    /// Files that were not tried, because something fails that they need as well.
    pub left_files: u64,
}

impl Report {
    /// Files that are in place.
    pub fn done_files(&self) -> u64 {
        self.unchanged_files + self.cached_files + self.downloaded_files
    }
}

/// A file that could not be had.
#[derive(Debug)]
pub struct Failed {
    /// Its path below the data set.
    pub path: String,
    /// Why.
    pub error: Error,
}

impl Hub {
    /// The files that a request chooses, without downloading them.
    ///
    /// # Errors
    /// `NotFound` when there is no such data set or revision, or offline nothing of it is here; `Io` when the hub refuses or
    /// cannot be reached; `Corrupt` when its answer makes no sense; `NotFound` when a pattern chooses nothing;
    /// `Interrupted`.
    pub fn choose(&self, request: &Request, watch: &dyn Watch) -> Result<Listing> {
        choose(self, request, watch)
    }

    /// Downloads the chosen files of a data set into a folder.
    ///
    /// A file appears there by rename, after its size and hash were found right. What is there already, or in the hub's
    /// cache on this machine, is used. A run that was stopped is continued by the same call, within files too.
    ///
    /// # Errors
    /// Those of [`Hub::choose`]; `Exists` when another run is writing there. What goes wrong with single
    /// files is in [`Report::failed`].
    pub fn download(&self, request: &Request, watch: &dyn Watch) -> Result<Report> {
        run(self, request, watch)
    }
}

fn choose(hub: &Hub, request: &Request, watch: &dyn Watch) -> Result<Listing> {
    let selection = Selection::new(&request.include, &request.exclude)?;
    let Listing { commit, files } = match hub.is_offline {
        false => listed(&hub.http()?, request, watch)?,
        true => offline::list(hub, &request.repo, &request.revision, Record::read(&request.output).as_ref())?,
    };
    Ok(Listing { commit, files: selection.of(files)? })
}

fn run(hub: &Hub, request: &Request, watch: &dyn Watch) -> Result<Report> {
    let chosen = choose(hub, request, watch)?;
    let bytes = chosen.bytes();
    let Listing { commit, files } = chosen;
    let before = Record::read(&request.output);
    let http = if hub.is_offline { None } else { Some(hub.http()?) };
    let folder = Folder::take(&request.output)?;
    let mut record = Record::new(request.repo.as_str(), &request.revision, &commit, before.as_ref());
    files.iter().for_each(|file| record.ask(file));
    folder.tidy(&record)?;
    enough_room(&folder, &files)?;
    folder.write(&record)?;
    let (stop, done_bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let fetcher = Fetcher {
        hub,
        http,
        repo: &request.repo,
        commit: &commit,
        folder: &folder,
        before: before.as_ref(),
        overwrite: request.overwrite,
        stop: &stop,
        done_bytes: &done_bytes,
    };
    let report = Report { commit: commit.clone(), files: files.len() as u64, bytes, ..Report::default() };
    let report = all(&fetcher, &files, request.n_connections, report, &mut record, watch);
    folder.write(&record)?;
    report
}

// On a thread of its own, so that a silent hub does not keep the watcher from stopping it.
fn listed(http: &Http, request: &Request, watch: &dyn Watch) -> Result<Listing> {
    let stop = &AtomicBool::new(false);
    let stopped = || stop.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let list = move || listing::list(http, &request.repo, &request.revision, &stopped);
        let work =
            Builder::new().name("windrow-list".to_string()).spawn_scoped(scope, list).map_err(refused)?;
        while !work.is_finished() {
            thread::sleep(Duration::from_millis(5));
            if watch.cancelled() && !stop.swap(true, Ordering::Relaxed) {
                http.shut_down();
            }
        }
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

// Brings all files, several at a time; the watcher is spoken to on this thread.
fn all(
    fetcher: &Fetcher<'_>,
    files: &[RemoteFile],
    n_connections: usize,
    mut report: Report,
    record: &mut Record,
    watch: &dyn Watch,
) -> Result<Report> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for started in 0..n_connections.clamp(1, files.len().max(1)) {
            let (sender, next) = (sender.clone(), &next);
            let bring = move || {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let came = fetcher.bring(file).map_err(Trouble::into_error);
                    // What keeps one file from coming or from being written keeps the others, too.
                    if came.as_ref().is_err_and(|e| matches!(e.kind(), Kind::Io | Kind::Interrupted)) {
                        next.store(files.len(), Ordering::Relaxed);
                    }
                    if sender.send((file, came)).is_err() {
                        return;
                    }
                }
            };
            match Builder::new().name("windrow-bring".to_string()).spawn_scoped(scope, bring) {
                Err(e) if started == 0 => return Err(refused(e)),
                // Fewer at a time.
                Err(_) => break,
                Ok(_) => {}
            }
        }
        drop(sender);
        let done = gathered(fetcher, &receiver, &mut report, record, watch);
        if done.is_err() {
            fetcher.halt();
        }
        done
    })?;
    if fetcher.stop.load(Ordering::Relaxed) && report.done_files() < report.files {
        return Err(retry::interrupted().into_error().at(fetcher.folder.root()));
    }
    report.failed.sort_by(|a, b| a.path.cmp(&b.path));
    report.left_files = report.files - report.done_files() - report.failed.len() as u64;
    Ok(report)
}

// Takes up what the threads bring until the last of them has ended.
fn gathered(
    fetcher: &Fetcher<'_>,
    receiver: &Receiver<(&RemoteFile, Result<Came>)>,
    report: &mut Report,
    record: &mut Record,
    watch: &dyn Watch,
) -> Result<()> {
    let mut written = Instant::now();
    loop {
        let message = receiver.recv_timeout(BETWEEN_LOOKS);
        if watch.cancelled() {
            fetcher.halt();
        }
        match message {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Ok((file, Ok(came))) => {
                note(report, file, came);
                record.place(file, &fetcher.folder.target(file));
            }
            Ok((file, Err(error))) => report.failed.push(Failed { path: file.path.clone(), error }),
        }
        watch.progress(Progress {
            done_bytes: fetcher.done_bytes.load(Ordering::Relaxed),
            total_bytes: report.bytes,
            records: report.done_files(),
        });
        if written.elapsed() > BETWEEN_RECORDS {
            fetcher.folder.write(record)?;
            written = Instant::now();
        }
    }
}

fn note(report: &mut Report, file: &RemoteFile, came: Came) {
    match came {
        Came::Unchanged => report.unchanged_files += 1,
        Came::Cached => report.cached_files += 1,
        Came::Downloaded { resumed } => {
            report.downloaded_files += 1;
            report.downloaded_bytes += file.size;
            report.resumed_bytes += resumed;
        }
    }
}

fn enough_room(folder: &Folder, files: &[RemoteFile]) -> Result<()> {
    let here = |path: &Path| folder::stamp(path).map_or(0, |stamp| stamp.0);
    let missing = |file: &RemoteFile| match here(&folder.target(file)) == file.size {
        true => 0,
        false => file.size.saturating_sub(here(&folder.part(file))),
    };
    let needed: u64 = files.iter().map(missing).fold(0, u64::saturating_add);
    match folder.free() {
        Some(free) if free < needed => Err(Error::new(
            Kind::Io,
            format!("{needed} bytes are to be downloaded, the disk has room for {free}"),
        )
        .at(folder.root())
        .hint("choose fewer files, or give @out@ on another disk")),
        _ => Ok(()),
    }
}
