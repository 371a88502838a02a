//! What is known beside the series of a data set, from the metadata of its records.

use windrow_core::collate::{BesideField, Covariate, Covariates, OfSeries};
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;

impl Dataset {
    /// The covariates among the fields, in their order. Of a part in time they are those of its own times.
    ///
    /// # Errors
    /// `Config` for metadata that is not there or does not fit, and for a frequency that no field asks for.
    pub(crate) fn covariates(&self, fields: &[BesideField], freq: Option<&str>) -> Result<Covariates> {
        let wanted = fields.iter().filter_map(|field| match field {
            BesideField::Covariate(covariate) => Some(*covariate),
            _ => None,
        });
        let wanted: Vec<Covariate> = wanted.collect();
        if let (Some(freq), false) = (freq, wanted.contains(&Covariate::TimeFeatures)) {
            return Err(Error::config(format!("@freq={freq:?}@ without a field that has times"))
                .field("freq")
                .hint("add \"time_features\" to @fields@, or leave @freq@ out"));
        }
        if wanted.is_empty() {
            return Ok(Covariates::default());
        }
        let period = self.period.as_ref().map(|part| part.period(self.whole.clone())).transpose()?;
        let records = (0..self.whole.len()).map(|record| {
            let before = period.as_ref().map_or(Ok(0), |period| period.first(record))?;
            Ok(OfSeries { extras: self.whole.extras(record)?, length: self.whole.length(record)?, before })
        });
        Covariates::read(&wanted, freq, records)
    }
}
