//! Preparation in tasks, over any number of machines: `plan` a job, `run` its tasks anywhere, `merge` them.
//!
//! ```
//! # use windrow::prep::{Converting, Prep, plan_convert};
//! # let dir = tempfile::tempdir().unwrap();
//! # let (lines, out) = (dir.path().join("a.jsonl"), dir.path().join("parts"));
//! # std::fs::write(&lines, "{\"sequence\": [1.0, 2.0]}\n{\"sequence\": [3.0]}\n").unwrap();
//! let how = Converting { to: "shards".to_string(), ..Converting::default() };
//! let job = plan_convert(&lines, &out, &how, 16, &Default::default())?;
//! // On each of the machines:
//! let prep = Prep::open(&job, &Default::default())?;
//! for task in prep.tasks_of(0, 1, false) {
//!     prep.run(task, None, &())?;
//! }
//! // Once, in the end:
//! assert_eq!(prep.merge(&())?.records, 2);
//! # Ok::<(), windrow::Error>(())
//! ```

#[cfg(feature = "remote")]
mod bucket;
mod converting;
#[cfg_attr(not(feature = "text"), path = "no_encoder.rs")]
mod encoder;
#[cfg(feature = "dac")]
mod encoding;
mod how;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde_json::json;
use windrow_core::format::write::WriteOptions;
use windrow_core::format::{Options, in_parts};
use windrow_core::output::{files, hash_of};
use windrow_core::sampler::Permutation;
use windrow_core::store::{Local, Store, at_home, is_url, key};
use windrow_core::{Error, Kind, Result};
use windrow_prepare::prep::{
    CONVERT, Conversion, ConvertWorker, Folder, INDEX, IndexWorker, Place, TOKENIZE, Tasks, Worker,
};
use windrow_prepare::{Report, Watch};

pub use self::converting::Converting;
#[cfg(feature = "dac")]
pub use self::encoding::Encoding;
pub use self::how::{Chatting, Encoder, TOKENIZING, Tokenizing};
use crate::opening::formats::formats;
use crate::opening::remote::ReadOnce;
use crate::output::{Output, Task, What};
use crate::prepare::{IndexOptions, TokenizeOptions};

#[cfg(feature = "dac")]
use windrow_prepare::prep::{ENCODE, EncodeWorker};
pub use windrow_prepare::prep::{Failed, Job, JobInput, Status, TASK_BYTES};

/// Plans to tokenise into the folder `out`, a path or URL, and writes the job there: its path, or URL. The same job again is the
/// same one; nothing is read but sizes.
///
/// # Errors
/// As [`tokenize`](crate::prepare::tokenize) before anything is read; `Exists` when the folder holds another job or data set.
pub fn plan(
    inputs: &[PathBuf],
    out: &Path,
    how: &Tokenizing,
    task_bytes: u64,
    stores: &Options,
) -> Result<PathBuf> {
    let (encoder, options) = how.make()?;
    let (read, settings) = (ReadOnce::new(stores), how.to_json(options.remainder));
    let tasks = Tasks { out, bytes: task_bytes, settings };
    let job =
        windrow_prepare::prep::plan_tokenize(formats(), &read, inputs, encoder.as_ref(), &options, tasks)?;
    keep(&job, stores)
}

/// Plans to index the lines below the folder `base`; parts, and the job, go into the folder `out`.
///
/// # Errors
/// As [`index`](crate::prepare::index) before anything is read; `Unsupported` for compressed files; `Exists`.
pub fn plan_index(
    base: &Path,
    out: &Path,
    options: &IndexOptions,
    task_bytes: u64,
    stores: &Options,
) -> Result<PathBuf> {
    let settings = json!({ "index_folder": options.index_folder });
    let (read, tasks) = (ReadOnce::new(stores), Tasks { out, bytes: task_bytes, settings });
    let job = windrow_prepare::prep::plan_index(formats(), &read, &at_home(base), options, tasks)?;
    keep(&job, stores)
}

/// Plans to convert the records at a path, URL or pattern; parts, and the job, go into the folder `out`.
///
/// # Errors
/// As [`open_with`](crate::open_with); `Config` for records that are not numbers, for arrays beside them, and for what the format
/// cannot hold; `Exists`.
pub fn plan_convert(
    input: &Path,
    out: &Path,
    how: &Converting,
    task_bytes: u64,
    stores: &Options,
) -> Result<PathBuf> {
    let (made, settings) = (how.make(input, stores)?, how.to_json());
    let tasks = Tasks { out, bytes: task_bytes, settings };
    let job = windrow_prepare::prep::plan_convert(&made.conversion(), input, tasks)?;
    keep(&job, stores)
}

/// Plans to encode the sound files of a folder, in tasks of about `task_bytes` of them; parts, and the job, go into the folder `out`.
///
/// # Errors
/// As [`sound_files`](crate::sound::sound_files) and [`Codec::open`](crate::dac::Codec::open); `Config` for options that cannot be;
/// `Unsupported` for sound at a URL; `Exists`.
#[cfg(feature = "dac")]
pub fn plan_encode(
    sound: &Path,
    out: &Path,
    how: &Encoding,
    task_bytes: u64,
    stores: &Options,
) -> Result<PathBuf> {
    let encoding::Planned { folder, files, manifest } = how.planned(sound)?;
    let tasks = Tasks { out, bytes: task_bytes, settings: how.to_json() };
    let job = windrow_prepare::prep::plan_encode(&folder, &files, manifest, tasks)?;
    keep(&job, stores)
}

// Writes the job where its output goes; where that is.
fn keep(job: &Job, stores: &Options) -> Result<PathBuf> {
    let (layout, out) = (in_parts(formats())?, PathBuf::from(&job.out));
    let place = place(&out, &job.hash, None, true, stores)?;
    let store = place.store();
    let name = layout.job(&job.hash);
    let there = match store.walk_again("") {
        Ok(there) => there,
        Err(e) if e.kind() == Kind::NotFound && !e.message().contains("NoSuchBucket") => Vec::new(),
        Err(e) => return Err(e),
    };
    let is_there = there.iter().any(|entry| entry.key == name);
    // What decides no byte may be another now, as the share of records that may be left out.
    if is_there && Job::read(store.open(&name)?.as_ref()).is_ok_and(|found| found.settings != job.settings) {
        place.replace(&name, job.to_text().as_bytes())?;
        place.settle()?;
    }
    if !is_there {
        let is_job = |key: &str| key::folder_of(key) == layout.jobs();
        let files = || there.iter().filter(|entry| !entry.is_folder);
        if let Some(other) = files().find(|entry| is_job(&entry.key)).or_else(|| files().next()) {
            let is_job = is_job(&other.key);
            let what =
                if is_job { "the folder holds another job" } else { "the folder holds something else" };
            return Err(Error::new(Kind::Exists, what)
                .at(store.display(&other.key))
                .hint("prepare into a folder of its own; to give the other job up, remove its folder"));
        }
        let draft = place.draft(&name)?;
        files::write(&draft, job.to_text().as_bytes(), true)?;
        place.show(&draft, &name)?;
        place.settle()?;
    }
    Ok(out.join(name))
}

/// A job, as a worker has it.
pub struct Prep {
    job: Job,
    place: Box<dyn Place>,
    stores: Options,
    made: OnceLock<Made>,
}

/// What the tasks of a job need, made once.
enum Made {
    Tokenize(Box<(Encoder, TokenizeOptions)>),
    Index,
    Convert(Box<converting::Made>),
    #[cfg(feature = "dac")]
    Encode(Box<encoding::Made>),
}

impl Prep {
    /// Opens a job, a path or URL; `stores` says how stores are asked.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` for something else, or a job that was changed.
    pub fn open(path: &Path, stores: &Options) -> Result<Prep> {
        Prep::open_with(path, None, true, stores)
    }

    /// Opens a job with more options: of an output in a store, parts are made in the folder `scratch` before they are sent. With
    /// `fsync` each is synced to the disk before it is shown.
    ///
    /// # Errors
    /// As [`Prep::open`].
    pub fn open_with(path: &Path, scratch: Option<&Path>, fsync: bool, stores: &Options) -> Result<Prep> {
        use windrow_prepare::Stores as _;
        let job = if is_url(path) {
            let (store, key) = ReadOnce::new(stores).at(path)?;
            Job::read(store.open(&key)?.as_ref())?
        } else {
            Job::read(Local::new(at_home(path)).open("")?.as_ref())?
        };
        let place = place(Path::new(&job.out), &job.hash, scratch, fsync, stores)?;
        Ok(Prep { job, place, stores: stores.clone(), made: OnceLock::new() })
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Tasks that worker `rank` of `of` runs, in order: every `of`-th. With `steal` all others follow, in an order of its own:
    /// what stragglers and dead workers leave.
    pub fn tasks_of(&self, rank: u64, of: u64, steal: bool) -> Vec<u64> {
        let tasks = self.job.tasks;
        let own = (rank..tasks).step_by(usize::try_from(of.max(1)).unwrap_or(usize::MAX));
        let mut all: Vec<u64> = own.collect();
        if steal {
            let seed = u64::from_str_radix(&hash_of(format!("{} {rank}", self.job.hash)), 16).unwrap_or(rank);
            let order = Permutation::new(seed, tasks);
            all.extend((0..tasks).map(|i| order.apply(i)).filter(|task| task % of.max(1) != rank));
        }
        all
    }

    /// That this machine has what the job was planned with.
    ///
    /// # Errors
    /// `NotFound` without the tokenizer or the weights; `Mismatch` for others, and for another kind of device.
    pub fn check(&self) -> Result<()> {
        match self.made()? {
            Made::Tokenize(made) => self.job.check_tokenizer(made.0.lock().as_ref()),
            Made::Index | Made::Convert(_) => Ok(()),
            #[cfg(feature = "dac")]
            Made::Encode(made) => self.job.check(&made.here),
        }
    }

    /// Runs a task on `threads` threads, all cores by default; whether it had to.
    ///
    /// # Errors
    /// `Stale` for another input; `Mismatch` for another tokenizer, or other weights, and when another run of this task gave other
    /// bytes; as [`tokenize`](crate::prepare::tokenize).
    pub fn run(&self, task: u64, threads: Option<usize>, watch: &dyn Watch) -> Result<bool> {
        let (table, place, read) = (formats(), self.place.as_ref(), ReadOnce::new(&self.stores));
        match self.made()? {
            Made::Index => IndexWorker { table, stores: &read, place }.run(&self.job, task, watch),
            Made::Convert(made) => self.converts(made.conversion()).run(&self.job, task, watch),
            #[cfg(feature = "dac")]
            Made::Encode(made) => {
                let encode = made.tracks(threads);
                EncodeWorker { table, place, here: &made.here, encode: &encode }.run(&self.job, task, watch)
            }
            Made::Tokenize(made) => {
                let (encode, options) =
                    (made.0.as_ref(), TokenizeOptions { num_threads: threads, ..made.1.clone() });
                let worker = Worker { table, stores: &read, place, encode, options: &options };
                worker.run(&self.job, task, watch)
            }
        }
    }

    fn converts<'a>(&'a self, conversion: Conversion<'a>) -> ConvertWorker<'a> {
        ConvertWorker { table: formats(), place: self.place.as_ref(), conversion }
    }

    /// What of it is done.
    ///
    /// # Errors
    /// `Corrupt`, `Interrupted`, `Io`.
    pub fn status(&self, watch: &dyn Watch) -> Result<Status> {
        windrow_prepare::prep::status(formats(), self.place.as_ref(), &self.job, watch)
    }

    /// Makes the data set visible, when all tasks are done.
    ///
    /// # Errors
    /// `Stale` when they are not; `Corrupt` for a part that contradicts itself, and where too many records were left out.
    pub fn merge(&self, watch: &dyn Watch) -> Result<Report> {
        let max_skipped = match self.job.task.as_str() {
            TOKENIZE => settings::<Tokenizing>(&self.job)?.max_skipped,
            _ => None,
        };
        windrow_prepare::prep::merge(formats(), self.place.as_ref(), &self.job, max_skipped, watch)
    }

    /// Writes to `out`, a path or URL, the files that one run of `tokenize`, `convert` or `encode` would have written, out of the
    /// parts; of an index to the folder that holds the lines.
    ///
    /// # Errors
    /// `Stale` when a task is not done; `Exists`; `Corrupt` for a damaged part.
    pub fn join(&self, out: &Path, overwrite: bool, watch: &dyn Watch) -> Result<Report> {
        let (encoder, options) = match self.made()? {
            Made::Index => return self.join_index(out, overwrite, watch),
            Made::Convert(made) => return self.join_convert(made, out, overwrite, watch),
            #[cfg(feature = "dac")]
            Made::Encode(made) => return self.join_encode(made, out, overwrite, watch),
            Made::Tokenize(made) => (made.0.as_ref(), &made.1),
        };
        let make = |out: &Path, overwrite: bool| {
            let options = TokenizeOptions { overwrite, ..options.clone() };
            let (place, job) = (self.place.as_ref(), &self.job);
            windrow_prepare::prep::join(formats(), place, job, out, encoder, &options, watch)
        };
        let task = Task {
            what: What::Corpus(options.to.as_ref()),
            described: format!("join {}", self.job.hash),
            overwrite,
        };
        Output::run(out, &task, &self.stores, watch, make)
    }

    fn join_convert(
        &self,
        made: &converting::Made,
        out: &Path,
        overwrite: bool,
        watch: &dyn Watch,
    ) -> Result<Report> {
        let options = WriteOptions { overwrite, ..made.options.clone() };
        let output = Output::of_records(out, made.format.as_ref(), &options, &self.stores)?;
        let worker = self.converts(Conversion { options: &options, ..made.conversion() });
        let done = windrow_prepare::prep::join_convert(&worker, &self.job, output.path(), watch);
        output.finish(done, watch)
    }

    #[cfg(feature = "dac")]
    fn join_encode(
        &self,
        made: &encoding::Made,
        out: &Path,
        overwrite: bool,
        watch: &dyn Watch,
    ) -> Result<Report> {
        let encode = made.tracks(None);
        let worker =
            EncodeWorker { table: formats(), place: self.place.as_ref(), here: &made.here, encode: &encode };
        let encoded = windrow_prepare::prep::encoded(&worker, &self.job, watch)?;
        let options = made.writing(overwrite);
        let output = Output::of_records(out, options.0.to.as_ref(), &options.1, &self.stores)?;
        let done = made.join(&self.job, encoded, output.path(), &options.0, watch);
        output.finish(done, watch)
    }

    fn join_index(&self, out: &Path, overwrite: bool, watch: &dyn Watch) -> Result<Report> {
        let folder = self.job.settings["index_folder"].as_str().unwrap_or(INDEX).to_string();
        let make = |base: &Path, overwrite: bool| {
            let options = IndexOptions { index_folder: folder.clone(), overwrite, ..IndexOptions::default() };
            let (place, job) = (self.place.as_ref(), &self.job);
            windrow_prepare::prep::join_index(formats(), place, job, base, &options, watch)
        };
        let task =
            Task { what: What::Index(&folder), described: format!("join {}", self.job.hash), overwrite };
        Output::run(out, &task, &self.stores, watch, make)
    }

    /// Removes what killed attempts left; how many files. No worker may be running.
    ///
    /// # Errors
    /// `Io`.
    pub fn clean(&self) -> Result<u64> {
        windrow_prepare::prep::clean(self.place.as_ref())
    }

    fn made(&self) -> Result<&Made> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = match (self.job.task.as_str(), self.job.inputs.first()) {
            (TOKENIZE, _) => Made::Tokenize(Box::new(settings::<Tokenizing>(&self.job)?.make()?)),
            (INDEX, _) => Made::Index,
            (CONVERT, Some(input)) => {
                Made::Convert(Box::new(settings::<Converting>(&self.job)?.make(&input.path, &self.stores)?))
            }
            #[cfg(feature = "dac")]
            (ENCODE, _) => Made::Encode(Box::new(settings::<Encoding>(&self.job)?.make(&self.job)?)),
            (task, _) => {
                let what = format!("a job of task {task:?}, which this windrow does not run");
                return Err(Error::unsupported(what).field("task"));
            }
        };
        Ok(self.made.get_or_init(|| made))
    }
}

fn place(
    out: &Path,
    hash: &str,
    scratch: Option<&Path>,
    fsync: bool,
    stores: &Options,
) -> Result<Box<dyn Place>> {
    let layout = in_parts(formats())?;
    #[cfg(feature = "remote")]
    if let Some(location) = crate::opening::remote::location(out)? {
        return Ok(Box::new(bucket::Bucket::new(&location, hash, scratch, stores)?));
    }
    let _ = (hash, scratch, stores);
    if is_url(out) {
        crate::opening::remote::Stores::default().place(out, stores)?;
    }
    Ok(Box::new(Folder::new(out, &[layout.folder(), layout.jobs()], fsync)))
}

// How the job prepares.
fn settings<T: DeserializeOwned>(job: &Job) -> Result<T> {
    serde_json::from_value(job.settings.clone()).map_err(|e| {
        Error::corrupt("the settings of the job cannot be understood").field("settings").caused_by(e)
    })
}
