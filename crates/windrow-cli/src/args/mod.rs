//! The options that several commands share: what to read and how to open it, how to slice it into samples (view), how to order them (order).

mod order;
pub(crate) mod output;
mod view;

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde_json::Value;
use windrow::dev::source::Source;
use windrow::format::{self, Axis, Options, Payload};
use windrow::preview::tokens;
use windrow::{DType, Paths};

pub(crate) use self::order::{Ordering, loader};
pub(crate) use self::view::Cutting;
use crate::codes::are_codes;
use crate::failure::Failure;
use crate::text;

/// What to read.
#[derive(Args, Clone, Debug)]
pub(crate) struct Data {
    /// A file or folder, or several as one data set; also a pattern in quotes: 'data/*.parquet', 'x-{000..127}.tar'
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl Data {
    /// The paths as they were typed.
    ///
    /// # Errors
    /// For `-`.
    pub(crate) fn paths(&self) -> Result<Paths, Failure> {
        no_stdin(&self.paths)?;
        Ok(Paths::list(self.paths.iter()))
    }

    /// The one path, if there is one.
    pub(crate) fn only(&self) -> Option<&Path> {
        match &self.paths[..] {
            [path] => Some(path),
            _ => None,
        }
    }
}

/// Paths in an object of `--json`: one path as text, several as a list.
pub(crate) fn shown(paths: &Paths) -> Value {
    let mut shown = paths.iter().map(|path| Value::from(path.display().to_string())).collect::<Vec<_>>();
    match shown.len() {
        1 => shown.remove(0),
        _ => shown.into(),
    }
}

/// How to open data; what is not said is found out.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How to open")]
pub(crate) struct Opening {
    /// The split in the folder of this name, or in the files whose names say it: train, validation; all joins them
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// Read it as this format instead of recognising it
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// dtype of a stored number, where the files do not say
    #[arg(long, value_parser = dtype)]
    dtype: Option<DType>,
    /// Check that every ID is below this
    #[arg(long, value_name = "N")]
    vocab_size: Option<u64>,
    /// Of raw token files: this id ends each document, and documents are records
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    document_eos: Option<i64>,
    /// Of JSON, YAML and pickles: the key that holds the series
    #[arg(long, value_name = "KEY")]
    column: Option<String>,
    /// Of records with named columns, JSON among them: only these, as rows
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Columns beside the token IDs that say which are learned: 0 and 1, or labels; `auto` finds the usual ones, `none`: no mask
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    mask_column: Option<Vec<String>>,
    /// Of records of bytes, as in TFRecord, ArrayRecord and Bagz: what they hold
    #[arg(long, value_name = "KIND", value_parser = word::<Payload>(&["bytes", "text", "json", "example"]))]
    payload: Option<Payload>,
    /// Of arrays: `time` makes one series of [T, C], not T series of C values
    #[arg(long, value_name = "AXIS", value_parser = word::<Axis>(&["time"]))]
    axis: Option<Axis>,
    /// Name of the index folder
    #[arg(long, value_name = "NAME")]
    index_folder: Option<String>,
    /// Accept files that an index names outside its folder
    #[arg(long)]
    allow_outside: bool,
    /// Accept data that changed after it was indexed
    #[arg(long)]
    trust: bool,
    /// Most bytes that all of the cache may take: what is expanded, converted and fetched; of URLs, 0 keeps what is fetched in memory
    #[arg(long, value_name = "BYTES")]
    cache_limit: Option<u64>,
    #[command(flatten)]
    stores: Stores,
    /// Hold every block that is read against its block checksum
    #[arg(long, value_name = "WHEN", value_parser = ["always"])]
    verify: Option<String>,
}

impl Opening {
    /// Whether any of it was typed.
    pub(crate) fn is_given(&self) -> bool {
        self.options() != Options::default()
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            format: self.format.clone(),
            dtype: self.dtype,
            vocab_size: self.vocab_size,
            eos: self.document_eos,
            column: self.column.clone(),
            columns: self.columns.clone(),
            mask_column: self.mask_column.as_deref().and_then(mask_column),
            payload: self.payload,
            axis: self.axis,
            index_folder: self.index_folder.clone(),
            allow_outside: self.allow_outside,
            trust: self.trust,
            cache_limit: self.cache_limit,
            verify: if self.verify.is_some() { format::Verify::Always } else { format::Verify::AtOpening },
            part: self.split.clone(),
            ..self.stores.options()
        }
    }
}

// `auto` and `none` are words, other names are columns.
fn mask_column(typed: &[String]) -> Option<Vec<String>> {
    match typed {
        [word] if word.eq_ignore_ascii_case("auto") => None,
        [word] if word.eq_ignore_ascii_case("none") => Some(Vec::new()),
        names => Some(names.to_vec()),
    }
}

/// How the stores of URLs are asked.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Stores {
    /// Of URLs: an option of the store, as its own tools call it: endpoint_url, region, anon, headers.NAME
    #[arg(long = "store-option", value_name = "NAME=VALUE", value_parser = store_option)]
    store_options: Vec<(String, String)>,
    /// Of URLs: seconds that a request may take, all its attempts together
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
}

impl Stores {
    pub(crate) fn options(&self) -> Options {
        Options {
            store_options: self.store_options.iter().cloned().collect(),
            timeout: self.timeout.map(|seconds| std::time::Duration::from_secs(u64::from(seconds).max(1))),
            ..Options::default()
        }
    }
}

/// The variable by which a worker is told options of stores, as a JSON object of texts: no script and no command line holds a key.
const STORE_OPTIONS: &str = "WINDROW_STORE_OPTIONS";

impl Stores {
    /// Those that are typed, and behind them those of the worker's environment.
    ///
    /// # Errors
    /// Where the variable holds something else; what it holds is not shown.
    pub(crate) fn of_worker(&self) -> Result<Options, Failure> {
        let mut options = self.options();
        if let Ok(text) = std::env::var(STORE_OPTIONS) {
            let told: std::collections::BTreeMap<String, String> = serde_json::from_str(&text)
                .map_err(|_| Failure::usage(format!("{STORE_OPTIONS}: expected a JSON object of texts")))?;
            for (name, value) in told {
                options.store_options.entry(name).or_insert(value);
            }
        }
        Ok(options)
    }
}

fn store_option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_string(), value.to_string()))
}

/// Refuses `-` for a command that reads no stdin.
pub(crate) fn no_stdin(paths: &[PathBuf]) -> Result<(), Failure> {
    match paths.iter().any(|p| p.as_os_str() == "-") {
        true => Err(Failure::Usage {
            message: "stdin cannot be read here: data is read by its place in a file".to_string(),
            hint: Some(
                "write it to a file first; .gz and .zst are read as they are; ./- is a file of that name"
                    .to_string(),
            ),
        }),
        false => Ok(()),
    }
}

/// Refuses `-` for an output: what is written is checked and renamed, which stdout cannot be.
pub(crate) fn no_stdout(path: &Path) -> Result<(), Failure> {
    match path.as_os_str() == "-" {
        true => Err(Failure::Usage {
            message: "stdout cannot be written to here: an output appears complete or not at all".to_string(),
            hint: Some("name a path; ./- is a file of that name".to_string()),
        }),
        false => Ok(()),
    }
}

/// Refuses `--tokenizer` where the records are not token IDs.
pub(crate) fn only_token_ids(asked: Option<&str>, source: &dyn Source) -> Result<(), Failure> {
    let codes = || are_codes(source).then(|| "audio codes".to_string());
    match asked.and_then(|_| tokens::not_ids(source).or_else(codes)) {
        Some(what) => Err(no_text(&format!("the records are {what}"))),
        None => Ok(()),
    }
}

/// The error of `--tokenizer` where it would decode nothing.
pub(crate) fn no_text(why: &str) -> Failure {
    Failure::usage(format!("--tokenizer decodes token IDs, and {why}"))
}

/// The parser of `--dtype`.
pub(crate) fn dtype(text: &str) -> Result<DType, String> {
    DType::parse(text).map_err(|e| text::one_line(&e))
}

/// The parser of an option that is one of `words`, as a recipe writes them.
pub(super) fn word<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words)
        .try_map(|word| serde_json::from_value(Value::String(word.to_lowercase())))
}
