//! A table as one series, or one of each ID, in one pass: which of its columns hold only numbers is known at its end, so those that
//! turn out to hold text are taken out then.

use windrow_core::store::{Draft, Object};
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use super::cells::{Cells, NOT_UTF8};
use super::long::Long;
use crate::converted::{Ended, Literal, Parts, Writer};

/// Columns of a table; their names are held.
const MOST_COLUMNS: usize = 1 << 20;
/// Characters of a cell or of names that an error shows.
const SHOWN: usize = 200;

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
/// `Corrupt` for lines of several widths, text where numbers or times must be, a table without numbers; `Config` for a column that is
/// not there, lines of a series that are apart, times that are not in order or not regular.
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
    let mut long = None;
    while read_row(&mut cells, &mut columns, &mut long)? {
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
    let Some(mut long) = long else { return Ok(()) };
    long.ended(&columns.names).map_err(|wrong| cells.wrong_line(wrong))?;
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
    let start = columns.start().map(std::str::from_utf8).transpose().map_err(|_| {
        let found = String::from_utf8_lossy(columns.start().unwrap_or_default());
        at(Error::corrupt(format!("expected UTF-8, found {:?}", shown(&found))).hint(NOT_UTF8))
    })?;
    columns.say(&cells, &long);
    let names = columns.kept_names(&kept);
    let series = long.series();
    let ends = series.iter().skip(1).map(|next| next.place).chain([object.size()]);
    let places = series.iter().zip(ends).map(|(series, end)| match series.place {
        _ if long.series().len() == 1 => 0..object.size(),
        start => start..end,
    });
    let ended = series.iter().zip(places).map(|(series, place)| {
        let [known, extras] = long.extras(series, &names, start);
        Ended { extras, known: known.len() as u64, rows: series.rows, place }
    });
    writer.end_records(kept.len(), ended)?;
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
            let known = series.first().map(|first| long.extras(first, &names, start));
            hash.update(known.map_or(String::new(), |[known, _]| known).as_bytes());
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
fn read_row(cells: &mut Cells<'_>, columns: &mut Columns, long: &mut Option<Long>) -> Result<bool> {
    let wanted = columns.names.len();
    let (mut column, mut start) = (0, 0);
    loop {
        let Some(is_last) = cells.next()? else { return Ok(false) };
        if column == 0 {
            start = cells.start();
        }
        if column == wanted {
            return Err(cells.wrong(format!("expected {wanted} cells in a line, found more"), RAGGED));
        }
        if let Some(long) = long {
            long.take(column, cells.cell());
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
            let long = long.get_or_insert_with(|| columns.told());
            let begins = long.row(start, &columns.names).map_err(|wrong| cells.wrong_line(wrong))?;
            columns.end_row(begins);
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
    /// Cells of the first line.
    firsts: Vec<Vec<u8>>,
    is_first_row: bool,
    /// The number in the first column, where that has no name and has counted lines so far.
    counted: Option<f64>,
    first_count: f64,
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
            counted: None,
            first_count: 0.0,
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
        let kept = written.filter(|(_, column)| !self.is_text[**column] && !self.is_count(**column));
        kept.map(|(place, _)| place).collect()
    }

    // A column without a name at the front that counts the lines.
    fn is_count(&self, column: usize) -> bool {
        column == 0 && self.asked.is_none() && self.counted.is_some()
    }

    fn kept_names(&self, kept: &[usize]) -> Vec<&str> {
        kept.iter().map(|place| self.names[self.written()[*place]].as_str()).collect()
    }

    // What of the first line tells of the others.
    fn told(&mut self) -> Long {
        let mut long = Long::of(&self.names, &self.firsts, &self.is_asked);
        for (column, cell) in self.firsts.iter().enumerate() {
            long.take(column, cell);
            self.is_text[column] |= long.tells(column);
        }
        long
    }

    /// Says what is not as it may be meant.
    fn say(&self, cells: &Cells<'_>, long: &Long) {
        if let Some(warning) = &long.warning {
            log::warn!("{}: {warning}", cells.file());
        }
        if self.is_count(0) {
            log::warn!("{}: the first column has no name and counts the lines: it is left out", cells.file());
        }
    }

    // Whether a cell of this column has a say.
    fn matters(&self, column: usize) -> bool {
        !self.is_text[column] && (self.asked.is_none() || column < self.first_text || self.is_asked[column])
    }

    fn take(&mut self, column: usize, cell: &[u8]) -> Taken {
        let is_candidate = column < self.first_text;
        if self.is_first_row {
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
                }
                if self.asked.is_none() { Taken::LeftOut } else { Taken::Fits }
            }
        }
    }

    // `begins`: with the line another series begins, which may be counted anew.
    fn end_row(&mut self, begins: bool) {
        let number = self.row.first().map_or(f64::NAN, |first| first.value);
        let is_next = match self.counted {
            None => self.is_first_row && self.names.first().is_some_and(String::is_empty),
            Some(before) => number == before + 1.0 || begins && number == self.first_count,
        };
        if self.is_first_row {
            self.first_count = number;
        }
        self.counted = (is_next && number.fract() == 0.0).then_some(number);
        if self.is_first_row {
            self.found = (0..self.names.len()).filter(|column| !self.is_text[*column]).collect();
            self.is_first_row = false;
        }
    }

    /// The first cell of the first column of text.
    fn start(&self) -> Option<&[u8]> {
        self.firsts.get(self.first_text).map(Vec::as_slice)
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
