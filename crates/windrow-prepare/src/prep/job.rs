//! A job: what is prepared from what, split into tasks by arithmetic alone.

use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windrow_core::manifest::{FileRow, Manifest, TokenizerLock};
use windrow_core::output::hash_of;
use windrow_core::store::{Object, at_home, is_url, read_small, without_secrets};
use windrow_core::{DType, Error, Result};

/// The version of jobs and parts.
const VERSION: u32 = 1;
/// A longer job is not read.
const MOST_BYTES: u64 = 256 << 20;
/// The task that makes token IDs of text.
pub const TOKENIZE: &str = "tokenize";
/// The task that finds lines.
pub const INDEX: &str = "index";
/// The task that copies records of numbers.
pub const CONVERT: &str = "convert";
/// The task that makes audio codes of sound.
pub const ENCODE: &str = "encode";
/// Input bytes of a task by default.
pub const TASK_BYTES: u64 = 256 << 20;

/// What is prepared from what. Everything that decides bytes is in its hash, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Version of this layout: 1.
    pub version: u32,
    /// What its tasks do: `tokenize`, `index`, `convert`, `encode`.
    pub task: String,
    /// What they read, in order.
    pub inputs: Vec<JobInput>,
    /// The options that decide what is written, as the manifest keeps them.
    pub options: Map<String, Value>,
    /// The tokenizer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerLock>,
    /// dtype of a stored value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// IDs are below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_size: Option<u64>,
    /// The ID that ends a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eos: Option<i64>,
    /// Bytes of an input that a task reads.
    pub task_bytes: u64,
    /// Number of tasks.
    pub tasks: u64,
    /// The folder of the output: a path or URL.
    pub out: String,
    /// How a worker makes the encoder again; its lock decides, not this.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub settings: Value,
    /// Version of the windrow that planned it.
    pub windrow: String,
    /// XXH3-64 of what decides bytes, 16 hexadecimal digits.
    pub hash: String,
}

/// An input of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobInput {
    /// Its name among the inputs, size, and time or version.
    #[serde(flatten)]
    pub row: FileRow,
    /// Where it lies: a path or URL.
    pub path: PathBuf,
    /// Number of its first task.
    pub first_task: u64,
    /// Number of its tasks.
    pub tasks: u64,
    /// Of an input whose records are rows, or files: its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRow>,
    /// Of such an input, the split that is read, unless it is a folder of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
}

impl JobInput {
    /// Whether its records are rows, not lines.
    pub fn is_rows(&self) -> bool {
        !self.files.is_empty()
    }

    /// What the manifest keeps of it.
    pub(super) fn rows(&self) -> Vec<FileRow> {
        if self.is_rows() { self.files.clone() } else { vec![self.row.clone()] }
    }
}

/// How a job is split, and where it goes.
pub struct Tasks<'a> {
    /// The folder of the parts, and of the job.
    pub out: &'a Path,
    /// Bytes of input of a task, about.
    pub bytes: u64,
    /// What the workers are made of.
    pub settings: Value,
}

impl Tasks<'_> {
    pub(super) fn check(&self) -> Result<()> {
        match self.bytes {
            0 => Err(Error::config("task_bytes is 0; expected at least 1").field("task_bytes")),
            _ => Ok(()),
        }
    }
}

impl Job {
    /// What is to be done with these inputs, of which each has some tasks; `manifest` says what decides the parts, and `settings` is
    /// for the workers.
    pub(super) fn of(task: &str, inputs: Vec<JobInput>, manifest: Manifest, tasks: Tasks<'_>) -> Job {
        let Tasks { out, bytes, settings } = tasks;
        let job = Job {
            task: task.to_string(),
            inputs,
            options: manifest.options,
            tokenizer: manifest.tokenizer,
            dtype: manifest.dtype,
            vocab_size: manifest.vocab_size,
            eos: manifest.eos,
            task_bytes: bytes,
            out: if is_url(out) { out.display().to_string() } else { absolute(out).display().to_string() },
            settings,
            ..Job::default()
        };
        job.numbered()
    }

    // Numbers the tasks of its inputs, and takes the hash.
    fn numbered(mut self) -> Job {
        let mut first = 0;
        for input in &mut self.inputs {
            input.first_task = first;
            first += input.tasks;
        }
        self.tasks = first;
        self.version = VERSION;
        self.windrow = env!("CARGO_PKG_VERSION").to_string();
        self.hash = self.hash_of_itself();
        self
    }

    fn hash_of_itself(&self) -> String {
        let input = |input: &JobInput| {
            let rows: Vec<Value> = (std::iter::once(&input.row).chain(&input.files))
                .map(|row| json!([row.name, row.size, row.modified_ns, row.etag]))
                .collect();
            json!([rows, input.split])
        };
        let inputs: Vec<Value> = self.inputs.iter().map(input).collect();
        let decides = json!({
            "version": self.version,
            "task": self.task,
            "inputs": inputs,
            "options": self.options,
            "dtype": self.dtype,
            "vocab_size": self.vocab_size,
            "eos": self.eos,
            "task_bytes": self.task_bytes,
        });
        hash_of(decides.to_string())
    }

    /// Reads one.
    ///
    /// # Errors
    /// `Corrupt` when it is not one, or was changed.
    pub fn read(object: &dyn Object) -> Result<Job> {
        let corrupt = |what: &str| {
            Error::corrupt(what)
                .at(object.name())
                .hint("plan it again: `windrow prep plan` gives the same job")
        };
        let text = read_small(object, MOST_BYTES)?;
        let job: Job = serde_json::from_slice(&text)
            .map_err(|e| corrupt("the job cannot be understood").caused_by(e))?;
        if job.version != VERSION {
            return Err(Error::unsupported(format!(
                "a job of version {}; this windrow reads version {VERSION}",
                job.version
            ))
            .at(object.name())
            .field("version")
            .hint(format!("it was planned by windrow {}", job.windrow)));
        }
        let mut behind = 0;
        for input in &job.inputs {
            if input.first_task != behind || input.tasks == 0 {
                return Err(corrupt("its tasks do not follow one another").field("inputs"));
            }
            behind =
                behind.checked_add(input.tasks).ok_or_else(|| corrupt("too many tasks").field("inputs"))?;
        }
        if behind == job.tasks && job.hash == job.hash_of_itself() {
            Ok(job)
        } else {
            Err(corrupt("the job was changed after it was planned: its hash is another one").field("hash"))
        }
    }

    /// The text to write.
    pub fn to_text(&self) -> String {
        // Serialising plain structs and string-keyed maps cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The input that a task reads, its number, and the number of the task in it.
    ///
    /// # Errors
    /// `Config` for a task that the job does not have.
    pub(super) fn input_of(&self, task: u64) -> Result<(usize, &JobInput, u64)> {
        let behind = self.inputs.partition_point(|input| input.first_task <= task);
        match behind.checked_sub(1).and_then(|i| Some((i, self.inputs.get(i)?))) {
            Some((i, input)) if task < self.tasks => Ok((i, input, task - input.first_task)),
            _ => Err(Error::config(format!(
                "task {task} of a job with tasks 0 to {}",
                self.tasks.saturating_sub(1)
            ))
            .field("task")),
        }
    }

    /// The bytes of a plain file of lines that a task is about.
    pub(super) fn bytes_of(&self, input: &JobInput, number: u64) -> Range<u64> {
        let size = input.row.size;
        let at = |number: u64| number.saturating_mul(self.task_bytes).min(size);
        // One task reads all of a compressed file.
        at(number)..if number + 1 == input.tasks { size } else { at(number + 1) }
    }

    /// The records of an input of rows that a task is about.
    pub(super) fn records_of(input: &JobInput, number: u64, records: u64) -> Range<u64> {
        let at = |number: u64| {
            let at = u128::from(records) * u128::from(number) / u128::from(input.tasks.max(1));
            u64::try_from(at).unwrap_or(records)
        };
        at(number)..at(number + 1)
    }

    /// What decides the output, as a manifest without findings.
    pub(super) fn manifest(&self, format: &str) -> Manifest {
        let mut manifest = Manifest::new(format);
        manifest.dtype = self.dtype;
        manifest.vocab_size = self.vocab_size;
        manifest.eos = self.eos;
        manifest.tokenizer = self.tokenizer.clone();
        manifest.inputs = self.inputs.iter().flat_map(JobInput::rows).collect();
        manifest.options = self.options.clone();
        manifest
    }

    /// That a worker's tokenizer is the one of the job.
    ///
    /// # Errors
    /// `Mismatch` naming both.
    pub fn check_tokenizer(&self, found: Option<&TokenizerLock>) -> Result<()> {
        let named = |lock: Option<&TokenizerLock>| {
            lock.map_or("none".to_string(), |lock| format!("{} ({})", lock.name, lock.hash))
        };
        if TokenizerLock::are_same(self.tokenizer.as_ref(), found) {
            Ok(())
        } else {
            Err(differs("the tokenizer", &named(self.tokenizer.as_ref()), &named(found)))
        }
    }

    /// That a worker's tokenizer and options are those of the job.
    ///
    /// # Errors
    /// `Mismatch` naming the first that differs.
    pub fn check(&self, found: &Manifest) -> Result<()> {
        self.check_tokenizer(found.tokenizer.as_ref())?;
        let names =
            self.options.keys().chain(found.options.keys().filter(|k| !self.options.contains_key(*k)));
        for name in names {
            let of = |map: &Map<String, Value>| map.get(name).cloned().unwrap_or_default();
            if of(&self.options) != of(&found.options) {
                return Err(differs(&format!("option {name}"), &of(&self.options), &of(&found.options)));
            }
        }
        if (self.dtype, self.vocab_size, self.eos) == (found.dtype, found.vocab_size, found.eos) {
            Ok(())
        } else {
            Err(differs(
                "dtype, vocabulary and EOS token",
                &json!([self.dtype, self.vocab_size, self.eos]),
                &json!([found.dtype, found.vocab_size, found.eos]),
            ))
        }
    }
}

fn differs(what: &str, planned: &dyn Display, here: &dyn Display) -> Error {
    Error::mismatch(format!("{what} is {here} here, the job was planned with {planned}"))
        .hint("every worker needs what the job was planned with: its tokenizer, or weights and device, and its windrow")
}

/// Tasks of an input of this many bytes.
pub(super) fn tasks_of(size: u64, task_bytes: u64) -> u64 {
    size.div_ceil(task_bytes.max(1)).max(1)
}

/// That a URL holds no query and no password: whoever runs a task, and whoever may read the folder, reads the job.
///
/// # Errors
/// `Unsupported`.
pub(super) fn refuse_secrets(path: &Path) -> Result<()> {
    if without_secrets(&path.to_string_lossy()).len() < path.as_os_str().len() && is_url(path) {
        Err(Error::unsupported("a URL with a query or a password is not written into a job")
            .at(path)
            .hint("give what the server asks for as headers (store_options), or copy the data to a path"))
    } else {
        Ok(())
    }
}

/// A path for a job, which is read on other machines and from other folders.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(at_home(path)).unwrap_or_else(|_| path.to_path_buf())
}
