//! Plans a job: finds the inputs, looks at their sizes, reads nothing of them.

use std::path::{Path, PathBuf};

use windrow_core::format::Table;
use windrow_core::manifest::FileRow;
use windrow_core::store::{is_url, without_secrets};
use windrow_core::{Error, Result};

use super::job::{Job, JobInput, TOKENIZE, Tasks, absolute, refuse_secrets, tasks_of};
use crate::encode::Encode;
use crate::input::Input;
use crate::places::{Places, Stores};
use crate::text_input::TextInput;
use crate::tokenize::{TokenizeOptions, find, no_texts, rules, wanted};

/// Plans to tokenise these inputs into the folder `out`, which is not looked at, in tasks of about `task_bytes` of input bytes.
///
/// A plain file of lines is split at its lines by its size alone; a compressed one is one task; what holds rows is split by its
/// number of records. `settings` is what the workers make the encoder of.
///
/// # Errors
/// As [`tokenize`](crate::tokenize()) before anything is read; `Config` for `task_bytes` of 0, and for tracks, which parts do not hold;
/// `Unsupported` for a URL with a query or a password.
pub fn plan_tokenize(
    table: Table,
    stores: &dyn Stores,
    inputs: &[PathBuf],
    encode: &dyn Encode,
    options: &TokenizeOptions,
    tasks: Tasks<'_>,
) -> Result<Job> {
    tasks.check()?;
    if !options.tracks.is_empty() {
        return Err(Error::config("parts hold no arrays beside the tokens, as the loss mask of a chat")
            .field("tracks")
            .hint("`windrow tokenize` writes them, on one machine"));
    }
    inputs.iter().try_for_each(|input| refuse_secrets(input))?;
    let places = Places(stores);
    let rules = rules(encode, options)?;
    let (named, found) = find(table, places, inputs, encode.takes(), options)?;
    let (mut planned, mut texts) = (Vec::new(), Vec::new());
    for (named, found) in std::iter::zip(named, found) {
        let (text, tasks, row, split) = match found {
            Some(rows) => {
                let rows = rows.named(&named.relative);
                let row = FileRow { name: named.relative.clone(), size: rows.size(), ..FileRow::default() };
                let split = rows.split().map(str::to_string);
                (TextInput::Rows(rows), tasks_of(row.size, tasks.bytes), row, split)
            }
            None => {
                let lines = Input::of(table, places, &named.file, &named.relative)?;
                let tasks = if lines.is_compressed() { 1 } else { tasks_of(lines.row.size, tasks.bytes) };
                let row = kept(&named.file, &lines.row);
                (TextInput::Lines(lines), tasks, row, None)
            }
        };
        let files = if matches!(text, TextInput::Rows(_)) { text.files() } else { Vec::new() };
        let path = if is_url(&named.file) { named.file } else { absolute(&named.file) };
        planned.push(JobInput { row, path, first_task: 0, tasks, files, split });
        texts.push(text);
    }
    let mut is_empty = true;
    for text in &texts {
        is_empty = is_empty && text.is_empty()?;
    }
    if is_empty && !options.allow_empty {
        return Err(no_texts(planned.first().map(|input| input.path.display().to_string())));
    }
    let manifest = wanted(&texts, &rules, encode, options);
    Ok(Job::of(TOKENIZE, planned, manifest, tasks))
}

/// Of those in stores the manifest keeps the URL.
pub(super) fn kept(path: &Path, row: &FileRow) -> FileRow {
    if is_url(path) {
        FileRow { name: without_secrets(&path.to_string_lossy()), ..row.clone() }
    } else {
        row.clone()
    }
}
