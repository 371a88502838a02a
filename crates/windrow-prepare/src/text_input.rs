//! One input of texts: lines, or rows.

use std::path::Path;

use windrow_core::Result;
use windrow_core::manifest::FileRow;
use windrow_core::store::{is_url, without_secrets};

use super::input::Input;
use super::rows::RowInput;

/// An input as it was found when the task began.
pub(super) enum TextInput {
    /// A file of lines.
    Lines(Input),
    /// A file or folder whose records are rows.
    Rows(RowInput),
}

impl TextInput {
    /// Whether it holds no text.
    ///
    /// # Errors
    /// What reading its first byte says.
    pub(super) fn is_empty(&self) -> Result<bool> {
        match self {
            TextInput::Lines(input) => input.is_empty(),
            TextInput::Rows(rows) => Ok(rows.len() == 0),
        }
    }

    /// Whether its bytes come once.
    pub(super) fn is_pipe(&self) -> bool {
        match self {
            TextInput::Lines(input) => input.is_pipe(),
            TextInput::Rows(_) => false,
        }
    }

    /// Its bytes, as they are stored; 0 of a pipe.
    pub(super) fn size(&self) -> u64 {
        match self {
            TextInput::Lines(lines) => lines.row.size,
            TextInput::Rows(rows) => rows.size(),
        }
    }

    /// What the manifest keeps of its files: of those in stores the URL.
    pub(super) fn files(&self) -> Vec<FileRow> {
        let kept = |path: &Path, row: &FileRow| {
            if is_url(path) {
                FileRow { name: without_secrets(&path.to_string_lossy()), ..row.clone() }
            } else {
                row.clone()
            }
        };
        match self {
            TextInput::Lines(lines) => vec![kept(&lines.file, &lines.found())],
            TextInput::Rows(rows) => rows.files().map(|(path, row)| kept(path, row)).collect(),
        }
    }

    /// What a person calls it.
    pub(super) fn display(&self) -> String {
        match self {
            TextInput::Lines(lines) => lines.file.display().to_string(),
            TextInput::Rows(rows) => rows.file.display().to_string(),
        }
    }
}
