//! The options that several commands share: what to read and how to open it, how to slice it into samples (view), how to order them (order).

mod order;
pub(crate) mod output;
mod view;

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::{Map, Value};
use windrow::dev::source::Source;
use windrow::dev::store::at_home;
use windrow::format::Options;
use windrow::preview::tokens;
use windrow::{CHOOSING, Dataset, Paths};

pub(crate) use self::order::{Ordering, loader, of_row, shuffle};
pub(crate) use self::view::{Cutting, of_view};
use crate::codes::are_codes;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::options::of_rows;

/// What to read.
#[derive(Args, Clone, Debug)]
pub(crate) struct Data {
    /// A file or folder, or several as one data set; also a pattern in quotes: 'data/*.parquet', 'x-{000..127}.tar'
    #[arg(required = true, value_name = "PATH", value_parser = path())]
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

/// How to open data; what is not given is detected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opening(Map<String, Value>);

of_rows!(Opening, Some("How to open"), windrow::open_options());

impl Opening {
    /// Whether any of it was typed.
    pub(crate) fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// Options by what was typed.
    ///
    /// # Errors
    /// For a value that an option cannot have.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        Ok(Options::of(self.0.clone())?)
    }
}

/// Which records of what is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choosing(Map<String, Value>);

of_rows!(Choosing, Some("Which records"), CHOOSING.iter());

impl Choosing {
    /// Whether any of it was typed.
    pub(crate) fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let all = self.0.get(name).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_string).collect()
    }

    /// The files or slices that were typed.
    pub(crate) fn selected(&self) -> Vec<String> {
        self.texts("select")
    }

    /// Whether a condition was typed.
    pub(crate) fn has_condition(&self) -> bool {
        self.0.contains_key("where")
    }

    /// These records of a data set.
    ///
    /// # Errors
    /// As [`Dataset::choose`].
    pub(crate) fn of(&self, data: Dataset) -> Result<Dataset, Failure> {
        if self.0.is_empty() {
            return Ok(data);
        }
        let interrupt = Interrupt::listen();
        Ok(data.choose(&self.selected(), &self.texts("where"), &|| interrupt.asked())?)
    }

    /// Options that open these records of what is at these paths.
    ///
    /// # Errors
    /// As opening it, and as [`Choosing::of`].
    pub(crate) fn options(&self, paths: &Paths, opening: &Opening) -> Result<Options, Failure> {
        let options = opening.options()?;
        if self.0.is_empty() {
            return Ok(options);
        }
        Ok(self.of(paths.open(&options)?)?.options().clone())
    }
}

/// How the stores of URLs are asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stores(Map<String, Value>);

of_rows!(
    Stores,
    None,
    windrow::open_options().filter(|option| ["store_options", "timeout"].contains(&option.name))
);

impl Stores {
    /// Options by what was typed.
    ///
    /// # Errors
    /// For a value that an option cannot have.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        Ok(Options::of(self.0.clone())?)
    }
}

/// The variable that gives a worker its options of stores, as a JSON object of texts: no script and no command line holds a key.
const STORE_OPTIONS: &str = "WINDROW_STORE_OPTIONS";

impl Stores {
    /// Those that are typed, and behind them those of the worker's environment.
    ///
    /// # Errors
    /// Where the variable holds something else; what it holds is not shown.
    pub(crate) fn of_worker(&self) -> Result<Options, Failure> {
        let mut options = self.options()?;
        if let Ok(text) = std::env::var(STORE_OPTIONS) {
            let given: std::collections::BTreeMap<String, String> = serde_json::from_str(&text)
                .map_err(|_| Failure::usage(format!("{STORE_OPTIONS}: expected a JSON object of texts")))?;
            for (name, value) in given {
                options.store_options.entry(name).or_insert(value);
            }
        }
        Ok(options)
    }
}

/// Reads a path that is typed: a `~` that the shell left, as in quotes, is the home folder.
pub(crate) fn path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| at_home(&path).into_owned())
}

/// Refuses `-` for a command that reads no stdin.
pub(crate) fn no_stdin(paths: &[PathBuf]) -> Result<(), Failure> {
    if paths.iter().any(|p| p.as_os_str() == "-") {
        Err(Failure::Usage {
            message: "stdin cannot be read here: data is read by its place in a file".to_string(),
            hint: Some(
                "write it to a file first; .gz and .zst are read as they are; ./- is a file of that name"
                    .to_string(),
            ),
        })
    } else {
        Ok(())
    }
}

/// Refuses `-` for an output: what is written is checked and renamed, which stdout cannot be.
pub(crate) fn no_stdout(path: &Path) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        Err(Failure::Usage {
            message: "stdout cannot be written to here: an output appears complete or not at all".to_string(),
            hint: Some("name a path; ./- is a file of that name".to_string()),
        })
    } else {
        Ok(())
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
