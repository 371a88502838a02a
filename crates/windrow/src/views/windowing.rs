//! How windows are cut from series: width, stride, scaling, what is learned.

use windrow_core::collate::Labels;
use windrow_core::source::{Custom, Fit, Nan, Per, Precision, Scale, Scaling};
use windrow_core::view::{Starts, Tail};
use windrow_core::{DType, Error, Result};

use crate::views::recipe::{LossOn, ScalerName, ViewRecipe};

/// What each whole record is scaled by before windows are cut from it.
#[derive(Clone, Debug, Default)]
pub enum Scaler {
    /// Nothing: the values as they are.
    #[default]
    None,
    /// Its largest magnitude.
    Max,
    /// Its mean and standard deviation.
    Zero,
    /// Its smallest and largest value, which become 0 and 1.
    MinMax,
    /// Its median and the distance of its quartiles.
    Robust,
    /// The mean of its magnitudes.
    MeanAbs,
    /// A function of the caller's.
    Custom(Custom),
}

impl Scaler {
    /// What a recipe says of it.
    pub fn name(&self) -> ScalerName {
        match self {
            Scaler::None => ScalerName::None,
            Scaler::Max => ScalerName::Max,
            Scaler::Zero => ScalerName::Zero,
            Scaler::MinMax => ScalerName::MinMax,
            Scaler::Robust => ScalerName::Robust,
            Scaler::MeanAbs => ScalerName::MeanAbs,
            Scaler::Custom(custom) => ScalerName::Custom(custom.name().to_string()),
        }
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        match self {
            Scaler::Custom(custom) => Some(custom),
            _ => None,
        }
    }
}

/// How a recipe scales its records; `None` for not at all.
///
/// # Errors
/// `Config` for a function of the caller's, which text cannot hold.
pub(crate) fn scaling_of(recipe: &ViewRecipe) -> Result<Option<Scaling>> {
    use Precision::{Double, Single};
    let (scale, precision) = match recipe.scaler() {
        ScalerName::None => return Ok(None),
        ScalerName::Max => (Scale::Max, Double),
        ScalerName::Zero => (Scale::Zero, Double),
        ScalerName::MinMax => (Scale::MinMax, Double),
        ScalerName::Robust => (Scale::Robust, Double),
        ScalerName::MeanAbs => (Scale::MeanAbs, Double),
        ScalerName::MaxSingle => (Scale::Max, Single),
        ScalerName::ZeroSingle => (Scale::Zero, Single),
        ScalerName::Custom(name) => return Err(function_in_text(name)),
    };
    let (nan, fit, per) = (recipe.nan(), recipe.fit(), recipe.per());
    Ok(Some(Scaling { scale, nan, precision, fit, per }))
}

/// Refuses a part of each record to measure where no scaler measures, and statistics of channels or windows where there are
/// none.
///
/// # Errors
/// `Config`.
pub(crate) fn check_scaler(recipe: &ViewRecipe) -> Result<()> {
    let is_measured = !matches!(recipe.scaler(), ScalerName::None | ScalerName::Custom(_));
    let is_single = matches!(recipe.scaler(), ScalerName::MaxSingle | ScalerName::ZeroSingle);
    let per = |text: &str| Err(Error::config(format!("per={text}")).field("per"));
    match (recipe.per(), recipe) {
        (Per::Series, _) => {}
        (Per::Channel, _) if !is_measured || is_single => {
            return per("\"channel\" without a scaler that has statistics of channels")
                .map_err(|e| e.hint("choose scaler max, standard, minmax, robust or mean_abs"));
        }
        (Per::Window, ViewRecipe::Windows { .. }) if is_measured && !is_single => {
            if recipe.fit().is_some() {
                return per("\"window\" with fit, which is a part of the series")
                    .map_err(|e| e.hint("leave fit out: a window is measured by its context"));
            }
        }
        (Per::Window, ViewRecipe::Windows { .. }) => {
            return per("\"window\" without a scaler that has statistics of windows")
                .map_err(|e| e.hint("choose scaler max, standard, minmax, robust or mean_abs"));
        }
        (Per::Window, _) => {
            return per("\"window\" of a view that has no windows")
                .map_err(|e| e.hint("choose \"series\" or \"channel\""));
        }
        (Per::Channel, _) => {}
    }
    match (recipe.fit(), recipe.scaler()) {
        (Some(fit), ScalerName::None | ScalerName::Custom(_)) => {
            Err(Error::config(format!("fit={fit} without a scaler that has statistics"))
                .field("fit")
                .hint("choose a scaler by name; a function sees the whole record and takes its own part"))
        }
        (Some(fit), _) => fit.check(),
        (None, _) => Ok(()),
    }
}

pub(crate) fn function_in_text(name: &str) -> Error {
    Error::config(format!("the records are scaled by the function {name:?}, which no plan can hold as text"))
        .hint("cut the view in the program that has the function, or choose a scaler by name")
}

/// Sliding windows, option by option. Defaults: no prediction, as far apart as they are wide, the stored values, NaN
/// spreads, the tail dropped, labels one value later, all of them learned.
///
/// ```no_run
/// use windrow::{Scaler, Windowing};
///
/// let series = windrow::open("series/")?;
/// let view = series.windows(&Windowing::new(512).prediction(64).stride(64).scaler(Scaler::Zero))?;
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Windowing {
    context: u64,
    prediction: u64,
    stride: Option<u64>,
    tail: Tail,
    scaler: Scaler,
    nan: Nan,
    fit: Option<Fit>,
    per: Per,
    starts: Starts,
    loss_on: LossOn,
    labels: Labels,
    fields: Vec<String>,
    freq: Option<String>,
    dtype: Option<DType>,
}

impl Windowing {
    /// Windows of `context` inputs.
    pub fn new(context: u64) -> Windowing {
        Windowing {
            context,
            prediction: 0,
            stride: None,
            tail: Tail::default(),
            scaler: Scaler::default(),
            nan: Nan::default(),
            fit: None,
            per: Per::default(),
            starts: Starts::default(),
            loss_on: LossOn::default(),
            labels: Labels::default(),
            fields: Vec::new(),
            freq: None,
            dtype: None,
        }
    }

    /// As many inputs more.
    pub fn prediction(self, prediction: u64) -> Self {
        Windowing { prediction, ..self }
    }

    /// Values from one window to the next.
    pub fn stride(self, stride: u64) -> Self {
        Windowing { stride: Some(stride), ..self }
    }

    /// What becomes of the values after a record's last full window.
    pub fn tail(self, tail: Tail) -> Self {
        Windowing { tail, ..self }
    }

    /// What each whole record is scaled by.
    pub fn scaler(self, scaler: Scaler) -> Self {
        Windowing { scaler, ..self }
    }

    /// What NaN and infinity do.
    pub fn nan(self, nan: Nan) -> Self {
        Windowing { nan, ..self }
    }

    /// Which part of each record the scaler's statistics come from: the whole of it looks ahead of a window.
    pub fn fit(self, fit: Fit) -> Self {
        Windowing { fit: Some(fit), ..self }
    }

    /// What shares a scaler's statistics: all channels of a series, each channel, or each channel of a window's context.
    pub fn per(self, per: Per) -> Self {
        Windowing { per, ..self }
    }

    /// Where windows begin.
    pub fn starts(self, starts: Starts) -> Self {
        Windowing { starts, ..self }
    }

    /// What is laid beside the values: `item` and `start` (`[]` int64: the series' number, and the number in it of the first
    /// value), `loc` and `scale` (float64: what a value had subtracted, and was divided by); covariates, see
    /// [`Covariate`](windrow_core::collate::Covariate).
    pub fn fields(self, names: &[&str]) -> Self {
        Windowing { fields: names.iter().map(|name| (*name).to_string()).collect(), ..self }
    }

    /// The frequency of times in pandas's words, for `time_features` of records that do not say it: `h`, `15min`, `D`, `MS`.
    pub fn freq(self, freq: &str) -> Self {
        Windowing { freq: Some(freq.to_string()), ..self }
    }

    /// Which labels are learned.
    pub fn loss_on(self, loss_on: LossOn) -> Self {
        Windowing { loss_on, ..self }
    }

    /// What `labels` are.
    pub fn labels(self, labels: Labels) -> Self {
        Windowing { labels, ..self }
    }

    /// dtype of the tensors.
    pub fn dtype(self, dtype: DType) -> Self {
        Windowing { dtype: Some(dtype), ..self }
    }

    pub(crate) fn recipe(&self) -> ViewRecipe {
        ViewRecipe::Windows {
            context_length: self.context,
            prediction_length: self.prediction,
            stride: self.stride,
            tail: self.tail,
            scaler: self.scaler.name(),
            nan: self.nan,
            fit: self.fit,
            per: self.per,
            starts: self.starts,
            loss_on: self.loss_on,
            labels: self.labels,
            fields: self.fields.clone(),
            freq: self.freq.clone(),
        }
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        self.scaler.custom()
    }

    pub(crate) fn asked_dtype(&self) -> Option<DType> {
        self.dtype
    }
}
