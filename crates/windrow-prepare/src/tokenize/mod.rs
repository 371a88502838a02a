//! Text to token samples: options checked, place taken, inputs read, encoded, written, published.

mod existing;
mod inputs;
pub(crate) mod options;
mod place;
mod texts;

use std::path::{Path, PathBuf};

use existing::{existing, unchanged};
pub(crate) use inputs::find;
pub(crate) use options::rules;
pub use options::{CHECKPOINT_BYTES, Remainder, TokenizeOptions, Track};
use place::Place;
use serde_json::json;
pub use texts::tokenize_texts;
use windrow_core::collate::LOSS_MASK_TRACK;
use windrow_core::format::Table;
use windrow_core::format::write::RecordWriter;
use windrow_core::manifest::Manifest;
use windrow_core::output::{Checkpoints, Site, files, hash_of};
use windrow_core::threads::cores;
use windrow_core::{Error, Kind, Progress, Result, Watch, check};

use crate::chunks::Chunks;
use crate::encode::{Encode, EncodedChunk, Rules};
use crate::input::Input;
use crate::names::output_names;
use crate::pack::{Packer, Packing, State};
use crate::pipeline::{self, Work};
use crate::places::{NoStores, Places, Stores};
use crate::skipped;
use crate::text_input::TextInput;
use crate::{Report, UNLEARNED};

/// Input bytes that a thread encodes at a time: each handing over costs it what it had in its cache.
const CHUNK: u64 = 1 << 20;

/// Tokenises every text of the inputs and packs the token IDs into samples.
///
/// Inputs are files of JSON Lines, or folders in which such files are found as [`crate::index()`] finds them, `.gz` and `.zst`
/// expanded on the way, or pipes of such lines, which are read once: a run that was stopped starts over; and files and folders whose records a format of `table` reads as rows, of which
/// a column is the text, or several are what is encoded ([`Encode::takes`]). Rows are read once, in their order, and not kept in
/// the cache. With a sample size S, documents, each followed by `eos`, are joined across lines and inputs and cut every S
/// tokens; a sample belongs to the input of the line that completed it. Without, each document is a record.
///
/// The result depends on inputs and options only, not on threads, restarts or time. A stopped run leaves a hidden work
/// folder; the same call continues from its last checkpoint.
///
/// # Errors
/// `NotFound`, `Config`, `Exists` before anything is read; `Corrupt` naming file, line and byte, or row and column; `Config`
/// naming a token ID that does not fit the dtype; `Stale` when an input changes meanwhile; `Interrupted`; `Io`. After an error
/// nothing visible has changed.
pub fn tokenize(
    table: Table,
    inputs: &[PathBuf],
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    tokenize_from(table, &NoStores, inputs, out, encode, options, watch)
}

/// Tokenises inputs that may be URLs, which lead to `stores`. They are read as they come, each once.
///
/// # Errors
/// As [`tokenize`]; what a store says.
pub fn tokenize_from(
    table: Table,
    stores: &dyn Stores,
    inputs: &[PathBuf],
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let places = Places(stores);
    let rules = rules(encode, options)?;
    let (named, found) = find(table, places, inputs, encode.takes(), options)?;
    let stems = output_names(&named)?;
    let inputs: Vec<TextInput> = std::iter::zip(&named, found)
        .map(|(named, found)| match found {
            Some(rows) => Ok(TextInput::Rows(rows.named(&named.relative))),
            None => Input::of_any(table, places, &named.file, &named.relative).map(TextInput::Lines),
        })
        .collect::<Result<_>>()?;
    let wanted = wanted(&inputs, &rules, encode, options);
    let corpus = Corpus { table, out, options, rules: &rules, stems, wanted, inputs: &inputs };
    corpus.make(|work, packing, can_continue| {
        let task = Task { inputs: &inputs, packing, rules: &rules, encode, options, watch };
        task.run(work, can_continue)
    })
}

/// A corpus that is to be written: what it is, and where.
pub(crate) struct Corpus<'a> {
    pub(crate) table: Table,
    pub(crate) out: &'a Path,
    pub(crate) options: &'a TokenizeOptions,
    pub(crate) rules: &'a Rules,
    /// What its inputs are called.
    pub(crate) stems: Vec<String>,
    /// The manifest without its findings: what decides the output.
    pub(crate) wanted: Manifest,
    /// The inputs that it names, where they are read here: how much came of a pipe is known at its end.
    pub(crate) inputs: &'a [TextInput],
}

impl Corpus<'_> {
    /// Looks whether it is there, else takes the place, has it packed in a work folder, and makes it visible. What packs it
    /// says of an error whether what it left is worth keeping.
    pub(crate) fn make(self, pack: impl FnOnce(&Path, Packing, &mut bool) -> Result<Done>) -> Result<Report> {
        self.make_unless(|_| Ok(()), pack)
    }

    /// Makes the output, unless one with this manifest, which was made with these options, is there already.
    fn make_unless(
        self,
        compare: impl Fn(&Manifest) -> Result<()>,
        pack: impl FnOnce(&Path, Packing, &mut bool) -> Result<Done>,
    ) -> Result<Report> {
        let Corpus { table, out, options, rules, stems, mut wanted, inputs } = self;
        let place = Place::of(out, options.to.as_ref())?;
        let hash = work_hash(&wanted);
        let compare = |manifest: &Manifest| {
            compare(manifest)?;
            skipped::judge(manifest, options.max_skipped)
        };
        // Complete already: nothing has to be writable. An error may be fixed by finishing what a killed run began to show.
        if let Ok(Some(manifest)) = existing(table, &place, options, &wanted) {
            compare(&manifest)?;
            Site::tidy(&place.folder, &place.task, &hash);
            return Ok(unchanged(out, &manifest));
        }
        let site = Site::enter(&place.folder, &place.task, &hash, options.fsync)?;
        if let Some(manifest) = existing(table, &place, options, &wanted)? {
            compare(&manifest)?;
            return Ok(unchanged(out, &manifest));
        }
        let work = site.work(&hash)?;
        let packing = packing(stems, rules, options, &place);
        let mut can_continue = false;
        let done = pack(&work, packing, &mut can_continue).and_then(|(state, writer, resumed_bytes)| {
            check_learned(&state)?;
            if inputs.iter().any(TextInput::is_pipe) {
                wanted.inputs = inputs.iter().flat_map(TextInput::files).collect();
            }
            let manifest = writer.finish(described(wanted, &state, options))?.manifest;
            let targets: Vec<&str> = place.targets.iter().map(String::as_str).collect();
            // An empty folder does not count. It goes now: a run that finishes this one must not replace what came into it
            // since.
            files::remove_if_empty(&place.out);
            files::sync_folder(&place.folder, options.fsync)?;
            let leaving: Vec<&str> = place.leaving().iter().map(String::as_str).collect();
            site.commit(&work, &targets, &leaving, options.overwrite)?;
            Ok(Report { unchanged: false, resumed_bytes, ..unchanged(out, &manifest) })
        });
        if let Err(error) = &done {
            // What fails once all is packed, as a full disk, leaves what a kill leaves there.
            let continues = || error.kind() == Kind::Io && Checkpoints::of(&work, false).is_there();
            if !can_continue && !continues() {
                // The error that is being reported matters more than one of tidying up.
                let _ = site.discard(&work);
            }
        }
        done
    }
}

/// Raised when this windrow reads what a stopped run left in another way than earlier ones: theirs is not continued then.
const WORK_LAYOUT: u32 = 1;

// Names the work folder. The version of windrow is not part of it: inputs, options and tokenizer decide the bytes, and they are all
// here. So a run that another version stopped continues, just as its finished output would be unchanged.
fn work_hash(wanted: &Manifest) -> String {
    let mut decides = Manifest { windrow: String::new(), ..wanted.clone() };
    if let Some(lock) = &mut decides.tokenizer {
        lock.windrow.clear();
    }
    hash_of(format!("{WORK_LAYOUT}\n{}", decides.to_text()))
}

fn packing(stems: Vec<String>, rules: &Rules, options: &TokenizeOptions, place: &Place) -> Packing {
    let tracks = || rules.tracks.iter().map(|(i, _)| &options.tracks[*i]);
    Packing {
        to: options.to.clone(),
        inputs: stems,
        name: place.targets[0].clone(),
        out: place.out.clone(),
        sample_size: options.sample_size,
        dtype: rules.dtype,
        vocab_size: rules.vocab_size,
        tracks: tracks().map(|track| track.name.clone()).collect(),
        track_pads: tracks().map(|track| track.pad).collect(),
        remainder: options.remainder,
        fsync: options.fsync,
        checkpoint_bytes: options.checkpoint_bytes.max(1),
    }
}

// What decides the output: the manifest without its findings.
pub(crate) fn wanted(
    inputs: &[TextInput],
    rules: &Rules,
    encode: &dyn Encode,
    options: &TokenizeOptions,
) -> Manifest {
    let mut manifest = Manifest::new(options.to.name());
    manifest.dtype = Some(rules.dtype);
    manifest.vocab_size = rules.vocab_size;
    manifest.eos = options.eos.or(encode.eos());
    manifest.tokenizer = encode.lock();
    manifest.inputs = inputs.iter().flat_map(TextInput::files).collect();
    manifest.options = options.describe();
    manifest.options.insert("task".to_string(), json!("tokenize"));
    manifest.options.insert("encode".to_string(), json!(encode.describe()));
    manifest
}

// Refuses a corpus of which nothing is learned: a run on it has a loss of zero.
fn check_learned(state: &State) -> Result<()> {
    let (unlearned, all) = (state.unlearned_documents, state.documents);
    if unlearned == 0 {
        return Ok(());
    }
    if unlearned == all && state.tokens > 0 {
        return Err(Error::config(format!("nothing is learned of any of {all} documents: the loss mask excludes every token"))
            .field(LOSS_MASK_TRACK)
            .hint("of a conversation what the assistant says is learned: its role is assistant, model, bot or gpt; a mask is 1 where learned"));
    }
    windrow_core::warn!(
        "nothing is learned of {unlearned} of {all} documents: their loss mask excludes every token"
    );
    Ok(())
}

// The same with what was found.
fn described(mut manifest: Manifest, state: &State, options: &TokenizeOptions) -> Manifest {
    manifest.records = Some(state.records);
    manifest.record_length = options.sample_size;
    for (name, n) in [
        ("documents", state.documents),
        ("tokens", state.tokens),
        ("dropped_tokens", state.dropped_tokens),
        ("padded_tokens", state.padded_tokens),
    ] {
        manifest.statistics.insert(name.to_string(), json!(n));
    }
    state.skipped.write(&mut manifest.statistics);
    if let Some(seen) = state.seen {
        texts::describe(seen, &mut manifest);
    }
    if state.unlearned_documents > 0 {
        manifest.statistics.insert(UNLEARNED.to_string(), json!(state.unlearned_documents));
    }
    if let Some(id) = state.most_id {
        manifest.statistics.insert("most_id".to_string(), json!(id));
    }
    manifest
}

/// The error that inputs hold nothing.
pub(crate) fn no_texts(first: Option<String>) -> Error {
    Error::not_found("there are no texts: the inputs are empty").at(first.unwrap_or_default()).hint(
        "a copy that was cut short may be empty: fetch it again; @allow_empty=true@ writes an empty output",
    )
}

struct Task<'a> {
    inputs: &'a [TextInput],
    packing: Packing,
    rules: &'a Rules,
    encode: &'a dyn Encode,
    options: &'a TokenizeOptions,
    watch: &'a dyn Watch,
}

/// What was packed, the writer to be finished, and the bytes an earlier run had done.
pub(crate) type Done = (State, Box<dyn RecordWriter>, u64);

impl Task<'_> {
    // `can_continue` becomes true when what is left after an error is worth keeping.
    fn run(&self, work: &Path, can_continue: &mut bool) -> Result<Done> {
        let mut packer = Packer::open(work, self.packing.clone())?;
        let before: Vec<u64> = self
            .inputs
            .iter()
            .scan(0, |sum, input| Some(std::mem::replace(sum, *sum + input.size())))
            .collect();
        let total_bytes = self.inputs.iter().map(TextInput::size).sum();
        let done_bytes = |state: &State| before.get(state.input).map_or(total_bytes, |b| b + state.stored);
        let from = packer.state().clone();
        let resumed = done_bytes(&from);
        let size = CHUNK.min(self.packing.checkpoint_bytes) as usize;
        let chunks = Chunks::new(self.inputs, size, from.input, from.byte, from.line);
        let mut chunks = chunks.skipping(self.rules.skips);
        let names: Vec<String> = self.inputs.iter().map(TextInput::display).collect();
        let encoding = Work { encode: self.encode, rules: self.rules, inputs: self.inputs, names: &names };
        let mut take = |chunk: &EncodedChunk| {
            let is_end = chunk.is_last && chunk.input + 1 == self.inputs.len();
            packer.take(chunk, is_end)?;
            let state = packer.state();
            self.watch.progress(Progress {
                done_bytes: done_bytes(state),
                total_bytes,
                records: state.records,
            });
            state.skipped.check_begun(state.documents)
        };
        let threads = self.options.num_threads.unwrap_or_else(cores);
        let mut ask = || check(self.watch);
        // One thread reads and encodes while this one writes beside it.
        let done = if self.encode.parallel() {
            pipeline::in_parallel(chunks, threads, &encoding, &mut ask, &mut take)
        } else {
            pipeline::in_line(&mut |room| chunks.read(room), &encoding, &mut ask, &mut take)
        };
        let done = done.and_then(|()| ask());
        if let Err(e) = done {
            *can_continue = !self.inputs.iter().any(TextInput::is_pipe) && packer.is_worth_keeping(&e);
            return Err(e);
        }
        packer.judge(self.options.max_skipped, can_continue)?;
        if packer.state().documents == 0 && !self.options.allow_empty {
            return Err(no_texts(self.inputs.first().map(TextInput::display)));
        }
        let (state, writer) = packer.finish()?;
        Ok((state, writer, resumed))
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::manifest::TokenizerLock;

    use super::*;

    #[test]
    fn a_run_that_another_version_stopped_has_the_same_work_folder() {
        let of = |windrow: &str, hash: &str| {
            let [windrow, hash] = [windrow, hash].map(str::to_string);
            let tokenizer =
                Some(TokenizerLock { windrow: windrow.clone(), hash, ..TokenizerLock::default() });
            Manifest { windrow, tokenizer, ..Manifest::new("tokens") }
        };
        assert_eq!(work_hash(&of("0.0.1", "a")), work_hash(&of("0.0.2", "a")));
        assert_ne!(work_hash(&of("0.0.1", "a")), work_hash(&of("0.0.1", "b")));
        let other = Manifest { eos: Some(1), ..of("0.0.1", "a") };
        assert_ne!(work_hash(&of("0.0.1", "a")), work_hash(&other));
    }
}
