//! Holds every claim of a manifest and of an index against the bytes.

mod claims;
mod codes;
mod folder;
mod lines;
mod rows;
mod series;

use crate::manifest::MANIFEST_FILE;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::claims::SumsAt;
use super::{Progress, Watch, check};
use crate::error::{Error, Kind, Result};
use crate::format::{self, FORMATS, Format, Jsonl, Probe, Table};
use crate::manifest::CHECKSUMS_FILE;
use crate::manifest::Manifest;
use crate::output::Site;
use crate::output::files;
use crate::store::{Compression, Local, Store, expanded, plain_name};

/// How to verify.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerifyOptions {
    /// Name of the index folder.
    pub index_folder: String,
    /// Finishes or removes what stopped runs left behind, unless somebody is writing there.
    pub gc: bool,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        VerifyOptions { index_folder: format::INDEX_FOLDER.to_string(), gc: false }
    }
}

/// A claim that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// The record, where it is one record's problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// What was looked at: `size`, `xxh3`, `records`, `row`, `id`, `JSON`, …
    pub what: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// What was looked at and what was wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Data files that were read.
    pub checked_files: u64,
    /// Bytes that were read.
    pub checked_bytes: u64,
    /// Records that were looked at.
    pub checked_records: u64,
    /// Claims that do not hold, the first thousand of them.
    pub problems: Vec<Problem>,
    /// How many there are in all.
    pub n_problems: u64,
    /// What could not be checked, what was left behind, what was tidied up.
    pub notes: Vec<String>,
}

impl Findings {
    fn problem(&mut self, file: &str, record: Option<u64>, what: &str, expected: String, found: String) {
        const MOST: u64 = 1_000;
        if self.n_problems < MOST {
            let (file, what) = (file.to_string(), what.to_string());
            self.problems.push(Problem { file, record, what, expected, found });
        }
        self.n_problems += 1;
    }

    // An error about the data is a finding; one about the run is not.
    fn take<T>(&mut self, file: &str, what: &str, expected: &str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(e) if is_of_the_run(&e) => Err(e),
            Err(e) => {
                self.problem(file, None, what, expected.to_string(), e.message().to_string());
                Ok(None)
            }
        }
    }
}

// Stopped, or refused by the system, as when too many files are open: nothing is known of the data then.
fn is_of_the_run(error: &Error) -> bool {
    matches!(error.kind(), Kind::Interrupted | Kind::Io | Kind::Memory)
}

/// Checks the file at `path`, or every data set in and below the folder: sizes, hashes and counts against the manifest, every row of an index against
/// the data files, every id against the vocabulary, every JSON record for being JSON.
///
/// What is wrong with the data stands in [`Findings::problems`]; what cannot be checked, such as values of raw tokens
/// without a manifest, in [`Findings::notes`].
///
/// # Errors
/// `NotFound` when nothing lies there; `Unrecognised` when what lies there is no data; `Interrupted`; `Io`. Bad data is
/// no error.
pub fn verify(path: &Path, options: &VerifyOptions, watch: &dyn Watch) -> Result<Findings> {
    verify_by(FORMATS, path, options, watch)
}

/// The same, by the formats of this table.
///
/// # Errors
/// As [`verify`].
pub fn verify_by(table: Table, path: &Path, options: &VerifyOptions, watch: &dyn Watch) -> Result<Findings> {
    let path = std::path::absolute(path).map_err(|e| Error::io("find it", path, e))?;
    let is_folder = Local::new(&path).entry("")?.is_folder;
    let mut work = Work {
        table,
        findings: Findings::default(),
        seen: BTreeSet::new(),
        tried: BTreeSet::new(),
        told: BTreeSet::new(),
        now: Progress::default(),
        watch,
    };
    if !is_folder {
        // What is no regular file is no data, and nothing can be said of it.
        Local::new(&path).open("")?;
        work.file(&path, options)?;
        return Ok(work.findings);
    }
    let is_index = files::size(&path.join(format::LOCATIONS)).is_some();
    match (path.parent(), path.file_name().and_then(|n| n.to_str())) {
        (Some(base), Some(name)) if is_index => {
            let options = VerifyOptions { index_folder: name.to_string(), ..options.clone() };
            work.index(base, &options)?;
        }
        _ => work.folder(&path, options)?,
    }
    Ok(work.findings)
}

struct Work<'a> {
    table: Table,
    findings: Findings,
    /// Data files that were read record by record.
    seen: BTreeSet<String>,
    /// What was opened by a format, or could not be.
    tried: BTreeSet<String>,
    /// Files that a manifest names.
    told: BTreeSet<PathBuf>,
    now: Progress,
    watch: &'a dyn Watch,
}

impl Work<'_> {
    fn file(&mut self, path: &Path, options: &VerifyOptions) -> Result<()> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
            return Err(Error::config("expected the path of a file").at(path));
        };
        self.leftovers(folder, Some(name), options.gc)?;
        let before = self.findings.n_problems;
        // What stands beside raw ids that were compressed since speaks of them as they were.
        let plain = plain_name(name);
        let is_ids = plain != name && plain.ends_with(".bin");
        let told = if is_ids && !files::exists(&folder.join(plain)) { plain } else { name };
        let own = folder.join(format!("{told}.{}", MANIFEST_FILE));
        if files::exists(&own) {
            let manifest = self.manifest(&own)?;
            let sums = SumsAt { folder: "", file: &format!("{told}.{CHECKSUMS_FILE}"), all: true };
            manifest.map_or(Ok(()), |manifest| self.claims(folder, &manifest, &sums))?;
            // The sums of an archive say which of its arrays is another one.
            if format::Npz::is_named(name) {
                self.by_format(folder, name)?;
            }
            return self.opens(folder, name, format::INDEX_FOLDER, before);
        }
        let is_told = self.told_of(folder, told)?;
        if self.by_format(folder, name)?.is_some() {
            return Ok(());
        }
        if is_told {
            self.opens(folder, name, format::INDEX_FOLDER, before)?;
        }
        if format::is_named_as_lines(name) || self.is_lines(folder, name) {
            self.expect(files::size(path).unwrap_or(0));
            return self.json_lines(path);
        }
        if is_told {
            return Ok(());
        }
        self.is_data(folder, name, options)?;
        let mut size = files::size(path);
        if is_ids {
            let store: Arc<dyn Store> = Arc::new(Local::new(folder));
            let whole = expanded(&store, name, None);
            let whole = self.findings.take(name, "content", "to be a whole stream", whole)?;
            size = whole.map(|object| object.size());
        }
        if size == Some(0) {
            let (expected, found) = ("at least one value", "an empty file");
            self.findings.problem(&path.display().to_string(), None, "size", expected.into(), found.into());
            return Ok(());
        }
        self.note(format!("{name} has no manifest: nothing says which size, values or hash it should have"));
        Ok(())
    }

    // Whether a file of another name holds JSON Lines.
    fn is_lines(&self, folder: &Path, name: &str) -> bool {
        let probe = Probe::at(self.table, Arc::new(Local::new(folder)), name);
        let format =
            probe.and_then(|probe| format::choose(self.table, &probe, None).map(|format| format.name()));
        format.is_ok_and(|name| name == Jsonl.name())
    }

    // An error where nothing was found and no format takes it for data: "good" would be said of a mistyped path. What is
    // to be tidied up need not be data.
    fn is_data(&self, root: &Path, key: &str, options: &VerifyOptions) -> Result<()> {
        let found = &self.findings;
        if options.gc || found.n_problems > 0 || !found.notes.is_empty() {
            return Ok(());
        }
        let probe = Probe::at(self.table, Arc::new(Local::new(root)), key)?;
        let is_compressed = !probe.is_folder && Compression::of_head(&probe.head).is_some();
        format::choose(self.table, &probe, None).map(drop).map_err(|e| match is_compressed {
            true => e,
            false => e.hint("nothing was checked: is the path right?"),
        })
    }

    // What the manifest of the pair that the file is half of, or that of its folder, says of it and of its other half.
    // Whether one does.
    fn told_of(&mut self, folder: &Path, name: &str) -> Result<bool> {
        let other = other_half(name);
        let of_pair = other.as_ref().map(|other| format!("{other}.{}", MANIFEST_FILE));
        for side_name in of_pair.iter().map(String::as_str).chain([MANIFEST_FILE]) {
            let manifest = self.manifest(&folder.join(side_name))?;
            if let Some(mut manifest) =
                manifest.filter(|manifest| manifest.files.iter().any(|f| f.name == name))
            {
                manifest.files.retain(|f| f.name == name || Some(&f.name) == other.as_ref());
                let sums = side_name.replace(MANIFEST_FILE, CHECKSUMS_FILE);
                self.claims(folder, &manifest, &SumsAt { folder: "", file: &sums, all: false })?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    // The manifest at this path, where there is one that can be understood.
    fn manifest(&mut self, path: &Path) -> Result<Option<Manifest>> {
        if !files::exists(path) {
            return Ok(None);
        }
        let name = path.display().to_string();
        let object = Local::new(path).open("");
        let manifest = object.and_then(|object| Ok((Manifest::read(object.as_ref())?, object)));
        let Some((manifest, object)) =
            self.findings.take(&name, "manifest", "one that can be understood", manifest)?
        else {
            return Ok(None);
        };
        self.findings.take(&name, "xxh3", "that of its text", Manifest::check_hash(object.as_ref()))?;
        Ok(Some(manifest))
    }

    // Work folders that stopped runs left in this folder; of one task, or of all.
    fn leftovers(&mut self, folder: &Path, of: Option<&str>, gc: bool) -> Result<()> {
        let mut tasks: Vec<String> = Site::left_in(folder)?.into_iter().map(|(task, _)| task).collect();
        tasks.retain(|task| of.is_none_or(|of| of == task));
        tasks.sort();
        tasks.dedup();
        for task in &tasks {
            if !gc {
                self.note(format!(
                    "a stopped run left .{task}.tmp-* in {}: run it again to finish it, or verify with --gc",
                    folder.display()
                ));
                continue;
            }
            match Site::enter(folder, task, true) {
                Ok(site) => {
                    for left in site.leftovers()? {
                        files::remove(&left)?;
                    }
                    self.note(format!("tidied up what a stopped run left: .{task}.tmp-*"));
                }
                Err(e) if e.kind() == Kind::Exists => {
                    self.note(format!(".{task}.tmp-* is left alone: {}", e.message()));
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn note(&mut self, text: String) {
        self.findings.notes.push(text);
    }

    // Saturating: an index may name one large, sparse file any number of times.
    fn expect(&mut self, bytes: u64) {
        self.now.total_bytes = self.now.total_bytes.saturating_add(bytes);
    }

    fn step(&mut self, bytes: u64) -> Result<()> {
        self.now.done_bytes = self.now.done_bytes.saturating_add(bytes);
        self.findings.checked_bytes = self.findings.checked_bytes.saturating_add(bytes);
        self.now.records = self.findings.checked_records;
        self.watch.progress(self.now);
        check(self.watch)
    }
}

// Two files that are one data set, as Megatron names them.
fn other_half(name: &str) -> Option<String> {
    let other = |this: &str, other: &str| name.strip_suffix(this).map(|stem| format!("{stem}{other}"));
    other(".bin", ".idx").or_else(|| other(".idx", ".bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_is_an_error_of_the_run_and_what_is_missing_a_finding() {
        let mut findings = Findings::default();
        let mut take = |code| {
            let error = Error::io("open the file", "a.bin", std::io::Error::from_raw_os_error(code));
            findings.take::<()>("a.bin", "file", "to be there", Err(error))
        };
        assert_eq!(take(libc::EMFILE).unwrap_err().kind(), Kind::Io);
        assert_eq!(take(libc::EIO).unwrap_err().kind(), Kind::Io);
        assert_eq!(take(libc::ENOENT).unwrap(), None);
        assert_eq!(findings.n_problems, 1);
    }
}
