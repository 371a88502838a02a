//! What the labels of a row are: the values after its inputs, the inputs themselves, or none.

use serde::{Deserialize, Serialize};

use super::Row;
use crate::array::DType;
use crate::error::{Error, Result};
use crate::values::fill_value;

/// What is in `labels`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Labels {
    /// The value after each input: label i is what output i is compared with.
    #[default]
    Next,
    /// The input itself, for models that shift labels themselves, as Hugging Face's causal ones do. Of whole numbers
    /// [`Labels::IGNORED`] where the input is not learned.
    Same,
    /// There are none.
    None,
}

impl Labels {
    /// The label that a loss leaves out, as torch's cross entropy has it.
    pub const IGNORED: i64 = -100;

    /// Values that a row takes beyond its inputs.
    pub(super) fn ahead(self) -> usize {
        usize::from(self == Labels::Next)
    }

    /// Whether labels of this dtype are [`Labels::IGNORED`] wherever they are not learned.
    pub(super) fn say_learned(self, dtype: DType) -> bool {
        self == Labels::Same && dtype.is_integer()
    }

    /// What tells a layout with these labels from one with the values after.
    pub(super) fn described(self) -> &'static str {
        match self {
            Labels::Next => "",
            Labels::Same => ",labels=same",
            Labels::None => ",labels=none",
        }
    }

    /// That `dtype` holds every label of rows that have masks.
    ///
    /// # Errors
    /// `Config` for unsigned labels, some of which are not learned.
    pub(super) fn check(self, dtype: DType) -> Result<()> {
        if self == Labels::Same && dtype.is_integer() && !dtype.holds(Labels::IGNORED) {
            Err(Error::config(format!(
                "@labels=same@ as {dtype}, which cannot hold the label {} of what is not learned",
                Labels::IGNORED
            ))
            .hint("leave dtype out, or choose int32 or int64"))
        } else {
            Ok(())
        }
    }

    /// Writes labels that are the inputs of the row, once inputs and masks are there: of whole numbers
    /// [`Labels::IGNORED`] where the mask is 0.
    pub(super) fn copy_inputs(row: &mut Row<'_>, [inputs, labels]: [usize; 2], masks: Option<usize>) {
        let dtype = row.dtype(labels);
        let Some(masks) = masks.filter(|_| dtype.is_integer()) else {
            let [inputs, labels] = row.several([inputs, labels]);
            labels.copy_from_slice(inputs);
            return;
        };
        let [inputs, labels, masks] = row.several([inputs, labels, masks]);
        labels.copy_from_slice(inputs);
        Labels::ignore(labels, dtype, bytemuck::cast_slice(masks), Labels::IGNORED);
    }

    /// Puts `ignored` in place of labels where the mask is 0.
    pub(super) fn ignore(labels: &mut [u8], dtype: DType, masks: &[i32], ignored: i64) {
        let size = labels.len() / masks.len().max(1);
        // Stretch by stretch: padding is one, and most of what a track excludes.
        let mut at = 0;
        for same in masks.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
            let end = at + same.len() * size;
            if same[0] == 0 {
                fill_value(&mut labels[at..end], dtype, ignored);
            }
            at = end;
        }
    }
}
