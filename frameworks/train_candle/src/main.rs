//! Trains a small GPT in candle on token IDs, is stopped anywhere, and continues to the same losses.
//!
//! ```text
//! windrow tokenize testdata/demo/corpus.jsonl --tokenizer bytes --to tokens --eos auto --out tokens
//! cargo run --release --manifest-path frameworks/Cargo.toml -p train_candle -- -f frameworks/train_candle/nano.yaml -d tokens
//! ```

mod adam;
mod checkpoint;
mod config;
mod model;
mod train;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use windrow::{Kind, Result};

use crate::config::Config;
use crate::train::{Resume, Run};

/// How many threads candle multiplies on. Matrices as small as these are slower on several, as their threads spin.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Trains a small GPT in candle. Each logged step is a line of JSON on standard output.
#[derive(Parser)]
#[command(name = "train_candle", version)]
struct Args {
    /// May stand first, as in oxidizr's command line.
    #[arg(value_parser = ["train"], hide = true)]
    command: Option<String>,
    /// Model and trainer, in oxidizr's YAML keys
    #[arg(short = 'f', long, value_name = "FILE")]
    config: PathBuf,
    /// Token ids, in any format that windrow opens; random ids if not given
    #[arg(short, long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Instead of model.max_seq_len
    #[arg(long, value_name = "N", value_parser = count())]
    seq_len: Option<u64>,
    /// Instead of trainer.batch_size
    #[arg(long, value_name = "N", value_parser = count())]
    batch_size: Option<u64>,
    /// Instead of trainer.gradient_accumulation
    #[arg(long, value_name = "N", value_parser = count())]
    grad_accum: Option<u64>,
    /// Instead of trainer.max_steps; 0 is no limit
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Instead of trainer.max_checkpoints; 0 keeps all
    #[arg(long, value_name = "N")]
    max_checkpoints: Option<usize>,
    /// Instead of trainer.checkpoint_dir
    #[arg(long, value_name = "DIR")]
    checkpoint_dir: Option<PathBuf>,
    /// Continues from a checkpoint: its path, or `auto` for the newest in checkpoint_dir, if there is one
    #[arg(long, value_name = "PATH|auto")]
    resume: Option<PathBuf>,
    /// Keys the order of the data and the first weights
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Accepted for oxidizr's command line: there is no other output
    #[arg(long)]
    headless: bool,
}

fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=u64::from(u32::MAX))
}

impl Args {
    fn run(self) -> Result<Run> {
        let mut config = Config::read(&self.config)?;
        let Config { model, trainer } = &mut config;
        let set = |value: &mut usize, option: Option<u64>| *value = option.map_or(*value, |n| n as usize);
        set(&mut model.max_seq_len, self.seq_len);
        set(&mut trainer.batch_size, self.batch_size);
        set(&mut trainer.gradient_accumulation, self.grad_accum);
        trainer.max_steps = self.max_steps.unwrap_or(trainer.max_steps);
        trainer.max_checkpoints = self.max_checkpoints.unwrap_or(trainer.max_checkpoints);
        if let Some(folder) = self.checkpoint_dir {
            trainer.checkpoint_dir = folder;
        }
        model.check().map_err(|e| e.or_at(&self.config))?;
        let resume = self
            .resume
            .map(|path| if path.as_os_str() == "auto" { Resume::Newest } else { Resume::From(path) });
        Ok(Run { config, data: self.data, resume, seed: self.seed })
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if std::env::var_os(THREADS).is_none() {
        // SAFETY: no other thread runs yet that could read the environment.
        unsafe { std::env::set_var(THREADS, "1") };
    }
    let (mut out, mut notes) = (std::io::stdout(), std::io::stderr());
    match args.run().and_then(|run| train::run(&run, &mut out, &mut notes)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell where standard error is closed.
            let _ = writeln!(notes, "error: {error:#}");
            // As the `windrow` command: 3 for bad data, 4 for a state that does not fit.
            ExitCode::from(match error.kind() {
                Kind::Corrupt => 3,
                Kind::Mismatch => 4,
                _ => 1,
            })
        }
    }
}
