//! One input of texts: lines, or rows.

use windrow_core::manifest::FileRow;

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
    /// Its bytes, as they are stored.
    pub(super) fn size(&self) -> u64 {
        match self {
            TextInput::Lines(lines) => lines.row.size,
            TextInput::Rows(rows) => rows.size(),
        }
    }

    /// What the manifest keeps of its files.
    pub(super) fn files(&self) -> Vec<FileRow> {
        match self {
            TextInput::Lines(lines) => vec![lines.row.clone()],
            TextInput::Rows(rows) => rows.files().map(|(_, row)| row.clone()).collect(),
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
