//! A data set and its view as text.

use serde::{Deserialize, Serialize};
use windrow_core::DType;
use windrow_core::format::Options;

use crate::opening::paths::Paths;
use crate::views::recipe::ViewRecipe;

/// A data set and the view that cuts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipePart {
    /// Where the data lies, as it was written: a text, where that is not UTF-8 a list of its bytes; several paths are a list.
    pub path: Paths,
    /// How it is opened.
    #[serde(default)]
    pub options: Options,
    /// How it is cut.
    pub view: ViewRecipe,
    /// dtype of the tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
}

impl RecipePart {
    /// Removes the options of a store, which may hold keys and tokens: whoever opens it has their own.
    pub(crate) fn without_secrets(&self) -> RecipePart {
        let mut part = self.clone();
        part.options.store_options.clear();
        part
    }
}
