//! A table as one series, in one pass: which of its columns hold only numbers is known at its end, so those that turn out to
//! hold text are taken out then.

use serde_json::{Value, json};
use windrow_core::store::{Draft, Object};
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use super::cells::Cells;
use crate::converted::{Literal, Parts, Writer};

/// Columns of a table; their names are held.
const MOST_COLUMNS: usize = 1 << 20;
/// Characters of a cell or of names that an error shows.
const SHOWN: usize = 200;

const NOT_UTF8: &str = "convert it, from Latin-1 for example: iconv -f ISO-8859-1 -t UTF-8 OLD > NEW";
const RAGGED: &str =
    "every line has a cell for each name in the first one; a cell with a comma in it needs quotes";

/// Which columns are the series.
#[derive(Debug)]
pub(super) enum Asked {
    /// This one: `[T]`.
    One(String),
    /// These, in this order: `[T, C]`.
    Several(Vec<String>),
    /// All that hold only numbers: `[T, C]`.
    Numbers,
}

/// Writes the series of a table.
///
/// # Errors
/// `Corrupt` for lines of several widths, text where numbers must be, a table without numbers; `Config` for a column that is
/// not there.
pub(super) fn convert(
    object: &dyn Object,
    draft: &mut Draft,
    limit: u64,
    delimiter: u8,
    asked: &Asked,
) -> Result<()> {
    let mut writer = Writer::new(draft, object.name(), limit)?;
    let mut cells = Cells::new(Parts::new(object), delimiter);
    let names = head(&mut cells)?;
    let mut columns = Columns::of(&cells, names, asked)?;
    let mut rows = 0;
    while read_row(&mut cells, &mut columns)? {
        for column in columns.written() {
            writer.put_text(columns.row[*column])?;
        }
        rows += 1;
    }
    let at = |error: Error| error.at(object.name());
    if rows == 0 {
        return Err(at(Error::corrupt("expected lines of numbers below the names, found none"))
            .hint("the copy looks unfinished"));
    }
    let kept = columns.kept();
    if kept.is_empty() {
        return Err(at(Error::corrupt(format!(
            "expected a column of numbers, found text in every column: {}",
            shown(&columns.names.join(", "))
        )))
        .hint(match delimiter {
            b',' if columns.names.len() == 1 => "cells are separated by commas, in a .tsv by tabs; texts are read as JSON Lines",
            _ => "texts are read as JSON Lines; with pandas: read_csv(OLD).to_json(NEW, orient=\"records\", lines=True)",
        }));
    }
    if kept.len() < columns.written().len() {
        writer.keep_columns(columns.written().len(), &kept)?;
    }
    let extras = columns.extras(&kept).map_err(|start| {
        let found = String::from_utf8_lossy(start);
        at(Error::corrupt(format!("expected UTF-8, found {:?}", shown(&found))).hint(NOT_UTF8))
    })?;
    writer.end_record(&extras, rows, 0..object.size())?;
    let channels = match asked {
        Asked::One(_) => None,
        _ => Some(kept.len() as u64),
    };
    // Other columns of a file are other series, which may be as long.
    let content = match asked {
        Asked::Numbers => cells.hash(),
        _ => {
            let mut hash = Xxh3::new();
            hash.update(&cells.hash().to_le_bytes());
            hash.update(extras.as_bytes());
            hash.digest()
        }
    };
    writer.finish(channels, content)
}

// The names of the columns.
fn head(cells: &mut Cells<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    loop {
        let Some(is_last) = cells.next()? else {
            return Err(cells
                .wrong("expected names of columns, found the end of the file", "the copy looks unfinished"));
        };
        match std::str::from_utf8(cells.cell()) {
            Ok(name) => names.push(name.to_string()),
            Err(_) => {
                let found = String::from_utf8_lossy(cells.cell());
                return Err(cells.wrong(format!("expected UTF-8, found {:?}", shown(&found)), NOT_UTF8));
            }
        }
        if names.len() > MOST_COLUMNS {
            let what = format!("a table of more than {MOST_COLUMNS} columns");
            return Err(cells.wrong(what, "a series is a column, each of its values a line"));
        }
        if is_last {
            return Ok(names);
        }
    }
}

// Reads a line; `false` behind the last one.
fn read_row(cells: &mut Cells<'_>, columns: &mut Columns) -> Result<bool> {
    let wanted = columns.names.len();
    let mut column = 0;
    loop {
        let Some(is_last) = cells.next()? else { return Ok(false) };
        if column == wanted {
            return Err(cells.wrong(format!("expected {wanted} cells in a line, found more"), RAGGED));
        }
        match columns.take(column, cells.cell()) {
            Taken::Wrong => {
                let found = String::from_utf8_lossy(cells.cell());
                let (name, found) = (&columns.names[column], shown(&found));
                return Err(cells.wrong(
                    format!("expected a number in column {name:?} (cell {}), found {found:?}", column + 1),
                    "column= and columns= name columns of numbers; an empty cell is NaN",
                ));
            }
            Taken::LeftOut if !columns.is_first_row => {
                let (line, found) = (cells.line(), String::from_utf8_lossy(cells.cell()));
                let name = &columns.names[column];
                log::warn!(
                    "{}: column {name:?} is left out: {:?} in line {line}",
                    cells.file(),
                    shown(&found)
                );
            }
            Taken::LeftOut | Taken::Fits => {}
        }
        column += 1;
        if is_last {
            if column < wanted {
                return Err(cells.wrong(format!("expected {wanted} cells in a line, found {column}"), RAGGED));
            }
            columns.end_row();
            return Ok(true);
        }
    }
}

// The number of a column.
fn place(names: &[String], wanted: &str, option: &'static str) -> Result<usize> {
    let mut found = (0..names.len()).filter(|place| names[*place] == wanted);
    match (found.next(), found.next()) {
        (Some(place), None) => Ok(place),
        (Some(_), Some(_)) => Err(Error::config(format!("the file has several columns {wanted:?}"))
            .field(option)
            .hint("leave the option out, or rename them")),
        (None, _) => Err(Error::config(format!("no column is called {wanted:?}"))
            .field(option)
            .hint(format!("there are {}", shown(&names.join(", "))))),
    }
}

fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

/// What is known of the columns while the lines are read.
struct Columns {
    names: Vec<String>,
    /// Those that were asked for, by number.
    asked: Option<Vec<usize>>,
    is_asked: Vec<bool>,
    /// Those that are written: without being asked for, those that begin with a number.
    found: Vec<usize>,
    is_text: Vec<bool>,
    /// The first one that holds text.
    first_text: usize,
    /// Cells of the first line, of columns that may turn out to be that one.
    firsts: Vec<Vec<u8>>,
    is_first_row: bool,
    /// Numbers of the line that is read.
    row: Vec<Literal>,
}

impl Columns {
    fn of(cells: &Cells<'_>, names: Vec<String>, asked: &Asked) -> Result<Columns> {
        let places = |wanted: &[String], option: &'static str| {
            let found = wanted.iter().map(|name| place(&names, name, option)).collect::<Result<Vec<_>>>();
            found.map_err(|error| error.at(cells.file()))
        };
        let asked = match asked {
            Asked::One(name) => Some(places(std::slice::from_ref(name), "column")?),
            Asked::Several(wanted) => Some(places(wanted, "columns")?),
            Asked::Numbers => None,
        };
        if names.iter().all(|name| Literal::of(name.as_bytes()).is_some()) {
            log::warn!(
                "{}: the first line holds numbers, and is read as the names of the columns",
                cells.file()
            );
        }
        let count = names.len();
        let mut is_asked = vec![false; count];
        asked.iter().flatten().for_each(|column| is_asked[*column] = true);
        Ok(Columns {
            names,
            asked,
            is_asked,
            found: Vec::new(),
            is_text: vec![false; count],
            first_text: count,
            firsts: Vec::new(),
            is_first_row: true,
            row: vec![Literal::GAP; count],
        })
    }

    /// The columns that are written.
    fn written(&self) -> &[usize] {
        self.asked.as_deref().unwrap_or(&self.found)
    }

    /// Places among the written columns of those that hold only numbers.
    fn kept(&self) -> Vec<usize> {
        let written = self.written().iter().enumerate();
        written.filter(|(_, column)| !self.is_text[**column]).map(|(place, _)| place).collect()
    }

    // Whether a cell of this column has a say.
    fn matters(&self, column: usize) -> bool {
        !self.is_text[column] && (self.asked.is_none() || column < self.first_text || self.is_asked[column])
    }

    fn take(&mut self, column: usize, cell: &[u8]) -> Taken {
        let is_candidate = column < self.first_text;
        if self.is_first_row && is_candidate {
            self.firsts.push(cell.to_vec());
        }
        if !self.matters(column) {
            return Taken::Fits;
        }
        let is_empty = cell.trim_ascii().is_empty();
        match Literal::of(cell).or(is_empty.then_some(Literal::GAP)) {
            Some(number) => {
                self.row[column] = number;
                Taken::Fits
            }
            None if self.is_asked[column] => Taken::Wrong,
            None => {
                self.is_text[column] = true;
                self.row[column] = Literal::GAP;
                if is_candidate {
                    self.first_text = column;
                    self.firsts.truncate(column + 1);
                }
                if self.asked.is_none() { Taken::LeftOut } else { Taken::Fits }
            }
        }
    }

    fn end_row(&mut self) {
        if self.is_first_row {
            self.found = (0..self.names.len()).filter(|column| !self.is_text[*column]).collect();
            self.is_first_row = false;
        }
    }

    /// Metadata of the series; the bytes of its start, where they are not UTF-8.
    fn extras(&self, kept: &[usize]) -> Result<String, &[u8]> {
        let names: Vec<&str> = kept.iter().map(|place| self.names[self.written()[*place]].as_str()).collect();
        let mut extras = json!({ "columns": names });
        if let Some(start) = self.firsts.get(self.first_text) {
            extras["start"] = Value::from(std::str::from_utf8(start).map_err(|_| start.as_slice())?);
        }
        Ok(extras.to_string())
    }
}

/// What a cell is to its column.
enum Taken {
    Fits,
    /// Text: the column is none of numbers.
    LeftOut,
    /// Text where a number was asked for.
    Wrong,
}
