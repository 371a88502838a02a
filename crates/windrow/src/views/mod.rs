//! How records are sliced into samples: a file for each view, with its options, its table and what it slices.

pub(crate) mod bins;
pub(crate) mod codes;
pub(crate) mod covariates;
pub(crate) mod crop;
pub(crate) mod cursor;
pub(crate) mod cut;
pub(crate) mod grouping;
pub(crate) mod kind;
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

impl Dataset {
    /// Blocks over the joined records: see [`Pack`], which a length is, too.
    ///
    /// # Errors
    /// `Config` for records that are no numbers, a length of 0, options that do not fit each other or the data.
    pub fn pack(&self, pack: impl Into<Pack>) -> Result<Samples> {
        self.view(pack.into(), None)
    }

    /// One row per record: see [`Records`], which a length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    pub fn records(&self, records: impl Into<Records>) -> Result<Samples> {
        self.view(records.into(), None)
    }

    /// Sliding windows: see [`Windows`], which a context length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    pub fn windows(&self, windows: impl Into<Windows>) -> Result<Samples> {
        self.view(windows.into(), None)
    }

    /// Records one after the other, split where a row is full: see [`Segments`], which a length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    pub fn segments(&self, segments: impl Into<Segments>) -> Result<Samples> {
        self.view(segments.into(), None)
    }

    /// A part of each record: see [`Crop`], which a length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    pub fn crop(&self, crop: impl Into<Crop>) -> Result<Samples> {
        self.view(crop.into(), None)
    }

    /// Frames of audio codes with their text: see [`Codes`], which a length is, too.
    ///
    /// # Errors
    /// `Config` for records that are not codes, or a layout that does not fit them; see [`Codes::new`](windrow_core::collate::Codes::new).
    pub fn codes(&self, codes: impl Into<Codes>) -> Result<Samples> {
        self.view(codes.into(), None)
    }

    /// Whole records side by side: see [`Bins`], which a length is, too.
    ///
    /// # Errors
    /// As [`Dataset::pack`].
    pub fn bins(&self, bins: impl Into<Bins>) -> Result<Samples> {
        self.view(bins.into(), None)
    }

    /// Records whole, as they are: see [`Rows`].
    ///
    /// # Errors
    /// `Config` for records of numbers, and for columns that are not there; when a stacked batch is assembled `Mismatch`, where numbers of a column differ in shape or dtype.
    pub fn rows(&self, rows: impl Into<Rows>) -> Result<Samples> {
        self.view(rows.into(), None)
    }

    /// Rows behind a cursor: see [`Cursor`].
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for a batch size of 0; `Corrupt` when there are too few values for one batch.
    pub fn cursor(&self, cursor: impl Into<Cursor>) -> Result<Samples> {
        self.view(cursor.into(), None)
    }
}
