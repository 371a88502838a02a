//! Text to packed token samples: the options, and the task from its inputs to its visible result.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::atomic;
use super::chunks::{Chunk, Chunks};
use super::discover::{SUFFIXES, discover};
use super::encode::{Encode, EncodedChunk, Rules, encode_chunk};
use super::index::check_folder_name;
use super::input::Input;
use super::names::{Named, below_common_folder, output_names};
use super::pack::{Packer, Packing, State};
use super::site::{self, Site};
use super::{Progress, Report, Watch, check, pipeline};
use crate::array::DType;
use crate::error::{Error, Kind, Result};
use crate::format::{self, Layout, LayoutArray, SideFile};
use crate::store::{Local, Store};

/// What [`tokenize`] writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenLayout {
    /// Samples in one `.bin` per input, and a byte-offset index of them, as data-forager does.
    #[default]
    Forager,
    /// One stream of all documents without a header: `tokens.bin`.
    Tokens,
}

/// What becomes of the tokens at the very end that do not fill a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remainder {
    /// They are left out, and counted in [`Report::dropped_tokens`].
    #[default]
    Drop,
    /// They are filled up with this id.
    Pad(i64),
}

/// A byte beside every token, such as a loss mask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    /// Its name in `sample_schema.json`.
    pub name: String,
    /// Its value beside the end-of-sequence id that the task appends.
    pub eos: u8,
    /// Its value beside padding.
    pub pad: u8,
}

/// How to tokenise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenizeOptions {
    /// What to write.
    pub layout: TokenLayout,
    /// Tokens per sample, documents packed one after the other; `None` makes each document a record.
    pub sample_size: Option<u64>,
    /// The id appended to each document: with a sample size, in the tokens layout, and else where `append_eos` is set.
    pub eos: Option<i64>,
    /// Appends `eos` to documents of variable length too.
    pub append_eos: bool,
    /// dtype of a stored id; `None` takes the smaller of uint16 and uint32 that holds the vocabulary.
    pub dtype: Option<DType>,
    /// What becomes of the tokens at the end that do not fill a sample.
    pub remainder: Remainder,
    /// Bytes beside the tokens; stored after a sample's tokens, by name.
    pub tracks: Vec<Track>,
    /// Name of the folder of samples.
    pub samples_folder: String,
    /// What follows the input's name in the name of its samples.
    pub postfix: String,
    /// Name of the index folder.
    pub index_folder: String,
    /// Replace an existing output.
    pub overwrite: bool,
    /// Bring everything to the disk before it becomes visible.
    pub durable: bool,
    /// Encoding threads; `None` takes as many as the machine has.
    pub threads: Option<usize>,
    /// Input bytes between restart points.
    pub checkpoint_bytes: u64,
    /// No input at all gives an empty output instead of an error.
    pub allow_empty: bool,
}

impl Default for TokenizeOptions {
    fn default() -> Self {
        TokenizeOptions {
            layout: TokenLayout::Forager,
            sample_size: None,
            eos: None,
            append_eos: false,
            dtype: None,
            remainder: Remainder::Drop,
            tracks: Vec::new(),
            samples_folder: "tokenized-samples".to_string(),
            postfix: "tokenized-samples".to_string(),
            index_folder: format::INDEX_FOLDER.to_string(),
            overwrite: false,
            durable: true,
            threads: None,
            checkpoint_bytes: 64 << 20,
            allow_empty: false,
        }
    }
}

const CHUNK: u64 = 1 << 20;
/// A sample of more tokens would not fit into memory anywhere.
const MOST_SAMPLE: u64 = 1 << 40;
const TASK: &str = "tokenize";
const STREAM: &str = "tokens.bin";
/// Options that do not decide what is written.
const RUN_ONLY: [&str; 5] = ["overwrite", "durable", "threads", "checkpoint_bytes", "allow_empty"];

/// Tokenises every line of the inputs and packs the ids into samples.
///
/// Inputs are files, or folders in which JSONL files are found as [`super::index`] finds them; `.gz` and `.zst` are
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

fn rules(encode: &dyn Encode, options: &TokenizeOptions) -> Result<Rules> {
    check_folder_name("samples_folder", &options.samples_folder)?;
    check_folder_name("index_folder", &options.index_folder)?;
    check_folder_name("postfix", &options.postfix)?;
    if options.samples_folder == options.index_folder {
        return Err(Error::config("samples_folder and index_folder are the same"));
    }
    if let Some(size) = options.sample_size.filter(|size| !(1..=MOST_SAMPLE).contains(size)) {
        return Err(Error::config(format!("sample_size is {size}; expected 1 to {MOST_SAMPLE}")));
    }
    if options.layout == TokenLayout::Tokens && (options.sample_size.is_some() || !options.tracks.is_empty())
    {
        return Err(Error::config(
            "the tokens layout is one stream: it has neither a sample size nor tracks",
        ));
    }
    if options.sample_size.is_none() && !options.tracks.is_empty() {
        return Err(Error::config("tracks need a sample size"));
    }
    let appends =
        options.sample_size.is_some() || options.layout == TokenLayout::Tokens || options.append_eos;
    if options.append_eos && options.eos.is_none() {
        return Err(Error::config("append_eos is set, but no end-of-sequence id is given"));
    }
    let pad = match (options.remainder, options.sample_size) {
        (Remainder::Pad(id), Some(_)) => Some(id),
        _ => None,
    };
    // Ids that the user names belong to the vocabulary, also where the tokenizer does not know them.
    let named = options.eos.max(pad).and_then(|id| u64::try_from(id).ok()).map(|id| id.saturating_add(1));
    let vocab_size = encode.vocab_size().map(|v| v.max(named.unwrap_or(0)));
    let dtype = match (options.dtype, vocab_size) {
        (Some(dtype), _) => dtype,
        (None, Some(vocab)) => [DType::U16, DType::U32]
            .into_iter()
            .find(|d| i64::try_from(vocab.saturating_sub(1)).is_ok_and(|id| d.holds(id)))
            .ok_or_else(|| Error::config(format!("no dtype for a vocabulary of {vocab} ids")))?,
        (None, None) => {
            return Err(Error::config("the encoder does not say its vocabulary, so no dtype can be chosen")
                .field("dtype")
                .hint("give dtype=\"uint16\" or dtype=\"uint32\""));
        }
    };
    if !dtype.is_integer() || dtype == DType::Bool {
        return Err(Error::config(format!("token ids cannot be stored as {dtype}")).hint("uint16 or uint32"));
    }
    let mut tracks: Vec<_> = options.tracks.iter().enumerate().collect();
    tracks.sort_by(|a, b| a.1.name.cmp(&b.1.name));
    if let Some(pair) = tracks.windows(2).find(|pair| pair[0].1.name == pair[1].1.name) {
        return Err(Error::config(format!("two tracks are called {:?}", pair[0].1.name)));
    }
    let rules = Rules {
        dtype,
        vocab_size,
        eos: options.eos.filter(|_| appends),
        tracks: tracks.iter().map(|(i, track)| (*i, track.eos)).collect(),
    };
    for (field, id) in [("eos", rules.eos), ("remainder", pad)] {
        if let Some(id) = id {
            rules.check(id).map_err(|e| e.field(field))?;
        }
    }
    Ok(rules)
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
        let entries = discover(&store, "", SUFFIXES)?;
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
        let done = match self.encode.parallel() && threads > 1 {
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
