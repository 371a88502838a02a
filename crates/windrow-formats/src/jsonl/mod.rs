//! JSON Lines without an index: the lines of one file, or of all files below a folder, found when it is opened.

mod counted;

use std::sync::Arc;

use windrow_core::format::discover::refuse_copies;
use windrow_core::format::later;
use windrow_core::format::lines::json_kind::{self, JsonKind, is_lines};
use windrow_core::format::lines::{are_parts, is_named, line_ends, lines_among, no_line_files};
use windrow_core::format::verify::{Content, Verify};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, splits};
use windrow_core::source::SharedSource;
use windrow_core::store::{Object, expanded, expanded_head};
use windrow_core::threads::in_parts;
use windrow_core::{Error, Result};

use self::counted::Counted;
use crate::foreign;
use crate::gluonts::begins_with_a_row;
use crate::json_array::is_array;
use crate::json_lines::{JsonLines, NAME, Row, Rows, refuse_number_options};
use crate::key_rows::KeyRows;
use crate::open_options::COLUMNS;
use crate::series_json::begins_with_a_series;
use crate::{Collection, JsonArray, SeriesJsonLines};
use windrow_core::format::data_files::DataFiles;

/// Bytes of one unit of work while lines are searched.
const UNIT: u64 = 32 << 20;

/// JSON Lines read without an index.
#[derive(Clone, Copy, Debug)]
pub struct Jsonl;

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    title: "JSON Lines",
    layout: "`.jsonl` or `.ndjson` files, and `.json` files that hold lines, also `.gz` and `.zst`, at any depth below a folder",
    records: "one JSON value per line; with `columns=` a row of these keys",
    written_by: "`windrow convert --to jsonl`, `wr.write`, any program",
    holds: &[Holds::Rows],
    open_options: &[COLUMNS],
    is_declared: true,
    ..FormatInfo::NONE
};

impl Verify for Jsonl {
    fn content(&self) -> Content {
        Content::Lines
    }
}

impl Format for Jsonl {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let found = if probe.is_folder {
            probe.names().any(is_named) || has_lines(probe)
        } else {
            is_named(&probe.file_name()) || is_lines(probe)
        };
        if found { Confidence::Maybe } else { Confidence::No }
    }

    // Lines are meant as series where a column of numbers is named.
    fn meant_by(&self, probe: &Probe, options: &Options) -> Option<&'static dyn Format> {
        let is_series = options.format.is_none() && options.column.is_some();
        is_series.then_some(if probe.is_folder { &Collection } else { &SeriesJsonLines })
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Jsonl
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        refuse_number_options(options)?;
        let keys = if probe.is_folder { keys_below(probe, options)? } else { vec![probe.key.clone()] };
        open_keys(probe, keys, options)
    }

    fn open_files(&self, probe: &Probe, keys: &[String], options: &Options) -> Option<Result<SharedSource>> {
        Some(refuse_number_options(options).and_then(|()| open_keys(probe, keys.to_vec(), options)))
    }
}

// The lines of these files, or rows of their keys.
fn open_keys(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource> {
    let lines: SharedSource = match Counted::declared(probe, &keys)? {
        Some((counted, files)) => Arc::new(JsonLines::new(Jsonl.name(), counted, files)),
        None => Arc::new(found(probe, keys, options)?),
    };
    if lines.is_empty() && !options.allow_empty {
        let n_files = lines.files().len();
        return Err(Error::corrupt(format!(
            "expected lines, found 0 bytes in {n_files} file{}",
            if n_files == 1 { "" } else { "s" }
        ))
        .at(probe.display())
        .hint("the copy looks unfinished"));
    }
    Ok(match &options.columns {
        Some(columns) => Arc::new(KeyRows::new(lines, columns)?),
        None => lines,
    })
}

// The lines of these files, each looked through.
fn found(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<JsonLines<Starts>> {
    let objects = keys
        .iter()
        .map(|key| expanded(&probe.store, key, options.cache_limit))
        .collect::<Result<Vec<_>>>()?;
    objects.iter().try_for_each(|object| foreign::refuse_as_text(object.as_ref()))?;
    keys.iter().zip(&objects).try_for_each(|(key, object)| refuse_array(key, object.as_ref()))?;
    let rows = Starts::scan(&objects)?;
    later::note_counts(probe, &keys, &rows.counts());
    let files = DataFiles::from_objects(probe.store.clone(), keys, objects).noted(probe);
    Ok(JsonLines::new(Jsonl.name(), rows, files))
}

// Whether a folder holds a `.json` file of lines that are not series. Data is large, descriptions of it are small: so few
// of the largest are enough to tell.
fn has_lines(probe: &Probe) -> bool {
    const LOOKED_AT: usize = 16;
    let mut files: Vec<_> =
        probe.entries.iter().filter(|entry| json_kind::may_hold_records(&entry.key)).collect();
    files.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.key.cmp(&b.key)));
    let are_parts = || are_parts(probe.store.as_ref(), &probe.entries).unwrap_or_default();
    files.iter().take(LOOKED_AT).any(|entry| {
        let Ok(object) = probe.store.open(&entry.key) else { return false };
        JsonKind::of(object.as_ref())
            .is_ok_and(|kind| kind == JsonKind::Lines || (kind == JsonKind::OneLine && are_parts()))
            && !expanded_head(object.as_ref(), json_kind::HEAD)
                .is_ok_and(|head| begins_with_a_series(&head) || begins_with_a_row(&head))
    })
}

// One array is no line of a `.json`, and many lines of it are no records.
fn refuse_array(key: &str, object: &dyn Object) -> Result<()> {
    if is_named(key) || !is_array(object)? {
        return Ok(());
    }
    Err(Error::corrupt("expected lines, found one array of objects")
        .at(object.name())
        .byte(0)
        .hint(format!("@format={}@ reads its objects as records", JsonArray.name())))
}

fn keys_below(probe: &Probe, options: &Options) -> Result<Vec<String>> {
    let is_asked = options.format.as_deref() == Some(Jsonl.name());
    let found = lines_among(probe.table, probe.store.as_ref(), &probe.entries, is_asked)?;
    let keys: Vec<String> = found.into_iter().map(|e| e.key.clone()).collect();
    if keys.is_empty() {
        return Err(no_line_files(probe.table, probe.store.as_ref()).at(probe.display()));
    }
    splits::refuse_in(probe, keys.iter().map(|key| probe.name_of(key)))?;
    refuse_copies(keys.iter().map(String::as_str), |key| probe.store.display(key))?;
    Ok(keys)
}

/// The first byte of every line of all files, 8 bytes a line.
struct Starts {
    starts: Vec<u64>,
    /// Number of the first record of each file, and the number of records at the end.
    first_records: Vec<u64>,
    sizes: Vec<u64>,
}

impl Starts {
    fn scan(objects: &[Arc<dyn Object>]) -> Result<Starts> {
        let mut units = Vec::new();
        for (file, object) in objects.iter().enumerate() {
            let size = object.size();
            units.extend((0..size.div_ceil(UNIT)).map(|i| (file, i * UNIT..(i * UNIT + UNIT).min(size))));
        }
        let ends = |i: usize, scratch: &mut Vec<u8>| {
            let (file, part) = &units[i];
            line_ends(objects[*file].as_ref(), part.clone(), scratch)
        };
        let found = in_parts(units.len(), ends).into_iter().collect::<Result<Vec<_>>>()?;
        let sizes: Vec<u64> = objects.iter().map(|o| o.size()).collect();
        let total: usize = found.iter().map(Vec::len).sum();
        let mut starts = Vec::with_capacity(total + sizes.len());
        let mut first_records = Vec::with_capacity(sizes.len() + 1);
        let mut found = units.iter().zip(found).peekable();
        for (file, &size) in sizes.iter().enumerate() {
            first_records.push(starts.len() as u64);
            if size > 0 {
                starts.push(0);
            }
            while let Some((_, part)) = found.next_if(|(unit, _)| unit.0 == file) {
                starts.extend_from_slice(&part);
            }
            // What follows the last line end is a line only when it holds a byte.
            if size > 0 && starts.last() == Some(&size) {
                starts.pop();
            }
        }
        first_records.push(starts.len() as u64);
        Ok(Starts { starts, first_records, sizes })
    }

    /// The lines of each file.
    fn counts(&self) -> Vec<u64> {
        self.first_records.windows(2).map(|of| of[1] - of[0]).collect()
    }
}

impl Rows for Starts {
    fn count(&self) -> u64 {
        self.starts.len() as u64
    }

    fn row(&self, record: u64, _files: &DataFiles) -> Result<Row> {
        let at = usize::try_from(record).ok().filter(|&at| at < self.starts.len());
        let Some(at) = at else {
            return Err(Error::out_of_range("record", record, self.count()));
        };
        // The last file that begins at or before the record: files without lines begin where the next one does.
        let file = self.first_records[..self.sizes.len()].partition_point(|&first| first <= record) - 1;
        let start = self.starts[at];
        let end =
            if record + 1 < self.first_records[file + 1] { self.starts[at + 1] } else { self.sizes[file] };
        Ok(Row { file, start, size: end - start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::store::{Memory, Store};

    fn rows(texts: &[&str]) -> Vec<(usize, u64, u64)> {
        let mut store = Memory::new();
        for (i, text) in texts.iter().enumerate() {
            store = store.with(&i.to_string(), text.as_bytes());
        }
        let keys: Vec<String> = (0..texts.len()).map(|i| i.to_string()).collect();
        let objects: Vec<_> = keys.iter().map(|key| store.open(key).unwrap()).collect();
        let starts = Starts::scan(&objects).unwrap();
        let files = DataFiles::from_objects(Arc::new(store), keys, objects);
        (0..starts.count())
            .map(|r| starts.row(r, &files).unwrap())
            .map(|row| (row.file, row.start, row.size))
            .collect()
    }

    #[test]
    fn lines_are_numbered_over_all_files() {
        assert_eq!(rows(&["", "a\nbc\n", "", "\n", "d", ""]), [(1, 0, 2), (1, 2, 3), (3, 0, 1), (4, 0, 1)]);
        assert_eq!(rows(&["", ""]), []);
    }
}
