//! A view as text: how records become samples, option by option.

use serde::{Deserialize, Serialize};
use windrow_core::collate::{CodesLayout, DocumentsLayout, Labels};
use windrow_core::source::{Fit, Nan, Per};
use windrow_core::view::{Mode, Overlong, Starts, Strategy, Tail};
use windrow_core::{Error, Result};

use crate::views::scope::Scope;

/// One way of cutting records into samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ViewRecipe {
    /// Blocks over the joined records.
    Pack {
        /// Inputs per sample.
        length: u64,
        /// An ID put after every record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        eos: Option<i64>,
        /// Every value a target in one row, inputs one value earlier.
        #[serde(default, skip_serializing_if = "is_default")]
        shifted: bool,
        /// Documents are kept apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        documents: Option<DocumentsLayout>,
        /// The tensors to assemble, of rows with shifted inputs or with documents; none for all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<String>,
        /// What `labels` are.
        #[serde(default, skip_serializing_if = "is_default")]
        labels: Labels,
    },
    /// One row per record.
    Records {
        /// Inputs per sample.
        length: u64,
        /// What fills short rows.
        #[serde(default)]
        pad_value: i64,
        /// How long rows are.
        #[serde(default, skip_serializing_if = "is_default")]
        pad: Pad,
        /// Rows of about the same length that come together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<u64>,
        /// What `labels` are.
        #[serde(default, skip_serializing_if = "is_default")]
        labels: Labels,
    },
    /// Sliding windows.
    Windows {
        /// Inputs before the prediction.
        context_length: u64,
        /// Inputs of the prediction.
        #[serde(default)]
        prediction_length: u64,
        /// Values from one window to the next; the window's width when not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stride: Option<u64>,
        /// What happens to values after the last full window.
        #[serde(default)]
        tail: Tail,
        /// What each record is scaled by.
        #[serde(default, skip_serializing_if = "is_default")]
        scaler: ScalerName,
        /// What NaN does.
        #[serde(default, skip_serializing_if = "is_default")]
        nan: Nan,
        /// Which part of each record a scaler's statistics come from; all of it when not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fit: Option<Fit>,
        /// What shares a scaler's statistics.
        #[serde(default, skip_serializing_if = "is_default")]
        per: Per,
        /// Where windows begin.
        #[serde(default, skip_serializing_if = "is_default")]
        starts: Starts,
        /// Which labels are learned.
        #[serde(default, skip_serializing_if = "is_default")]
        loss_on: LossOn,
        /// What `labels` are.
        #[serde(default, skip_serializing_if = "is_default")]
        labels: Labels,
        /// What is laid beside the values.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<String>,
        /// The frequency of times, where it is not beside the records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        freq: Option<String>,
    },
    /// Up to `length` values of each record.
    Crop {
        /// Values per sample.
        length: u64,
        /// Where they start.
        #[serde(default)]
        mode: Mode,
    },
    /// Up to `length` frames of each track of codes, with its text, as a codec language model is trained.
    Codes {
        /// Frames per sample.
        length: u64,
        /// Where they start.
        #[serde(default)]
        mode: Mode,
        /// Special values, delays, masks, draws.
        #[serde(default, skip_serializing_if = "is_default")]
        layout: Box<CodesLayout>,
    },
    /// Whole records side by side.
    Bins {
        /// Positions per sample.
        length: u64,
        /// How records are put together.
        #[serde(default)]
        strategy: Strategy,
        /// What becomes of records that are longer than a row.
        #[serde(default, skip_serializing_if = "is_default")]
        overlong: Overlong,
        /// Which records may share a row.
        #[serde(default, skip_serializing_if = "is_default")]
        scope: Scope,
        /// What fills free positions.
        #[serde(default)]
        pad_value: i64,
        /// The tensors to assemble; none for those that are there by default.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<String>,
        /// What `labels` are.
        #[serde(default, skip_serializing_if = "is_default")]
        labels: Labels,
    },
    /// Rows behind a cursor, as oxidizr's loader reads a stream. In the order of their numbers and in batches of
    /// `batch_size` they are its batches.
    Cursor {
        /// Rows of a batch.
        batch_size: u64,
        /// Inputs per sample.
        length: u64,
        /// Which part of the stream.
        #[serde(default)]
        rank: u64,
        /// Into how many equal parts it is divided; the last takes what is left over.
        #[serde(default = "one")]
        world_size: u64,
    },
    /// Records whole, as they are: rows of columns, or JSON.
    Rows {
        /// Only these columns, in this order.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        columns: Option<Vec<String>>,
        /// A batch is its columns: tensors of numbers, lists of anything else.
        #[serde(default, skip_serializing_if = "is_default")]
        stack: bool,
    },
    /// Records one after the other, split where a row is full.
    Segments {
        /// Positions of the longest row.
        length: u64,
        /// Lengths a row may have instead.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        buckets: Vec<u64>,
        /// What each record is scaled by.
        #[serde(default, skip_serializing_if = "is_default")]
        scaler: ScalerName,
        /// What NaN does.
        #[serde(default, skip_serializing_if = "is_default")]
        nan: Nan,
        /// Which part of each record a scaler's statistics come from; all of it when not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fit: Option<Fit>,
        /// What shares a scaler's statistics.
        #[serde(default, skip_serializing_if = "is_default")]
        per: Per,
        /// The tensors to assemble; none for those that are there by default.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<String>,
        /// What `labels` are.
        #[serde(default, skip_serializing_if = "is_default")]
        labels: Labels,
    },
}

impl ViewRecipe {
    /// Blocks of `length` inputs, with labels one value later.
    pub fn pack(length: u64) -> ViewRecipe {
        ViewRecipe::Pack {
            length,
            eos: None,
            shifted: false,
            documents: None,
            fields: Vec::new(),
            labels: Labels::default(),
        }
    }

    /// What each record is scaled by.
    pub fn scaler(&self) -> &ScalerName {
        match self {
            ViewRecipe::Windows { scaler, .. } | ViewRecipe::Segments { scaler, .. } => scaler,
            _ => &ScalerName::None,
        }
    }

    /// Whether a sample is another one each time it is drawn: where it starts, or what is made of its text.
    pub fn is_random(&self) -> bool {
        match self {
            ViewRecipe::Crop { mode, .. } => *mode == Mode::Random,
            ViewRecipe::Windows { starts, .. } => *starts == Starts::Random,
            ViewRecipe::Codes { mode, layout, .. } => *mode == Mode::Random || layout.is_random(),
            _ => false,
        }
    }

    /// What `labels` are; `None` for views that have their own kind of tensors.
    pub fn labels(&self) -> Option<Labels> {
        match self {
            ViewRecipe::Pack { shifted: true, .. } => None,
            ViewRecipe::Pack { labels, .. }
            | ViewRecipe::Records { labels, .. }
            | ViewRecipe::Windows { labels, .. }
            | ViewRecipe::Bins { labels, .. }
            | ViewRecipe::Segments { labels, .. } => Some(*labels),
            ViewRecipe::Crop { .. }
            | ViewRecipe::Codes { .. }
            | ViewRecipe::Cursor { .. }
            | ViewRecipe::Rows { .. } => None,
        }
    }

    /// The same view with these labels.
    ///
    /// # Errors
    /// `Config` for a view that has no such choice.
    pub fn with_labels(mut self, given: Labels) -> Result<ViewRecipe> {
        match &mut self {
            ViewRecipe::Pack { labels, .. }
            | ViewRecipe::Records { labels, .. }
            | ViewRecipe::Windows { labels, .. }
            | ViewRecipe::Bins { labels, .. }
            | ViewRecipe::Segments { labels, .. } => *labels = given,
            ViewRecipe::Crop { .. }
            | ViewRecipe::Codes { .. }
            | ViewRecipe::Cursor { .. }
            | ViewRecipe::Rows { .. } => {
                return Err(Error::config("labels are chosen for a view that does not let them be chosen")
                    .hint("pack, records, windows, bins and segments do"));
            }
        }
        Ok(self)
    }

    /// What NaN does.
    pub fn nan(&self) -> Nan {
        match self {
            ViewRecipe::Windows { nan, .. } | ViewRecipe::Segments { nan, .. } => *nan,
            _ => Nan::Propagate,
        }
    }

    /// Which part of each record a scaler's statistics come from.
    pub fn fit(&self) -> Option<Fit> {
        match self {
            ViewRecipe::Windows { fit, .. } | ViewRecipe::Segments { fit, .. } => *fit,
            _ => None,
        }
    }

    /// Values of a window before its prediction; `None` for other views.
    pub fn context_length(&self) -> Option<u64> {
        match self {
            ViewRecipe::Windows { context_length, .. } => Some(*context_length),
            _ => None,
        }
    }

    /// What shares a scaler's statistics.
    pub fn per(&self) -> Per {
        match self {
            ViewRecipe::Windows { per, .. } | ViewRecipe::Segments { per, .. } => *per,
            _ => Per::Series,
        }
    }
}

/// How long the rows of a batch are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pad {
    /// As long as was asked for.
    #[default]
    Length,
    /// As long as the longest of them.
    Longest,
}

/// Which labels are learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossOn {
    /// All real ones.
    #[default]
    All,
    /// The last `prediction` positions of a window only.
    Prediction,
}

/// What each record is scaled by, in words. `Custom` only names a function: a recipe that holds it cannot be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScalerName {
    /// Nothing.
    #[default]
    None,
    /// Its largest magnitude.
    Max,
    /// Its mean and standard deviation.
    #[serde(alias = "standard")]
    Zero,
    /// Its smallest and largest value.
    MinMax,
    /// Its median and quartiles.
    Robust,
    /// The mean of its magnitudes.
    #[serde(rename = "mean_abs")]
    MeanAbs,
    /// [`ScalerName::Max`] of the values as float32: foundation_ts's own numbers.
    #[serde(rename = "max-float32")]
    MaxSingle,
    /// [`ScalerName::Zero`] of the values as float32: foundation_ts's own numbers.
    #[serde(rename = "zero-float32")]
    ZeroSingle,
    /// The function of this name.
    Custom(String),
}

fn one() -> u64 {
    1
}

/// Plans written before there were scalers stay as they were.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use windrow_core::Kind;

    use super::*;

    #[test]
    fn recipes_from_before_scalers_are_read_and_written_as_they_were() {
        let text = r#"{"windows":{"context_length":8,"prediction_length":0,"tail":"drop"}}"#;
        let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
        assert_eq!((recipe.scaler(), recipe.nan()), (&ScalerName::None, Nan::Propagate));
        assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
        let text = r#"{"segments":{"length":8,"buckets":[2,8],"scaler":"zero","nan":"mask"}}"#;
        let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
        assert_eq!((recipe.scaler(), recipe.nan()), (&ScalerName::Zero, Nan::Mask));
        assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
    }

    #[test]
    fn recipes_say_how_rows_are_padded_and_split_only_where_it_is_chosen() {
        for text in [
            r#"{"records":{"length":8,"pad_value":0,"pad":"longest"}}"#,
            r#"{"records":{"length":8,"pad_value":0,"pad":"longest","group":32}}"#,
            r#"{"bins":{"length":8,"strategy":"best_fit","overlong":"split","pad_value":0,"fields":["labels"]}}"#,
            r#"{"bins":{"length":8,"strategy":"best_fit","scope":"block","pad_value":0}}"#,
            r#"{"bins":{"length":8,"strategy":"best_fit","scope":4096,"pad_value":0}}"#,
            r#"{"segments":{"length":8,"fields":["cu_seqlens"]}}"#,
        ] {
            let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
        }
    }

    #[test]
    fn recipes_say_labels_only_where_they_are_not_the_values_after() {
        for text in [
            r#"{"pack":{"length":8}}"#,
            r#"{"records":{"length":8,"pad_value":0}}"#,
            r#"{"windows":{"context_length":8,"prediction_length":0,"tail":"drop"}}"#,
            r#"{"bins":{"length":8,"strategy":"best_fit","pad_value":0}}"#,
            r#"{"segments":{"length":8}}"#,
        ] {
            let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
            assert_eq!(recipe.labels(), Some(Labels::Next));
            assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
            for (labels, word) in [(Labels::Same, "same"), (Labels::None, "none")] {
                let other = recipe.clone().with_labels(labels).unwrap();
                let written = serde_json::to_string(&other).unwrap();
                assert_eq!(written, text.replace("}}", &format!(",\"labels\":\"{word}\"}}}}")));
                assert_eq!(serde_json::from_str::<ViewRecipe>(&written).unwrap(), other);
            }
        }
        let crop = ViewRecipe::Crop { length: 8, mode: Mode::Start };
        assert_eq!(crop.labels(), None);
        assert_eq!(crop.with_labels(Labels::Same).unwrap_err().kind(), Kind::Config);
    }
}
