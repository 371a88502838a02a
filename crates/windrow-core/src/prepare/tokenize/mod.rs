//! Text to packed token samples: the task from its inputs to its visible result.

mod options;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use options::{RUN_ONLY, rules};
pub use options::{Remainder, TokenLayout, TokenizeOptions, Track};

use crate::array::DType;
use crate::error::{Error, Kind, Result};
use crate::format::{self, Layout, LayoutArray, SideFile};
use crate::prepare::atomic;
use crate::prepare::chunks::{Chunk, Chunks};
use crate::prepare::encode::{Encode, EncodedChunk, Rules, encode_chunk};
use crate::prepare::input::{INPUT_SUFFIXES, Input};
use crate::prepare::names::{Named, below_common_folder, output_names};
use crate::prepare::pack::{Packer, Packing, State};
use crate::prepare::site::{self, Site};
use crate::prepare::{Progress, Report, Watch, check, pipeline};
use crate::store::{Local, Store};

const CHUNK: u64 = 1 << 18;
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
    let rules = rules(encode, options)?;
    let found = find(inputs, options)?;
    let stems = output_names(&found)?;
    let inputs: Vec<Input> =
        found.iter().map(|named| Input::look(&named.file, &named.relative)).collect::<Result<_>>()?;
    let wanted = wanted(&inputs, &rules, encode, options);
    let targets = targets(options);
    // Complete already: nothing has to be writable. An error may be mended by finishing what a killed run began to show.
    if let Ok(Some(report)) = existing(out, &targets, options, &wanted) {
        return Ok(report);
    }
    let site = Site::enter(out, TASK, options.durable)?;
    if let Some(report) = existing(out, &targets, options, &wanted)? {
        return Ok(report);
    }
    let work = site.work(&atomic::hash_of(&wanted.to_text()))?;
    let task =
        Task { inputs: &inputs, packing: packing(&stems, &rules, options), rules, encode, options, watch };
    let mut can_go_on = false;
    let done = task.run(&work, &mut can_go_on).and_then(|(state, resumed_bytes)| {
        let report = task.describe(&work, &state, wanted)?;
        site.commit(&work, &targets, options.overwrite)?;
        Ok(Report { output: out.to_path_buf(), resumed_bytes, ..report })
    });
    if done.is_err() && !can_go_on {
        // The error that is being reported matters more than one of tidying up.
        let _ = atomic::remove(&work);
    }
    done
}

/// What becomes visible, in this order.
fn targets(options: &TokenizeOptions) -> [&str; 2] {
    match options.layout {
        TokenLayout::Forager => [&options.samples_folder, &options.index_folder],
        TokenLayout::Tokens => [STREAM, format::SIDE_FILE],
    }
}

// Every input with the name it goes by.
fn find(inputs: &[PathBuf], options: &TokenizeOptions) -> Result<Vec<Named>> {
    let mut found = Vec::new();
    let mut single = Vec::new();
    for input in inputs {
        let path = std::path::absolute(input).map_err(|e| Error::io("find it", input, e))?;
        let store = Local::new(&path);
        if !store.entry("")?.is_folder {
            single.push((found.len(), path.clone()));
            found.push(Named { file: path, relative: String::new() });
            continue;
        }
        let own = format!("{}/", options.index_folder);
        let entries = format::discover(&store, "", INPUT_SUFFIXES)?;
        let before = found.len();
        let below = entries.into_iter().filter(|e| !e.key.starts_with(&own));
        found.extend(below.map(|e| Named { file: path.join(&e.key), relative: e.key }));
        if found.len() == before && !options.allow_empty {
            return Err(Error::not_found("no JSONL file lies in the folder or below it").at(input).hint(
                "looked for *.jsonl and *.JSONL, plain, .gz or .zst; hidden files and folders are left out",
            ));
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

fn packing(stems: &[String], rules: &Rules, options: &TokenizeOptions) -> Packing {
    let is_forager = options.layout == TokenLayout::Forager;
    let samples = stems.iter().map(|s| format!("{}/{s}-{}.bin", options.samples_folder, options.postfix));
    Packing {
        outputs: if is_forager { samples.collect() } else { vec![STREAM.to_string()] },
        rows: is_forager.then(|| format!("{}/{}", options.index_folder, format::LOCATIONS)),
        sample_size: options.sample_size,
        width: rules.dtype.size(),
        track_pads: rules.tracks.iter().map(|(i, _)| options.tracks[*i].pad).collect(),
        remainder: options.remainder,
        durable: options.durable,
        checkpoint_bytes: options.checkpoint_bytes.max(1),
    }
}

// What decides the output: the side file without its findings.
fn wanted(inputs: &[Input], rules: &Rules, encode: &dyn Encode, options: &TokenizeOptions) -> SideFile {
    let mut side = SideFile::new(match options.layout {
        TokenLayout::Forager => "forager",
        TokenLayout::Tokens => "tokens",
    });
    side.dtype = Some(rules.dtype);
    side.vocab_size = rules.vocab_size;
    side.eos = options.eos.or(encode.eos());
    side.tokenizer = encode.lock();
    side.inputs = inputs.iter().map(|i| i.row.clone()).collect();
    side.options =
        Map::from_iter([("task".to_string(), json!(TASK)), ("encode".to_string(), json!(encode.describe()))]);
    if let Ok(Value::Object(given)) = serde_json::to_value(options) {
        side.options.extend(given.into_iter().filter(|(name, _)| !RUN_ONLY.contains(&name.as_str())));
    }
    side
}

fn existing(
    out: &Path,
    targets: &[&str],
    options: &TokenizeOptions,
    wanted: &SideFile,
) -> Result<Option<Report>> {
    let Some(found) = targets.iter().rev().find(|t| atomic::exists(&out.join(t))) else { return Ok(None) };
    let foreign = atomic::names(&out.join(&options.samples_folder))
        .unwrap_or_default()
        .into_iter()
        .find(|name| options.layout == TokenLayout::Forager && !name.ends_with(".bin"));
    if options.overwrite {
        return match foreign {
            None => Ok(None),
            Some(name) => Err(Error::new(Kind::Exists, "the folder of samples holds something else")
                .at(out.join(&options.samples_folder).join(name))
                .hint("--overwrite replaces folders of .bin files only")),
        };
    }
    let key = match options.layout {
        TokenLayout::Forager => format!("{}/{}", options.index_folder, format::SIDE_FILE),
        TokenLayout::Tokens => format::SIDE_FILE.to_string(),
    };
    match Local::new(out).open(&key).and_then(|object| SideFile::read(object.as_ref())) {
        Ok(side)
            if side.inputs == wanted.inputs
                && side.options == wanted.options
                && side.tokenizer == wanted.tokenizer
                && targets.iter().all(|t| atomic::exists(&out.join(t))) =>
        {
            Ok(Some(unchanged(out, &side)))
        }
        _ => Err(site::exists(&out.join(found))),
    }
}

fn unchanged(out: &Path, side: &SideFile) -> Report {
    let count = |name: &str| side.statistics.get(name).and_then(Value::as_u64).unwrap_or(0);
    Report {
        unchanged: true,
        output: out.to_path_buf(),
        files: side.files.len() as u64,
        records: side.records.unwrap_or(0),
        documents: count("documents"),
        tokens: count("tokens"),
        dropped_tokens: count("dropped_tokens"),
        padded_tokens: count("padded_tokens"),
        input_bytes: side.inputs.iter().map(|f| f.size).sum(),
        output_bytes: side.files.iter().map(|f| f.size).sum(),
        resumed_bytes: 0,
    }
}

struct Task<'a> {
    inputs: &'a [Input],
    packing: Packing,
    rules: Rules,
    encode: &'a dyn Encode,
    options: &'a TokenizeOptions,
    watch: &'a dyn Watch,
}

impl Task<'_> {
    // `can_go_on` becomes true when what is left after an error is worth keeping.
    fn run(&self, work: &Path, can_go_on: &mut bool) -> Result<(State, u64)> {
        let mut packer = Packer::open(work, self.packing.clone())?;
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
        let encode_one = |chunk: &Chunk, go_on: &mut dyn FnMut() -> Result<()>| {
            encode_chunk(chunk, &names[chunk.input], self.encode, &self.rules, go_on)
        };
        let mut take = |chunk: EncodedChunk| {
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
        let threads = self
            .options
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
        let mut ask = || check(self.watch);
        // One thread encodes while others read and write beside it.
        let done = match self.encode.parallel() {
            true => pipeline::in_parallel(chunks, threads, &encode_one, &mut ask, &mut take),
            false => pipeline::in_line(chunks, &encode_one, &mut ask, &mut take),
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
    fn describe(&self, work: &Path, state: &State, mut side: SideFile) -> Result<Report> {
        let durable = self.options.durable;
        side.files = state.finished.clone();
        side.records = Some(if self.packing.rows.is_some() { state.records } else { 1 });
        side.record_length = self.options.sample_size;
        for (name, n) in [
            ("documents", state.documents),
            ("tokens", state.tokens),
            ("dropped_tokens", state.dropped_tokens),
            ("padded_tokens", state.padded_tokens),
        ] {
            side.statistics.insert(name.to_string(), json!(n));
        }
        if let Some(id) = state.most_id {
            side.statistics.insert("most_id".to_string(), json!(id));
        }
        if self.options.layout == TokenLayout::Forager {
            let index = work.join(&self.options.index_folder);
            let paths: Vec<String> = state.listed.iter().map(|n| self.packing.outputs[*n].clone()).collect();
            atomic::write(&index.join(format::FILE_LIST), format::file_list(&paths)?.as_bytes(), durable)?;
            if let Some(layout) = self.layout() {
                let text = serde_json::to_vec_pretty(&layout)
                    .map_err(|e| Error::io("write it", &index, e.into()))?;
                atomic::write(&index.join(format::SAMPLE_SCHEMA), &text, durable)?;
            }
            atomic::write(&index.join(format::SIDE_FILE), side.to_text().as_bytes(), durable)?;
            atomic::sync_folder(&index, durable)?;
            let samples = work.join(&self.options.samples_folder);
            atomic::make_folder(&samples)?;
            atomic::sync_folder(&samples, durable)?;
        } else {
            atomic::write(&work.join(format::SIDE_FILE), side.to_text().as_bytes(), durable)?;
        }
        Ok(Report { unchanged: false, ..unchanged(Path::new(""), &side) })
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
