//! Where a task writes: a path of this machine, or a URL, for which the data set is made here first and becomes visible there
//! when all of it is sent.

#[cfg(feature = "remote")]
mod far;
pub(crate) mod manifest;
pub mod one_file;
#[cfg(feature = "remote")]
mod send;
#[cfg(feature = "remote")]
mod shape;
#[cfg(feature = "remote")]
mod there;

use std::path::{Path, PathBuf};

use windrow_core::format::Options;
use windrow_core::format::write::{WriteFormat, WriteOptions};
use windrow_core::store::at_home;
use windrow_core::{Error, Result};
use windrow_prepare::{Report, Watch};

#[cfg(feature = "remote")]
use self::{far::Far, shape::Shape};

/// Where records are written: what [`Writer`](crate::prepare::Writer) and the like write to is [`Output::path`], and
/// [`Output::finish`] brings it to where it was to be. Of a path of this machine these are one place.
///
/// ```
/// # use windrow::format::{Options, WriteOptions};
/// # use windrow::prepare::{Output, convert};
/// # let dir = tempfile::tempdir().unwrap();
/// # let (tokens, out) = (dir.path().join("tokens.bin"), dir.path().join("tokens.jsonl"));
/// # windrow::prepare::dummy(&tokens, 1000, 100, 0, false)?;
/// let (data, to) = (windrow::open(&tokens)?, windrow::writer("jsonl", &Default::default())?);
/// let options = WriteOptions::default();
/// let output = Output::of_records(&out, to.as_ref(), &options, &Options::default())?;
/// let done = convert(data.source().as_ref(), output.path(), to.as_ref(), &options, &());
/// assert_eq!(output.finish(done, &())?.records, 1);
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Output {
    given: PathBuf,
    #[cfg(feature = "remote")]
    far: Option<Far>,
}

/// What a task writes.
pub(crate) struct Task<'a> {
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "of URLs"))]
    pub(crate) what: What<'a>,
    /// What decides it, in words: another output never continues what this one left.
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "of URLs"))]
    pub(crate) described: String,
    pub(crate) overwrite: bool,
}

/// What an output is.
#[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "of URLs"))]
pub(crate) enum What<'a> {
    /// Records, where the format says.
    Records(&'a dyn WriteFormat),
    /// A corpus, where the format says.
    Corpus(&'a dyn WriteFormat),
    /// An index in the folder of this name, beside its lines.
    Index(&'a str),
}

impl Output {
    /// The output of a [`Writer`](crate::prepare::Writer), [`convert`](crate::prepare::convert()) and the like at a path or URL;
    /// `stores` says how a store is asked.
    ///
    /// # Errors
    /// `Unsupported` for a URL of a store that takes nothing, and for a format that lies on local disks only; `Exists`
    /// when another run is writing there or left something unfinished; `Io`.
    pub fn of_records(
        out: &Path,
        to: &dyn WriteFormat,
        options: &WriteOptions,
        stores: &Options,
    ) -> Result<Output> {
        let (dtype, eos, vocab_size) = (options.dtype, options.eos, options.vocab_size);
        let what = What::Records(to);
        let described = format!("write {} {:?} {dtype:?} {eos:?} {vocab_size:?}", to.name(), to.describe());
        Output::begin(out, &Task { what, described, overwrite: options.overwrite }, stores)
    }

    #[cfg(feature = "remote")]
    pub(crate) fn begin(out: &Path, task: &Task<'_>, stores: &Options) -> Result<Output> {
        let far = crate::opening::remote::location(out)?.map(|location| {
            location.check_writable(&out.to_string_lossy())?;
            let shape = Shape::of(&task.what, &location)?;
            Far::begin(&location, shape, task, stores)
        });
        Ok(Output { given: at_home(out).into_owned(), far: far.transpose()? })
    }

    /// This build writes to paths of this machine.
    #[cfg(not(feature = "remote"))]
    pub(crate) fn begin(out: &Path, _task: &Task<'_>, stores: &Options) -> Result<Output> {
        crate::opening::remote::Stores::default().place(out, stores)?;
        Ok(Output { given: at_home(out).into_owned() })
    }

    /// Runs a task that is given where to write and whether to replace what is there, and brings its output to its place.
    pub(crate) fn run(
        out: &Path,
        task: &Task<'_>,
        stores: &Options,
        watch: &dyn Watch,
        make: impl Fn(&Path, bool) -> Result<Report>,
    ) -> Result<Report> {
        let output = Output::begin(out, task, stores)?;
        #[cfg(feature = "remote")]
        if let Some(far) = output.far {
            return far.run(watch, make);
        }
        let _ = watch;
        make(&output.given, task.overwrite)
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        #[cfg(feature = "remote")]
        if let Some(far) = &self.far {
            return far.path();
        }
        &self.given
    }

    /// An error of writing, which names the place that was given where it names the folder in its place.
    #[must_use]
    pub fn named(&self, error: Error) -> Error {
        #[cfg(feature = "remote")]
        if let Some(far) = &self.far {
            return far.named(error);
        }
        error
    }

    /// Brings what was written to its place; an error of writing names that place, and leaves nothing there.
    ///
    /// # Errors
    /// That of `done`; `Exists` where something came there meanwhile; `Interrupted`; `Io`: the same task, run again, sends
    /// what is not there yet.
    pub fn finish(self, done: Result<Report>, watch: &dyn Watch) -> Result<Report> {
        #[cfg(feature = "remote")]
        if let Some(far) = self.far {
            return far.finish(done, watch);
        }
        let _ = watch;
        done
    }
}
