//! Samples scaled by statistics of their own first values.

use super::apply::{scaled_by, scaled_by_channel};
use super::channels::Channels;
use super::floats;
use super::scaling::Scaling;
use crate::error::Result;
use crate::record::Values;

/// Scales each channel of a sample by statistics of the sample's first values: what a model is given, not what it forecasts.
#[derive(Clone, Debug)]
pub struct SampleScale {
    scaling: Scaling,
    /// How many values are measured.
    given: usize,
}

impl SampleScale {
    /// By the first `given` values of each sample.
    pub fn new(scaling: Scaling, given: u64) -> SampleScale {
        SampleScale { scaling, given: usize::try_from(given).unwrap_or(usize::MAX) }
    }

    /// What decides the values, in words that never change for the same ones.
    pub fn describe(&self) -> String {
        format!("({},given={})", self.scaling, self.given)
    }

    /// Subtrahend and divisor of each channel of a sample; 0 and 1 where all values are missing.
    ///
    /// # Errors
    /// `Unsupported` for what cannot be scaled.
    pub fn rows(&self, values: &Values<'_>, record: u64) -> Result<Vec<[f64; 2]>> {
        let rows = self.measured(values, record)?;
        Ok(rows.into_iter().map(Scaling::shown).collect())
    }

    fn measured(&self, values: &Values<'_>, record: u64) -> Result<Vec<[f64; 2]>> {
        floats::check(values, record)?;
        let size = values.channels * values.element.dtype.size();
        let end = self.given.saturating_mul(size).min(values.bytes.len());
        let mut numbers = Vec::new();
        floats::append(
            &Values { bytes: &values.bytes[..end], ..*values },
            self.scaling.precision,
            &mut numbers,
        );
        let mut channels = Channels::new(&self.scaling);
        channels.begin(values.channels);
        channels.add(&numbers);
        let mut rows = vec![[0.0; 2]; values.channels];
        channels.rows(&mut rows);
        Ok(rows)
    }

    /// The sample as it is to be copied.
    ///
    /// # Errors
    /// `Unsupported` for what cannot be scaled.
    pub fn scaled<'a>(
        &self,
        values: Values<'a>,
        record: u64,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Values<'a>> {
        let rows = self.measured(&values, record)?;
        match rows[..] {
            [row] => {
                let decode = scaled_by(row, self.scaling.precision, values.decode, record)?;
                Ok(Values { decode, ..values })
            }
            _ => scaled_by_channel(&values, record, &rows, scratch),
        }
    }
}
