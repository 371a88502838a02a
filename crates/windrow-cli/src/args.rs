//! What can be typed: the commands, and the options that several of them share.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use windrow::format::Options;
use windrow::{
    DType, LoaderBuilder, LossOn, Mode, Nan, Recipe, RecipePart, ScalerName, Strategy, Tail, ViewRecipe,
};

use crate::command::{
    bench, completions, convert, demo, dummy, index, inspect, peek, report, tokenize, trace, verify,
};
use crate::failure::Failure;

/// Reads training data as it lies on disk and feeds it to a model.
///
/// stdout is data, stderr is messages. Exit: 0 done, 1 failed, 2 usage, 3 data found bad, 4 state or plan does not fit, 130
/// interrupted (and can be run again).
#[derive(Debug, Parser)]
#[command(name = "windrow", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// One JSON object on stdout instead of lines; errors too
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,
    /// No progress, no warnings
    #[arg(short, long, global = true, display_order = 901)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Inspect(inspect::Inspect),
    Peek(peek::Peek),
    Report(report::Report),
    Index(index::Index),
    Tokenize(tokenize::Tokenize),
    Convert(convert::Convert),
    Verify(verify::Verify),
    Trace(trace::Trace),
    Bench(bench::Bench),
    Dummy(dummy::Dummy),
    Completions(completions::Completions),
}

impl Command {
    /// Its name, as `--json` says it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Command::Demo(_) => "demo",
            Command::Inspect(_) => "inspect",
            Command::Peek(_) => "peek",
            Command::Report(_) => "report",
            Command::Index(_) => "index",
            Command::Tokenize(_) => "tokenize",
            Command::Convert(_) => "convert",
            Command::Verify(_) => "verify",
            Command::Trace(_) => "trace",
            Command::Bench(_) => "bench",
            Command::Dummy(_) => "dummy",
            Command::Completions(_) => "completions",
        }
    }
}

/// How to open data; what is not said is found out.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How to open")]
pub(crate) struct Opening {
    /// The split in the folder of this name: train, validation
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Read it as this format instead of recognising it
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// dtype of a stored number, where the files do not say
    #[arg(long, value_parser = dtype)]
    dtype: Option<DType>,
    /// Check that every id is below this
    #[arg(long, value_name = "N")]
    vocab_size: Option<u64>,
    /// Name of the index folder
    #[arg(long, value_name = "NAME")]
    index_folder: Option<String>,
    /// Accept files that an index names outside its folder
    #[arg(long)]
    allow_outside: bool,
    /// Accept data that changed after it was indexed
    #[arg(long)]
    trust: bool,
}

impl Opening {
    pub(crate) fn options(&self) -> Options {
        Options {
            format: self.format.clone(),
            dtype: self.dtype,
            vocab_size: self.vocab_size,
            index_folder: self.index_folder.clone(),
            allow_outside: self.allow_outside,
            trust: self.trust,
            part: self.split.clone(),
            ..Options::default()
        }
    }
}

/// How records are cut into samples.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How to cut")]
pub(crate) struct Cutting {
    /// Blocks of N inputs over the joined records
    #[arg(long, value_name = "N", group = "view")]
    pack: Option<u64>,
    /// One row of N inputs per record
    #[arg(long, value_name = "N", group = "view")]
    records: Option<u64>,
    /// Sliding windows: context, prediction (0), stride (context + prediction)
    #[arg(long, value_name = "C[,P[,S]]", group = "view", value_parser = windows)]
    windows: Option<ViewRecipe>,
    /// N values of each record, from a random place
    #[arg(long, value_name = "N", group = "view")]
    crop: Option<u64>,
    /// Whole records side by side in N positions
    #[arg(long, value_name = "N", group = "view")]
    bins: Option<u64>,
    /// With --pack: this id stands after every record
    #[arg(long, value_name = "ID", requires = "pack", allow_hyphen_values = true)]
    eos: Option<i64>,
    /// With --pack: every token a target in one row, its input the token before
    #[arg(long, requires = "pack")]
    shifted: bool,
}

impl Cutting {
    pub(crate) fn view(&self) -> Option<ViewRecipe> {
        let pack = self.pack.map(|length| ViewRecipe::Pack { length, eos: self.eos, shifted: self.shifted });
        let records = self.records.map(|length| ViewRecipe::Records { length, pad_value: 0 });
        let crop = self.crop.map(|length| ViewRecipe::Crop { length, mode: Mode::default() });
        let strategy = Strategy::default();
        let bins = self.bins.map(|length| ViewRecipe::Bins { length, strategy, pad_value: 0 });
        pack.or(records).or_else(|| self.windows.clone()).or(crop).or(bins)
    }
}

/// In which order samples come, and how many to a batch.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How to order")]
pub(crate) struct Ordering {
    /// Rows of a batch, over all ranks [default: 32]
    #[arg(long, value_name = "N")]
    batch_size: Option<u64>,
    /// Keys the order [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// The order of the records
    #[arg(long)]
    no_shuffle: bool,
    /// Keep the last batch of an epoch when it is not full
    #[arg(long)]
    keep_last: bool,
}

impl Ordering {
    /// Whether any of it was typed.
    pub(crate) fn is_given(&self) -> bool {
        self.batch_size.is_some() || self.seed.is_some() || self.no_shuffle || self.keep_last
    }

    pub(crate) fn recipe(&self, path: &Path, opening: &Opening, view: ViewRecipe) -> Recipe {
        let part = RecipePart { path: path.to_path_buf(), options: opening.options(), view, dtype: None };
        Recipe {
            version: 1,
            parts: vec![part],
            names: Vec::new(),
            weights: Vec::new(),
            stop: None,
            shuffle: !self.no_shuffle,
            seed: self.seed.unwrap_or(0),
            global_batch_size: self.batch_size.unwrap_or(32),
            drop_last: !self.keep_last,
        }
    }
}

/// Refuses `-` for a command that reads no stdin.
pub(crate) fn no_stdin(paths: &[PathBuf]) -> Result<(), Failure> {
    match paths.iter().any(|p| p.as_os_str() == "-") {
        true => Err(Failure::Usage {
            message: "stdin cannot be read here: a run that is stopped could not go on from it".to_string(),
            hint: Some("write it to a file first; .gz and .zst are read as they are".to_string()),
        }),
        false => Ok(()),
    }
}

/// The parser of `--dtype`.
pub(crate) fn dtype(text: &str) -> Result<DType, String> {
    DType::parse(text).map_err(|e| format!("{}; {}", e.message(), e.hint_text().unwrap_or_default()))
}

/// The loader of a recipe on this machine, alone.
pub(crate) fn loader(recipe: &Recipe, threads: Option<usize>) -> windrow::Result<LoaderBuilder> {
    Ok(recipe.builder()?.rank(0, 1).threads(threads))
}

fn windows(text: &str) -> Result<ViewRecipe, String> {
    let numbers: Vec<u64> = text
        .split(',')
        .map(|n| n.trim().parse().map_err(|_| format!("{n:?} is no whole number")))
        .collect::<Result<_, _>>()?;
    let (context_length, prediction_length, stride) = match numbers[..] {
        [c] => (c, 0, None),
        [c, p] => (c, p, None),
        [c, p, s] => (c, p, Some(s)),
        _ => return Err(format!("{} numbers, expected context[,prediction[,stride]]", numbers.len())),
    };
    Ok(ViewRecipe::Windows {
        context_length,
        prediction_length,
        stride,
        tail: Tail::default(),
        scaler: ScalerName::default(),
        nan: Nan::default(),
        loss_on: LossOn::default(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn windows_take_one_to_three_numbers() {
        let parsed = |text| windows(text).map(|v| serde_json::to_value(v).unwrap()["windows"].clone());
        assert_eq!(parsed("64,8,4").unwrap()["stride"], 4);
        assert_eq!(parsed("64").unwrap()["prediction_length"], 0);
        assert!(parsed("64,8,4,2").is_err());
        assert!(parsed("64,x").is_err());
    }
}
