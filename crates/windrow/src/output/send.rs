//! The objects of a data set, sent in an order in which nobody ever reads a part of it.
//!
//! The first object takes the place of the manifest and says that the data set is not finished: opening it is an error that says so.
//! Then comes the data, then what describes it, and at last the manifest; where there is none, the object in its place is removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use windrow_core::manifest::{MANIFEST_FILE, unfinished};
use windrow_core::output::files;
use windrow_core::stop::Stop;
use windrow_core::store::{Local, Store, key};
use windrow_core::threads::refused;
use windrow_core::{Error, Kind, Progress, Result, Watch, check};

use super::there::{Place, Whose};

/// Objects that are sent at a time.
const AT_A_TIME: usize = 8;
/// Larger ones go one by one: each is sent in many parts at a time.
const LARGE: u64 = 16 << 20;
/// How often the watcher is asked.
const ASK: Duration = Duration::from_millis(50);

/// An output that was made here, and where it goes.
pub(super) struct Made<'a> {
    pub(super) place: &'a Place,
    /// The folder that it was made in.
    pub(super) folder: PathBuf,
    /// What the run is known by that made it.
    pub(super) run: &'a str,
}

/// A file that is sent.
struct Item {
    name: String,
    size: u64,
}

/// Sends all that was made; where `overwrite` is set, in the place of what is there.
///
/// # Errors
/// `Exists` where something came there meanwhile; `Interrupted`, `Io`.
pub(super) fn send(made: &Made<'_>, overwrite: bool, watch: &dyn Watch) -> Result<()> {
    let mut items = Vec::new();
    collect(made, "", &mut items)?;
    // Making it may have taken days.
    made.place.store.forget();
    let mut there = made.place.objects()?;
    there.retain(|object, _| made.place.shape.owns(object));
    let mut sending = Sending {
        made,
        there,
        sign: None,
        replace: overwrite,
        resumes: false,
        now: Progress { total_bytes: items.iter().map(|item| item.size).sum(), ..Progress::default() },
        one_large: Mutex::default(),
    };
    let stale = sending.there.keys().any(|object| items.iter().all(|item| item.name != *object));
    // A single object is whole or not there.
    if items.len() > 1 || stale {
        sending.show_unfinished(overwrite)?;
    }
    let sign = sending.sign.clone();
    let (manifest, items): (Vec<Item>, Vec<Item>) =
        items.into_iter().partition(|item| Some(&item.name) == sign.as_ref());
    sending.remove_old(&items)?;
    let (late, data): (Vec<Item>, Vec<Item>) = items.into_iter().partition(|item| describes(&item.name));
    for items in [data, late] {
        sending.all(&items, watch)?;
    }
    match (manifest.first(), sign) {
        (Some(manifest), _) => sending.one(manifest),
        (None, Some(sign)) => made.place.store.remove(&made.place.key_of(&sign)),
        (None, None) => Ok(()),
    }
}

// Files below where the output is made. Hidden ones are another run's.
fn collect(made: &Made<'_>, below: &str, items: &mut Vec<Item>) -> Result<()> {
    let folder = made.folder.join(below);
    for name in files::names(&folder)?.iter().filter(|name| !name.starts_with('.')) {
        let name = key::below(below, name);
        let path = made.folder.join(&name);
        match files::size(&path) {
            None => collect(made, &name, items)?,
            Some(size) if made.place.shape.owns(&name) => items.push(Item { name, size }),
            Some(_) => {}
        }
    }
    Ok(())
}

// What programs look at first, to find the data by.
fn describes(name: &str) -> bool {
    let name = key::name_of(name);
    let ends = [".json", ".idx", ".sums", ".txt"].iter().any(|end| name.ends_with(end));
    ends || name == "sample_locations.bin"
}

struct Sending<'a> {
    made: &'a Made<'a>,
    /// Objects of the data set that are there, with their sizes.
    there: BTreeMap<String, u64>,
    /// The object that says of the data set that it is not finished, once it is there.
    sign: Option<String>,
    replace: bool,
    /// What is there was sent by this run, or one that makes the same.
    resumes: bool,
    now: Progress,
    one_large: Mutex<()>,
}

impl Sending<'_> {
    fn show_unfinished(&mut self, overwrite: bool) -> Result<()> {
        let place = &self.made.place;
        let Some(sign) = place.shape.manifest() else { return Ok(()) };
        self.resumes = place.whose(&self.there, self.made.run)? == Whose::Ours;
        if !self.resumes {
            let file = self.made.folder.join(".unfinished");
            files::write(&file, unfinished(self.made.run).as_bytes(), false)?;
            let put = place.store.put(&place.key_of(&sign), Local::new(&file).open("")?, overwrite);
            put.map_err(|e| self.meanwhile(e))?;
            if !overwrite {
                // What came there since this run began is another's.
                let mut now = place.objects()?;
                now.retain(|object, _| place.shape.owns(object) && *object != sign);
                if let Some(object) = now.keys().next() {
                    let error = Error::new(Kind::Exists, "").at(place.url_of(object));
                    place.store.remove(&place.key_of(&sign))?;
                    return Err(self.meanwhile(error));
                }
            }
        }
        self.sign = Some(sign);
        // From now on all that is there is this run's.
        self.replace = true;
        Ok(())
    }

    // The objects of an output that is replaced which the new one lacks, and those that others would find it by.
    fn remove_old(&self, items: &[Item]) -> Result<()> {
        if self.sign.is_none() {
            return Ok(());
        }
        let goes = |object: &&String| {
            let is_sent = items.iter().any(|item| item.name == **object);
            Some(*object) != self.sign.as_ref() && (!is_sent || (!self.resumes && describes(object)))
        };
        let (first, then): (Vec<&String>, Vec<&String>) =
            self.there.keys().filter(goes).partition(|object| describes(object));
        let place = &self.made.place;
        first.into_iter().chain(then).try_for_each(|object| place.store.remove(&place.key_of(object)))
    }

    fn meanwhile(&self, error: Error) -> Error {
        match error.kind() {
            Kind::Exists => {
                let file = error.place().file.clone().unwrap_or_default();
                Error::new(Kind::Exists, "another output was written there meanwhile")
                    .at(file)
                    .hint("write elsewhere, or replace it with @overwrite=true@")
            }
            _ => error,
        }
    }

    fn one(&self, item: &Item) -> Result<()> {
        let place = &self.made.place;
        let path = self.made.folder.join(&item.name);
        let (key, object) = (place.key_of(&item.name), Local::new(Path::new(&path)).open("")?);
        let is_large = item.size > LARGE;
        let _alone = is_large.then(|| self.one_large.lock().unwrap_or_else(PoisonError::into_inner));
        let may_be_there =
            self.there.get(&item.name) == Some(&item.size) && !item.name.ends_with(MANIFEST_FILE);
        if may_be_there && place.store.is_same(&key, object.clone())? {
            return Ok(());
        }
        place.store.put(&key, object, self.replace).map(drop).map_err(|e| self.meanwhile(e))
    }

    // All of them, several at a time.
    fn all(&mut self, items: &[Item], watch: &dyn Watch) -> Result<()> {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let mut now = self.now;
        let sending = &*self;
        let work = |sender: &mpsc::Sender<Result<u64>>| {
            while !stop.load(Ordering::Relaxed)
                && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
                && sender.send(sending.one(item).map(|()| item.size)).is_ok()
            {}
        };
        let done = thread::scope(|scope| {
            let (sender, results) = mpsc::channel();
            for _ in 0..AT_A_TIME.min(items.len()) {
                let (sender, work) = (sender.clone(), &work);
                let stop = Stop::of_this_thread();
                let serve = move || stop.hold(|| work(&sender));
                thread::Builder::new()
                    .name("windrow-send".into())
                    .spawn_scoped(scope, serve)
                    .map_err(refused)?;
            }
            drop(sender);
            let done = loop {
                match results.recv_timeout(ASK) {
                    Ok(Ok(size)) => {
                        now.done_bytes += size;
                        watch.progress(now);
                    }
                    Ok(Err(e)) => break Err(e),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(()),
                }
                if let Err(e) = check(watch) {
                    break Err(e);
                }
            };
            // What is under way ends; nothing more begins.
            stop.store(true, Ordering::Relaxed);
            done
        });
        self.now = now;
        done
    }
}
