//! An option as a row of a table: what it is called, what it takes, what it does. Front ends make arguments of the rows, so
//! an option that is declared is in all of them.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::store::parse_size;

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A whole number, called so in help.
    Number(&'static str),
    /// A text, called so in help.
    Text(&'static str),
    /// Nothing: given, it is on.
    On,
    /// Nothing: it is on, and `no_` before its name switches it off.
    Off,
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of these words, or a whole number, called so in help.
    WordsOr(&'static [&'static str], &'static str),
    /// A whole number that may be below 0, called so in help: a token ID.
    Id(&'static str),
    /// A number from 0 to 1.
    Fraction,
    /// Whole numbers, called so in help.
    Numbers(&'static str),
    /// Texts, called so in help.
    Names(&'static str),
    /// A text, called so in help, each time that it is given.
    Each(&'static str),
    /// Texts, called so in help, or `auto` for those that are found, or `none`.
    NamesOrAuto(&'static str),
    /// A part of a record: two fractions of it, or a range of its values.
    Part,
    /// The name of a dtype.
    DType,
    /// Bytes: a number, or a text with a unit, as `8MiB`.
    Bytes,
    /// A time in seconds, above 0.
    Seconds,
    /// Texts by name.
    Pairs,
}

/// An option.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OptionRow {
    /// What Python calls it; the command line has hyphens.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What it does, in one sentence or more.
    pub help: &'static str,
    /// Its value where it is not given.
    pub default: fn() -> Value,
    /// What the command line calls it, where its name means something else there.
    pub flag: Option<&'static str>,
}

impl OptionRow {
    /// One without a default.
    pub const fn new(name: &'static str, takes: Takes, help: &'static str) -> OptionRow {
        OptionRow { name, takes, help, default: || Value::Null, flag: None }
    }

    /// Sets the default.
    #[must_use]
    pub const fn or(mut self, default: fn() -> Value) -> OptionRow {
        self.default = default;
        self
    }

    /// Sets another name for the command line.
    #[must_use]
    pub const fn flag(mut self, flag: &'static str) -> OptionRow {
        self.flag = Some(flag);
        self
    }

    /// A value as what reads the options has it: a word in any case, what is not there as the word for it, a size in bytes.
    ///
    /// # Errors
    /// `Config` for a word that it does not know, and for what is not a size.
    pub fn read(&self, value: Value) -> Result<Value> {
        let (words, or) = match (self.takes, &value) {
            (Takes::Words(words), _) => (words, None),
            (Takes::WordsOr(words, number), _) => (words, Some(number)),
            (Takes::Bytes, Value::String(text)) => {
                return parse_size(text).map(Value::from).ok_or_else(|| {
                    Error::config(format!("@{}={text:?}@ is not a size", self.name))
                        .field(self.name)
                        .hint("a number of bytes, or a text as \"8MiB\" or \"1MB\"")
                });
            }
            _ => return Ok(value),
        };
        match &value {
            Value::Null => return Ok(if words.contains(&"none") { "none".into() } else { Value::Null }),
            Value::String(word) if words.contains(&word.to_lowercase().as_str()) => {
                return Ok(word.to_lowercase().into());
            }
            Value::Number(_) if or.is_some() && value != 0 => return Ok(value),
            _ => {}
        }
        let or = or.map_or(String::new(), |number| format!(", or a number of {}", number.to_lowercase()));
        Err(Error::config(format!("@{}={value}@", self.name))
            .field(self.name)
            .hint(format!("one of {}{or}", words.join(", "))))
    }
}

/// An option of opening.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OpenOption {
    /// Its row.
    pub row: OptionRow,
    /// Of one that only some formats follow: why another does not, and what to do.
    pub of_some: Option<(&'static str, &'static str)>,
}

impl OpenOption {
    /// One that every format follows.
    pub const fn of_all(row: OptionRow) -> OpenOption {
        OpenOption { row, of_some: None }
    }

    /// One that only some formats follow; `why` another does not, and what to do.
    pub const fn of_some(row: OptionRow, why: &'static str, hint: &'static str) -> OpenOption {
        OpenOption { row, of_some: Some((why, hint)) }
    }
}

/// The key or column whose numbers are the series.
pub const COLUMN: OpenOption = OpenOption::of_some(
    OptionRow::new("column", Takes::Text("KEY"), "Of JSON, YAML and pickles: the key that holds the series."),
    "has no columns",
    "it names the key of a series in JSON, YAML and pickles, or a column of CSV",
);

/// Columns that make a row.
pub const COLUMNS: OpenOption = OpenOption::of_some(
    OptionRow::new(
        "columns",
        Takes::Names("NAME"),
        "Of records with named columns, JSON among them: only these, as rows.",
    ),
    "has no rows of columns",
    "it names the keys or columns that make a row, or the channels of a CSV",
);

const fn row(name: &'static str, takes: Takes, help: &'static str) -> OpenOption {
    OpenOption::of_all(OptionRow::new(name, takes, help))
}

/// What every format follows, beside those of some formats: what to read, and how.
pub(crate) const READING: &[OpenOption] = &[
    row("format", Takes::Text("NAME"), "Read it as this format instead of recognising it."),
    row("dtype", Takes::DType, "dtype of a stored number, where the files do not say."),
    row("vocab_size", Takes::Number("N"), "Check that every ID is below this."),
    row(
        "split",
        Takes::Text("NAME"),
        "The split in the folder of this name, or in the files whose names say it: train, validation; all joins them.",
    ),
    row(
        "mask_column",
        Takes::NamesOrAuto("NAME"),
        "Columns beside the token IDs that say which are learned: 0 and 1, or labels; `auto` finds the usual ones, `none`: no mask.",
    ),
    OpenOption::of_all(
        OptionRow::new(
            "tokenizer",
            Takes::Text("T"),
            "The tokenizer that must have made the token IDs: a name, a path or a hash.",
        )
        .flag("made_with"),
    ),
    row("allow_outside", Takes::On, "Accept files that an index names outside its folder."),
    row("trust", Takes::On, "Accept data that changed after it was indexed."),
    OpenOption::of_all(
        OptionRow::new(
            "io",
            Takes::Words(&["mmap", "pread"]),
            "How local files are read; pread for files that others may truncate.",
        )
        .or(|| "mmap".into()),
    ),
    row("verify_checksums", Takes::On, "Verify each block read against its stored checksum."),
];

/// How stores are asked, and what is kept of them.
pub(crate) const STORES: &[OpenOption] = &[
    row(
        "store_options",
        Takes::Pairs,
        "Of URLs: an option of the store, as its own tools call it: endpoint_url, region, anon, headers.NAME.",
    ),
    row("timeout", Takes::Seconds, "Of URLs: seconds that a request may take, all its attempts together."),
    row("read_ahead", Takes::Bytes, "Of URLs: bytes that are fetched ahead and held in memory."),
    row("cache", Takes::Text("DIR"), "Of URLs: the folder in which what is fetched is kept."),
    row(
        "cache_limit",
        Takes::Bytes,
        "Most bytes that all of the cache may take: what is expanded, converted and fetched; of URLs, 0 keeps what is fetched in memory.",
    ),
];
