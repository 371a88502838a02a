//! An option as a row of a table: what it is called, what it takes, what it does. Front ends make arguments of the rows, so
//! an option that is declared is in all of them.

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::store::parse_size;

/// A table of options, a row each: what it does, its name, what it takes; its default, if it has one, as a value or that of a
/// type; and what the command line calls it, where its name means something else there.
///
/// ```
/// use windrow_core::format::{OptionRow, Takes};
///
/// static ROWS: &[OptionRow] = windrow_core::option_rows! {
///     /// How many.
///     number: Takes::Number("N"), or 4;
///     /// Whether to keep them.
///     keep: Takes::On, of bool, flag "keep_them";
/// };
/// assert_eq!((ROWS[0].name, (ROWS[0].default)(), ROWS[1].flag), ("number", 4.into(), Some("keep_them")));
/// ```
#[macro_export]
macro_rules! option_rows {
    ($($(#[doc = $help:literal])* $name:ident: $takes:expr $(, or $value:expr)? $(, of $Default:ty)? $(, flag $flag:literal)?;)*) => {
        &[$(
            $crate::format::OptionRow::new(stringify!($name), $takes, concat!($($help),*))
                $(.or(|| $value.into()))?
                $(.or($crate::format::default_of::<$Default>))?
                $(.flag($flag))?,
        )*]
    };
}

/// The default of a type as what reads the options has it.
pub fn default_of<T: Default + Serialize>() -> Value {
    serde_json::to_value(T::default()).unwrap_or_default()
}

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
    /// One of these words, or whole numbers, each called so in help.
    WordsOrNumbers(&'static [&'static str], &'static str),
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
            (Takes::WordsOr(words, number), _) => {
                (words, Some(format!("a number of {}", number.to_lowercase())))
            }
            (Takes::WordsOrNumbers(_, _), Value::Array(_)) => return Ok(value),
            (Takes::WordsOrNumbers(words, _), _) => (words, Some("a list of whole numbers".to_string())),
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
            Value::Number(_) if matches!(self.takes, Takes::WordsOr(..)) && value != 0 => return Ok(value),
            _ => {}
        }
        let or = or.map_or(String::new(), |or| format!(", or {or}"));
        Err(Error::config(format!("@{}={value}@", self.name))
            .field(self.name)
            .hint(format!("one of {}{or}", words.join(", "))))
    }
}

/// An option of opening that only some formats follow.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OpenOption {
    /// Its row.
    pub row: OptionRow,
    /// Why another format does not follow it.
    pub why: &'static str,
    /// What to do then.
    pub hint: &'static str,
}

impl OpenOption {
    /// With `why` another format does not follow it, and what to do then.
    pub const fn of_some(row: OptionRow, why: &'static str, hint: &'static str) -> OpenOption {
        OpenOption { row, why, hint }
    }
}

/// The key or column whose numbers are the series.
pub const COLUMN: OpenOption = OpenOption::of_some(
    OptionRow::new(
        "column",
        Takes::Text("KEY"),
        "Of records with keys or columns: the one that holds the series.",
    ),
    "has no columns",
    "it names the key or column that holds a series",
);

/// Columns that make a row.
pub const COLUMNS: OpenOption = OpenOption::of_some(
    OptionRow::new(
        "columns",
        Takes::Names("NAME"),
        "Of records with named columns, JSON among them: only these, as rows.",
    ),
    "has no rows of columns",
    "it names the keys or columns that make a row, or the channels of a table",
);

/// The column of numbers, of a format of rows that is written.
pub const TO_COLUMN: OptionRow =
    OptionRow::new("to_column", Takes::Text("NAME"), "the column of the numbers [default: tokens]");

/// What every format follows: what to read, and how.
pub(crate) static READING: &[OptionRow] = crate::option_rows! {
    /// Read it as this format instead of recognising it.
    format: Takes::Text("NAME");
    /// dtype of a stored number, where the files do not say.
    dtype: Takes::DType;
    /// Check that every ID is below this.
    vocab_size: Takes::Number("N");
    /// The split in the folder of this name, or in the files whose names say it: train, validation; all joins them.
    split: Takes::Text("NAME");
    /// Columns beside the token IDs that say which are learned: 0 and 1, or labels; `auto` finds the usual ones, `none`: no mask.
    mask_column: Takes::NamesOrAuto("NAME");
    /// The tokenizer that must have made the token IDs: a name, a path or a hash.
    tokenizer: Takes::Text("T"), flag "made_with";
    /// Accept files that an index names outside its folder.
    allow_outside: Takes::On;
    /// Accept data that changed after it was indexed.
    trust: Takes::On;
    /// How local files are read; pread for files that others may truncate.
    io: Takes::Words(&["mmap", "pread"]), or "mmap";
    /// Verify each block read against its stored checksum.
    verify_checksums: Takes::On;
};

/// How stores are asked, and what is kept of them.
pub(crate) static STORES: &[OptionRow] = crate::option_rows! {
    /// Of URLs: an option of the store, as its own tools call it: endpoint_url, region, anon, headers.NAME.
    store_options: Takes::Pairs;
    /// Of URLs: seconds that a request may take, all its attempts together.
    timeout: Takes::Seconds;
    /// Of URLs: bytes that are fetched ahead and held in memory.
    read_ahead: Takes::Bytes;
    /// Of URLs: the folder in which what is fetched is kept.
    cache: Takes::Text("DIR");
    /// Most bytes that all of the cache may take: what is expanded, converted and fetched; of URLs, 0 keeps what is fetched in memory.
    cache_limit: Takes::Bytes;
};
