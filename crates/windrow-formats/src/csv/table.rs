//! A table as one series, or one of each ID, in one pass: which of its columns hold only numbers is known at its end, so those that
//! turn out to hold text are taken out then.

use windrow_core::store::{Draft, Object};
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use super::cells::{Cells, NOT_UTF8};
use super::counter::Counter;
use super::long::Long;
use super::names::is_unnamed;
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
    let is_done = pass(object, draft, limit, delimiter, asked, false)?;
    if !is_done {
        draft.cut(0)?;
        pass(object, draft, limit, delimiter, asked, true)?;
    }
    Ok(())
}

// Reads the table once; `false` where that is in vain: a text comes again after more lines than are held, and is an ID.
fn pass(
    object: &dyn Object,
    draft: &mut Draft,
    limit: u64,
    delimiter: u8,
    asked: &Asked,
    are_held: bool,
) -> Result<bool> {
    let mut writer = Writer::new(draft, object.name(), limit)?;
    let mut cells = Cells::new(Parts::new(object), delimiter);
    let names = head(&mut cells)?;
    let mut columns = Columns::of(&cells, names, asked, are_held)?;
    let mut rows = 0;
    let mut long = None;
    while read_row(&mut cells, &mut columns, &mut long)? {
        for column in columns.written() {
            writer.put_text(columns.row[*column])?;
        }
        rows += 1;
        if let Some(long) = &mut long
            && long.comes_again(|| writer.spill())?
        {
            return Ok(false);
        }
    }
    let at = |error: Error| error.at(object.name());
    if rows == 0 {
        return Err(at(Error::corrupt("expected lines of numbers below the names, found none"))
            .hint("the copy looks unfinished"));
    }
    let Some(mut long) = long else { return Ok(true) };
    if long.came_again()? {
        return Ok(false);
    }
    long.ended(&columns.names).map_err(|wrong| cells.wrong_line(wrong))?;
    let kept = columns.kept();
    if kept.is_empty() {
        return Err(at(Error::corrupt(format!(
            "expected a column of numbers, found text in every column: {}",
            shown(&columns.names.join(", "))
        )))
        .hint(match delimiter {
            b',' if columns.names.len() == 1 => "cells are separated by commas, in a .tsv by tabs; texts are read as JSON Lines",
            _ => "texts are read as JSON Lines; with pandas: `read_csv(OLD).to_json(NEW, orient=\"records\", lines=True)`",
        }));
    }
    if kept.len() < columns.written().len() {
        writer.keep_columns(columns.written().len(), &kept)?;
    }
    let start = columns.start().map(std::str::from_utf8).transpose().map_err(|_| {
        let found = String::from_utf8_lossy(columns.start().unwrap_or_default());
        at(Error::corrupt(format!("expected UTF-8, found {:?}", shown(&found))).hint(NOT_UTF8))
    })?;
    columns.say(&cells, &long, &kept);
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
    writer.finish(channels, content)?;
    Ok(true)
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
                    "@column@ and @columns@ name columns of numbers; an empty cell is NaN",
                ));
            }
            Taken::LeftOut if !columns.is_first_row => {
                let is_blank = columns.is_blank[column];
                let lacks = long.as_ref().filter(|_| is_blank);
                if let Some(wrong) = lacks.and_then(|long| long.lacks(column, cells.cell(), &columns.names)) {
                    return Err(cells.wrong_line(wrong));
                }
                columns.say_left_out(column, cells);
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
    /// Those before the numbers that have no cell so far.
    is_blank: Vec<bool>,
    /// Of the first columns without a name, whether all cells so far are whole numbers: an index.
    is_index: Vec<bool>,
    counter: Counter,
    /// What users are told in the end.
    warnings: Vec<String>,
    are_held: bool,
    /// Numbers of the line that is read.
    row: Vec<Literal>,
}

impl Columns {
    fn of(cells: &Cells<'_>, names: Vec<String>, asked: &Asked, are_held: bool) -> Result<Columns> {
        let places = |wanted: &[String], option: &'static str| {
            let found = wanted.iter().map(|name| place(&names, name, option)).collect::<Result<Vec<_>>>();
            found.map_err(|error| error.at(cells.file()))
        };
        let asked = match asked {
            Asked::One(name) => Some(places(std::slice::from_ref(name), "column")?),
            Asked::Several(wanted) => Some(places(wanted, "columns")?),
            Asked::Numbers => None,
        };
        let mut warnings = Vec::new();
        if names.iter().all(|name| Literal::of(name.as_bytes()).is_some()) {
            let warning = "the first line holds numbers, and is read as the names of the columns";
            warnings.push(warning.to_string());
        }
        let n_unnamed = names.iter().take_while(|name| is_unnamed(name)).count();
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
            is_blank: vec![false; count],
            is_index: vec![true; n_unnamed],
            counter: Counter::none(),
            warnings,
            are_held,
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
        let kept = written.filter(|(_, column)| !self.is_text[**column] && !self.is_index(**column));
        kept.map(|(place, _)| place).collect()
    }

    // A column without a name at the front that holds whole numbers.
    fn is_index(&self, column: usize) -> bool {
        self.asked.is_none() && self.is_index.get(column) == Some(&true)
    }

    fn kept_names(&self, kept: &[usize]) -> Vec<&str> {
        kept.iter().map(|place| self.names[self.written()[*place]].as_str()).collect()
    }

    // What of the first line tells of the others.
    fn told(&mut self) -> Long {
        let mut long = Long::of(&self.names, &self.firsts, &self.is_asked, self.are_held);
        for (column, cell) in self.firsts.iter().enumerate() {
            long.take(column, cell);
            self.is_text[column] |= long.tells(column);
        }
        long.blank().iter().for_each(|column| self.is_blank[*column] = true);
        self.counter.column = (self.is_index.len()..self.names.len()).find(|column| !self.is_text[*column]);
        long
    }

    fn say_left_out(&mut self, column: usize, cells: &Cells<'_>) {
        if self.asked.is_none() {
            let (line, found) = (cells.line(), String::from_utf8_lossy(cells.cell()));
            let name = &self.names[column];
            self.warnings.push(format!("column {name:?} is left out: {:?} in line {line}", shown(&found)));
        }
    }

    /// Says what is not as it may be meant.
    fn say(&self, cells: &Cells<'_>, long: &Long, kept: &[usize]) {
        let is_kept = |column: usize| kept.iter().any(|place| self.written()[*place] == column);
        let of_unnamed =
            (0..self.is_index.len()).filter(|column| self.asked.is_none() && !self.is_text[*column]);
        let said = of_unnamed.map(|column| match (&self.names[column], is_kept(column)) {
            (name, true) => format!("column {name:?} at the front has no name, and is a channel; @columns@ chooses others"),
            (name, false) => {
                format!("column {name:?} at the front has no name and holds whole numbers, an index: it is left out")
            }
        });
        let counter =
            self.counter.column.filter(|column| self.asked.is_none() && kept.len() > 1 && is_kept(*column));
        let counts = counter.and_then(|column| {
            let (name, what) = (&self.names[column], self.counter.said()?);
            Some(format!("column {name:?} {what}, and is a channel: @columns@ leaves it out"))
        });
        let known = self.warnings.iter().chain(&long.warning).cloned();
        known
            .chain(said)
            .chain(counts)
            .for_each(|warning| windrow_core::warn!("{}: {warning}", cells.file()));
    }

    // Whether a cell of this column has a say.
    fn matters(&self, column: usize) -> bool {
        let is_awaited = column < self.first_text || self.is_asked[column] || self.is_blank[column];
        !self.is_text[column] && (self.asked.is_none() || is_awaited)
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
                self.is_blank[column] &= number.value.is_nan();
                Taken::Fits
            }
            None if self.is_asked[column] => Taken::Wrong,
            None => {
                self.is_text[column] = true;
                self.row[column] = Literal::GAP;
                if is_candidate {
                    self.first_text = column;
                }
                Taken::LeftOut
            }
        }
    }

    // `begins`: with the line another series begins, which may be counted from 0 again.
    fn end_row(&mut self, begins: bool) {
        for (is_index, number) in self.is_index.iter_mut().zip(&self.row) {
            *is_index &= number.value.fract() == 0.0;
        }
        if let Some(column) = self.counter.column {
            self.counter.add(self.row[column].value, begins);
        }
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
    /// Text: the column does not hold numbers.
    LeftOut,
    /// Text where a number was asked for.
    Wrong,
}
