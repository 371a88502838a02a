//! Text to packed token samples: the task from its inputs to its visible result.

mod existing;
mod options;

use crate::manifest::MANIFEST_FILE;
use crate::output::hash_of;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};

use existing::{existing, existing_documents, unchanged};
use options::{RUN_ONLY, rules};
pub use options::{Remainder, TokenLayout, TokenizeOptions, Track};

use crate::array::DType;
use crate::error::{Error, Kind, Result};
use crate::format::{self, Layout, LayoutArray};
use crate::manifest::CHECKSUMS_FILE;
use crate::manifest::{FileRow, Manifest};
use crate::output::ChecksumsWriter;
use crate::output::Site;
use crate::output::files;
use crate::prepare::chunks::Chunks;
use crate::prepare::documents::DocumentLayout;
use crate::prepare::encode::{Encode, EncodedChunk, Rules};
use crate::prepare::input::Input;
use crate::prepare::names::{Given, Named, below_common_folder, output_names};
use crate::prepare::pack::{Packed, Packer, Packing, State};
use crate::prepare::pipeline::Work;
use crate::prepare::series::{MegatronDocuments, ShardDocuments};
use crate::prepare::{Progress, Report, Watch, check, no_ids, pipeline};
use crate::store::{Local, Store, key};
use crate::threads::cores;

/// Input bytes that a thread encodes at a time: each handing over costs it what it had in its cache.
const CHUNK: u64 = 1 << 20;
const TASK: &str = "tokenize";
const STREAM: &str = "tokens.bin";

/// Tokenises every line of the inputs and packs the ids into samples.
///
/// Inputs are files, or folders in which JSONL files are found as [`crate::prepare::index()`] finds them; `.gz` and `.zst` are
/// expanded on the way. With a sample size S, documents, each followed by `eos`, are joined across lines and inputs and
/// cut every S tokens; a sample lies in the file of the line that completed it. Without, each document is a record.
///
/// The result depends on inputs and options only, not on threads, restarts or time. A stopped run leaves a hidden work
/// folder; the same call goes on from its last restart point.
///
/// Megatron's files and shards hold a record per document, and `out` is a folder that appears as a whole.
///
/// # Errors
/// `NotFound`, `Config`, `Exists` before anything is read; `Corrupt` naming file, line and byte; `Config` naming an id
/// that does not fit the dtype; `Stale` when an input changes meanwhile; `Interrupted`; `Io`. After an error nothing
/// visible has changed.
pub fn tokenize(
    inputs: &[PathBuf],
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let shards = ShardDocuments { max_shard_bytes: options.max_shard_bytes };
    let layout: Option<&dyn DocumentLayout> = match options.layout {
        TokenLayout::Forager | TokenLayout::Tokens => None,
        TokenLayout::Megatron => Some(&MegatronDocuments),
        TokenLayout::Shards => Some(&shards),
    };
    write(inputs, out, encode, options, layout, watch)
}

/// The same into a layout of an arm, whatever the options say of it: a record per document, into the folder `out`.
///
/// # Errors
/// As [`tokenize`].
pub fn tokenize_as(
    layout: &dyn DocumentLayout,
    inputs: &[PathBuf],
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    write(inputs, out, encode, options, Some(layout), watch)
}

fn write(
    inputs: &[PathBuf],
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    layout: Option<&dyn DocumentLayout>,
    watch: &dyn Watch,
) -> Result<Report> {
    layout.map_or(Ok(()), DocumentLayout::check)?;
    let rules = rules(encode, options, layout)?;
    let found = find(inputs, options)?;
    let stems = output_names(&found)?;
    let inputs: Vec<Input> =
        found.iter().map(|named| Input::probe(&named.file, &named.relative)).collect::<Result<_>>()?;
    let wanted = wanted(&inputs, &rules, encode, options, layout);
    let place = Place::of(out, options, layout)?;
    let existing = || match layout {
        None => existing(out, &place.targets, options, &wanted),
        Some(layout) => existing_documents(&place.shown, options, &wanted, layout),
    };
    let hash = hash_of(&wanted.to_text());
    // Complete already: nothing has to be writable. An error may be mended by finishing what a killed run began to show.
    if let Ok(Some(report)) = existing() {
        Site::tidy(&place.folder, &place.task, &hash);
        return Ok(Report { output: out.to_path_buf(), ..report });
    }
    let site = Site::enter(&place.folder, &place.task, options.durable)?;
    if let Some(report) = existing()? {
        return Ok(Report { output: out.to_path_buf(), ..report });
    }
    let work = site.work(&hash)?;
    let packing = Packing { folder: place.targets[0].clone(), ..packing(&stems, &rules, options, layout) };
    let task = Task { inputs: &inputs, packing, rules, encode, options, layout, watch };
    let mut can_go_on = false;
    let done = task.run(&work, &mut can_go_on).and_then(|(packed, resumed_bytes)| {
        let report = task.describe(&work, packed, wanted)?;
        let targets: Vec<&str> = place.targets.iter().map(String::as_str).collect();
        // An empty folder is as good as none.
        let is_empty = layout.is_some() && files::names(&place.shown).is_ok_and(|names| names.is_empty());
        layout.map_or(Ok(()), |layout| layout.surround(&place.shown))?;
        site.commit(&work, &targets, options.overwrite || is_empty)?;
        Ok(Report { output: out.to_path_buf(), resumed_bytes, ..report })
    });
    if done.is_err() && !can_go_on {
        // The error that is being reported matters more than one of tidying up.
        let _ = files::remove(&work);
    }
    done
}

/// Where the task works, and what becomes visible there.
struct Place {
    /// Holds the lock and the work folder.
    folder: PathBuf,
    task: String,
    /// In this order.
    targets: Vec<String>,
    /// `out`, absolute.
    shown: PathBuf,
}

impl Place {
    fn of(out: &Path, options: &TokenizeOptions, layout: Option<&dyn DocumentLayout>) -> Result<Place> {
        let shown = std::path::absolute(out).map_err(|e| Error::io("find it", out, e))?;
        if layout.is_none() {
            let targets = targets(options).into_iter().map(str::to_string).collect();
            return Ok(Place { folder: out.to_path_buf(), task: TASK.to_string(), targets, shown });
        }
        match (shown.parent(), shown.file_name().and_then(|name| name.to_str())) {
            (Some(parent), Some(name)) => {
                let (folder, name) = (parent.to_path_buf(), name.to_string());
                Ok(Place { folder, task: name.clone(), targets: vec![name], shown })
            }
            _ => Err(Error::config("expected the path of a folder").at(out)),
        }
    }
}

/// What becomes visible, in this order, where it is no folder of documents.
fn targets(options: &TokenizeOptions) -> Vec<&str> {
    match options.layout {
        TokenLayout::Forager => vec![&options.samples_folder, &options.index_folder],
        _ if options.block_sums => vec![STREAM, CHECKSUMS_FILE, MANIFEST_FILE],
        _ => vec![STREAM, MANIFEST_FILE],
    }
}

// An input's path from the root. What goes up and down again is followed: names of outputs are made from it.
fn absolute(input: &Path) -> Result<PathBuf> {
    let goes_up = input.components().any(|part| part == Component::ParentDir);
    match files::real_path(input).filter(|_| goes_up) {
        Some(path) => Ok(path),
        None => std::path::absolute(input).map_err(|e| Error::io("find it", input, e)),
    }
}

// Every input with the name it goes by, none of them twice.
fn find(inputs: &[PathBuf], options: &TokenizeOptions) -> Result<Vec<Named>> {
    let mut found = Vec::new();
    let mut single = Vec::new();
    // One alone gives each of its files once.
    let mut given = (inputs.len() > 1).then(Given::default);
    let mut note = |number, file: &Path| given.as_mut().map_or(Ok(()), |given| given.add(number, file));
    for (number, input) in inputs.iter().enumerate() {
        let path = absolute(input)?;
        let store = Local::new(&path);
        if !store.entry("")?.is_folder {
            note(number, &path)?;
            single.push((found.len(), path.clone()));
            found.push(Named { file: path, relative: String::new() });
            continue;
        }
        let entries = format::line_files(&store, "")?;
        let before = found.len();
        for entry in entries {
            let file = path.join(&entry.key);
            note(number, &file)?;
            found.push(Named { file, relative: entry.key });
        }
        if found.len() == before && !options.allow_empty {
            return Err(format::no_line_files(&store).at(input));
        }
    }
    if found.is_empty() && !options.allow_empty {
        return Err(Error::not_found("no input is given"));
    }
    let (places, files): (Vec<usize>, Vec<PathBuf>) = single.into_iter().unzip();
    for (place, relative) in places.into_iter().zip(below_common_folder(&files)) {
        found[place].relative = relative;
    }
    Ok(found)
}

fn packing(
    stems: &[String],
    rules: &Rules,
    options: &TokenizeOptions,
    layout: Option<&dyn DocumentLayout>,
) -> Packing {
    let is_forager = layout.is_none() && options.layout == TokenLayout::Forager;
    let samples = stems.iter().map(|s| format!("{}/{s}-{}.bin", options.samples_folder, options.postfix));
    Packing {
        outputs: match layout {
            Some(_) => Vec::new(),
            None if is_forager => samples.collect(),
            None => vec![STREAM.to_string()],
        },
        folder: String::new(),
        rows: is_forager.then(|| key::below(&options.index_folder, format::LOCATIONS)),
        sums: match layout {
            _ if !options.block_sums => None,
            Some(_) => None,
            None if is_forager => Some(key::below(&options.index_folder, CHECKSUMS_FILE)),
            None => Some(CHECKSUMS_FILE.to_string()),
        },
        sample_size: options.sample_size,
        dtype: rules.dtype,
        track_pads: rules.tracks.iter().map(|(i, _)| options.tracks[*i].pad).collect(),
        remainder: options.remainder,
        durable: options.durable,
        checkpoint_bytes: options.checkpoint_bytes.max(1),
    }
}

// What decides the output: the manifest without its findings.
fn wanted(
    inputs: &[Input],
    rules: &Rules,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    layout: Option<&dyn DocumentLayout>,
) -> Manifest {
    let mut manifest = Manifest::new(match (layout, options.layout) {
        (Some(layout), _) => layout.format(),
        (None, TokenLayout::Forager) => "forager",
        (None, _) => "tokens",
    });
    manifest.dtype = Some(rules.dtype);
    manifest.vocab_size = rules.vocab_size;
    manifest.eos = options.eos.or(encode.eos());
    manifest.tokenizer = encode.lock();
    manifest.inputs = inputs.iter().map(|i| i.row.clone()).collect();
    manifest.options =
        Map::from_iter([("task".to_string(), json!(TASK)), ("encode".to_string(), json!(encode.describe()))]);
    if let Ok(Value::Object(given)) = serde_json::to_value(options) {
        manifest.options.extend(given.into_iter().filter(|(name, _)| !RUN_ONLY.contains(&name.as_str())));
    }
    if let Some(layout) = layout {
        manifest.options.insert("layout".to_string(), json!(layout.format()));
        manifest.options.extend(layout.describe());
    }
    manifest
}

struct Task<'a> {
    inputs: &'a [Input],
    packing: Packing,
    rules: Rules,
    encode: &'a dyn Encode,
    options: &'a TokenizeOptions,
    layout: Option<&'a dyn DocumentLayout>,
    watch: &'a dyn Watch,
}

/// What was packed, and the bytes an earlier run had done.
type Done = (Packed, u64);

impl Task<'_> {
    // `can_go_on` becomes true when what is left after an error is worth keeping.
    fn run(&self, work: &Path, can_go_on: &mut bool) -> Result<Done> {
        let mut packer = Packer::open(work, self.packing.clone(), self.layout)?;
        let before: Vec<u64> = self
            .inputs
            .iter()
            .scan(0, |sum, input| Some(std::mem::replace(sum, *sum + input.row.size)))
            .collect();
        let total_bytes = self.inputs.iter().map(|i| i.row.size).sum();
        let done_bytes = |state: &State| before.get(state.input).map_or(total_bytes, |b| b + state.stored);
        let from = packer.state().clone();
        let resumed = done_bytes(&from);
        let size = CHUNK.min(self.packing.checkpoint_bytes) as usize;
        let chunks = Chunks::new(self.inputs, size, from.input, from.byte, from.line);
        let names: Vec<String> = self.inputs.iter().map(|i| i.file.display().to_string()).collect();
        let encoding = Work { encode: self.encode, rules: &self.rules, names: &names };
        let mut take = |chunk: &EncodedChunk| {
            let is_end = chunk.is_last && chunk.input + 1 == self.inputs.len();
            packer.take(chunk, is_end)?;
            let state = packer.state();
            self.watch.progress(Progress {
                done_bytes: done_bytes(state),
                total_bytes,
                records: state.records,
            });
            Ok(())
        };
        let threads = self.options.threads.unwrap_or_else(cores);
        let mut ask = || check(self.watch);
        // One thread reads and encodes while this one writes beside it.
        let done = match self.encode.parallel() {
            true => pipeline::in_parallel(chunks, threads, &encoding, &mut ask, &mut take),
            false => pipeline::in_line(chunks, &encoding, &mut ask, &mut take),
        };
        let done = done.and_then(|()| ask());
        if let Err(e) = done {
            // After a failed write the state in memory may be ahead of the files: only what was kept before counts.
            let kept_now =
                e.kind() == Kind::Interrupted && packer.state().documents > 0 && packer.checkpoint().is_ok();
            *can_go_on =
                kept_now || (matches!(e.kind(), Kind::Interrupted | Kind::Io) && packer.has_checkpoint());
            return Err(e);
        }
        Ok((packer.finish()?, resumed))
    }

    // Writes what stands beside the samples into the work folder.
    fn describe(&self, work: &Path, packed: Packed, mut manifest: Manifest) -> Result<Report> {
        let durable = self.options.durable;
        let Packed { state, rows, sums, writer } = packed;
        if state.tokens == 0 && self.layout.is_none() && self.options.layout == TokenLayout::Tokens {
            return Err(no_ids());
        }
        manifest.files = state.finished;
        let has_records = self.packing.rows.is_some() || self.layout.is_some();
        manifest.records = Some(if has_records { state.records } else { 1 });
        manifest.record_length = self.options.sample_size;
        for (name, n) in [
            ("documents", state.documents),
            ("tokens", state.tokens),
            ("dropped_tokens", state.dropped_tokens),
            ("padded_tokens", state.padded_tokens),
        ] {
            manifest.statistics.insert(name.to_string(), json!(n));
        }
        if let Some(id) = state.most_id {
            manifest.statistics.insert("most_id".to_string(), json!(id));
        }
        if let Some(writer) = writer {
            manifest = writer.finish(manifest)?;
        } else if self.options.layout == TokenLayout::Forager {
            manifest = self.describe_samples(work, &state.listed, rows, sums, manifest)?;
        } else {
            sums.map_or(Ok(()), |sums| sums.finish(&manifest.files, durable))?;
            files::write(&work.join(MANIFEST_FILE), manifest.to_text().as_bytes(), durable)?;
        }
        Ok(Report { unchanged: false, ..unchanged(Path::new(""), &manifest) })
    }

    // Writes what stands in the index folder beside the rows.
    fn describe_samples(
        &self,
        work: &Path,
        listed: &[usize],
        rows: Option<FileRow>,
        mut sums: Option<ChecksumsWriter>,
        mut manifest: Manifest,
    ) -> Result<Manifest> {
        let durable = self.options.durable;
        let index = work.join(&self.options.index_folder);
        let paths: Vec<String> = listed.iter().map(|n| self.packing.outputs[*n].clone()).collect();
        let mut described = vec![(format::FILE_LIST, format::file_list(&paths)?.into_bytes())];
        if let Some(layout) = self.layout() {
            let text =
                serde_json::to_vec_pretty(&layout).map_err(|e| Error::io("write it", &index, e.into()))?;
            described.push((format::SAMPLE_SCHEMA, text));
        }
        manifest.index = Vec::from_iter(rows);
        for (name, text) in described {
            let file = files::write(&index.join(name), &text, durable)?;
            let name = key::below(&self.options.index_folder, name);
            manifest.index.push(match &mut sums {
                Some(sums) => sums.add(name, file)?,
                None => file.row_called(name),
            });
        }
        sums.map_or(Ok(()), |sums| sums.finish(manifest.files.iter().chain(&manifest.index), durable))?;
        files::write(&index.join(MANIFEST_FILE), manifest.to_text().as_bytes(), durable)?;
        files::sync_folder(&index, durable)?;
        let samples = work.join(&self.options.samples_folder);
        files::make_folder(&samples)?;
        files::sync_folder(&samples, durable)?;
        Ok(manifest)
    }

    fn layout(&self) -> Option<Layout> {
        let sample_size = self.options.sample_size.filter(|_| !self.options.tracks.is_empty())?;
        let mut end = sample_size * self.rules.dtype.size() as u64;
        let mut arrays = vec![LayoutArray { name: "tokens".to_string(), dtype: self.rules.dtype, offset: 0 }];
        for (i, _) in &self.rules.tracks {
            arrays.push(LayoutArray {
                name: self.options.tracks[*i].name.clone(),
                dtype: DType::U8,
                offset: end,
            });
            end += sample_size;
        }
        Some(Layout { sample_size, arrays, total_bytes_per_sample: end })
    }
}
