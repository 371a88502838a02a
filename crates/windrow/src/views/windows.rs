//! Sliding windows over series.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windrow_core::collate::{Beside, BesideField, Collate, Labels, NextToken, ScaledBy};
use windrow_core::format::Takes;
use windrow_core::source::{Fit, Nan, Per};
use windrow_core::view::{self, Starts, Tail, View};
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;
use crate::opening::formats::format_info;
use crate::views::kind::{Cut, ViewKind};
use crate::views::option::{Taken, chosen, view};
use crate::views::scaler::{Scaler, Statistics};

view! {
    /// Sliding windows: `input_ids`, `labels`, `loss_masks`. With a scaler the values are float32 unless another dtype is
    /// asked for; its statistics are computed when the view is made, once, and kept in the cache folder.
    ///
    /// ```no_run
    /// use windrow::{Scaler, Windows};
    ///
    /// let series = windrow::open("series/")?;
    /// let view = series.windows(Windows::new(512).prediction_length(64).stride(64).scaler(Scaler::Zero))?;
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub struct Windows {
        @needs {
            /// Inputs before the prediction.
            context_length: u64,
        }
        /// Inputs to predict, after the context.
        #[kept = true]
        prediction_length: u64,
        /// Values from one window to the next; where none is given, the window's width.
        stride: Option<u64> as u64,
        /// What to do with the values after a record's last full window.
        #[kept = true]
        tail: Tail,
        /// What each whole record is scaled by.
        scaler: Scaler,
        /// What NaN and infinity do.
        nan: Nan,
        /// The part of each record that statistics come from; all of it where none is given, which looks ahead of a window.
        fit: Option<Fit> as Fit,
        /// What shares statistics: a series, each channel of it, or each window by its context.
        per: Per,
        /// What windows of records of several channels are of: all channels together, or each channel apart, as a series of its own.
        channels: Channels = "window_channels",
        /// Where windows begin: a stride apart, as many at random places, or one that ends with each series.
        starts: Starts,
        /// Which labels are learned.
        loss_on: LossOn,
        /// What labels are: the token after each input, the input itself, or none.
        labels: Labels,
        /// What to put beside the values: item, channel, start, loc, scale, time_features and the features of a record by their names.
        fields: Vec<String> as &[&str],
        /// The frequency of times for time_features, where the data does not say it: h, 15min, D, MS.
        freq: Option<String> as &str,
    }
    called "windows", "Sliding windows of N inputs before what is predicted";
}

/// What the windows of records of several channels are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Channels {
    /// All channels of a record: `[width, C]`.
    #[default]
    Together,
    /// Each channel as a series of its own, `[width]`: those of record 0 in their order, then those of record 1, ….
    Apart,
}

impl Taken for Channels {
    const TAKES: Takes = Takes::Words(&["together", "apart"]);
}

/// Which labels are learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LossOn {
    /// All real ones.
    #[default]
    All,
    /// The last `prediction_length` positions of a window only.
    Prediction,
}

impl Taken for LossOn {
    const TAKES: Takes = Takes::Words(&["all", "prediction"]);
}

impl ViewKind for Windows {
    fn statistics(&self) -> Statistics<'_> {
        let context = Some(self.context_length);
        Statistics { scaler: &self.scaler, nan: self.nan, fit: self.fit, per: self.per, context }
    }

    fn is_apart(&self) -> bool {
        self.channels == Channels::Apart
    }

    fn is_random(&self) -> bool {
        self.starts == Starts::Random
    }

    chosen!(scaler);

    chosen!(labels);

    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)> {
        let width = self
            .context_length
            .checked_add(self.prediction_length)
            .ok_or_else(|| Error::config("context_length + prediction_length is larger than 2^64"))?;
        let collate = self.beside(data, self.values(data, width)?)?;
        if let (Starts::Last, Some(stride)) = (self.starts, self.stride) {
            return Err(Error::config(format!(
                "a stride of {stride} for one window at the end of each record"
            ))
            .field("stride")
            .hint("leave @stride@ out, or @starts=last@"));
        }
        let stride = self.stride.unwrap_or(width);
        let is_next = self.reads_next();
        let view = view::Windows::starting(data.lengths(), width, stride, self.tail, self.starts, is_next)?;
        Ok((Arc::new(view), collate))
    }

    // An array [T, C] that is read as T series of C values gives padded windows only, and a model that learns nothing.
    fn warn(&self, data: &Dataset, view: &dyn View) {
        let (short, all) = (view.short(), view.len());
        if all < 2 || short < all - all / 10 {
            return;
        }
        let info = format_info(data.source.format());
        let reads_axis =
            info.is_some_and(|info| info.takes("axis")) && data.source.schema().channels.is_none();
        let hint = if reads_axis && data.options.axis.is_none() {
            "if an array [T, C] is one series, open it with @open_with_time@; else segments packs short series"
        } else {
            "segments packs short series without padding"
        };
        windrow_core::warn!(
            "{}: {short} of {all} windows are padded, as their series have fewer than the {} values of a window; {hint}",
            data.paths,
            view.positions() + 1
        );
    }
}

impl Windows {
    // The values of a window and their labels.
    fn values(&self, data: &Cut<'_>, width: u64) -> Result<NextToken> {
        let mut collate = data.next_token(width, true, 0)?;
        if self.nan == Nan::Mask {
            collate = collate.mask_nan();
        }
        if self.loss_on == LossOn::Prediction {
            if self.prediction_length == 0 {
                return Err(Error::config("@loss_on=prediction@ with @prediction_length=0@")
                    .hint("give @prediction_length@, or learn all labels"));
            }
            collate = collate.learn_from(self.context_length);
        }
        if let ScaledBy::Sample(own) = data.by {
            collate = collate.scaled_by_sample(own.clone());
        }
        collate.labels(self.labels)
    }

    // With the fields that are asked for.
    fn beside(&self, data: &Cut<'_>, collate: NextToken) -> Result<Arc<dyn Collate>> {
        let mut beside: Vec<BesideField> =
            self.fields.iter().map(|name| BesideField::of(name)).collect::<Result<_>>()?;
        // They are read once, when all else is known to fit.
        let is_measured = !matches!(data.by, ScaledBy::Unmeasured);
        if !is_measured {
            beside.retain(|field| !matches!(field, BesideField::Covariate(_)));
        }
        let covariates = data.data.covariates(&beside, self.freq.as_deref().filter(|_| is_measured))?;
        if beside.is_empty() {
            return Ok(Arc::new(collate));
        }
        let channels = data.schema().channels.filter(|_| self.per != Per::Series);
        let beside = Beside::new(collate, &beside, data.by.clone(), channels, covariates)?;
        let beside = beside.apart(self.is_apart().then(|| data.data.channels()))?;
        Ok(Arc::new(beside.called(data.data.numbering.clone())))
    }
}
