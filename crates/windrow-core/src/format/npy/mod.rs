//! numpy's `.npy`: one array in a file; also `.npy.gz` and `.npy.zst`.

mod header;

use std::sync::Arc;

pub(super) use self::header::{Header, MOST_PREFIX, element};
use super::arrays::{Array, Arrays, Lies};
use super::numbers::check_number_options;
use super::{About, Certainty, Format, Look, Options};
use crate::error::Result;
use crate::source::{FileInfo, SharedSource};
use crate::store::expanded;

const SUFFIXES: &[&str] = &[".npy", ".npy.gz", ".npy.zst"];

/// One array of numbers: a sequence, or one per row.
#[derive(Clone, Copy, Debug)]
pub struct Npy;

impl Format for Npy {
    fn name(&self) -> &'static str {
        "npy"
    }

    fn about(&self) -> About {
        About {
            title: "numpy array",
            layout: "one `.npy` file, also `.gz` and `.zst`",
            records: "one sequence: all of `[T]`, a row of `[N, T]`, or `[T, C]` of `[N, T, C]`",
            written_by: "numpy.save",
        }
    }

    fn series_suffixes(&self) -> &'static [&'static str] {
        SUFFIXES
    }

    fn recognise(&self, look: &Look) -> Certainty {
        let named = SUFFIXES.iter().any(|suffix| look.file_name().ends_with(suffix));
        match look.is_folder {
            true => Certainty::No,
            false if look.head.starts_with(b"\x93NUMPY") => Certainty::Yes,
            false if named => Certainty::Maybe,
            false => Certainty::No,
        }
    }

    fn open(&self, look: &Look, options: &Options) -> Result<SharedSource> {
        let object = expanded(&look.store, &look.key)?;
        let header = Header::of(object.as_ref())?;
        let file = FileInfo { file: object.name().to_string(), size: object.size() };
        let array = Array::new(object, header, Lies::From(0))?;
        let source: SharedSource = Arc::new(Arrays::new(self.name(), file, vec![array], options.vocab_size)?);
        check_number_options(source.as_ref(), options, &look.display())?;
        Ok(source)
    }
}
