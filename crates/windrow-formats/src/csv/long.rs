//! What the columns of text say of the numbers beside them: of which series a line is, at which time, or nothing.

use std::collections::HashMap;

use serde_json::{Map, Value};
use windrow_core::Result;
use windrow_core::store::Draft;

use super::cells::NOT_UTF8;
use super::distinct::Distinct;
use super::names::{first_in_time, is_unnamed};
use super::times::{Steps, Time, Wrong, looks_like_time};
use crate::converted::Literal;

/// Columns of these names hold IDs, also those that are whole numbers.
const IDS: [&str; 3] = ["unique_id", "item_id", "series_id"];
/// A column of this name may count times.
const COUNTED: &str = "ds";
/// Lines with another text each that are held as series of their own: after them the column is taken to be none of IDs, until a text
/// comes again.
const MOST_SINGLE: usize = 1024;
const TIME_HINT: &str = "a time is written as 2021-03-05 or 2021-03-05 13:45:00, without a zone";
const ID_HINT: &str = "drop lines without an ID, or fill it; without this column the file is one series";

/// Series of a table, and which columns tell them.
pub(super) struct Long {
    id: Option<usize>,
    /// It is called so, and is not just a text.
    is_named: bool,
    time: Option<usize>,
    are_counted: bool,
    /// The text in the columns of the line.
    id_cell: Vec<u8>,
    time_cell: Vec<u8>,
    series: Vec<Series>,
    /// Where the lines of an ID begin.
    seen: HashMap<String, u64>,
    /// Some series has two lines.
    has_many: bool,
    /// Columns before those of numbers that have no cell in the first line.
    blank: Vec<usize>,
    /// The first of the columns at the end that are named as times are.
    in_time: Option<usize>,
    /// A text is known to come again, so all are held.
    are_held: bool,
    /// Texts of more lines than are held, and whether one came again.
    many: Option<Distinct>,
    is_again: bool,
    steps: Steps,
    pub(super) warning: Option<String>,
}

/// Lines of one ID.
pub(super) struct Series {
    id: String,
    first: Option<Time>,
    start: String,
    freq: Option<String>,
    pub(super) rows: u64,
    /// Where they begin.
    pub(super) place: u64,
}

impl Long {
    /// By the cells of the first line; columns that were asked for are numbers. `are_held`: all texts of an ID's column are, however many
    /// they are.
    pub(super) fn of(names: &[String], firsts: &[Vec<u8>], is_asked: &[bool], are_held: bool) -> Long {
        let free = || (0..names.len()).filter(|column| !is_asked[*column]);
        let text = |column: usize| std::str::from_utf8(&firsts[column]).unwrap_or("");
        let is_blank = |column: &usize| is_missing(&firsts[*column]);
        let is_text = |column: &usize| !is_blank(column) && Literal::of(&firsts[*column]).is_none();
        let named = free().find(|column| IDS.contains(&names[*column].as_str()));
        let mut texts = free().filter(|column| is_text(column) && named != Some(*column));
        let first = texts.clone().next();
        let mut unread = texts.clone();
        let time = texts.find(|column| Time::of(text(*column)).is_some());
        let is_unread = |column: &usize| time.is_none() && looks_like_time(text(*column));
        let is_id = |column: &usize| is_front(names, *column) && time != Some(*column) && !is_unread(column);
        let id = named.or(first.filter(is_id));
        let counted =
            || free().find(|column| names[*column] == COUNTED && Time::counted(text(*column)).is_some());
        let warning = unread.find(is_unread).map(|column| {
            format!(
                "times of column {:?} are not read, and gaps and order not checked: {:?}; write them as 2021-03-05 13:45:00",
                names[column],
                text(column)
            )
        });
        let are_counted = time.is_none() && counted().is_some();
        let are_numbers = |first: usize| {
            (first..names.len()).all(|column| id == Some(column) || is_blank(&column) || !is_text(&column))
        };
        let is_number = |column: &usize| !is_blank(column) && !is_text(column) && named != Some(*column);
        let of_numbers = (0..names.len()).find(|column| is_number(column) && !is_unnamed(&names[*column]));
        Long {
            id,
            is_named: named.is_some(),
            time: if are_counted { counted() } else { time },
            are_counted,
            id_cell: Vec::new(),
            time_cell: Vec::new(),
            series: Vec::new(),
            seen: HashMap::new(),
            has_many: false,
            blank: free().take_while(|column| Some(*column) != of_numbers).filter(is_blank).collect(),
            in_time: first_in_time(names).filter(|first| time.is_none() && are_numbers(*first)),
            are_held,
            many: None,
            is_again: false,
            steps: Steps::none(),
            warning,
        }
    }

    /// Columns before those of numbers that have no cell in the first line: later ones say whether they hold texts.
    pub(super) fn blank(&self) -> &[usize] {
        &self.blank
    }

    /// What the first line lacks, where this is the first cell of a blank column.
    pub(super) fn lacks(&self, column: usize, cell: &[u8], names: &[String]) -> Option<Wrong> {
        let text = std::str::from_utf8(cell).unwrap_or("");
        let place = self.series.first()?.place;
        match (Time::of(text), self.time, self.id) {
            (Some(_), None, _) => Some(no_time("a time", "", &names[column], place)),
            (None, _, None) if is_front(names, column) && !looks_like_time(text) => {
                Some(Wrong::new(no_id(&names[column]), place, ID_HINT))
            }
            _ => None,
        }
    }

    /// Whether the column tells of the line, and is not one of numbers.
    pub(super) fn tells(&self, column: usize) -> bool {
        self.time == Some(column) || self.id == Some(column) && self.is_named
    }

    /// Keeps the cell of a line, where it is asked for.
    pub(super) fn take(&mut self, column: usize, cell: &[u8]) {
        for (wanted, kept) in [(self.id, &mut self.id_cell), (self.time, &mut self.time_cell)] {
            if wanted == Some(column) {
                kept.clear();
                kept.extend_from_slice(cell);
            }
        }
    }

    /// Takes in the line at this byte; `true` where another series begins.
    ///
    /// # Errors
    /// `Config` for an ID that comes back or is not there, and for times that are not in order; `Corrupt` for a text that is not a time.
    pub(super) fn row(&mut self, place: u64, names: &[String]) -> Result<bool, Wrong> {
        let begins = self.series_of(place, names)?;
        if let Some(column) = self.time {
            let text = String::from_utf8_lossy(&self.time_cell);
            let time = if self.are_counted { Time::counted(&text) } else { Time::of(&text) };
            let Some(time) = time else {
                let wanted = if self.are_counted { "a whole number" } else { "a time" };
                return Err(no_time(wanted, &text, &names[column], place));
            };
            self.steps.add(time, &text, place)?;
            if let Some(series) = self.series.last_mut().filter(|series| series.rows == 1) {
                (series.first, series.start) = (Some(time), text.into_owned());
            }
        }
        Ok(begins)
    }

    fn series_of(&mut self, place: u64, names: &[String]) -> Result<bool, Wrong> {
        let id = match self.id {
            Some(column) => self.id_of(column, place, names)?,
            None => String::new(),
        };
        if let Some(many) = &mut self.many {
            many.add(id.as_bytes());
            self.steps.begin();
            self.series.iter_mut().for_each(|one| {
                self.is_again |= one.id == id;
                one.id.clone_from(&id);
                one.rows += 1;
            });
            return Ok(false);
        }
        if let Some(last) = self.series.last_mut().filter(|last| last.id == id) {
            last.rows += 1;
            self.has_many = true;
            return Ok(false);
        }
        if let (Some(column), Some(before)) = (self.id, self.seen.get(&id)) {
            if let Some(wrong) = self.lies_across(names) {
                return Err(wrong);
            }
            let what =
                format!("{} {id:?} continues after lines of another one: it began before", names[column]);
            let hint = "sort the lines by this column and by time, or read the table with pandas or polars and give it to @from_frame@; without \
                        this column the file is one series";
            return Err(Wrong { other: Some(*before), ..Wrong::new(what, place, hint) });
        }
        self.steps.begin();
        self.seen.insert(id.clone(), place);
        self.series.push(Series { id, first: None, start: String::new(), freq: None, rows: 1, place });
        if self.series.len() > MOST_SINGLE && !(self.has_many || self.is_named || self.are_held) {
            self.hold_no_more();
        }
        Ok(true)
    }

    // This many different texts may not be IDs; they are one series until one comes again.
    fn hold_no_more(&mut self) {
        let many = self.many.insert(Distinct::default());
        self.series.iter().for_each(|series| many.add(series.id.as_bytes()));
        let last = self.series.last().map_or(String::new(), |last| last.id.clone());
        let rows = self.series.len() as u64;
        self.series.truncate(1);
        self.series.iter_mut().for_each(|one| (one.rows, one.id) = (rows, last.clone()));
        self.seen = HashMap::new();
    }

    /// Whether a text came again in more lines than are held: then they are read again, and held. `create` gives an empty file.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn comes_again(&mut self, create: impl FnOnce() -> Result<Draft>) -> Result<bool> {
        if let Some(many) = &mut self.many {
            many.settle(create)?;
        }
        Ok(self.is_again)
    }

    /// Whether a text came again, asked at the end, of texts that are apart too.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn came_again(&mut self) -> Result<bool> {
        let are_different = self.many.as_mut().map_or(Ok(true), Distinct::are_different)?;
        Ok(self.is_again || !are_different)
    }

    // Lines that are series: columns are named as times are, and no ID has two lines.
    fn lies_across(&self, names: &[String]) -> Option<Wrong> {
        let first = self.in_time.filter(|_| self.id.is_none() || !self.has_many)?;
        let last = names.last()?;
        let (of_id, first) = match self.id {
            Some(column) => (format!("column {:?} has its ID, ", names[column]), first.max(column + 1)),
            None => (String::new(), first),
        };
        // Numbered columns without an ID are channels.
        if self.id.is_none() && Time::of(last).is_none() {
            return None;
        }
        let what =
            format!("a line is a series: {of_id}columns {:?} to {last:?} its values", names.get(first)?);
        let hint = "series go down a table: make a line of each value, with melt() in pandas or unpivot() in polars, sorted by ID; or rename \
                    the columns, if they are channels of one series";
        Some(Wrong::new(what, self.series.first()?.place, hint))
    }

    fn id_of(&self, column: usize, place: u64, names: &[String]) -> Result<String, Wrong> {
        let Ok(id) = std::str::from_utf8(&self.id_cell).map(str::trim) else {
            let found = String::from_utf8_lossy(&self.id_cell);
            let what = format!("expected UTF-8 in column {:?}, found {found:?}", names[column]);
            return Err(Wrong { is_corrupt: true, ..Wrong::new(what, place, NOT_UTF8) });
        };
        if is_missing(id.as_bytes()) {
            return Err(Wrong::new(no_id(&names[column]), place, ID_HINT));
        }
        Ok(id.to_string())
    }

    // The texts are not IDs: times are those of one series, and were not compared.
    fn is_one(&mut self, name: &str) {
        if self.series.len() > 1 || self.many.is_some() {
            self.warning = Some(format!(
                "column {name:?} has another text in every line, neither times nor IDs of series: it is left out, the file is one series, \
                 and no times of it are checked"
            ));
        }
        let rows = self.series.iter().map(|series| series.rows).sum();
        self.series.truncate(1);
        self.series
            .iter_mut()
            .for_each(|series| (series.rows, series.id, series.first) = (rows, String::new(), None));
        self.seen = HashMap::new();
        (self.id, self.time) = (None, None);
    }

    /// Finds what is known at the end: whether there are several series, and by which step their times go on.
    ///
    /// # Errors
    /// `Config` for times that do not go on by one step.
    pub(super) fn ended(&mut self, names: &[String]) -> Result<(), Wrong> {
        if let Some(wrong) = self.lies_across(names) {
            return Err(wrong);
        }
        if let (Some(column), false, false) = (self.id, self.has_many, self.is_named) {
            self.is_one(&names[column]);
        }
        let Some(every) = self.steps.frequency()? else { return Ok(()) };
        for series in &mut self.series {
            series.freq = series.first.map(|first| every.named(first));
        }
        Ok(())
    }
}

impl Long {
    /// The series of the table, in their order.
    pub(super) fn series(&self) -> &[Series] {
        &self.series
    }

    /// What is beside a series, without the frequency, which no plan knows; and with it. `start`: what a table without IDs and times
    /// has in its place.
    pub(super) fn extras(&self, series: &Series, columns: &[&str], start: Option<&str>) -> [String; 2] {
        let mut extras = Map::new();
        if self.id.is_some() {
            let number = if self.is_named { whole(&series.id) } else { None };
            extras.insert("item_id".into(), number.map_or_else(|| series.id.as_str().into(), Value::from));
        }
        extras.insert("columns".into(), columns.into());
        let start: Option<Value> = match series.first {
            Some(Time::Number(number)) => Some(number.into()),
            Some(_) => Some(series.start.as_str().into()),
            None => start.filter(|_| self.id.is_none()).map(Value::from),
        };
        extras.extend(start.map(|start| ("start".to_string(), start)));
        let known = Value::Object(extras.clone()).to_string();
        if let Some(Time::Date(_)) = series.first {
            let time = series.first.filter(|_| !is_plain(&series.start));
            extras.extend(time.map(|time| ("start".to_string(), time.iso().into())));
            extras.extend(series.freq.as_ref().map(|freq| ("freq".to_string(), freq.as_str().into())));
        }
        [known, Value::Object(extras).to_string()]
    }
}

// Before all others but an index: behind numbers a text is one of them that cannot be counted.
fn is_front(names: &[String], column: usize) -> bool {
    names[..column].iter().all(|name| is_unnamed(name))
}

// Nothing, or a word for it.
fn is_missing(cell: &[u8]) -> bool {
    cell.trim_ascii().is_empty() || Literal::of(cell).is_some_and(|number| number.value.is_nan())
}

fn no_id(name: &str) -> String {
    format!("the line is of no series: column {name:?} is empty")
}

fn no_time(wanted: &str, found: &str, name: &str, place: u64) -> Wrong {
    let what = format!("expected {wanted} in column {name:?}, found {found:?}");
    Wrong { is_corrupt: true, ..Wrong::new(what, place, TIME_HINT) }
}

// Written as others read it: `2021-03-05 13:45:00`.
fn is_plain(start: &str) -> bool {
    let (date, clock) = start.trim().split_once([' ', 'T']).unwrap_or((start.trim(), ""));
    let is_date = date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_date && [7, 10].contains(&date.len()) && (clock.is_empty() || clock.find(':') == Some(2))
}

// A whole number, as pandas also writes those of a column with gaps: `7.0`.
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.strip_suffix(".0")?.parse().ok())
}
