//! How records are sliced into samples: a file for each view, with its options, its table and what it slices.

pub(crate) mod bins;
pub(crate) mod codes;
pub(crate) mod context;
pub(crate) mod covariates;
pub(crate) mod crop;
pub(crate) mod cursor;
pub(crate) mod cut;
pub(crate) mod grouping;
pub(crate) mod kind;
pub(crate) mod multiple;
pub(crate) mod option;
pub(crate) mod pack;
pub(crate) mod part;
pub(crate) mod recipe;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod samples;
pub(crate) mod scaler;
pub(crate) mod scope;
pub(crate) mod segments;
pub(crate) mod windows;

use windrow_core::Result;

use crate::opening::dataset::Dataset;
use crate::views::bins::Bins;
use crate::views::codes::Codes;
use crate::views::crop::Crop;
use crate::views::cursor::Cursor;
use crate::views::pack::Pack;
use crate::views::records::Records;
use crate::views::rows::Rows;
use crate::views::samples::Samples;
use crate::views::segments::Segments;
use crate::views::windows::Windows;

/// Methods that make views, each of the options of one, or of what it cannot be without.
macro_rules! methods {
    ($($(#[doc = $about:literal])* $name:ident: $View:ident;)*) => {
        impl Dataset {
            $($(#[doc = $about])*
            pub fn $name(&self, $name: impl Into<$View>) -> Result<Samples> {
                self.view($name.into(), None)
            })*
        }
    };
}

methods! {
    /// Blocks over the joined records: see [`Pack`], which a length is, too.
    ///
    /// # Errors
    /// `Config` for records that are no numbers, a length of 0, options that do not fit each other or the data.
    pack: Pack;
    /// One row per record: see [`Records`], which a length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    records: Records;
    /// Sliding windows: see [`Windows`], which a context length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    windows: Windows;
    /// Records one after the other, split where a row is full: see [`Segments`], which a length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    segments: Segments;
    /// A part of each record: see [`Crop`], which a length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    crop: Crop;
    /// Frames of audio codes with their text: see [`Codes`], which a length is, too.
    ///
    /// # Errors
    /// `Config` for records that are not codes, or a layout that does not fit them; see [`Codes::new`](windrow_core::collate::Codes::new).
    codes: Codes;
    /// Whole records side by side: see [`Bins`], which a length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    bins: Bins;
    /// Records whole, as they are: see [`Rows`].
    ///
    /// # Errors
    /// `Config` for records of numbers, and for columns that are not there; when a stacked batch is assembled `Mismatch`, where numbers of a column differ in shape or dtype.
    rows: Rows;
    /// Rows behind a cursor: see [`Cursor`].
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for a batch size of 0; `Corrupt` when there are too few values for one batch.
    cursor: Cursor;
}
