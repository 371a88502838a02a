//! How records are scaled: by what, from which part of them, in which precision, and what NaN does.

use serde::{Deserialize, Serialize};

use super::fit::Fit;
use super::floats::Precision;
use super::statistics::Statistics;

/// What a record is scaled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Its largest magnitude: `x / max|x|`; a record of zeros is left as it is.
    Max,
    /// Mean and population standard deviation: `(x - mean) / deviation`; `x - mean` where the deviation is 0 or not finite.
    Zero,
}

/// What NaN and infinity do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
}

impl Scaling {
    /// By the whole record, in float64; NaN propagates.
    pub fn by(scale: Scale) -> Scaling {
        Scaling { scale, nan: Nan::default(), precision: Precision::default(), fit: None }
    }

    /// Subtrahend and divisor of a record.
    pub(super) fn row(&self, statistics: &Statistics) -> [f64; 2] {
        let row = self.scale.of(statistics);
        match self.precision {
            Precision::Double => row,
            Precision::Single => row.map(|x| f64::from(x as f32)),
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
        self.fit.map_or(Ok(()), |fit| write!(f, ",fit={fit}"))
    }
}

impl Scale {
    /// `max`, `zero`.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Max => "max",
            Scale::Zero => "zero",
        }
    }

    // (subtrahend, divisor)
    fn of(self, statistics: &Statistics) -> [f64; 2] {
        match self {
            Scale::Max => [0.0, if statistics.most() == 0.0 { 1.0 } else { statistics.most() }],
            Scale::Zero => {
                let deviation = statistics.deviation();
                let divides = deviation != 0.0 && deviation.is_finite();
                [statistics.mean(), if divides { deviation } else { 1.0 }]
            }
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
