//! One input whose records are rows: what a format opens, and the columns that are taken of it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use windrow_core::format::{self, Format, Options, Probe, Table};
use windrow_core::manifest::FileRow;
use windrow_core::source::{Kind as Records, Rows, SharedSource};
use windrow_core::store::{Local, Store, is_url};
use windrow_core::{Error, Kind, Result, Row, Span, Value};

use super::fields::{Fields, Takes, at_path};
use super::places::Places;

/// What is taken of each row: as [`Takes`].
enum Taken {
    /// The text in this column, or at this path.
    Text(String),
    /// The JSON of these.
    Json(Fields),
}

/// A file or folder of rows as it was found when the task began.
pub(super) struct RowInput {
    /// Where it lies.
    pub(super) file: PathBuf,
    source: SharedSource,
    /// The files that are read, and what the manifest keeps of them.
    files: Vec<(PathBuf, FileRow)>,
    taken: Taken,
    /// A text may be bytes, alone in a list.
    text_is_bytes: bool,
    /// Of several splits in the folder, this one.
    split: Option<String>,
    /// Records that are read; `None` for all.
    end: Option<u64>,
}

impl RowInput {
    /// Opens what lies at `path`, which `probe` saw, for what is taken of each row; of several splits the one of this name.
    ///
    /// # Errors
    /// What opening it says; `Config` where there is no such column, or no column is named.
    pub(super) fn open(
        table: Table,
        places: Places<'_>,
        path: &Path,
        probe: &Probe,
        format: &dyn Format,
        takes: Option<Takes<'_>>,
        split: Option<&str>,
    ) -> Result<RowInput> {
        let takes = takes.ok_or_else(|| {
            Error::config(format!("{} holds rows, but this encoder reads lines", format.name()))
                .at(path)
                .hint("name the column of the text with @text_field@")
        })?;
        let options = Options {
            format: Some(format.name().to_string()),
            split: split.map(str::to_string),
            ..Options::default()
        };
        let source = match (format.info().takes("columns"), takes) {
            (true, Takes::Text(field)) => only_column(table, probe, &options, field)?,
            (true, Takes::Json(fields)) => their_columns(table, probe, &options, fields)?,
            (false, _) => format::open(table, probe, &options)?,
        };
        if !matches!(source.schema().kind, Records::Rows | Records::Json) {
            return Err(Error::config(format!("the records of {} are not rows with a text", format.name()))
                .at(path)
                .hint("`windrow inspect` says what it holds"));
        }
        let files =
            source.files().into_iter().map(|info| found(places, path, &info.file)).collect::<Result<_>>()?;
        let text_is_bytes = format.info().text_is_bytes;
        Ok(RowInput {
            file: path.to_path_buf(),
            source,
            files,
            taken: match takes {
                Takes::Text(field) => Taken::Text(field.to_string()),
                Takes::Json(fields) => Taken::Json(fields.clone()),
            },
            text_is_bytes,
            split: split.map(str::to_string),
            end: None,
        })
    }

    /// Sets its name among the inputs.
    pub(super) fn named(mut self, relative: &str) -> RowInput {
        if let [(path, row)] = self.files.as_mut_slice()
            && *path == self.file
        {
            row.name = relative.to_string();
        }
        self
    }

    /// The files that are read.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, &FileRow)> {
        self.files.iter().map(|(path, row)| (path.as_path(), row))
    }

    /// Their bytes.
    pub(super) fn size(&self) -> u64 {
        self.files.iter().map(|(_, row)| row.size).sum()
    }

    /// Their bytes before a record, were all records of one size.
    pub(super) fn bytes_before(&self, record: u64) -> u64 {
        let all = u128::from(self.source.len().max(1));
        u64::try_from(u128::from(self.size()) * u128::from(record) / all).unwrap_or(u64::MAX)
    }

    /// The split that is read, unless it is a folder of its own.
    pub(super) fn split(&self) -> Option<&str> {
        self.split.as_deref()
    }

    /// Its records.
    pub(super) fn len(&self) -> u64 {
        self.source.len()
    }

    /// Ends it before record `end`.
    pub(super) fn up_to(self, end: u64) -> RowInput {
        RowInput { end: Some(end), ..self }
    }

    /// Its texts from a record on, each read once.
    pub(super) fn texts(&self, first: u64) -> Texts<'_> {
        let rows: Rows<'_> = match self.source.schema().kind {
            Records::Json => Box::new((first..self.source.len()).map(|record| self.object(record))),
            _ => self.source.rows_from(first),
        };
        Texts { input: self, rows, next: first }
    }

    /// That its files are those that were found when the task began.
    ///
    /// # Errors
    /// `Stale` naming the file.
    pub(super) fn check(&self) -> Result<()> {
        self.files.iter().try_for_each(|(path, row)| {
            let changed = |how: String| {
                Error::new(Kind::Stale, format!("the input changed while it was read: {how}"))
                    .at(path)
                    .hint("run it again when nothing writes to the input")
            };
            // Each request to a store asks for the version that was opened.
            if is_url(path) {
                return Ok(());
            }
            let now = Local::new(path).entry("").map_err(|_| changed("it is gone".to_string()))?;
            match (now.size == row.size, now.modified_ns == row.modified_ns) {
                (true, true) => Ok(()),
                (false, _) => Err(changed(format!("{} bytes, found {}", row.size, now.size))),
                (true, false) => Err(changed("its time of change is another one".to_string())),
            }
        })
    }

    /// Adds file, record and column where an error about a text lacks them.
    pub(super) fn complete(&self, error: Error, record: u64) -> Error {
        let has_record = error.place().record.is_some();
        let error = if has_record { error } else { error.record(record) };
        let error = match (&self.taken, &error.place().field) {
            (Taken::Text(field), None) => error.field(field.clone()),
            _ => error,
        };
        match error.place().file {
            Some(_) => error,
            None => error.at(self.file_of(record)),
        }
    }

    fn file_of(&self, record: u64) -> String {
        let place = self.source.locate(Span { record, start: 0, len: 1 });
        let file = place.ok().and_then(|places| places.into_iter().next()).map(|place| place.file);
        file.unwrap_or_else(|| self.file.display().to_string())
    }

    // Of a record that is JSON.
    fn object(&self, record: u64) -> Result<Row> {
        match self.source.value(record, None)? {
            Value::Struct(row) => Ok(row),
            other => Err(Error::corrupt(format!("expected an object, found {}", kind_of(&other)))),
        }
    }

    fn text<'r>(&self, row: &'r Row) -> Result<Cow<'r, str>> {
        match &self.taken {
            Taken::Text(field) => self.text_in(row, field).map(Cow::Borrowed),
            Taken::Json(fields) => {
                let record = match row.get("") {
                    Some(Value::Struct(record)) => record,
                    _ => row,
                };
                // A table has each key in each row.
                fields.json(false, |path| Ok(at_path(record, path).cloned())).map(Cow::Owned)
            }
        }
    }

    fn text_in<'r>(&self, row: &'r Row, field: &str) -> Result<&'r str> {
        let found = match row.get("") {
            Some(Value::Struct(record)) => at_path(record, field),
            Some(record) => Some(record),
            None => at_path(row, field),
        };
        let declared = self.source.schema().columns.iter().find(|column| column.name == field);
        if self.text_is_bytes
            && let Some(Value::List(one)) = found
            && let [Value::Bytes(bytes)] = one.as_slice()
        {
            return simdutf8::compat::from_utf8(bytes).map_err(|e| {
                let byte = bytes.get(e.valid_up_to()).copied().unwrap_or_default();
                Error::corrupt(format!(
                    "column {field:?} holds bytes that are not UTF-8 text: byte 0x{byte:02x}"
                ))
            });
        }
        match (found, declared) {
            (Some(Value::Text(text)), _) => Ok(text),
            (Some(Value::Struct(inner)), _) => {
                let names: Vec<String> =
                    inner.names().take(10).map(|name| format!("{field}.{name}")).collect();
                Err(Error::corrupt(format!("column {field:?} holds an object; expected text"))
                    .hint(format!("name one of its keys: {}", names.join(", "))))
            }
            (Some(Value::Null), _) => {
                Err(Error::corrupt(format!("column {field:?} holds null; expected text"))
                    .hint("leave such rows out, or write an empty text there"))
            }
            (Some(value), declared) => {
                let holds = declared.map(|column| column.holds.as_str()).filter(|holds| *holds != "JSON");
                Err(Error::corrupt(format!(
                    "column {field:?} holds {}; expected text",
                    holds.unwrap_or(kind_of(value))
                ))
                .hint("choose a column of text with @text_field@"))
            }
            (None, _) => Err(Error::corrupt(format!("no {field:?} in the row"))),
        }
    }
}

/// Texts one after the other.
pub(super) struct Texts<'a> {
    input: &'a RowInput,
    rows: Rows<'a>,
    next: u64,
}

impl Texts<'_> {
    /// Adds the next text to `out`, or says what is wrong with a row that was read: `Corrupt` naming file, record and column.
    /// `None` at the end.
    ///
    /// # Errors
    /// What reading the row says.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Option<Result<Result<()>>> {
        if self.input.end.is_some_and(|end| self.next >= end) {
            return None;
        }
        let row = self.rows.next()?;
        let record = self.next;
        self.next += 1;
        let complete = |e| self.input.complete(e, record);
        let text = |row| {
            let text = self.input.text(&row);
            text.map(|text| out.extend_from_slice(text.as_bytes())).map_err(complete)
        };
        Some(row.map(text).map_err(complete))
    }
}

// Rows of the column in which a path begins: the column of the whole name, or of what is before one of its dots.
fn only_column(table: Table, probe: &Probe, options: &Options, field: &str) -> Result<SharedSource> {
    let of = |column: &str| {
        format::open(table, probe, &Options { columns: Some(vec![column.to_string()]), ..options.clone() })
    };
    let whole = of(field);
    let Some(missing) = whole.as_ref().err().filter(|e| is_missing(e)) else { return whole };
    for (dot, _) in field.rmatch_indices('.') {
        match of(&field[..dot]) {
            Err(e) if is_missing(&e) => {}
            other => return other,
        }
    }
    let hint = missing.hint_text().map_or_else(String::new, |hint| format!("{hint}; "));
    Err(Error::config(missing.message().to_string())
        .at(probe.display())
        .field("text_field")
        .hint(format!("{hint}choose one with @text_field@")))
}

// Whether an error says that a column is not there.
fn is_missing(error: &Error) -> bool {
    error.kind() == Kind::Config && error.place().field.as_deref() == Some("columns")
}

// Rows of the columns in which the paths of some fields begin.
fn their_columns(table: Table, probe: &Probe, options: &Options, fields: &Fields) -> Result<SharedSource> {
    let of = |columns: Vec<String>| {
        format::open(table, probe, &Options { columns: Some(columns), ..options.clone() })
    };
    let names: Vec<String> = match format::open(table, probe, options) {
        // Each record has keys of its own.
        Ok(all) if all.schema().kind == Records::Json => return Ok(all),
        Ok(all) => all.schema().columns.iter().map(|column| column.name.clone()).collect(),
        // Some columns differ between files, which need not be those that are wanted.
        Err(e) if e.kind() == Kind::Mismatch => {
            let is_there = |name: &String| !of(vec![name.clone()]).is_err_and(|e| is_missing(&e));
            fields.may_begin_in().into_iter().filter(is_there).collect()
        }
        Err(e) => return Err(e),
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    of(fields.columns(&names).map_err(|e| e.at(probe.display()))?)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::I64(_) | Value::U64(_) | Value::Big(_) | Value::F64(_) => "a number",
        Value::Text(_) => "text",
        Value::Bytes(_) => "bytes",
        Value::Array(_) => "an array of numbers",
        Value::List(_) => "a list",
        Value::Struct(_) => "an object",
    }
}

// A file as it is now.
fn found(places: Places<'_>, root: &Path, file: &str) -> Result<(PathBuf, FileRow)> {
    let path = PathBuf::from(file);
    let store = places.root(&path)?;
    let mut entry = store.entry("")?;
    if is_url(&path) {
        entry.tag = store.open("")?.tag().map(str::to_string);
    }
    let name = path.strip_prefix(root).ok().filter(|below| !below.as_os_str().is_empty());
    let name = name.map_or_else(|| file.to_string(), |below| below.display().to_string());
    let (size, modified_ns, etag) = (entry.size, entry.modified_ns, entry.tag);
    Ok((path, FileRow { name, size, modified_ns, etag, ..FileRow::default() }))
}
