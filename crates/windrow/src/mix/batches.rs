//! What the batches of a mixture are made of: rows of all parts, or of one.

use serde::{Deserialize, Serialize};

/// What each batch of a mixture is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batches {
    /// Rows of all parts, each by its share.
    #[default]
    Mixed,
    /// Rows of one part: of b batches, each part has its share to within one batch.
    Part,
}
