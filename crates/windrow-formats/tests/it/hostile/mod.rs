//! Data that is wrong, by accident or on purpose: every input gives an error that names the place and says what was
//! found and expected. None panics, hangs, reads outside its folder, or leaves a file behind.

mod arrays;
mod compressed;
mod cut;
mod ids;
mod index;
mod lines;
mod megatron;
mod paths;
mod series;
mod shards;
mod side;
mod tracks;

use std::path::Path;

use windrow_core::format::Options;
use windrow_core::source::{Kind as Records, Source};
use windrow_core::{Place, Result, Span};
use windrow_formats::parse_json;

use super::disk::{Wanted, assert_error, both_ways, open_with, whole};
use super::folder::names;

/// Opening fails as wanted, mapped and by position, and leaves the folder as it was.
#[track_caller]
fn refused(folder: &Path, path: &str, options: &Options, wanted: &Wanted<'_>) {
    let before = names(folder);
    for options in both_ways(options) {
        match open_with(&folder.join(path), &options) {
            Ok(source) => panic!("opens with {} records; wanted {wanted:?}", source.len()),
            Err(error) => assert_error(&error, wanted),
        }
    }
    assert_eq!(names(folder), before);
}

/// Opening succeeds, reading the record fails as wanted, mapped and by position, and leaves the folder as it was.
#[track_caller]
fn unreadable(folder: &Path, path: &str, options: &Options, record: u64, wanted: &Wanted<'_>) {
    let before = names(folder);
    for options in both_ways(options) {
        let source = open_with(&folder.join(path), &options).unwrap();
        match read(source.as_ref(), record) {
            Ok(bytes) => panic!("reads {bytes:?}; wanted {wanted:?}"),
            Err(error) => assert_error(&error, wanted),
        }
    }
    assert_eq!(names(folder), before);
}

/// A record as its reader gets it: its bytes, and for JSON that they are JSON.
fn read(source: &dyn Source, record: u64) -> Result<Vec<u8>> {
    let bytes = whole(source, record)?;
    if source.schema().kind == Records::Json {
        let span = Span { record, start: 0, len: bytes.len() as u64 };
        let place = source.locate(span)?.remove(0);
        let place =
            Place { file: Some(place.file), record: Some(record), byte: Some(place.start), field: None };
        parse_json(&bytes, &place)?;
    }
    Ok(bytes)
}
