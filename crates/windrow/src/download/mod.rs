//! Downloads: a data set of the Hub, a folder of a bucket or one file into a folder, resumed and verified.
//!
//! ```no_run
//! # fn main() -> windrow::Result<()> {
//! use windrow::download::{Request, download, hub_url};
//!
//! let mut request = Request::new(hub_url("owner/name", "main")?, "out");
//! request.include = vec!["train/*.parquet".to_string()];
//! let report = download(&request, &())?;
//! assert!(report.failed.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! The Hub lists a hash of each file, which is compared before the file has its name. Of other stores size and version are, and the
//! hash that `windrow` leaves beside what it writes there.

mod digest;
mod fetch;
mod file;
mod folder;
mod hub;
mod named;
mod origin;
mod select;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use windrow_core::stop::{self, Stop};
use windrow_core::threads::refused;
use windrow_core::{Error, Kind, Progress, Result, Watch};

pub use self::digest::Digest;
use self::fetch::{Came, Fetcher};
pub use self::file::{Listing, RemoteFile};
use self::folder::{Folder, Record};
pub use self::hub::hub_url;
pub use self::named::{NAMED, Named};
pub use self::origin::folder_name;
use self::origin::{Objects, Origin};
use self::select::Selection;
use crate::format::Options;

/// How often the watcher is called.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// How often the record is written while files come in.
const BETWEEN_RECORDS: Duration = Duration::from_secs(5);

/// What to download, and where to.
#[derive(Clone, Debug)]
pub struct Request {
    /// `hf://datasets/owner/name[@revision][/folder]` ([`hub_url`]), `s3://bucket/prefix`, `gs://`, `az://` or `https://host/file`.
    pub url: String,
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
    /// How the store is asked: `store_options` and `timeout`.
    pub options: Options,
    /// The folder of the Hub's cache, whose files are copied instead of fetched; nothing is written there.
    pub hub_cache: Option<PathBuf>,
    /// Opens no connection for data of the Hub: what is here must do.
    pub is_offline: bool,
}

impl Request {
    /// All files below a URL, with the Hub's cache that the environment names: `HF_HUB_CACHE`, `HF_HOME`, `HF_HUB_OFFLINE`.
    pub fn new(url: impl Into<String>, output: impl Into<PathBuf>) -> Request {
        Request {
            url: url.into(),
            include: Vec::new(),
            exclude: Vec::new(),
            output: output.into(),
            overwrite: false,
            n_connections: 8,
            options: Options::default(),
            hub_cache: hub::cache_folder(),
            is_offline: hub::is_offline(),
        }
    }
}

/// What a download did.
#[derive(Debug, Default)]
pub struct Report {
    /// `owner/name` of the Hub, or the URL without what lets others in.
    pub name: String,
    /// The revision that was asked for; only of the Hub.
    pub revision: Option<String>,
    /// The commit whose files these are; only of the Hub.
    pub commit: Option<String>,
    /// Files that were chosen.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// Of them: files that were there already.
    pub unchanged_files: u64,
    /// Files that were copied from the Hub's cache on this machine.
    pub cached_files: u64,
    /// Files that came from the store.
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
    /// Its path below what was downloaded.
    pub path: String,
    /// Why.
    pub error: Error,
}

/// The files that a request chooses, without downloading them.
///
/// # Errors
/// `Config` for a URL or pattern that is not one; `NotFound` when nothing is there, a pattern chooses nothing, or offline nothing
/// of it is here; `Io` when the store refuses or cannot be reached; `Corrupt` when its listing makes no sense; `Interrupted`.
pub fn choose(request: &Request, watch: &dyn Watch) -> Result<Listing> {
    Ok(chosen(request, &Origin::of(&request.url)?, watch)?.0)
}

/// Downloads the chosen files into a folder.
///
/// A file appears there by rename, after its size and hash were found right. What is there already, or in the Hub's cache on this
/// machine, is used. A run that was stopped is continued by the same call, within files too.
///
/// # Errors
/// Those of [`choose`]; `Exists` when another run is writing there. What goes wrong with single files is in [`Report::failed`].
pub fn download(request: &Request, watch: &dyn Watch) -> Result<Report> {
    let origin = Origin::of(&request.url)?;
    let (Listing { commit, files }, objects) = chosen(request, &origin, watch)?;
    let bytes = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size));
    let before = Record::read(&request.output);
    let folder = Folder::take(&request.output)?;
    let revision = origin.revision.clone();
    let mut record = Record::new(
        &origin.name,
        revision.as_deref().unwrap_or_default(),
        commit.as_deref().unwrap_or_default(),
        before.as_ref(),
    );
    files.iter().for_each(|file| record.ask(file));
    folder.tidy(&record)?;
    folder.enough_room(&files)?;
    folder.write(&record)?;
    let done_bytes = AtomicU64::new(0);
    let fetcher = Fetcher {
        objects,
        cached: origin.cached(request.hub_cache.as_deref()),
        folder: &folder,
        before: before.as_ref(),
        overwrite: request.overwrite,
        done_bytes: &done_bytes,
    };
    let (name, files_in_all) = (origin.name.clone(), files.len() as u64);
    let report = Report { name, revision, commit, files: files_in_all, bytes, ..Report::default() };
    let report = all(&fetcher, &files, request.n_connections, report, &mut record, watch);
    folder.write(&record)?;
    report
}

// What is chosen, and how it is asked for; offline it is not.
fn chosen(request: &Request, origin: &Origin, watch: &dyn Watch) -> Result<(Listing, Option<Objects>)> {
    let selection = Selection::new(&request.include, &request.exclude)?;
    let cached = origin.cached(request.hub_cache.as_deref());
    let (listing, objects) = match cached.filter(|_| request.is_offline) {
        Some(cached) => (origin.list_here(&cached, Record::read(&request.output).as_ref())?, None),
        None => {
            let (listing, objects) = watched(watch, || origin.list(&request.options))?;
            (listing, Some(objects))
        }
    };
    Ok((Listing { files: selection.of(listing.files)?, ..listing }, objects))
}

// Work on a thread of its own, so that a silent store does not keep the watcher from stopping it.
fn watched<T: Send>(watch: &dyn Watch, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let stop = Stop::of_this_thread();
        let thread = Builder::new().name("windrow-list".to_string());
        let work = thread.spawn_scoped(scope, move || stop.hold(work)).map_err(refused)?;
        while !work.is_finished() {
            thread::sleep(Duration::from_millis(5));
            if watch.cancelled() {
                stop::give_up();
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
            let (sender, next, stop) = (sender.clone(), &next, Stop::of_this_thread());
            let bring = move || {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let came = fetcher.bring(file);
                    // What keeps one file from coming or from being written keeps the others, too.
                    if came.as_ref().is_err_and(|e| matches!(e.kind(), Kind::Io | Kind::Interrupted)) {
                        next.store(files.len(), Ordering::Relaxed);
                    }
                    if sender.send((file, came)).is_err() {
                        return;
                    }
                }
            };
            let thread = Builder::new().name("windrow-bring".to_string());
            match thread.spawn_scoped(scope, move || stop.hold(bring)) {
                Err(e) if started == 0 => return Err(refused(e)),
                // Fewer at a time.
                Err(_) => break,
                Ok(_) => {}
            }
        }
        drop(sender);
        let done = gathered(fetcher, &receiver, &mut report, record, watch);
        if done.is_err() {
            stop::give_up();
        }
        done
    })?;
    if watch.cancelled() && report.done_files() < report.files {
        let error = Error::new(Kind::Interrupted, "stopped before the end; what came so far is kept");
        return Err(error.at(fetcher.folder.root()).hint("run the same command again to continue"));
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
            stop::give_up();
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
