//! numpy's `.npy`: one array in a file; also `.npy.gz` and `.npy.zst`.

pub(crate) mod header;
mod write;

use std::sync::Arc;

use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::{FileInfo, SharedSource};
use windrow_core::store::{Object, expanded};
use windrow_core::{Kind, Result};

use self::header::objects_start;
pub(super) use self::header::{Header, MOST_PREFIX, element};
use self::write::WriteNpy;
pub(super) use self::write::{descr, header};
use super::arrays::{Array, Arrays, Lies};
use super::converted::{self, Parse, Shapes};
use super::pickle;
use windrow_core::format::numbers::check_number_options;

use crate::open_options::AXIS;

const SUFFIXES: &[&str] = &[".npy", ".npy.gz", ".npy.zst"];

/// One array of numbers: a sequence, or one per row.
#[derive(Clone, Copy, Debug)]
pub struct Npy;

static INFO: FormatInfo = FormatInfo {
    name: "npy",
    title: "numpy array",
    layout: "one `.npy` file, also `.gz` and `.zst`",
    records: "one sequence: all of `[T]`, a row of `[N, T]`, or `[T, C]` of `[N, T, C]`; `axis=\"time\"`: all of `[T, C]`",
    written_by: "`windrow convert --to npy`, `wr.write`, numpy.save",
    holds: &[Holds::Series, Holds::Tokens],
    series_suffixes: SUFFIXES,
    data_suffixes: SUFFIXES,
    open_options: &[AXIS],
    written_as: "one array; all records of one length",
    ..FormatInfo::NONE
};

impl Format for Npy {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let named = SUFFIXES.iter().any(|suffix| probe.file_name().ends_with(suffix));
        if probe.is_folder {
            Confidence::No
        } else if probe.head.starts_with(b"\x93NUMPY") {
            Confidence::Yes
        } else if named {
            Confidence::Maybe
        } else {
            Confidence::No
        }
    }

    fn writer(&self, _options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteNpy)))
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let object = expanded(&probe.store, &probe.key, options.cache_limit)?;
        let header = match Header::of(object.as_ref()) {
            Err(e) if e.kind() == Kind::Unsupported && holds_objects(object.as_ref())? => {
                return converted::open(self.name(), probe, options, Parse::Whole(parse_objects));
            }
            header => header?,
        };
        let file = FileInfo { file: object.name().to_string(), size: object.size() };
        let array = Array::new(object, header, Lies::From(0), options.axis)?;
        let source: SharedSource = Arc::new(Arrays::new(self.name(), file, vec![array], options.vocab_size)?);
        check_number_options(source.as_ref(), None, options, &probe.display())?;
        Ok(source)
    }
}

fn holds_objects(object: &dyn Object) -> Result<bool> {
    let mut scratch = Vec::new();
    let size = object.size().min(MOST_PREFIX as u64) as usize;
    Ok(objects_start(object.read(0, size, &mut scratch)?).is_some())
}

// An array of objects is a pickle behind a header: a list of sequences, which the pickle machine reads as data.
fn parse_objects(bytes: &[u8], shapes: &mut Shapes<'_>) -> Result<()> {
    pickle::parse_from(bytes, objects_start(bytes).unwrap_or(bytes.len()), shapes)
}
