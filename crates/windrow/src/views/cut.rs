//! From a recipe to samples: the records scaled, the view that cuts them, the layout of a batch.

use std::sync::Arc;

use windrow_core::collate::{
    self, Beside, BesideField, Codes, Collate, Documents, Labels, NextToken, Pairs, Raw, ScaledBy, Segments,
    Shifted,
};
use windrow_core::plan::Feed;
use windrow_core::source::{
    Custom, Fit, Kind, Nan, Per, Runs, SampleScale, Scaled, Scaling, SharedSource, Transformed,
};
use windrow_core::view::{self, Bins, Crop, Cursor, Pack, Records, View, Windows};
use windrow_core::{DType, Error, Lengths, Result, store};
use windrow_formats::key_rows;

use crate::opening::dataset::Dataset;
use crate::opening::part::of_period;
use crate::run::recipe::RecipePart;
use crate::views::grouping::Grouping;
use crate::views::recipe::{LossOn, Pad, ScalerName, ViewRecipe};
use crate::views::samples::Samples;
use crate::views::windowing::{check_scaler, scaling_of};

impl Dataset {
    /// The view that a recipe describes, its numbers as `dtype`.
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for a recipe that names a function of the caller's.
    pub fn view(&self, recipe: ViewRecipe, dtype: Option<DType>) -> Result<Samples> {
        self.cut(recipe, dtype, None, &|| false)
    }

    /// The same, with the function that the recipe names. `stop` is asked while statistics are computed, and ends that.
    ///
    /// # Errors
    /// As [`Dataset::view`]; `Interrupted` when asked to stop.
    pub fn cut(
        &self,
        recipe: ViewRecipe,
        dtype: Option<DType>,
        custom: Option<&Custom>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Samples> {
        check_scaler(&recipe)?;
        // What cannot be laid is refused before the data is read for its statistics.
        let (source, by): (SharedSource, ScaledBy) = match (recipe.scaler(), custom) {
            (ScalerName::None, _) => (self.source.clone(), ScaledBy::Nothing),
            (ScalerName::Custom(name), Some(custom)) if name == custom.name() => {
                self.lay(self.source.clone(), recipe.clone(), dtype, &ScaledBy::Nothing)?;
                let scaled = Transformed::new(self.source.clone(), custom.clone())?;
                let scaled = if dtype == Some(DType::F64) { scaled.in_float64() } else { scaled };
                (Arc::new(scaled), ScaledBy::Nothing)
            }
            _ => {
                let scaling = scaling_of(&recipe)?;
                let laid_by = |by| self.lay(self.source.clone(), recipe.clone(), dtype, &by);
                match scaling {
                    None => (self.source.clone(), ScaledBy::Nothing),
                    Some(scaling) if scaling.per == Per::Window => {
                        let given = recipe.context_length().unwrap_or(u64::MAX);
                        (self.source.clone(), ScaledBy::Sample(SampleScale::new(scaling, given)))
                    }
                    Some(scaling) => {
                        laid_by(ScaledBy::Unmeasured)?;
                        let scaled = Arc::new(self.measured(scaling, stop)?);
                        (of_period(scaled.clone(), self.options.period)?, ScaledBy::Record(scaled))
                    }
                }
            }
        };
        let samples = self.lay(source, recipe, dtype, &by)?;
        self.warn_of_no_samples(&samples);
        self.warn_of_padding(&samples);
        self.warn_of_one_document(&samples);
        self.warn_of_cut_records(&samples);
        Ok(samples)
    }

    // Parts in time are scaled by what the first of them knows.
    fn measured(&self, scaling: Scaling, stop: &dyn Fn() -> bool) -> Result<Scaled> {
        let fit = match (scaling.fit, self.options.period) {
            (None, Some(period)) => Some(Fit::Fraction(0.0, period.fit)),
            (fit, _) => fit,
        };
        Scaled::new(self.whole.clone(), Scaling { fit, ..scaling }, stop)
    }

    // `source`: these records, scaled or not.
    pub(crate) fn lay(
        &self,
        source: SharedSource,
        recipe: ViewRecipe,
        dtype: Option<DType>,
        by: &ScaledBy,
    ) -> Result<Samples> {
        store::whole(|| self.laid(source.clone(), recipe.clone(), dtype, by))
    }

    fn laid(
        &self,
        source: SharedSource,
        recipe: ViewRecipe,
        dtype: Option<DType>,
        by: &ScaledBy,
    ) -> Result<Samples> {
        let source = match recipe {
            ViewRecipe::Pack { eos: None, .. } => source.joined().unwrap_or(source),
            // Keys of objects are columns once they are named.
            ViewRecipe::Rows { columns: Some(ref names), .. }
                if source.schema().kind == Kind::Json || source.schema().is_value() =>
            {
                key_rows(source, names)?
            }
            _ => source,
        };
        let schema = source.schema();
        let is_scaled = *recipe.scaler() != ScalerName::None;
        let mask_nan = recipe.nan() == Nan::Mask;
        let laid_as = match dtype {
            None if is_scaled => Some(DType::F32),
            Some(dtype) if is_scaled && dtype.is_integer() => {
                return Err(Error::config(format!("scaled values are fractions, which {dtype} cannot hold"))
                    .hint("choose dtype=\"float32\""));
            }
            dtype => dtype,
        };
        let lengths: Arc<dyn Lengths> = source.clone();
        // Before the view counts lengths: text has none that a view could use.
        let next_token = |length, short, pad| NextToken::new(schema, length, laid_as, short, pad);
        // Without labels one value later a sample reads none that is only a label.
        let is_next = recipe.labels() == Some(Labels::Next);
        let (view, collate): (Arc<dyn View>, Arc<dyn Collate>) = match &recipe {
            ViewRecipe::Pack { length, eos, shifted, documents, fields, labels } => {
                if *shifted && documents.is_some() {
                    return Err(Error::config("rows with shifted inputs keep documents apart already")
                        .hint("leave shifted out, or documents"));
                }
                if *shifted && *labels != Labels::Next {
                    return Err(Error::config("rows with shifted inputs have targets, which are not labels")
                        .hint("leave shifted out, or labels"));
                }
                let collate: Arc<dyn Collate> = match (shifted, documents, &fields[..]) {
                    (true, _, []) => Arc::new(Shifted::new(schema, *length, laid_as)?),
                    (true, _, fields) => Arc::new(Shifted::new(schema, *length, laid_as)?.only(fields)?),
                    (false, Some(layout), fields) => {
                        let documents = Documents::new(schema, *length, laid_as, *eos, layout.clone())?;
                        let documents = documents.labels(*labels)?;
                        Arc::new(if fields.is_empty() { documents } else { documents.only(fields)? })
                    }
                    (false, None, []) => Arc::new(next_token(*length, false, 0)?.labels(*labels)?),
                    (false, None, _) => {
                        return Err(Error::config(
                            "fields are chosen of rows with documents or shifted inputs",
                        )
                        .hint("add documents or shifted, or leave them out"));
                    }
                };
                if let Some(eos) = eos.filter(|eos| !schema.element.dtype.holds(*eos)) {
                    return Err(Error::config(format!("eos {eos} does not fit {}", schema.element.dtype)));
                }
                // The source's own may be no more than what the IDs go up to.
                let told = self.manifest.as_ref().and_then(|manifest| manifest.vocab_size);
                if let (Some(eos), Some(size)) = (eos, self.options.vocab_size.or(told))
                    && !u64::try_from(*eos).is_ok_and(|eos| eos < size)
                {
                    return Err(Error::config(format!("eos {eos} is outside the vocabulary of {size} IDs"))
                        .field("eos")
                        .hint(
                            "give an ID of the tokenizer's, or open the data with a vocab_size that holds it",
                        ));
                }
                let cut = if is_next { Pack::new } else { Pack::apart };
                let view = cut(lengths, *length, *eos)?;
                (Arc::new(if documents.is_some() { view.telling_record() } else { view }), collate)
            }
            ViewRecipe::Records { length, pad_value, pad, labels, .. } => {
                let collate = next_token(*length, true, *pad_value)?.labels(*labels)?;
                let collate = if *pad == Pad::Longest { collate.to_longest() } else { collate };
                let cut = if is_next { Records::new } else { Records::apart };
                (Arc::new(cut(lengths, *length)?), Arc::new(collate))
            }
            ViewRecipe::Windows {
                context_length,
                prediction_length,
                stride,
                tail,
                starts,
                per,
                loss_on,
                labels,
                fields,
                freq,
                ..
            } => {
                let width = context_length
                    .checked_add(*prediction_length)
                    .ok_or_else(|| Error::config("context_length + prediction_length is larger than 2^64"))?;
                let mut collate = next_token(width, true, 0)?;
                if mask_nan {
                    collate = collate.mask_nan();
                }
                if *loss_on == LossOn::Prediction {
                    if *prediction_length == 0 {
                        return Err(Error::config("loss_on=\"prediction\" with a prediction_length of 0")
                            .hint("give a prediction_length, or learn all labels"));
                    }
                    collate = collate.learn_from(*context_length);
                }
                if let ScaledBy::Sample(own) = by {
                    collate = collate.scaled_by_sample(own.clone());
                }
                let collate = collate.labels(*labels)?;
                let mut beside: Vec<BesideField> =
                    fields.iter().map(|name| BesideField::of(name)).collect::<Result<_>>()?;
                // They are read once, when all else is known to fit.
                if matches!(by, ScaledBy::Unmeasured) {
                    beside.retain(|field| !matches!(field, BesideField::Covariate(_)));
                }
                let freq = freq.as_deref().filter(|_| !matches!(by, ScaledBy::Unmeasured));
                let covariates = self.covariates(&beside, freq)?;
                let channels = schema.channels.filter(|_| *per != Per::Series);
                let collate: Arc<dyn Collate> = match beside.is_empty() {
                    true => Arc::new(collate),
                    false => {
                        let beside = Beside::new(collate, &beside, by.clone(), channels, covariates)?;
                        Arc::new(beside.without(self.left_out.clone()))
                    }
                };
                if let (view::Starts::Last, Some(stride)) = (*starts, *stride) {
                    return Err(Error::config(format!(
                        "a stride of {stride} for one window at the end of each record"
                    ))
                    .field("stride")
                    .hint("leave stride out, or starts=\"last\""));
                }
                let stride = stride.unwrap_or(width);
                let view = Windows::starting(lengths, width, stride, *tail, *starts, is_next)?;
                (Arc::new(view), collate)
            }
            ViewRecipe::Crop { length, mode } => {
                let collate = Raw::new(schema, *length, laid_as)?;
                (Arc::new(Crop::new(lengths, *length, *mode)?), Arc::new(collate))
            }
            ViewRecipe::Codes { length, mode, layout } => {
                let collate = Codes::new(schema, *length, layout, laid_as)?;
                (Arc::new(Crop::new(lengths, *length, *mode)?.keep_empty()), Arc::new(collate))
            }
            ViewRecipe::Bins { length, strategy, overlong, scope, pad_value, fields, labels } => {
                let collate = |most| {
                    Segments::new(schema, *length, most, laid_as, *pad_value)?.labels(*labels)?.only(fields)
                };
                // What cannot be laid is refused before the lengths are gone through.
                collate(1)?;
                let bins =
                    Bins::with(lengths, *length, *strategy, *overlong, scope.records(&*source), is_next)?;
                let collate = collate(bins.max_segments())?;
                (Arc::new(bins), Arc::new(collate))
            }
            ViewRecipe::Cursor { batch_size, length, rank, world_size } => {
                let collate = next_token(*length, false, 0)?;
                let cursor = Cursor::new(lengths, *batch_size, *length, (*rank, *world_size));
                (Arc::new(cursor.map_err(|e| e.or_at(self.paths.to_string()))?), Arc::new(collate))
            }
            ViewRecipe::Rows { columns, stack } => {
                let collate = collate::Rows::new(schema, columns.as_deref(), *stack)?;
                if let Some(dtype) = dtype {
                    return Err(Error::config(format!(
                        "rows as {dtype}: they keep the dtypes that are stored"
                    ))
                    .field("dtype")
                    .hint("leave dtype out; collate= may convert what it gets"));
                }
                (Arc::new(view::Rows::new(source.len())), Arc::new(collate))
            }
            ViewRecipe::Segments { length, buckets, fields, labels, .. } => {
                let mut collate = Pairs::new(schema, *length, buckets, laid_as)?.labels(*labels)?;
                if mask_nan {
                    collate = collate.mask_nan();
                }
                let collate = collate.only(fields)?;
                let cut = if is_next { view::Segments::new } else { view::Segments::apart };
                (Arc::new(cut(lengths, *length, buckets)?), Arc::new(collate))
            }
        };
        let mut feed = Feed::new(source.clone(), view, collate)
            .lying_in(self.stores.clone())
            .without(self.left_out.clone());
        // Rows with documents or shifted inputs ask where records begin.
        if let ViewRecipe::Pack { length, eos: None, shifted: false, documents: None, .. } = recipe
            && let Some(runs) = Runs::of(&source)
        {
            let runs = Arc::new(runs);
            let cut = if is_next { Pack::new } else { Pack::apart };
            let view = cut(runs.clone(), length, None)?;
            feed = feed.read_in_runs(runs, Arc::new(view));
        }
        let grouping = Grouping::of(&recipe, source.as_ref())?;
        let recipe =
            RecipePart { path: self.paths.clone(), options: self.options.clone(), view: recipe, dtype };
        Ok(Samples { feed, data: self.clone(), recipe, by: by.clone(), grouping })
    }
}
