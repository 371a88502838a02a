//! Fields beside the values of a window: of which series it is, where it begins, what it was scaled by, what else is known of it.

use std::sync::Arc;

use super::covariates::{Covariate, Covariates};
use super::{Collate, Field, NextToken, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Piece, Span};
use crate::source::{Numbering, SampleScale, Scaled};

/// A field beside the values of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BesideField {
    /// The record's number in its data set, int64.
    Item,
    /// Which channel of its record it is, where records are taken apart, int64.
    Channel,
    /// The number in its record of the window's first value, int64.
    Start,
    /// What was subtracted by a scaler, float64: one number, or one of each channel.
    Loc,
    /// What it was divided by, float64.
    Scale,
    /// What is known of its times, or of its series.
    Covariate(Covariate),
}

/// What scales the windows.
#[derive(Clone)]
pub enum ScaledBy {
    /// Nothing, or a function.
    Nothing,
    /// Statistics of each record that are not computed yet: nothing can be filled.
    Unmeasured,
    /// Statistics of each record.
    Record(Arc<Scaled>),
    /// Statistics of each window.
    Sample(SampleScale),
}

/// Windows, and fields beside them.
pub struct Beside {
    inner: NextToken,
    fields: Vec<BesideField>,
    by: ScaledBy,
    covariates: Covariates,
    /// Shape of what values are scaled by.
    shape: Vec<usize>,
    numbering: Numbering,
    /// Records of the source for each record of the data set, where they are its channels.
    apart: Option<u64>,
}

impl BesideField {
    const PLAIN: [BesideField; 5] =
        [BesideField::Item, BesideField::Channel, BesideField::Start, BesideField::Loc, BesideField::Scale];

    /// `item`, `channel`, `start`, `loc`, `scale`, or a covariate's.
    pub fn name(self) -> &'static str {
        match self {
            BesideField::Item => "item",
            BesideField::Channel => "channel",
            BesideField::Start => "start",
            BesideField::Loc => "loc",
            BesideField::Scale => "scale",
            BesideField::Covariate(covariate) => covariate.name(),
        }
    }

    /// # Errors
    /// `Config` for an unknown name, with those there are.
    pub fn of(name: &str) -> Result<BesideField> {
        let covariates = Covariate::ALL.map(BesideField::Covariate);
        let mut all = BesideField::PLAIN.into_iter().chain(covariates);
        all.find(|field| field.name() == name).ok_or_else(|| {
            let covariates = Covariate::ALL.map(Covariate::name).join(", ");
            Error::config(format!("@fields={name:?}@")).field("fields").hint(format!(
                "beside input_ids, labels and loss_masks a window has item, channel, start, loc, scale, {covariates}"
            ))
        })
    }
}

impl Beside {
    /// These fields beside those of the windows. `channels`: `Some(C)` where each channel is scaled by its own. `covariates`: those
    /// among the fields, in their order.
    ///
    /// # Errors
    /// `Config` for `loc` or `scale` of values that no statistics scale, and for a field that is named twice.
    pub fn new(
        inner: NextToken,
        fields: &[BesideField],
        by: ScaledBy,
        channels: Option<usize>,
        covariates: Covariates,
    ) -> Result<Beside> {
        let scaled = [BesideField::Loc, BesideField::Scale];
        if let (ScaledBy::Nothing, Some(field)) = (&by, fields.iter().find(|f| scaled.contains(f))) {
            return Err(Error::config(format!(
                "the field {} without a scaler that has statistics",
                field.name()
            ))
            .field("fields")
            .hint("choose @scaler@ by name, or leave the field out"));
        }
        if let Some(twice) = fields.iter().enumerate().find(|(at, field)| fields[..*at].contains(field)) {
            return Err(Error::config(format!("the field {} is named twice", twice.1.name())).field("fields"));
        }
        let shape = channels.into_iter().collect();
        Ok(Beside {
            inner,
            fields: fields.to_vec(),
            by,
            covariates,
            shape,
            numbering: Numbering::default(),
            apart: None,
        })
    }

    /// Says what the records of the source are called, so that `item` is the number that a record had.
    #[must_use]
    pub fn called(self, numbering: Numbering) -> Beside {
        Beside { numbering, ..self }
    }

    /// Says that the records of the source are the channels of those of the data set, this many of each: `None` where they are those
    /// of the data set.
    ///
    /// # Errors
    /// `Config` for the field of channels where records are not taken apart.
    pub fn apart(self, channels: Option<u64>) -> Result<Beside> {
        if channels.is_none() && self.fields.contains(&BesideField::Channel) {
            Err(Error::config("the field channel of windows that hold all channels")
                .field("fields")
                .hint("choose @channels=apart@, or leave the field out"))
        } else {
            Ok(Beside { apart: channels.map(|channels| channels.max(1)), ..self })
        }
    }

    // What the window of this span is scaled by.
    fn rows(&self, sample: &Sample<'_>, span: Span, scratch: &mut Scratch) -> Result<Vec<[f64; 2]>> {
        match &self.by {
            ScaledBy::Nothing | ScaledBy::Unmeasured => Ok(Vec::new()),
            ScaledBy::Record(scaled) => {
                let mut rows = Vec::new();
                scaled.rows(span.record, &mut rows)?;
                Ok(rows)
            }
            ScaledBy::Sample(own) => {
                let values = sample.source.read(span, &mut scratch.bytes)?;
                own.rows(&values, span.record)
            }
        }
    }
}

impl Collate for Beside {
    fn fields(&self, samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        let mut covariates = 0..;
        let beside = self.fields.iter().map(|field| match field {
            BesideField::Item | BesideField::Channel | BesideField::Start => {
                Field::new(field.name(), DType::I64, [])
            }
            BesideField::Loc | BesideField::Scale => Field::new(field.name(), DType::F64, self.shape.clone()),
            BesideField::Covariate(covariate) => {
                let number = covariates.next().unwrap_or_default();
                self.covariates.field(number, *covariate, self.inner.length())
            }
        });
        Ok(self.inner.fields(samples)?.iter().cloned().chain(beside).collect())
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        self.inner.fill(sample, row, scratch)?;
        let Some(Piece::Read(span)) = sample.pieces.first() else {
            return Err(Error::unsupported("fields beside a sample that reads no record"));
        };
        let needs_rows = self.fields.iter().any(|f| matches!(f, BesideField::Loc | BesideField::Scale));
        let rows = if needs_rows { self.rows(sample, *span, scratch)? } else { Vec::new() };
        let mut covariates = 0;
        let per_record = self.apart.unwrap_or(1);
        let record = span.record / per_record;
        for (number, field) in (self.inner.n_fields()..).zip(&self.fields) {
            let which = match field {
                BesideField::Covariate(_) => {
                    self.covariates.write(covariates, Span { record, ..*span }, row, number)?;
                    covariates += 1;
                    continue;
                }
                BesideField::Item => {
                    row.numbers::<u64>(number)[0] = self.numbering.number(record);
                    continue;
                }
                BesideField::Channel => {
                    row.numbers::<u64>(number)[0] = span.record % per_record;
                    continue;
                }
                BesideField::Start => {
                    row.numbers::<u64>(number)[0] = span.start;
                    continue;
                }
                BesideField::Loc => 0,
                BesideField::Scale => 1,
            };
            row.numbers::<f64>(number).iter_mut().zip(&rows).for_each(|(out, row)| *out = row[which]);
        }
        Ok(())
    }

    fn ignored_label(&self) -> Option<i64> {
        self.inner.ignored_label()
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name()).collect();
        format!("{},beside={}{}", self.inner.describe(), names.join("+"), self.covariates.describe())
    }
}
