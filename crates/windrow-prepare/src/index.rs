//! The byte-offset index of the JSON lines below a folder.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use windrow_core::format::LineIndex;
use windrow_core::format::lines::{self, EXPANDED, INDEX_FOLDER};
use windrow_core::format::{Table, line_index};
use windrow_core::manifest::{BlockChecksums, CHECKSUMS_FILE, FileRow, MANIFEST_FILE, Manifest};
use windrow_core::output::{
    self, ChecksumsWriter, Disk, Finished, Growing, Site, absolute, files, hash_of, hex, replaced,
};
use windrow_core::store::{Entry, Local, Object, Store, key, plain_name};
use windrow_core::{Error, Progress, Result, Watch, check, threads};
use xxhash_rust::xxh3::Xxh3;

use super::Report;
use super::input::{Input, PART};
use super::lines::LineScan;
use super::places::{NoStores, Places, Stores};
use super::text_input::TextInput;

/// How to index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexOptions {
    /// Name of the index folder below the base folder.
    pub index_folder: String,
    /// Replace an index of other inputs or options; also one of the same.
    pub overwrite: bool,
    /// Keep a hash of every data file in the manifest, so that `verify` finds changes that keep size and time.
    pub checksum: bool,
    /// Bring everything to the disk before it becomes visible.
    pub fsync: bool,
    /// A folder without any JSON lines, or with empty files alone, gives an empty index instead of an error.
    pub allow_empty: bool,
}

impl Default for IndexOptions {
    fn default() -> Self {
        IndexOptions {
            index_folder: INDEX_FOLDER.to_string(),
            overwrite: false,
            checksum: false,
            fsync: true,
            allow_empty: false,
        }
    }
}

/// Indexes every line of the JSONL files below `base` (`*.jsonl`, `*.ndjson`, and `*.json` that hold lines, also
/// `.gz` and `.zst`, at any depth).
///
/// Writes `<base>/<index_folder>/` as data-forager 0.2.0 does, and the manifest in it. Every line is a record, blank
/// ones too; its size counts the line break. Files are taken in natural order. Compressed files are expanded once, into
/// `<index_folder>/expanded/`, and the index names what was expanded.
///
/// Inputs and options that were indexed before: nothing to do, [`Report::unchanged`].
///
/// # Errors
/// `NotFound` when the folder or any JSONL file in it is missing; `Exists` when there is an index of other inputs or
/// options, or another run is writing here; `Stale` when an input changes meanwhile; `Corrupt` when a compressed input
/// is damaged; `Unsupported` for a table whose own log says which of its files are live; `Interrupted`; `Io`. After an error
/// nothing visible has changed.
pub fn index(table: Table, base: &Path, options: &IndexOptions, watch: &dyn Watch) -> Result<Report> {
    absolute("index", base)?;
    index_from(table, &NoStores, base, base, options, watch)
}

/// Indexes lines that may be below a URL, which leads to `stores`; the index goes below the folder `base`.
///
/// # Errors
/// As [`index`]; what a store says.
pub fn index_from(
    table: Table,
    stores: &dyn Stores,
    lines_below: &Path,
    base: &Path,
    options: &IndexOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let format = line_index(table)?;
    format.check_folder_name("index_folder", &options.index_folder)?;
    let inputs = inputs_below(table, Places(stores), lines_below, &options.index_folder)?;
    if inputs.is_empty() && !options.allow_empty {
        return Err(lines::no_line_files(table, Places(stores).root(lines_below)?.as_ref()));
    }
    let wanted = wanted(format, &inputs, options);
    publish(format, base, options, wanted, |work, wanted| {
        build(format, work, &inputs, wanted, options, watch)
    })
}

/// Looks whether the index is there, else takes the place, has it built in a work folder, and makes it visible.
pub(crate) fn publish(
    format: &dyn LineIndex,
    base: &Path,
    options: &IndexOptions,
    wanted: Manifest,
    build: impl FnOnce(&Path, Manifest) -> Result<Report>,
) -> Result<Report> {
    let hash = hash_of(wanted.to_text());
    // Complete already: nothing has to be writable.
    if let Ok(Some(report)) = existing(format, base, options, &wanted) {
        Site::tidy(base, &options.index_folder, &hash);
        return Ok(report);
    }
    let site = Site::enter(base, &options.index_folder, &hash, options.fsync)?;
    if let Some(report) = existing(format, base, options, &wanted)? {
        return Ok(report);
    }
    let work = site.work(&hash)?;
    let done = build(&work, wanted).and_then(|report| {
        site.commit(&work, &[&options.index_folder], &[], options.overwrite)?;
        Ok(Report { output: base.to_path_buf(), ..report })
    });
    if done.is_err() {
        // The error that is being reported matters more than one of tidying up.
        let _ = site.discard(&work);
    }
    done
}

/// The JSONL files below a folder, without what an index of this name expanded there: the new one takes its place.
pub(crate) fn inputs_below(
    table: Table,
    places: Places<'_>,
    base: &Path,
    index_folder: &str,
) -> Result<Vec<Input>> {
    let store = places.root(base)?;
    if !store.entry("")?.is_folder {
        return Err(Error::config("expected a folder, found a file")
            .at(base)
            .hint("name the folder that it is in"));
    }
    let of = |entry: &Entry| Input::of(table, places, &base.join(&entry.key), &entry.key);
    let expanded = format!("{index_folder}/{EXPANDED}/");
    let found = lines::line_files(table, store.as_ref())?;
    found.iter().filter(|entry| !entry.key.starts_with(&expanded)).map(of).collect()
}

fn expanded_name(input: &Input, index_folder: &str) -> String {
    if input.is_compressed() {
        format!("{index_folder}/{}/{}", EXPANDED, plain_name(&input.row.name))
    } else {
        input.row.name.clone()
    }
}

/// What decides the index: the manifest without its findings.
pub(crate) fn wanted(format: &dyn LineIndex, inputs: &[Input], options: &IndexOptions) -> Manifest {
    let mut manifest = Manifest::new(format.name());
    let lines = inputs.iter().map(|input| TextInput::Lines(input.clone()));
    manifest.inputs = lines.flat_map(|input| input.files()).collect();
    manifest.options = Map::from_iter([
        ("task".to_string(), json!("index")),
        ("index_folder".to_string(), json!(options.index_folder)),
        ("checksum".to_string(), json!(options.checksum)),
    ]);
    manifest
}

fn existing(
    format: &dyn LineIndex,
    base: &Path,
    options: &IndexOptions,
    wanted: &Manifest,
) -> Result<Option<Report>> {
    let store = Local::new(base);
    let folder = base.join(&options.index_folder);
    if !files::exists(&folder) {
        return Ok(None);
    }
    let may_go = replaced::folder(&folder, |name| format.is_own(name));
    if options.overwrite {
        return may_go.map(|()| None);
    }
    let manifest = store
        .open(&format!("{}/{}", options.index_folder, MANIFEST_FILE))
        .and_then(|object| Manifest::read(object.as_ref()));
    match manifest {
        Ok(manifest) if manifest.inputs == wanted.inputs && manifest.options == wanted.options => {
            Ok(Some(Report {
                unchanged: true,
                output: base.to_path_buf(),
                files: manifest.files.len() as u64,
                records: manifest.records.unwrap_or(0),
                input_bytes: manifest.inputs.iter().map(|f| f.size).sum(),
                ..Report::default()
            }))
        }
        _ => Err(may_go.err().unwrap_or_else(|| output::differs(&folder))),
    }
}

fn build(
    format: &'static dyn LineIndex,
    work: &Path,
    inputs: &[Input],
    mut manifest: Manifest,
    options: &IndexOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let fsync = options.fsync;
    let folder = work.join(&options.index_folder);
    files::remove(&folder)?;
    files::make_folder(&folder)?;
    let mut rows = Rows::begin(format, &folder, fsync)?;
    let sums = options.checksum.then(|| ChecksumsWriter::at(folder.join(CHECKSUMS_FILE), []));
    let mut sums = sums.transpose()?;
    let mut now = Progress { total_bytes: inputs.iter().map(|i| i.row.size).sum(), ..Progress::default() };
    let mut folders = vec![folder.clone()];
    let mut disk = Disk::new(fsync);
    for input in inputs {
        let name = expanded_name(input, &options.index_folder);
        let expanded = input.is_compressed().then(|| work.join(&name));
        if let Some(parent) = expanded.as_deref().and_then(Path::parent) {
            files::make_folder(parent)?;
            folders.extend(parent.ancestors().take_while(|f| *f != folder).map(Path::to_path_buf));
        }
        let first = rows.n;
        let scanned = scan(
            input,
            expanded.as_deref(),
            manifest.files.len() as u64,
            &mut rows,
            options,
            &mut disk,
            &mut |stored, n| {
                watch.progress(Progress { done_bytes: now.done_bytes + stored, records: n, ..now });
                check(watch)
            },
        )?;
        now.done_bytes += input.row.size;
        if rows.n > first {
            let modified_ns = scanned.row.modified_ns;
            let row = match &mut sums {
                Some(sums) => sums.add(name, scanned)?,
                None => FileRow { name, ..scanned.row },
            };
            manifest.files.push(FileRow { modified_ns, ..row });
        }
    }
    if rows.n == 0 && !options.allow_empty {
        return Err(no_lines(inputs));
    }
    finish(format, &folder, rows, &mut manifest, sums, options)?;
    disk.wait()?;
    folders.sort();
    folders.dedup();
    folders.iter().rev().try_for_each(|f| files::sync_folder(f, fsync))?;
    watch.progress(Progress { done_bytes: now.total_bytes, records: manifest.records.unwrap_or(0), ..now });
    check(watch)?;
    Ok(Report {
        files: manifest.files.len() as u64,
        records: manifest.records.unwrap_or(0),
        input_bytes: now.total_bytes,
        ..Report::default()
    })
}

/// The error that files of lines are all empty.
pub(crate) fn no_lines(inputs: &[Input]) -> Error {
    let first = inputs.first().map(|input| input.file.display().to_string());
    Error::not_found(format!("there are no lines: {} JSONL files are empty", inputs.len()))
        .at(first.unwrap_or_default())
        .hint(
            "a copy that was cut short may be empty: fetch it again; @allow_empty=true@ writes an empty index",
        )
}

/// Completes the rows, and writes the list of files and the manifest beside them.
pub(crate) fn finish(
    format: &dyn LineIndex,
    folder: &Path,
    rows: Rows,
    manifest: &mut Manifest,
    mut sums: Option<ChecksumsWriter>,
    options: &IndexOptions,
) -> Result<()> {
    let fsync = options.fsync;
    manifest.records = Some(rows.n);
    let rows = rows.finish()?;
    let paths: Vec<String> = manifest.files.iter().map(|f| f.name.clone()).collect();
    let list = files::write(&folder.join(format.list_file()), format.list(&paths)?.as_bytes(), fsync)?;
    for (name, file) in [(format.rows_file(), rows), (format.list_file(), list)] {
        let name = key::below(&options.index_folder, name);
        manifest.index.push(match &mut sums {
            Some(sums) => sums.add(name, file)?,
            None => file.row_called(name),
        });
    }
    sums.map_or(Ok(()), |sums| sums.finish(manifest.files.iter().chain(&manifest.index), fsync))?;
    files::write(&folder.join(MANIFEST_FILE), manifest.to_text().as_bytes(), fsync)?;
    Ok(())
}

/// Rows on their way to the file.
pub(crate) struct Rows {
    format: &'static dyn LineIndex,
    file: Growing,
    batch: Vec<u8>,
    n: u64,
    fsync: bool,
}

impl Rows {
    pub(crate) fn begin(format: &'static dyn LineIndex, folder: &Path, fsync: bool) -> Result<Rows> {
        let file = Growing::create(folder.join(format.rows_file()))?;
        Ok(Rows { format, file, batch: Vec::new(), n: 0, fsync })
    }

    /// Their number.
    pub(crate) fn len(&self) -> u64 {
        self.n
    }

    pub(crate) fn add(&mut self, file: u64, byte: u64, size: u64) {
        self.format.add_row(&mut self.batch, file, byte, size);
        self.n += 1;
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.file.write(&self.batch)?;
        self.batch.clear();
        if self.fsync {
            self.file.begin_sync();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Finished> {
        self.flush()?;
        self.file.finish(self.fsync)
    }
}

// One input's rows; its bytes go into `expanded` on the way where it is compressed.
fn scan(
    input: &Input,
    expanded: Option<&Path>,
    number: u64,
    rows: &mut Rows,
    options: &IndexOptions,
    disk: &mut Disk,
    step: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<Finished> {
    let mut stream = input.stream(0)?;
    if let (Some(object), false) = (stream.plain(), options.checksum) {
        scan_plain(object, number, rows, step)?;
        stream.finish()?;
        return Ok(Finished { row: input.row.clone(), sums: Vec::new() });
    }
    let mut copy = expanded.map(Growing::create).transpose()?;
    let mut read =
        (options.checksum && copy.is_none()).then(|| (Box::new(Xxh3::new()), BlockChecksums::default()));
    let mut lines = LineScan::default();
    loop {
        let bytes = stream.next(PART)?;
        if bytes.is_empty() {
            break;
        }
        lines.feed(bytes, &mut |byte, size| rows.add(number, byte, size));
        if let Some((hash, sums)) = &mut read {
            hash.update(bytes);
            sums.update(bytes);
        }
        if let Some(copy) = &mut copy {
            copy.write(bytes)?;
        }
        rows.flush()?;
        step(stream.stored(), rows.n)?;
    }
    lines.finish(&mut |byte, size| rows.add(number, byte, size));
    stream.finish()?;
    match copy {
        Some(copy) => {
            let Finished { row, sums } = copy.finish_on(disk)?;
            let xxh3 = row.xxh3.filter(|_| options.checksum);
            Ok(Finished { row: FileRow { xxh3, ..row }, sums })
        }
        None => {
            let (xxh3, sums) = read.map(|(hash, sums)| (hex(hash.digest()), sums.finish())).unzip();
            let row = FileRow { xxh3, ..input.row.clone() };
            Ok(Finished { row, sums: sums.unwrap_or_default() })
        }
    }
}

/// What a core scans at a time.
const SCANNED: u64 = 2 << 20;

// A plain file's rows: all cores scan, while the rows of what lies before are written.
fn scan_plain(
    object: &dyn Object,
    number: u64,
    rows: &mut Rows,
    step: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let size = object.size();
    let count = usize::try_from(size.div_ceil(SCANNED)).unwrap_or(usize::MAX);
    let scan = |part: usize, scratch: &mut Vec<u8>| {
        let from = part as u64 * SCANNED;
        lines::line_ends(object, from..(from + SCANNED).min(size), scratch)
    };
    let (mut start, mut behind) = (0, 0);
    threads::in_order(count, scan, |line_ends| {
        for line_end in line_ends? {
            rows.add(number, start, line_end - start);
            start = line_end;
        }
        rows.flush()?;
        behind = (behind + SCANNED).min(size);
        step(behind, rows.n)
    })?;
    // The last line may lack its line break.
    if start < size {
        rows.add(number, start, size - start);
    }
    Ok(())
}
