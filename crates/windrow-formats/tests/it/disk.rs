//! Data sets on disk for the tests of reading: written into a temporary folder, opened the way a user's path is.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use windrow_core::format::{self, Options, Probe};
use windrow_core::source::{Location, SharedSource, Source};
use windrow_core::store::{Io, Local};
use windrow_core::{Error, Kind, Result, Span};
use windrow_formats::FORMATS;

/// Opens a file from the folder it lies in, a folder from itself.
pub(crate) fn open_with(path: &Path, options: &Options) -> Result<SharedSource> {
    let (root, key) = if path.is_dir() {
        (path, String::new())
    } else {
        (path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap().to_string())
    };
    let store = Local::new(root).io(options.io).allow_outside(options.allow_outside);
    format::open(FORMATS, &Probe::at(FORMATS, Arc::new(store), &key)?, options)
}

/// Opens with nothing said.
pub(crate) fn open(path: &Path) -> Result<SharedSource> {
    open_with(path, &Options::default())
}

/// The options, once for each way to read a file.
pub(crate) fn both_ways(options: &Options) -> [Options; 2] {
    [Io::Mmap, Io::Pread].map(|io| Options { io, ..options.clone() })
}

/// All of a record.
pub(crate) fn whole(source: &dyn Source, record: u64) -> Result<Vec<u8>> {
    let span = Span { record, start: 0, len: source.length(record)? };
    source.read(span, &mut Vec::new()).map(|values| values.bytes.to_vec())
}

/// The bytes at a place, read without windrow.
pub(crate) fn bytes_at(place: &Location) -> Result<Vec<u8>> {
    let bytes = fs::read(&place.file).map_err(|e| Error::io("read it", &place.file, e))?;
    Ok(bytes[place.start as usize..(place.start + place.size) as usize].to_vec())
}

/// What an error must say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// Its kind; `None` for any.
    pub(crate) kind: Option<Kind>,
    /// What the file it names ends in.
    pub(crate) file: &'a str,
    /// The record it names.
    pub(crate) record: Option<u64>,
    /// The byte it names.
    pub(crate) byte: Option<u64>,
    /// What its text holds: found, expected.
    pub(crate) says: &'a [&'a str],
}

/// Checks the kind, the place and the words of an error.
#[track_caller]
pub(crate) fn assert_error(error: &Error, wanted: &Wanted<'_>) {
    let place = error.place();
    assert_eq!(Some(error.kind()), wanted.kind.or(Some(error.kind())), "{error}");
    let file = place.file.as_deref().unwrap_or_default();
    assert!(!file.is_empty() && file.ends_with(wanted.file), "{error:?}: wanted file {:?}", wanted.file);
    assert_eq!((place.record, place.byte), (wanted.record, wanted.byte), "{error:?}");
    for word in wanted.says {
        assert!(format!("{error:#}").contains(word), "{error:?}: does not say {word:?}");
    }
}

/// `sample_locations.bin` of these rows.
pub(crate) fn rows(rows: &[[u64; 3]]) -> Vec<u8> {
    rows.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
}
