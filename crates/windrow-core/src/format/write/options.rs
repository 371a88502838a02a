//! How to write, in any format, and the options that one format has of its own.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::WriteFormat;
use crate::array::DType;
use crate::error::{Error, Result};
use crate::format::{Format, FormatInfo, info_of};
use crate::manifest::Manifest;
use crate::store::parse_size;

/// How to write records, in any format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// dtype of a stored number; `None` takes that of the source, float32 where its numbers are scaled.
    pub dtype: Option<DType>,
    /// The ID to write after each record, also after one that ends with it already.
    pub eos: Option<i64>,
    /// Token IDs must be below this; the manifest says so then, and they are not checked again.
    pub vocab_size: Option<u64>,
    /// The manifest of what is converted, where it has one: what it declares of the token IDs holds for the new ones too.
    pub of: Option<Arc<Manifest>>,
    /// Continue behind what is there, where the format can; nothing there is fine.
    pub append: bool,
    /// Replace what is there.
    pub overwrite: bool,
    /// A source without records is converted too.
    pub allow_empty: bool,
    /// Bring everything to the disk before it becomes visible.
    pub fsync: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            dtype: None,
            eos: None,
            vocab_size: None,
            of: None,
            append: false,
            overwrite: false,
            allow_empty: false,
            fsync: true,
        }
    }
}

/// Options of one format, by name. A format takes those that it knows; what is left is nobody's.
#[derive(Clone, Debug, Default)]
pub struct OwnOptions {
    given: Map<String, Value>,
}

impl OwnOptions {
    /// Whether it is given.
    pub fn has(&self, name: &str) -> bool {
        self.given.get(name).is_some_and(|value| !value.is_null())
    }

    /// A whole number, where it is given.
    ///
    /// # Errors
    /// `Config` for something else.
    pub fn number(&mut self, name: &str) -> Result<Option<u64>> {
        self.take(name, "a whole number of 0 or more", Value::as_u64)
    }

    /// Bytes, where they are given: a number, or a text with a unit.
    ///
    /// # Errors
    /// `Config` for something else.
    pub fn bytes(&mut self, name: &str) -> Result<Option<u64>> {
        let read = |value: &Value| value.as_u64().or_else(|| parse_size(value.as_str()?));
        self.take(name, "a number of bytes, or a text as \"8MiB\"", read)
    }

    /// A switch, off where it is not given.
    ///
    /// # Errors
    /// `Config` for something else.
    pub fn switch(&mut self, name: &str) -> Result<bool> {
        Ok(self.take(name, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    /// A switch, on where it is not given.
    ///
    /// # Errors
    /// `Config` for something else.
    pub fn switch_on(&mut self, name: &str) -> Result<bool> {
        Ok(self.take(name, "true or false", Value::as_bool)?.unwrap_or(true))
    }

    /// A text, where it is given.
    ///
    /// # Errors
    /// `Config` for something else.
    pub fn text(&mut self, name: &str) -> Result<Option<String>> {
        self.take(name, "a text", |value| value.as_str().map(str::to_string))
    }

    fn take<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.given.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(&value)
                .map(Some)
                .ok_or_else(|| Error::config(format!("{name} is {value}, expected {expected}")).field(name)),
        }
    }
}

/// How the format of this name in `table` is written, with these options of its own.
///
/// # Errors
/// `Config` when there is no such format, when it is only read, and for an option that it does not have.
pub fn writer(
    table: &[&dyn Format],
    name: &str,
    options: &Map<String, Value>,
) -> Result<Box<dyn WriteFormat>> {
    let mut own = OwnOptions { given: options.clone() };
    let format = table.iter().find(|format| format.name() == name);
    let writer = match format {
        Some(format) => format.writer(&mut own)?,
        None => None,
    };
    let Some(writer) = writer else {
        let written: Vec<&str> =
            table.iter().map(|format| format.info()).filter(|i| i.is_written()).map(|i| i.name).collect();
        let what = if format.is_some() { "is only read" } else { "is not a format" };
        return Err(Error::config(format!("{name:?} {what}"))
            .field("to")
            .hint(format!("formats that are written: {}", written.join(", "))));
    };
    match own.given.iter().find(|(_, value)| !value.is_null()) {
        None => Ok(writer),
        Some((option, _)) => {
            let has = |info: &&'static FormatInfo| info.own_options().any(|own| own.name == option);
            let of: Vec<&str> =
                table.iter().map(|format| format.info()).filter(has).map(|info| info.name).collect();
            let known = option_names(table, name);
            Err(not_an_option(option, name).hint(match (of.is_empty(), known.is_empty()) {
                (false, _) => format!("it is an option of {}", of.join(", ")),
                (true, false) => format!("options of {name}: {}", known.join(", ")),
                (true, true) => format!("{name} has no options of its own"),
            }))
        }
    }
}

/// Names of the options that the format of this name in `table` has of its own, where it is written.
pub fn option_names(table: &[&dyn Format], name: &str) -> Vec<&'static str> {
    info_of(table, name).into_iter().flat_map(FormatInfo::own_options).map(|option| option.name).collect()
}

/// The error of an option that is given to a format that does not have it.
pub fn not_an_option(option: &str, format: &str) -> Error {
    Error::config(format!("{option} is not an option of {format}")).field(option)
}

/// The error of an option of `tokenize` that is given where records are written.
pub fn only_of_tokenize(option: &str) -> Error {
    Error::config(format!(
        "{option} is an option of tokenize only: these records have no folders of their own"
    ))
    .field(option)
    .hint("leave it out")
}
