//! How records are scaled: by what, from which part of them, in which precision, and what NaN does.

use serde::{Deserialize, Serialize};

use super::Schema;
use super::fit::Fit;
use super::floats::Precision;

/// What a record is scaled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Its largest magnitude: `x / max|x|`; a record of zeros is left as it is.
    Max,
    /// Mean and population standard deviation: `(x - mean) / deviation`; `x - mean` where the deviation is 0 or not finite.
    #[serde(alias = "standard")]
    Zero,
    /// Smallest and largest value: `(x - min) / (max - min)`, so that the values span 0 to 1; `x - min` of a constant.
    MinMax,
    /// Median and quartiles: `(x - median) / (q75 - q25)`, quantiles between two values by a straight line; `x - median`
    /// where the quartiles are equal.
    Robust,
    /// The mean of the magnitudes: `x / mean|x|`; a record of zeros is left as it is.
    #[serde(rename = "mean_abs")]
    MeanAbs,
}

/// What shares one pair of statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Per {
    /// All channels of a record.
    #[default]
    Series,
    /// Each channel of a record.
    Channel,
    /// Each channel of each sample, by the part of the sample that a model is given.
    Window,
}

/// What NaN and infinity do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Nan {
    /// They propagate: the statistics of a record with NaN are NaN, and so are its scaled values.
    #[default]
    #[serde(alias = "spread")]
    Propagate,
    /// They count as missing: left out of the statistics, 0 in the batch, and never learned.
    Mask,
}

/// How records are scaled: by what, from which part of them, in which precision.
///
/// ```
/// use windrow_core::source::{Fit, Nan, Scale, Scaling};
///
/// let scaling = Scaling { nan: Nan::Mask, fit: Some(Fit::Fraction(0.0, 0.7)), ..Scaling::by(Scale::Zero) };
/// assert_eq!(scaling.to_string(), "scaler=zero/float64,nan=mask,fit=(0.0, 0.7)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// What each record is scaled by.
    pub scale: Scale,
    /// What NaN and infinity do.
    pub nan: Nan,
    /// How values are rounded on the way.
    pub precision: Precision,
    /// The part that the statistics come from; `None` is the whole record.
    pub fit: Option<Fit>,
    /// What shares statistics.
    pub per: Per,
}

impl Scaling {
    /// By the whole record, in float64; NaN propagates.
    pub fn by(scale: Scale) -> Scaling {
        Scaling {
            scale,
            nan: Nan::default(),
            precision: Precision::default(),
            fit: None,
            per: Per::default(),
        }
    }

    /// The row of values that are all missing: what is scaled by NaN is NaN, and so is missing. Others do not divide by 0.
    pub(super) const NOTHING: [f64; 2] = [f64::NAN, 0.0];

    /// The subtrahend and divisor that users see: 0 and 1 where all values are missing, so that what is computed with them is
    /// finite.
    pub(super) fn shown(row: [f64; 2]) -> [f64; 2] {
        if row[0].is_nan() && row[1] == 0.0 { [0.0, 1.0] } else { row }
    }

    /// How many pairs of statistics a record has.
    pub(super) fn rows_of(&self, schema: &Schema) -> usize {
        match self.per {
            Per::Series => 1,
            Per::Channel | Per::Window => schema.channels.unwrap_or(1).max(1),
        }
    }
}

/// What a plan says of it: other values, other words.
impl std::fmt::Display for Scaling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let precision = match self.precision {
            Precision::Double => "/float64",
            Precision::Single => "",
        };
        write!(f, "scaler={}{precision},nan={}", self.scale.name(), self.nan.identity())?;
        self.fit.map_or(Ok(()), |fit| write!(f, ",fit={fit}"))?;
        match self.per {
            Per::Series => Ok(()),
            Per::Channel => f.write_str(",per=channel"),
            Per::Window => f.write_str(",per=window"),
        }
    }
}

impl Scale {
    /// `max`, `zero`, `minmax`, `robust`, `mean_abs`.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Max => "max",
            Scale::Zero => "zero",
            Scale::MinMax => "minmax",
            Scale::Robust => "robust",
            Scale::MeanAbs => "mean_abs",
        }
    }
}

impl Nan {
    // The word in identities, which stays whatever users type.
    fn identity(self) -> &'static str {
        match self {
            Nan::Propagate => "spread",
            Nan::Mask => "mask",
        }
    }
}
