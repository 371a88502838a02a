//! Which rows can be divided among the ranks of a context group.

use windrow_core::collate::Context;
use windrow_core::{Error, Result};

use crate::views::recipe::ViewRecipe;
use crate::views::records::Pad;

impl ViewRecipe {
    /// Refuses a context group for rows that are not divided.
    ///
    /// # Errors
    /// `Config`.
    pub(crate) fn check_context(&self, context: Context) -> Result<()> {
        let rows = match self {
            ViewRecipe::Pack(pack) if pack.shifted => "a pack with @shifted=true@",
            ViewRecipe::Records(records) if records.pad == Pad::Longest => "records with @pad=longest@",
            ViewRecipe::Records(records) if records.pad != Pad::Length => {
                "records padded to one of several lengths"
            }
            ViewRecipe::Pack(_) | ViewRecipe::Bins(_) | ViewRecipe::Records(_) => return Ok(()),
            ViewRecipe::Windows(_) => "windows",
            ViewRecipe::Segments(_) => "segments",
            ViewRecipe::Crop(_) => "crop",
            ViewRecipe::Codes(_) => "codes",
            ViewRecipe::Rows(_) => "rows",
            ViewRecipe::Cursor(_) => "cursor",
        };
        Err(Error::config(format!("@context={context}@ of {rows}")).field("context").hint(
            "rows of tokens that all have the same length are divided: those of pack, of bins, and of records padded to their length",
        ))
    }
}
