//! What records are scaled by, and what its statistics come from.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use windrow_core::format::Takes;
use windrow_core::source::{Custom, Fit, Nan, Per, Precision, Scale, Scaling};
use windrow_core::{Error, Result};

use crate::views::option::Taken;

/// What each whole record is scaled by before it is cut.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scaler {
    /// Nothing: the values as they are.
    #[default]
    None,
    /// Its largest magnitude.
    Max,
    /// Its mean and standard deviation.
    #[serde(alias = "standard")]
    Zero,
    /// Its smallest and largest value, which become 0 and 1.
    MinMax,
    /// Its median and the distance of its quartiles.
    Robust,
    /// The mean of its magnitudes.
    #[serde(rename = "mean_abs")]
    MeanAbs,
    /// [`Scaler::Max`] of the values as float32: foundation_ts's own numbers.
    #[serde(rename = "max-float32")]
    MaxSingle,
    /// [`Scaler::Zero`] of the values as float32: foundation_ts's own numbers.
    #[serde(rename = "zero-float32")]
    ZeroSingle,
    /// A function of the caller's. A recipe as text holds its name, and cannot be opened.
    #[serde(serialize_with = "name", deserialize_with = "named")]
    Custom(Custom),
}

fn name<S: Serializer>(custom: &Custom, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(custom.name())
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Custom, D::Error> {
    String::deserialize(deserializer).map(|name| Custom::named(&name))
}

/// Functions are equal by their names.
impl PartialEq for Scaler {
    fn eq(&self, other: &Scaler) -> bool {
        match (self, other) {
            (Scaler::Custom(one), Scaler::Custom(other)) => one.name() == other.name(),
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

impl Taken for Scaler {
    const TAKES: Takes = Takes::Words(&["none", "standard", "minmax", "robust", "mean_abs", "max", "zero"]);
}

impl Scaler {
    // How it measures; `None` where nothing is measured.
    fn measures(&self) -> Option<(Scale, Precision)> {
        Some(match self {
            Scaler::None | Scaler::Custom(_) => return None,
            Scaler::Max => (Scale::Max, Precision::Double),
            Scaler::Zero => (Scale::Zero, Precision::Double),
            Scaler::MinMax => (Scale::MinMax, Precision::Double),
            Scaler::Robust => (Scale::Robust, Precision::Double),
            Scaler::MeanAbs => (Scale::MeanAbs, Precision::Double),
            Scaler::MaxSingle => (Scale::Max, Precision::Single),
            Scaler::ZeroSingle => (Scale::Zero, Precision::Single),
        })
    }
}

/// What a view says of its scaler's statistics.
#[derive(Clone, Copy)]
pub(crate) struct Statistics<'a> {
    pub(crate) scaler: &'a Scaler,
    pub(crate) nan: Nan,
    pub(crate) fit: Option<Fit>,
    pub(crate) per: Per,
    /// Values of a window before its prediction; `None` for views without windows.
    pub(crate) context: Option<u64>,
}

impl Statistics<'_> {
    /// Of a view that scales nothing.
    pub(crate) const NONE: Statistics<'static> =
        Statistics { scaler: &Scaler::None, nan: Nan::Propagate, fit: None, per: Per::Series, context: None };

    /// How records are scaled; `None` for not at all, or by a function.
    pub(crate) fn scaling(self) -> Option<Scaling> {
        let (scale, precision) = self.scaler.measures()?;
        Some(Scaling { scale, nan: self.nan, precision, fit: self.fit, per: self.per })
    }

    /// Refuses a part of each record to measure where no scaler measures, and statistics of channels or windows where there are
    /// none.
    ///
    /// # Errors
    /// `Config`.
    pub(crate) fn check(self) -> Result<()> {
        const MEASURING: &str = "choose @scaler@ max, standard, minmax, robust or mean_abs";
        let is_double = matches!(self.scaler.measures(), Some((_, Precision::Double)));
        let refused = match (self.per, self.context) {
            (Per::Channel, _) if !is_double => {
                Some(("@per=channel@ without a scaler that has statistics of channels", MEASURING))
            }
            (Per::Window, None) => {
                Some(("@per=window@ of a view that has no windows", "choose @per=series@ or @per=channel@"))
            }
            (Per::Window, Some(_)) if !is_double => {
                Some(("@per=window@ without a scaler that has statistics of windows", MEASURING))
            }
            (Per::Window, Some(_)) if self.fit.is_some() => Some((
                "@per=window@ with @fit@, which is a part of the series",
                "leave @fit@ out: a window is measured by its context",
            )),
            _ => None,
        };
        if let Some((why, hint)) = refused {
            return Err(Error::config(why).field("per").hint(hint));
        }
        match self.fit {
            Some(fit) if self.scaler.measures().is_none() => {
                Err(Error::config(format!("@fit={fit}@ without a scaler that has statistics"))
                    .field("fit")
                    .hint("choose @scaler@ by name; a function sees the whole record and takes its own part"))
            }
            Some(fit) => fit.check(),
            None => Ok(()),
        }
    }
}

/// Why a recipe that names a function cannot be opened.
pub(crate) fn function_in_text(name: &str) -> Error {
    Error::config(format!("the records are scaled by the function {name:?}, which no plan can hold as text"))
        .hint("cut the view in the program that has the function, or choose a scaler by name")
}
