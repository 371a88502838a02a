//! `windrow report`: a page about some data or a plan, to look at and to hand on.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use windrow::dev::output::write_whole;
use windrow::dev::sampler::Shard;
use windrow::{Dataset, Paths, Recipe};
use windrow_report::{
    Asked, Codes, Files, MOST_CODEBOOK, MOST_EPOCHS, Subject, of_plan, of_records, of_sound,
};

use crate::args::output::refuse_input;
use crate::args::{Cutting, Data, Opening, loader, no_stdout, only_token_ids, path};
use crate::failure::{BAD_DATA, DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::{plan, text};

/// Write a page about some data or a plan: what it is, lengths, values, what is missing, what a view sees of it
///
/// One HTML file that needs no network and no script. Of much data a sample is read, and the page says so. Of audio codes it
/// shows durations, prompts, the use of the codebooks and where crops fall; of sound files durations, loudness, what cannot
/// be read, and some of them to see and to hear.
///
/// Of a plan's JSON file (`-` for stdin) it shows, from lengths alone, which neighbours documents keep over five epochs and what each epoch leaves
/// out, how long ranks wait for the dearest of them, and how much is padding.
#[derive(Args, Debug)]
pub(crate) struct Report {
    #[command(flatten)]
    data: Data,
    /// The page
    #[arg(short, long, value_name = "FILE", value_parser = path())]
    out: PathBuf,
    /// Replace an existing page
    #[arg(long)]
    overwrite: bool,
    /// Look at the sound files in the folder, whatever else is there
    #[arg(long)]
    sound: bool,
    /// Decode with this tokenizer; by default the built-in one that the manifest names
    #[arg(long, value_name = "T")]
    tokenizer: Option<String>,
    /// Of a plan: how long this number of ranks wait for the dearest of them
    #[arg(long, value_name = "W")]
    world_size: Option<u64>,
    #[command(flatten)]
    cutting: Cutting,
    #[command(flatten)]
    codes: CodesArgs,
    #[command(flatten)]
    opening: Opening,
}

/// What is known of codes only from outside, and which crops are drawn.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Of audio codes")]
pub(crate) struct CodesArgs {
    /// Samples of sound in a frame [default: 512]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    hop: Option<u32>,
    /// Samples of sound per second, in Hz [default: 44100]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Codes of a codebook; others are listed [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_CODEBOOK))]
    codebook_size: Option<u64>,
    /// Draw random crops of N frames [default: 600]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    length: Option<u64>,
    /// Draw the crops of this number of epochs [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_EPOCHS))]
    epochs: Option<u64>,
    /// Seed of the crops [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

impl CodesArgs {
    /// An option of these that was typed.
    fn given(&self) -> Option<&'static str> {
        let given = [
            ("--hop", self.hop.is_some()),
            ("--rate", self.rate.is_some()),
            ("--codebook-size", self.codebook_size.is_some()),
            ("--length", self.length.is_some()),
            ("--epochs", self.epochs.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    fn codes(&self) -> Codes {
        let CodesArgs { hop, rate, codebook_size, length, epochs, seed } = *self;
        Codes { hop, rate, codebook_size, length, epochs, seed }
    }

    // What the options are not of, where one was typed.
    fn refuse(&self, these: &str) -> Result<(), Failure> {
        match self.given() {
            None => Ok(()),
            Some(option) => {
                Err(Failure::usage(format!("{option} is an option of audio codes, and these are {these}")))
            }
        }
    }
}

pub(crate) fn run(args: &Report, out: &mut Out) -> Result<i32, Failure> {
    no_stdout(&args.out)?;
    // Before any work is done.
    windrow::one_file::refuse_existing(&args.out, args.overwrite)?;
    if let Some(path) = args.data.only()
        && let Some(recipe) = found(path)?
    {
        return planned(args, path, &recipe, out);
    }
    let paths = args.data.paths()?;
    if args.world_size.is_some() {
        return Err(Failure::Usage {
            message: "--world-size is an option of plans, and this is data".to_string(),
            hint: Some(plan::IS_A_PLAN.to_string()),
        });
    }
    let subject = Subject::open(&paths, &args.opening.options()?, args.sound)?;
    match &subject {
        Subject::Records(data) => {
            refuse_own_data(args, &subject)?;
            only_token_ids(args.tokenizer.as_deref(), data.source().as_ref())?;
            records(args, &paths, data, out)
        }
        Subject::Sound(files) => {
            sound_options(args)?;
            refuse_own_data(args, &subject)?;
            sound(args, &paths, files, out)
        }
    }
}

fn planned(args: &Report, path: &Path, recipe: &Recipe, out: &mut Out) -> Result<i32, Failure> {
    args.codes.refuse("plans")?;
    if args.sound || args.tokenizer.is_some() || args.opening.is_given() || args.cutting.view()?.is_some() {
        return Err(plan::says_itself("leave options of data and of views out"));
    }
    let builder = loader(recipe, Some(0))?;
    let typed = std::iter::once(path.to_path_buf());
    refuse_input(&args.out, typed.chain(plan::files(recipe, &builder.plan()?)))?;
    let ranks = Shard::new(0, args.world_size.unwrap_or(1))?.world_size();
    let report = of_plan(recipe, &builder, ranks, &path.display().to_string())?;
    finish(args, report, out)?;
    Ok(DONE)
}

fn records(args: &Report, paths: &Paths, data: &Dataset, out: &mut Out) -> Result<i32, Failure> {
    let asked =
        Asked { view: args.cutting.view()?, tokenizer: args.tokenizer.clone(), codes: args.codes.codes() };
    if !asked.is_about_codes(data) {
        args.codes.refuse("other records")?
    } else if asked.view.is_some() && args.codes.length.is_some() {
        return Err(Failure::usage("--length is that of crops, and another view was named"));
    }
    let stop = Interrupt::listen();
    let report = of_records(data, paths, &asked, &stop)?;
    finish(args, report, out)?;
    Ok(DONE)
}

fn sound(args: &Report, paths: &Paths, files: &Files, out: &mut Out) -> Result<i32, Failure> {
    let stop = Interrupt::listen();
    let progress = Progress::new("reading", out.quiet(), &stop).counting("file");
    let report = of_sound(files, paths, &progress)?;
    drop(progress);
    let unread = report.unread;
    finish(args, report, out)?;
    // As a broken record ends other reports with this code; here the page is there, and names the files.
    Ok(if unread > 0 { BAD_DATA } else { DONE })
}

fn sound_options(args: &Report) -> Result<(), Failure> {
    args.codes.refuse("sound files")?;
    if args.cutting.view()?.is_some() || args.tokenizer.is_some() {
        return Err(Failure::usage("sound files are not cut into samples, nor decoded by a tokenizer"));
    }
    Ok(())
}

// Writes the page to disk, and prints a summary.
fn finish(args: &Report, report: windrow_report::Report, out: &mut Out) -> Result<(), Failure> {
    write_whole(&args.out, report.html.as_bytes())?;
    let size = report.html.len() as u64;
    out.line(format_args!("{}: {}, from {}", args.out.display(), text::size(size), report.from))?;
    let mut object = json!({ "out": args.out });
    if let (Value::Object(object), Value::Object(numbers)) = (&mut object, report.json) {
        object.extend(numbers);
    }
    object["bytes"] = size.into();
    Ok(out.object(object)?)
}

// `--overwrite` is for a page, never for the data it is about.
fn refuse_own_data(args: &Report, subject: &Subject) -> Result<(), Failure> {
    let typed = args.data.paths()?;
    Ok(refuse_input(&args.out, typed.iter().map(Path::to_path_buf).chain(subject.files()))?)
}

// The plan at a path that may be data as well.
fn found(path: &Path) -> windrow::Result<Option<Recipe>> {
    if plan::is_stdin(path) { plan::read(path).map(Some) } else { Ok(plan::written(path)) }
}
