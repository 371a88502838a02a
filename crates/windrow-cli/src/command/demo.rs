//! `windrow demo`: the main job, from text to batches and back, on sample data that the program carries along.

mod acts;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use windrow::dev::output::write_whole;
use windrow::{Error, Kind, Result};

use self::acts::{BATCH, EPOCHS, LENGTH, TOKENIZER};
use crate::args::{no_stdout, path};
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::text;

/// Prepare, inspect, feed, stop and resume the sample data that ships with windrow
///
/// Writes a few megabytes to a folder. Running it again takes up what is there.
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Folder to write
    #[arg(short, long, value_name = "DIR", default_value = "windrow-demo", value_parser = path())]
    out: PathBuf,
}

const CORPUS: &[u8] = include_bytes!("../../assets/corpus.jsonl");
const NOTICE: &[u8] = include_bytes!("../../assets/NOTICE");

pub(crate) fn run(args: &Demo, out: &mut Out) -> Result<i32, Failure> {
    no_stdout(&args.out)?;
    let interrupt = Interrupt::listen();
    let place = Place::new(&args.out);
    let mut facts = serde_json::Map::new();
    let mut note = |name: &str, value: Value| facts.insert(name.to_string(), value);

    out.line(format_args!(
        "1  prepare: text from JSON lines, indexed, then made into tokens of {TOKENIZER}"
    ))?;
    let documents = CORPUS.iter().filter(|b| **b == b'\n').count() as u64;
    let what = format!("{}, {}", text::counted(documents, "document"), text::size(CORPUS.len() as u64));
    keep(&place.corpus, "corpus.jsonl", CORPUS)?;
    keep(&place.corpus, "NOTICE", NOTICE)?;
    out.line(format_args!("   {}: {what}, licences in NOTICE", place.corpus.join("corpus.jsonl").display()))?;
    note("prepare", acts::prepare(&place, out, &interrupt)?);

    out.line("\n2  inspect")?;
    let data = acts::inspect(&place, out)?;

    out.line(format_args!(
        "\n3  cut: the joined documents in blocks of {LENGTH} inputs, each with its next tokens"
    ))?;
    note("sample", acts::sample(&data, out)?);

    out.line(format_args!("\n4  feed: {EPOCHS} epochs in batches of {BATCH}, shuffled; stop in the middle"))?;
    let run = acts::feed(&place, &data, out, &interrupt)?;
    note("state", json!(run.state));
    note("stopped_after", json!(run.stopped));

    out.line("\n5  resume: from that state, on 2 ranks, beside a run that was never stopped")?;
    let compared = acts::resume(&run, &data, out, &interrupt)?;
    note("resumed_steps", json!(compared.steps));
    note("compared_bytes", json!(compared.bytes));

    out.line("\n6  trace: what a row was made of")?;
    note("trace", acts::trace(&run, &data, out)?);

    out.line("\n7  speed")?;
    note("speed", acts::speed(&data, out, &interrupt)?);

    let next = next(&place);
    out.line("\ntry next")?;
    for command in &next {
        out.line(format_args!("   {command}"))?;
    }
    note("out", json!(args.out));
    note("next", json!(next));
    out.object(Value::Object(facts))?;
    Ok(DONE)
}

/// Where everything lies.
pub(crate) struct Place {
    corpus: PathBuf,
    tokens: PathBuf,
    plan: PathBuf,
}

impl Place {
    fn new(folder: &Path) -> Place {
        Place { corpus: folder.join("corpus"), tokens: folder.join("tokens"), plan: folder.join("plan.json") }
    }
}

fn next(place: &Place) -> [String; 3] {
    let (tokens, plan) = (text::quoted_path(&place.tokens), text::quoted_path(&place.plan));
    [
        format!("windrow inspect {tokens} --histogram"),
        format!("windrow trace {plan} --step 10 --row 0"),
        format!("windrow bench {tokens} --pack 1024 --batch-size 32"),
    ]
}

/// Writes a file unless it is there with this content; a reader sees all of it or none. A file of somebody else is left alone.
fn keep(folder: &Path, name: &str, content: &[u8]) -> Result<()> {
    let path = folder.join(name);
    if windrow::one_file::holds(&path, content) {
        return Ok(());
    }
    if fs::symlink_metadata(&path).is_ok() {
        return Err(Error::new(Kind::Exists, "another file is there already")
            .at(path)
            .hint("choose another folder with --out"));
    }
    fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
    write_whole(&path, content)
}
