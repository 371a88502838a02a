//! What the columns of text say of the numbers beside them: of which series a line is, at which time, or nothing.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::cells::NOT_UTF8;
use super::times::{Steps, Time, Wrong, looks_like_time};
use crate::converted::Literal;

/// Columns of these names hold IDs, also those that are whole numbers.
const IDS: [&str; 3] = ["unique_id", "item_id", "series_id"];
/// Of a table with IDs, a column of this name may count times.
const COUNTED: &str = "ds";
/// Lines with another text each, after which a column is not one of IDs.
const MOST_SINGLE: usize = 1024;

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
    /// By the cells of the first line; columns that were asked for are numbers.
    pub(super) fn of(names: &[String], firsts: &[Vec<u8>], is_asked: &[bool]) -> Long {
        let free = || (0..names.len()).filter(|column| !is_asked[*column]);
        let text = |column: usize| std::str::from_utf8(&firsts[column]).unwrap_or("");
        let is_text = |column: &usize| {
            !firsts[*column].trim_ascii().is_empty() && Literal::of(&firsts[*column]).is_none()
        };
        let named = free().find(|column| IDS.contains(&names[*column].as_str()));
        let mut texts = free().filter(|column| is_text(column) && named != Some(*column));
        let first = texts.clone().next();
        let mut unread = texts.clone();
        let time = texts.find(|column| Time::of(text(*column)).is_some());
        let is_unread = |column: &usize| time.is_none() && looks_like_time(text(*column));
        // Behind numbers a text is one of them that cannot be counted; at the front, or behind an index, it is an ID.
        let is_front = |column: &usize| names[..*column].iter().all(String::is_empty);
        let is_id = |column: &usize| is_front(column) && time != Some(*column) && !is_unread(column);
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
        let are_counted = time.is_none() && id.is_some() && counted().is_some();
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
            steps: Steps::none(),
            warning,
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
    /// `Config` for an ID that comes back or is not there, and for times that are not in order; `Corrupt` for one that is none.
    pub(super) fn row(&mut self, place: u64, names: &[String]) -> Result<bool, Wrong> {
        let begins = self.series_of(place, names)?;
        if let Some(column) = self.time {
            let text = String::from_utf8_lossy(&self.time_cell);
            let time = if self.are_counted { Time::counted(&text) } else { Time::of(&text) };
            let Some(time) = time else {
                let wanted = if self.are_counted { "a whole number" } else { "a time" };
                let what = format!("expected {wanted} in column {:?}, found {text:?}", names[column]);
                let hint = "a time is written as 2021-03-05 or 2021-03-05 13:45:00, without a zone";
                return Err(Wrong { is_corrupt: true, ..Wrong::new(what, place, hint) });
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
        if let Some(last) = self.series.last_mut().filter(|last| last.id == id) {
            last.rows += 1;
            self.has_many = true;
            return Ok(false);
        }
        if let (Some(column), Some(before)) = (self.id, self.seen.get(&id)) {
            let what =
                format!("{} {id:?} continues after lines of another one: it began before", names[column]);
            let hint = "sort the lines by this column and by time, or read the table with pandas or polars and give it to wr.from_frame; without \
                        this column the file is one series";
            return Err(Wrong { other: Some(*before), ..Wrong::new(what, place, hint) });
        }
        self.steps.begin();
        self.seen.insert(id.clone(), place);
        self.series.push(Series { id, first: None, start: String::new(), freq: None, rows: 1, place });
        if let Some(column) = self.id
            && self.series.len() > MOST_SINGLE
            && !(self.has_many || self.is_named)
        {
            self.is_one(&names[column]);
        }
        Ok(true)
    }

    fn id_of(&self, column: usize, place: u64, names: &[String]) -> Result<String, Wrong> {
        let Ok(id) = std::str::from_utf8(&self.id_cell).map(str::trim) else {
            let found = String::from_utf8_lossy(&self.id_cell);
            let what = format!("expected UTF-8 in column {:?}, found {found:?}", names[column]);
            return Err(Wrong { is_corrupt: true, ..Wrong::new(what, place, NOT_UTF8) });
        };
        if id.is_empty() {
            let what = format!("the line is of no series: column {:?} is empty", names[column]);
            return Err(Wrong::new(what, place, "drop lines without an ID, or fill it"));
        }
        Ok(id.to_string())
    }

    // The texts are not IDs: times are those of one series, and were not compared.
    fn is_one(&mut self, name: &str) {
        if self.series.len() > 1 {
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

// Written as others read it: `2021-03-05 13:45:00`.
fn is_plain(start: &str) -> bool {
    let (date, clock) = start.trim().split_once([' ', 'T']).unwrap_or((start.trim(), ""));
    !date.contains('/') && [7, 10].contains(&date.len()) && (clock.is_empty() || clock.find(':') == Some(2))
}

// A whole number, as pandas also writes those of a column with gaps: `7.0`.
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.strip_suffix(".0")?.parse().ok())
}
