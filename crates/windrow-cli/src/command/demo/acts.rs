//! The acts of the demo, each a few lines of what any program would write.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Instant;

use serde_json::{Map, Value, json};
use windrow::bench;
use windrow::dev::collate::Batch;
use windrow::prepare::{self, IndexOptions, TokenizeOptions};
use windrow::preview::tokens;
use windrow::text::Tokenizer;
use windrow::{Dataset, Error, Loader, Result, Samples, State, TextEncoder, open};

use super::{Place, keep};
use crate::command::inspect::show;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::text;

/// What the corpus is tokenised into.
const TO: &str = windrow::TOKENIZE_TO;
pub(super) const TOKENIZER: &str = "cl100k_base";
pub(super) const LENGTH: u64 = 256;
pub(super) const BATCH: u64 = 8;
pub(super) const EPOCHS: u64 = 2;
const SEED: u64 = 42;
const RANKS: u64 = 2;

/// A run that was stopped.
pub(super) struct Run {
    pub(super) state: State,
    /// Steps delivered before the stop.
    pub(super) stopped: u64,
    steps: u64,
    last: Batch,
    /// Position of the last batch's first row, and its epoch.
    last_at: (u64, u64),
}

/// What was found equal.
pub(super) struct Compared {
    pub(super) steps: u64,
    pub(super) bytes: u64,
}

/// Indexes and tokenises.
pub(super) fn prepare(place: &Place, out: &mut Out, interrupt: &Interrupt) -> Result<Value, Failure> {
    let started = Instant::now();
    let watch = Progress::new("index", out.quiet(), interrupt);
    let indexed = prepare::index(&place.corpus, &IndexOptions::default(), &watch)?;
    drop(watch);
    out.line(format_args!(
        "   index: {}{}",
        text::counted(indexed.records, "record"),
        again(indexed.unchanged)
    ))?;

    let encoder = TextEncoder::new(Tokenizer::load(TOKENIZER)?, "text", "auto")?;
    let options = TokenizeOptions {
        eos: prepare::Encode::eos(&encoder),
        append_eos: true,
        ..TokenizeOptions::new(windrow::writer(TO, &Map::new())?)
    };
    let watch = Progress::new("tokenize", out.quiet(), interrupt);
    let inputs = [place.corpus.join("corpus.jsonl")];
    let made = prepare::tokenize(&inputs, &place.tokens, &encoder, &options, &watch)?;
    drop(watch);
    let seconds = started.elapsed().as_secs_f64();
    let how = if made.unchanged { again(true).to_string() } else { format!(" in {seconds:.1} s") };
    out.line(format_args!("   tokenize: {} of tokens{how}", text::counted(made.records, "record")))?;
    Ok(json!({ "index": indexed, "tokenize": made, "seconds": seconds }))
}

fn again(unchanged: bool) -> &'static str {
    if unchanged { ", there already" } else { "" }
}

/// Opens the tokens and shows what they are.
pub(super) fn inspect(place: &Place, out: &mut Out) -> Result<Dataset, Failure> {
    let data = open(&place.tokens)?;
    show(&data, &data.info()?, data.manifest(), out)?;
    Ok(data)
}

/// Shows the first sample as text.
pub(super) fn sample(data: &Dataset, out: &mut Out) -> Result<Value, Failure> {
    let view = data.pack(LENGTH)?;
    let batch = view.batch(&[0], SEED)?;
    let decoded = match tokens::tokenizer(None, data.manifest())? {
        Some(tokenizer) => tokens::decoded(&tokenizer, batch.get::<i64>("input_ids")?).unwrap_or_default(),
        None => String::new(),
    };
    let coverage = view.coverage()?;
    out.line(format_args!(
        "   {}; every token but the first is a target once",
        text::counted(view.len(), "sample")
    ))?;
    out.line(format_args!("   {} at the end fill no block", text::counted(coverage.unseen, "token")))?;
    out.line(text::truncated(&format!("   sample 0: \"{}\"", text::escaped(&decoded)), text::width()))?;
    Ok(json!({ "samples": view.len(), "coverage": coverage, "text": decoded }))
}

/// Feeds until the middle of the run, and keeps its state.
pub(super) fn feed(
    place: &Place,
    data: &Dataset,
    out: &mut Out,
    interrupt: &Interrupt,
) -> Result<Run, Failure> {
    let view = data.pack(LENGTH)?;
    let builder = view.loader().batch_size(BATCH).seed(SEED).rank(0, 1).epochs(Some(EPOCHS));
    let mut recipe = builder.recipe()?;
    // The plan is to work from any folder.
    for part in &mut recipe.parts {
        part.path = part
            .path
            .try_map(|path| std::path::absolute(path).map_err(|e| Error::io("find the data", path, e)))?;
    }
    if let (Some(folder), Some(name)) = (place.plan.parent(), place.plan.file_name().and_then(|n| n.to_str()))
    {
        keep(folder, name, recipe.to_json().as_bytes())?;
    }

    let mut loader = builder.build()?;
    let in_epoch = loader.steps().in_epoch(loader.plan().sampler(), 0).unwrap_or(0);
    let steps = in_epoch * EPOCHS;
    // Not between two epochs: that would be too easy.
    let stopped = in_epoch + in_epoch / 3;
    let mut last = None;
    for _ in 0..stopped {
        interrupt.check()?;
        last = loader.next_batch().transpose()?;
    }
    let Some(last) = last else { return Err(Error::config("the sample data gives no batch").into()) };
    let state = loader.state();
    let at = (state.samples - BATCH, state.epoch);
    for field in last.fields() {
        out.line(format_args!("   {:9}  {} {} × {:?}", field.name, field.dtype, last.rows(), field.shape))?;
    }
    out.line(format_args!("   stopped after {stopped} of {steps} steps; the whole state:"))?;
    out.line(format_args!("   {}", json!(state)))?;
    Ok(Run { state, stopped, steps, last, last_at: at })
}

/// Resumes on two ranks and compares every remaining batch with those of a run that was never stopped.
pub(super) fn resume(
    run: &Run,
    data: &Dataset,
    out: &mut Out,
    interrupt: &Interrupt,
) -> Result<Compared, Failure> {
    let view = data.pack(LENGTH)?;
    let mut whole = view.loader().batch_size(BATCH).seed(SEED).rank(0, 1).epochs(Some(EPOCHS)).build()?;
    for _ in 0..run.stopped {
        interrupt.check()?;
        whole.next_batch().transpose()?;
    }
    let mut ranks =
        (0..RANKS).map(|rank| rank_loader(&view, rank, &run.state)).collect::<Result<Vec<_>>>()?;
    let mut compared = Compared { steps: 0, bytes: 0 };
    while let Some(expected) = whole.next_batch().transpose()? {
        interrupt.check()?;
        let mut parts = Vec::new();
        for loader in &mut ranks {
            parts.extend(loader.next_batch().transpose()?);
        }
        compared.bytes += equal(&expected, &parts, run.stopped + compared.steps)?;
        compared.steps += 1;
    }
    let left = ranks.iter_mut().filter_map(Loader::next_batch).count();
    if left > 0 || compared.steps != run.steps - run.stopped {
        let message =
            format!("the resumed run has {} steps, expected {}", compared.steps, run.steps - run.stopped);
        return Err(different(message).into());
    }
    let bytes = text::size(compared.bytes);
    out.line(format_args!(
        "   {} steps left, all {} the same, byte for byte ({bytes})",
        compared.steps, compared.steps
    ))?;
    Ok(compared)
}

fn rank_loader(view: &Samples, rank: u64, state: &State) -> Result<Loader> {
    let builder = view.loader().global_batch_size(BATCH).seed(SEED).rank(rank, RANKS).epochs(Some(EPOCHS));
    let mut loader = builder.num_threads(Some(1)).build()?;
    loader.resume(state)?;
    Ok(loader)
}

fn different(message: String) -> Error {
    Error::new(windrow::Kind::Io, message).hint("this is a fault of windrow: please report it")
}

// Bytes of all tensors, when the ranks' rows one after the other are those of the whole batch.
fn equal(expected: &Batch, parts: &[Batch], step: u64) -> Result<u64> {
    let mut bytes = 0;
    for (f, field) in expected.fields().iter().enumerate() {
        let joined: Vec<u8> = parts.iter().flat_map(|part| part.bytes(f)).copied().collect();
        if joined != expected.bytes(f) {
            return Err(different(format!("{} of step {step} differs after resuming", field.name)));
        }
        bytes += joined.len() as u64;
    }
    Ok(bytes)
}

/// Traces the last row before the stop to its bytes, reads them, and compares.
pub(super) fn trace(run: &Run, data: &Dataset, out: &mut Out) -> Result<Value, Failure> {
    let plan = data.pack(LENGTH)?.loader().seed(SEED).rank(0, 1).plan()?;
    let (first, epoch) = run.last_at;
    let row = BATCH - 1;
    let traced = plan.trace(epoch, first + row)?;
    let (step, sample) = (run.stopped - 1, traced.sample);
    out.line(format_args!(
        "   step {step}, row {row} is sample {} of epoch {epoch}, read from",
        text::count(sample)
    ))?;
    let size = data.source().schema().element.size();
    let mut read = Vec::new();
    for location in &traced.locations {
        let (start, end) = (text::count(location.start), text::count(location.start + location.size));
        out.line(format_args!("   {}  bytes {start}..{end}", location.file))?;
        read.extend(bytes_at(&location.file, location.start, location.size)?);
    }
    let ids = run.last.get::<i64>("input_ids")?;
    let ids = &ids[ids.len() - usize::try_from(LENGTH).unwrap_or(0)..];
    let found = read.chunks_exact(size).map(|number| {
        let mut wide = [0u8; 8];
        wide[..number.len().min(8)].copy_from_slice(&number[..number.len().min(8)]);
        i64::from_le_bytes(wide)
    });
    if !found.take(ids.len()).eq(ids.iter().copied()) {
        return Err(different("the bytes that the trace names are not those of the batch".to_string()).into());
    }
    out.line("   those bytes are the row's input_ids")?;
    Ok(json!({ "step": step, "row": row, "sample": sample, "epoch": epoch, "locations": traced.locations }))
}

fn bytes_at(file: &str, start: u64, size: u64) -> Result<Vec<u8>> {
    let failed = |e| Error::io("read the traced bytes", file, e);
    let mut opened = File::open(file).map_err(failed)?;
    opened.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut bytes = Vec::new();
    opened.take(size).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Feeds for half a second.
pub(super) fn speed(data: &Dataset, out: &mut Out, interrupt: &Interrupt) -> Result<Value, Failure> {
    let mut loader = data.pack(LENGTH)?.loader().batch_size(BATCH).seed(SEED).rank(0, 1).build()?;
    let fed = bench::feed(&mut loader, 0.5, &|| interrupt.asked())?;
    loader.stop();
    let copied = bench::copying(data.info()?.bytes, fed.batch_bytes, fed.threads, 0.2);
    let (tokens, bytes) = (text::rate(fed.positions, "tokens"), text::rate(fed.bytes, "B"));
    let threads = text::counted(fed.threads as u64, "thread");
    out.line(format_args!("   loader  {bytes} of tensors, {tokens}, {threads}"))?;
    out.line(format_args!("   memcpy  {}, the same bytes on the same threads", text::rate(copied, "B")))?;
    Ok(json!({ "loader": fed, "memcpy_bytes_per_second": copied }))
}
