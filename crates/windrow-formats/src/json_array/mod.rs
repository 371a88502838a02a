//! JSON that is one array of objects, as sets for fine-tuning are: each of them a record, read in place.

mod scan;

use std::sync::Arc;

use windrow_core::format::data_files::DataFiles;
use windrow_core::format::discover::{among, refuse_copies};
use windrow_core::format::lines::json_kind::{self, HEAD, JsonKind};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, splits};
use windrow_core::source::SharedSource;
use windrow_core::store::{Entry, Object, expanded, expanded_head, key};
use windrow_core::threads::in_parts;
use windrow_core::{Error, Result};

use crate::converted::{Event, Sink, TARGET};
use crate::foreign;
use crate::json_lines::{JsonLines, Row, Rows, refuse_number_options};
use crate::key_rows::KeyRows;
use crate::open_options::COLUMNS;
use crate::series_json::begins_with_a_series;
use crate::series_json::scan::Scan;
use crate::{Collection, SeriesJson};

/// Files that are looked at to know a folder.
const LOOKED_AT: usize = 16;

/// Arrays of objects in `.json` files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonArray;

static INFO: FormatInfo = FormatInfo {
    name: "json-array",
    title: "JSON array of objects",
    layout: "`.json` files with one array of objects each, also `.gz` and `.zst`, at any depth below a folder",
    records: "one object of the array; with `columns=` a row of these keys",
    written_by: "`json.dump` of a list, pandas, any program",
    holds: &[Holds::Rows],
    open_options: &[COLUMNS],
    ..FormatInfo::NONE
};

impl Format for JsonArray {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        if !probe.is_folder {
            let may_be = json_kind::may_hold_records(&probe.file_name());
            return Confidence::yes_if(may_be && is_one(probe, &probe.key));
        }
        // Beside other data an array describes it.
        if !probe.names().any(is_other_data) && has_arrays(probe) {
            Confidence::Maybe
        } else {
            Confidence::No
        }
    }

    // Objects are meant as series where a key of numbers is named.
    fn meant_by(&self, probe: &Probe, options: &Options) -> Option<&'static dyn Format> {
        let is_series = options.format.is_none() && options.column.is_some();
        is_series.then_some(if probe.is_folder { &Collection } else { &SeriesJson })
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        refuse_number_options(options)?;
        let keys = if probe.is_folder { keys_below(probe)? } else { vec![probe.key.clone()] };
        let objects = keys
            .iter()
            .map(|key| expanded(&probe.store, key, options.cache_limit))
            .collect::<Result<Vec<_>>>()?;
        objects.iter().try_for_each(|object| foreign::refuse_as_text(object.as_ref()))?;
        let rows = Objects::scan(&objects)?;
        if rows.count() == 0 && !options.allow_empty {
            return Err(
                Error::corrupt("expected an array of objects, found an empty one").at(probe.display())
            );
        }
        let files = DataFiles::from_objects(probe.store.clone(), keys, objects);
        let records = Arc::new(JsonLines::new(self.name(), rows, files));
        Ok(match &options.columns {
            Some(columns) => Arc::new(KeyRows::new(records, columns)?),
            None => records,
        })
    }
}

/// Whether text begins with an array whose first value is an object, and that is no series.
fn begins_with_objects(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let inside = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    inside.is_some_and(|inside| {
        inside.first() == Some(&b'{') && !begins_with_a_series(inside) && !has_key_of_series(inside)
    })
}

// Whether an object has a list under one of the two keys that name a series, whatever is beside it.
fn has_key_of_series(object: &[u8]) -> bool {
    let mut looked = Looked::default();
    // Ends with an error where the head does.
    let _ = Scan::new(object, 0, "").value(&mut looked);
    looked.has_series
}

#[derive(Default)]
struct Looked {
    /// Objects and lists that are open.
    depth: usize,
    is_key_of_series: bool,
    has_series: bool,
}

impl Sink for Looked {
    fn event(&mut self, event: Event<'_>, _byte: Option<u64>) -> Result<()> {
        match event {
            Event::Key(key) if self.depth == 1 => self.is_key_of_series = ["sequence", TARGET].contains(&key),
            Event::List => {
                self.has_series |= self.depth == 1 && self.is_key_of_series;
                self.depth += 1;
            }
            Event::Dict => self.depth += 1,
            Event::ListEnd | Event::DictEnd => self.depth -= 1,
            _ => {}
        }
        Ok(())
    }
}

/// Whether a file that holds anything but lines is one.
pub(super) fn is_array(object: &dyn Object) -> Result<bool> {
    Ok(begins_with_objects(&expanded_head(object, HEAD)?) && JsonKind::of(object)? != JsonKind::Lines)
}

// An error met while probing is reported by whoever opens it.
fn is_one(probe: &Probe, key: &str) -> bool {
    probe.store.open(key).and_then(|object| is_array(object.as_ref())).unwrap_or_default()
}

// Files that may hold one.
fn documents(probe: &Probe) -> impl Iterator<Item = &Entry> {
    among(&probe.entries, json_kind::SUFFIXES).into_iter().filter(|entry| {
        entry.size > 0 && json_kind::may_hold_records(&entry.key) && !json_kind::is_description(&entry.key)
    })
}

// Whether a folder holds one. Data is large, descriptions of it are small: so few of the largest are enough to tell.
fn has_arrays(probe: &Probe) -> bool {
    let mut files: Vec<&Entry> = documents(probe).collect();
    files.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.key.cmp(&b.key)));
    files.iter().take(LOOKED_AT).any(|entry| is_one(probe, &entry.key))
}

// Whether a file of this name is data of another format.
fn is_other_data(name: &str) -> bool {
    let infos = crate::FORMATS.iter().map(|format| format.info());
    let mut suffixes = infos.flat_map(|info| info.data_suffixes.iter().chain(info.series_suffixes));
    !json_kind::may_hold_records(name) && suffixes.any(|suffix| key::has_suffix(name, suffix))
}

fn keys_below(probe: &Probe) -> Result<Vec<String>> {
    let (arrays, others): (Vec<&Entry>, Vec<&Entry>) =
        documents(probe).partition(|entry| is_one(probe, &entry.key));
    let keys: Vec<String> = arrays.into_iter().map(|entry| entry.key.clone()).collect();
    if keys.is_empty() {
        return Err(Error::not_found("expected `.json` files that hold an array of objects, found none")
            .at(probe.display()));
    }
    if let Some(first) = others.first() {
        windrow_core::warn!(
            "{}: left out of the arrays beside it, another JSON document{}",
            probe.store.display(&first.key),
            if others.len() > 1 { format!(", and {} more", others.len() - 1) } else { String::new() }
        );
    }
    splits::refuse_in(probe, keys.iter().map(|key| probe.name_of(key)))?;
    refuse_copies(keys.iter().map(String::as_str), |key| probe.store.display(key))?;
    Ok(keys)
}

/// Where the objects of all files lie, 16 bytes each.
struct Objects {
    rows: Vec<(u64, u64)>,
    /// Number of the first record of each file, and the number of records at the end.
    first_records: Vec<u64>,
}

impl Objects {
    fn scan(files: &[Arc<dyn Object>]) -> Result<Objects> {
        let found = in_parts(files.len(), |file, _: &mut Vec<u8>| scan::objects(files[file].as_ref()));
        let mut objects = Objects { rows: Vec::new(), first_records: vec![0] };
        for rows in found {
            objects.rows.extend(rows?);
            objects.first_records.push(objects.rows.len() as u64);
        }
        Ok(objects)
    }
}

impl Rows for Objects {
    fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    fn row(&self, record: u64, _files: &DataFiles) -> Result<Row> {
        let row = usize::try_from(record).ok().and_then(|at| self.rows.get(at));
        let &(start, size) = row.ok_or_else(|| Error::out_of_range("record", record, self.count()))?;
        // The last file that begins at or before the record: files without objects begin where the next one does.
        let file = self.first_records.partition_point(|&first| first <= record) - 1;
        Ok(Row { file, start, size })
    }
}
