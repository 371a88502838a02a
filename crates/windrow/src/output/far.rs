//! A data set whose place is a URL: made on the local disk by the code that makes one at a path, then sent.

use std::path::{Path, PathBuf};

use windrow_core::format::Options;
use windrow_core::output::{Lock, files, hash_of};
use windrow_core::store::{at_home, cache_folder};
use windrow_core::{Error, Kind, Result};
use windrow_prepare::{Report, Watch};
use windrow_remote::{Location, Remote};

use super::send::{Made, send};
use super::shape::Shape;
use super::there::{Place, Whose};
use super::{Task, What};

/// Below the cache folder: what is to be sent.
const FOLDER: &str = "sending";
/// In the folder of one output: where it is made, and what says that all of it is.
const MADE: &str = "made";
const WHOLE: &str = "whole";

/// A data set on its way to a URL.
pub(super) struct Far {
    pub(super) place: Place,
    /// What this run is known by: a hash of the URL and of all that decides the output.
    pub(super) run: String,
    /// The folder of this output alone.
    scratch: PathBuf,
    /// Where it is made.
    path: PathBuf,
    overwrite: bool,
    /// A picture of what is there lies where the output is made.
    has_picture: bool,
    /// What a run before made lies there, whole.
    is_made: bool,
    _lock: Lock,
}

impl Far {
    pub(super) fn begin(location: &Location, shape: Shape, task: &Task<'_>, stores: &Options) -> Result<Far> {
        let url = format!("{}/{}", location.root, location.key);
        let store = Remote::new(location, crate::opening::remote::of_store(stores))?;
        let place = Place { store, location: location.clone(), shape };
        let run = hash_of(format!("{url}\n{}", task.described));
        let cache = stores.cache.clone().map_or_else(cache_folder, Ok)?;
        let scratch = std::path::absolute(at_home(&cache)).unwrap_or(cache).join(FOLDER).join(&run);
        scratch.parent().map_or(Ok(false), files::make_folder)?;
        // Beside the folder, which goes before it is given back.
        let lock = Lock::take(scratch.with_extension("lock")).map_err(|e| e.at(&url))?;
        files::make_folder(&scratch.join(MADE))?;
        let path = scratch.join(MADE).join(place.shape.name());
        let mut far = Far {
            place,
            run,
            scratch,
            path,
            overwrite: task.overwrite,
            has_picture: false,
            is_made: false,
            _lock: lock,
        };
        far.look(&url, matches!(task.what, What::Corpus(_) | What::Index(_)))?;
        Ok(far)
    }

    // Finds out to whom the output in the store belongs, and what on the local disk continues it.
    fn look(&mut self, url: &str, resumes: bool) -> Result<()> {
        let objects = self.place.objects()?;
        let whose = self.place.whose(&objects, &self.run)?;
        // Records are written again, a corpus continues.
        self.is_made = resumes
            && matches!(whose, Whose::Nobodys | Whose::Ours)
            && files::exists(&self.scratch.join(WHOLE));
        if !self.is_made {
            self.clear()?;
        }
        match whose {
            Whose::Unfinished if !self.overwrite => {
                Err(Error::new(Kind::Exists, "another output is there, unfinished")
                    .at(url)
                    .hint("its run is still writing, or was stopped: write elsewhere, or replace it with @overwrite=true@"))
            }
            Whose::Others => {
                self.has_picture = true;
                self.place.picture(&objects, &self.made())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn made(&self) -> PathBuf {
        self.scratch.join(MADE)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    // Removes what is visible where the output is made. What a killed run continues from is hidden.
    fn clear(&mut self) -> Result<()> {
        self.is_made = false;
        files::remove(&self.scratch.join(WHOLE))?;
        let of_output = self.path.clone();
        for name in files::names(&self.made())?.iter().filter(|name| !name.starts_with('.')) {
            let path = self.made().join(name);
            if path != of_output || !path.is_dir() {
                files::remove(&path)?;
            }
        }
        for name in files::names(&of_output)?.iter().filter(|name| !name.starts_with('.')) {
            files::remove(&of_output.join(name))?;
        }
        files::remove_if_empty(&of_output);
        Ok(())
    }

    pub(super) fn run(
        mut self,
        watch: &dyn Watch,
        make: impl Fn(&Path, bool) -> Result<Report>,
    ) -> Result<Report> {
        // Nothing of what is made here is to be replaced but a picture of what is there.
        let replace = self.overwrite && self.has_picture;
        let mut done = make(&self.path, replace);
        if self.is_made && done.as_ref().is_err_and(|e| e.kind() == Kind::Exists) {
            // The inputs are others by now.
            self.clear()?;
            done = make(&self.path, replace);
        }
        self.finish(done, watch)
    }

    pub(super) fn finish(self, done: Result<Report>, watch: &dyn Watch) -> Result<Report> {
        let report = done.map_err(|e| self.named(e))?;
        let output = self.url_of(&report.output);
        if report.unchanged && self.has_picture {
            return Ok(Report { output, ..report });
        }
        files::write(&self.scratch.join(WHOLE), b"", false)?;
        let made = Made { place: &self.place, folder: self.made(), run: &self.run };
        send(&made, self.overwrite, watch)?;
        self.forget();
        Ok(Report { output, unchanged: false, ..report })
    }

    /// A path where it is made, as the URL that it will have.
    fn url_of(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(self.made()).ok().and_then(Path::to_str) {
            Some(object) => self.place.url_of(object).into(),
            None => path.to_path_buf(),
        }
    }

    // What a person asked for has a URL; a work folder is what it is, a folder of this machine.
    pub(super) fn named(&self, error: Error) -> Error {
        let file = error.place().file.clone().map(PathBuf::from);
        let below = file.as_deref().and_then(|file| file.strip_prefix(self.made()).ok());
        match below.and_then(Path::to_str) {
            Some(object) if !object.is_empty() && !object.split('/').any(|part| part.starts_with('.')) => {
                let url = self.place.url_of(object);
                error.at(url)
            }
            _ => error,
        }
    }

    fn forget(&self) {
        // A folder that stays is no harm: the next run with this output begins with it.
        if let Err(e) = files::remove(&self.scratch) {
            log::info!("what was sent stays: {e:#}");
        }
    }

    // Whether a later run continues from what is there.
    fn is_worth_keeping(&self) -> bool {
        let hidden = |folder: &Path| {
            files::names(folder).is_ok_and(|names| names.iter().any(|name| name.contains(".tmp-")))
        };
        files::exists(&self.scratch.join(WHOLE)) || hidden(&self.made()) || hidden(&self.path)
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        if !self.is_worth_keeping() {
            self.forget();
        }
    }
}
