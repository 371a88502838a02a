//! Tokenises texts that a program hands over: they have no path, and a run that was stopped continues by their number.

use std::cell::RefCell;
use std::path::Path;

use serde_json::{Value, json};
use windrow_core::format::Table;
use windrow_core::manifest::Manifest;
use windrow_core::output::{self, hex};
use windrow_core::threads::cores;
use windrow_core::{Error, Kind, Progress, Result, Watch, check};

use super::options::{TokenizeOptions, rules};
use super::{CHUNK, Corpus, Done, wanted};
use crate::encode::{Encode, EncodedChunk, Rules};
use crate::handed::Handed;
use crate::pack::{Packer, Packing};
use crate::pipeline::{self, Work};
use crate::seen::Seen;
use crate::skipped::Skipped;
use crate::{Report, fed};

/// What the outputs of such texts are named after.
const STEM: &str = "texts";
/// What the manifest keeps of them, beside the number of documents.
pub(super) const TEXT_BYTES: &str = "text_bytes";
const TEXT_XXH3: &str = "text_xxh3";

/// Tokenises texts that come one by one, as [`tokenize`](crate::tokenize()) those of one file `texts.jsonl`: the files are the same.
///
/// Texts are asked for on the calling thread; other threads encode meanwhile, and memory is bounded. After an error of `texts` all those
/// before it are kept, as after a stop: the same call continues. It leaves out the number of texts that are packed, and compares them by
/// their hash with what it packed. The manifest keeps their number, bytes and hash, so a finished output is `unchanged` where the
/// same texts come again; they are read to know it.
///
/// # Errors
/// That of `texts`; `NotFound` where there are none, unless that is allowed; `Config`, `Exists`; `Stale` where a stopped run had other
/// texts, after which the same call starts over; `Interrupted`; `Io`. The record of an error is the number of the text. Nothing visible has
/// changed then.
pub fn tokenize_texts(
    table: Table,
    texts: &mut dyn Iterator<Item = Result<String>>,
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let rules = rules(encode, options)?;
    if encode.takes().is_none() {
        return Err(Error::config("texts are handed over, but this encoder reads lines"));
    }
    if let Some(split) = &options.split {
        return Err(Error::config(format!(
            "split is {split:?}, but texts that are handed over have no splits"
        ))
        .field("split"));
    }
    let mut wanted = wanted(&[], &rules, encode, options);
    wanted.options.insert("from".to_string(), json!("iterable"));
    let corpus =
        Corpus { table, out, options, rules: &rules, stems: vec![STEM.to_string()], wanted, inputs: &[] };
    let handed = RefCell::new(Handed::new(texts, rules.skips));
    corpus.make_unless(
        |manifest| {
            if is_of(manifest, &mut handed.borrow_mut(), watch)? { Ok(()) } else { Err(output::differs(out)) }
        },
        |work, packing, can_continue| {
            let task = Task { packing, rules: &rules, encode, options, watch };
            task.run(&mut handed.borrow_mut(), work, can_continue)
        },
    )
}

/// Puts down what was seen of the texts.
pub(super) fn describe(seen: Seen, manifest: &mut Manifest) {
    manifest.statistics.insert(TEXT_BYTES.to_string(), json!(seen.bytes));
    manifest.statistics.insert(TEXT_XXH3.to_string(), json!(hex(seen.xxh3)));
}

// Whether a manifest is of these texts.
fn is_of(manifest: &Manifest, texts: &mut Handed<'_>, watch: &dyn Watch) -> Result<bool> {
    let said = |name: &str| manifest.statistics.get(name);
    // Those that were left out came, too.
    let skipped = Skipped::read(&manifest.statistics).count;
    let came = said("documents").and_then(Value::as_u64).unwrap_or(0).saturating_add(skipped);
    texts.skip(came, &mut || check(watch))?;
    let seen = texts.seen();
    let is_same = came == seen.texts
        && said(TEXT_BYTES) == Some(&json!(seen.bytes))
        && said(TEXT_XXH3) == Some(&json!(hex(seen.xxh3)));
    Ok(is_same && texts.is_at_end()?)
}

struct Task<'a> {
    packing: Packing,
    rules: &'a Rules,
    encode: &'a dyn Encode,
    options: &'a TokenizeOptions,
    watch: &'a dyn Watch,
}

impl Task<'_> {
    // `can_continue` becomes true when what is left after an error is worth keeping.
    fn run(self, texts: &mut Handed<'_>, work: &Path, can_continue: &mut bool) -> Result<Done> {
        let size = CHUNK.min(self.packing.checkpoint_bytes) as usize;
        let mut packer = Packer::open(work, self.packing)?;
        let (from, is_packed) = (packer.state().seen.unwrap_or_default(), packer.state().input > 0);
        let mut ask = || check(self.watch);
        let left_out = texts.skip(from.texts, &mut ask);
        if left_out.is_err() {
            *can_continue = packer.keep();
        }
        left_out?;
        if texts.seen() != from || (is_packed && !texts.is_at_end()?) {
            return Err(others(from, texts.seen()));
        }
        let mut take = |chunk: &EncodedChunk| {
            packer.take(chunk, chunk.is_last)?;
            let state = packer.state();
            self.watch.progress(Progress {
                done_bytes: chunk.stored,
                total_bytes: 0,
                records: state.records,
            });
            state.skipped.check_begun(state.documents)
        };
        let encoding = Work { encode: self.encode, rules: self.rules, inputs: &[], names: &[] };
        let threads = self.options.num_threads.unwrap_or_else(cores);
        let mut read = |room| texts.read(size, room);
        let done = match (is_packed, self.encode.parallel()) {
            (true, _) => Ok(()),
            (false, true) => fed::in_parallel(&mut read, threads, &encoding, &mut ask, &mut take),
            (false, false) => pipeline::in_line(&mut read, &encoding, &mut ask, &mut take),
        };
        if let Err(e) = done.and_then(|()| ask()) {
            *can_continue = packer.is_worth_keeping(&e);
            return Err(e);
        }
        if let Some(e) = texts.take_failed() {
            *can_continue = packer.keep();
            return Err(e);
        }
        packer.judge(self.options.max_skipped, can_continue)?;
        if packer.state().documents == 0 && !self.options.allow_empty {
            return Err(Error::not_found("there are no texts").hint(
                "an iterator that was read to its end gives none; @allow_empty=true@ writes an empty output",
            ));
        }
        let (state, writer) = packer.finish()?;
        let bytes = texts.seen().bytes;
        self.watch.progress(Progress { done_bytes: bytes, total_bytes: bytes, records: state.records });
        Ok((state, writer, from.bytes))
    }
}

fn others(packed: Seen, found: Seen) -> Error {
    let what = if found.texts < packed.texts {
        format!("there are {} texts; a run that was stopped had {}", found.texts, packed.texts)
    } else {
        format!("a run that was stopped had other texts up to number {}", packed.texts)
    };
    Error::new(Kind::Stale, what)
        .hint("what it left is removed: run it again, and it begins with the first text")
}
