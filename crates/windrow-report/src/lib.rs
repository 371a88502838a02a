//! Pages about data, to look at and to hand on: each is one HTML file that needs no network and no script.
//!
//! [`Subject::open`] finds out what is at a path: records of some format, or sound files. [`of_records`] and [`of_sound`]
//! make the page, [`of_plan`] that about the batches of a run. Of much data a sample is read, the same at every run, and the
//! page says so.
//!
//! # Modules
//!
//! * `subject`: what is at a path: records of a format, or sound files;
//! * `sample`: which records are read;
//! * `records`: the page about records;
//! * `json`: keys of JSON records;
//! * `lengths`: lengths of records;
//! * `series`: values, missing points, plots with windows;
//! * `tokens`: the most frequent token IDs;
//! * `view`: what a view covers, and some samples;
//! * `plan`: the page about a plan: neighbours, what epochs leave out, waiting, padding;
//! * `codes`: audio codes: durations, prompts, codebook use, crops;
//! * `sound`: sound files: durations, levels, spectrograms;
//! * `durations`: how long tracks and files last;
//! * `histogram`: bars of equal width or equal factor;
//! * `near`: numbers that are far from the others;
//! * `page`: sections, tables, drawings; escapes everything;
//! * `picture`: PNG pictures in the page;
//! * `svg`: drawings that stretch with the page;
//! * `watch`: stops when the caller wants to stop.

mod codes;
mod durations;
mod histogram;
mod json;
mod lengths;
mod near;
mod page;
mod picture;
mod plan;
mod records;
mod sample;
mod series;
mod sound;
mod subject;
mod svg;
mod tokens;
mod view;
mod watch;

use serde_json::Value;

pub use self::codes::{Codes, MOST_CODEBOOK, MOST_EPOCHS};
pub use self::plan::of_plan;
pub use self::records::{Asked, of_records};
pub use self::sound::{Files, of_sound};
pub use self::subject::Subject;

/// A page, and what a program wants to know of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// The whole file.
    pub html: String,
    /// What it was made from, in words: `all of 3 records`.
    pub from: String,
    /// The numbers of the page: an object.
    pub json: Value,
    /// Sound files that cannot be read; the page lists them.
    pub unread: u64,
}
