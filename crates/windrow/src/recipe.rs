//! A plan as text: what is needed to open the same samples in the same order elsewhere. Pickles, `trace` and saved
//! plans are made of it.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windrow_core::collate::{CodesLayout, Labels};
use windrow_core::format::Options;
use windrow_core::plan::LastBatch;
use windrow_core::sampler::Stop;
use windrow_core::source::{Fit, Nan};
use windrow_core::view::{Mode, Strategy, Tail};
use windrow_core::{DType, Error, Result};

use crate::{LoaderBuilder, LossOn, Samples, mix, open_with};

/// One way of cutting records into samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ViewRecipe {
    /// Blocks over the joined records.
    Pack {
        /// Inputs per sample.
        length: u64,
        /// An id put after every record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        eos: Option<i64>,
        /// Every value a target in one row, inputs one value earlier.
        #[serde(default, skip_serializing_if = "is_default")]
        shifted: bool,
        /// The tensors to lay, of rows with shifted inputs; none for all of them.
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
        /// Which labels are learned.
        #[serde(default, skip_serializing_if = "is_default")]
        loss_on: LossOn,
        /// What `labels` are.
        #[serde(default, skip_serializing_if = "is_default")]
        labels: Labels,
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
        /// What fills free positions.
        #[serde(default)]
        pad_value: i64,
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
        /// Into how many equal parts it is cut; the last takes what is left over.
        #[serde(default = "one")]
        world_size: u64,
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
        /// What `labels` are.
        #[serde(default, skip_serializing_if = "is_default")]
        labels: Labels,
    },
}

impl ViewRecipe {
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
            ViewRecipe::Crop { .. } | ViewRecipe::Codes { .. } | ViewRecipe::Cursor { .. } => None,
        }
    }

    /// The same cut with these labels.
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
            ViewRecipe::Crop { .. } | ViewRecipe::Codes { .. } | ViewRecipe::Cursor { .. } => {
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
            _ => Nan::Spread,
        }
    }

    /// Which part of each record a scaler's statistics come from.
    pub fn fit(&self) -> Option<Fit> {
        match self {
            ViewRecipe::Windows { fit, .. } | ViewRecipe::Segments { fit, .. } => *fit,
            _ => None,
        }
    }
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
    Zero,
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

// Plans written before there were scalers stay as they were.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A data set and the view that cuts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipePart {
    /// Where the data lies: a text, or where that is no UTF-8 a list of its bytes.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// How it is opened.
    #[serde(default)]
    pub options: Options,
    /// How it is cut.
    pub view: ViewRecipe,
    /// dtype of the tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
}

/// Paths in JSON, which holds text.
mod any_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(PathBuf),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(to),
            None => path.as_os_str().as_bytes().serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Written::deserialize(from)? {
            Written::Text(path) => path,
            Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

impl RecipePart {
    /// Opens the data and cuts it.
    ///
    /// # Errors
    /// As [`open_with`] and [`crate::DataSet::view`].
    pub fn open(&self) -> Result<Samples> {
        open_with(&self.path, &self.options)?.view(self.view.clone(), self.dtype)
    }
}

/// A whole plan: parts, order and batch size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// 1.
    pub version: u32,
    /// The data: one part, or the parts of a mixture.
    pub parts: Vec<RecipePart>,
    /// The parts' names, in a mixture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The parts' weights, in a mixture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f64>,
    /// When a mixture's epoch ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Random order, another one each epoch.
    pub shuffle: bool,
    /// Keys the order.
    pub seed: u64,
    /// Rows of a batch over all ranks.
    pub global_batch_size: u64,
    /// Leaves out the last batch of an epoch when it is not full.
    pub drop_last: bool,
    /// Fills that batch with the epoch's first samples instead.
    #[serde(default, skip_serializing_if = "is_default")]
    pub repeat_last: bool,
    /// The plan's identity when it was saved: of other data nothing is said by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// A plan is a few kilobytes; its text is read up to here.
const MOST_BYTES: u64 = 64 << 20;

impl Recipe {
    /// Reads a plan from a file or stream, called `name` where that goes wrong.
    ///
    /// # Errors
    /// `Io` when it cannot be read; else as [`Recipe::from_json`].
    pub fn read(from: impl Read, name: &Path) -> Result<Recipe> {
        let mut text = String::new();
        from.take(MOST_BYTES).read_to_string(&mut text).map_err(|e| Error::io("read the plan", name, e))?;
        Recipe::from_json(&text).map_err(|e| e.or_at(name))
    }

    /// Reads the JSON text of a plan.
    ///
    /// # Errors
    /// `Corrupt` when it is none, `Unsupported` when it is of another version.
    pub fn from_json(text: &str) -> Result<Recipe> {
        let recipe: Recipe =
            serde_json::from_str(text).map_err(|e| Error::corrupt("this is no plan").caused_by(e))?;
        match recipe.version {
            1 => Ok(recipe),
            other => {
                Err(Error::unsupported(format!("a plan of version {other}; this windrow reads version 1")))
            }
        }
    }

    /// What becomes of an epoch's last batch when it is not full.
    pub fn last_batch(&self) -> LastBatch {
        match (self.repeat_last, self.drop_last) {
            (true, _) => LastBatch::Repeat,
            (false, true) => LastBatch::Drop,
            (false, false) => LastBatch::Keep,
        }
    }

    /// The JSON text.
    pub fn to_json(&self) -> String {
        // Plain structs with string keys: serialising cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Opens all parts.
    ///
    /// # Errors
    /// As [`open_with`]; `Config` when names, weights and parts do not agree in number; `Mismatch` when the plan was saved
    /// of other data.
    pub fn builder(&self) -> Result<LoaderBuilder> {
        let mut samples: Vec<Samples> = self.parts.iter().map(RecipePart::open).collect::<Result<_>>()?;
        let builder = match (self.stop, samples.len()) {
            (None, 1) => samples.remove(0).loader(),
            (Some(stop), n) if n == self.names.len() && n == self.weights.len() => {
                let named = self.names.iter().cloned().zip(samples).zip(self.weights.iter().copied());
                mix(named.map(|((name, samples), weight)| (name, samples, weight)).collect(), stop)?.loader()
            }
            (_, n) => {
                return Err(Error::config(format!(
                    "a plan of {n} parts with {} names and {} weights is neither one view nor a mixture",
                    self.names.len(),
                    self.weights.len()
                )));
            }
        };
        let builder = builder
            .shuffle(self.shuffle)
            .seed(self.seed)
            .global_batch_size(self.global_batch_size)
            .last_batch(self.last_batch());
        if let Some(saved) = &self.plan {
            builder.plan()?.identity()?.check_saved(saved)?;
        }
        Ok(builder)
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::Kind;

    use super::*;

    #[test]
    fn recipes_from_before_scalers_are_read_and_written_as_they_were() {
        let text = r#"{"windows":{"context_length":8,"prediction_length":0,"tail":"drop"}}"#;
        let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
        assert_eq!((recipe.scaler(), recipe.nan()), (&ScalerName::None, Nan::Spread));
        assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
        let text = r#"{"segments":{"length":8,"buckets":[2,8],"scaler":"zero","nan":"mask"}}"#;
        let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
        assert_eq!((recipe.scaler(), recipe.nan()), (&ScalerName::Zero, Nan::Mask));
        assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
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

    #[test]
    fn a_function_is_named_by_a_recipe_but_not_opened_from_it() {
        let file = tempfile::NamedTempFile::with_suffix(".bin").unwrap();
        windrow_core::prepare::dummy(file.path(), 100, 50, 0, true).unwrap();
        let data = crate::open(file.path()).unwrap();
        let halved = crate::Custom::new("halved", |whole| Ok(whole.values.iter().map(|x| x / 2.0).collect()));
        let windowing = crate::Windowing::new(4).scaler(crate::Scaler::Custom(halved));
        let samples = data.windows(&windowing).unwrap();
        let halves = samples.batch(&[3], 0).unwrap().get::<f32>("labels").unwrap().to_vec();
        let stored =
            data.windows(&crate::Windowing::new(4).dtype(DType::F32)).unwrap().batch(&[3], 0).unwrap();
        assert!(
            halves.iter().zip(stored.get::<f32>("labels").unwrap()).all(|(half, whole)| half * 2.0 == *whole)
        );
        assert_eq!(
            samples.with_dtype(DType::F64).unwrap().batch(&[3], 0).unwrap().fields()[0].dtype,
            DType::F64
        );
        assert_eq!(samples.loader().recipe().unwrap_err().kind(), Kind::Config);
        let text = serde_json::to_string(samples.recipe()).unwrap();
        let e = serde_json::from_str::<RecipePart>(&text).unwrap().open().err().unwrap();
        assert!(e.kind() == Kind::Config && e.to_string().contains("\"halved\""), "{e}");
    }
}
