//! From a recipe to samples: the records scaled, the view that slices them, the layout of a batch.

use std::sync::Arc;

use windrow_core::collate::ScaledBy;
use windrow_core::plan::Feed;
use windrow_core::source::{
    Apart, Border, Fit, Per, SampleScale, Scaled, Scaling, SharedSource, Transformed,
};
use windrow_core::{DType, Error, Result, store};

use crate::opening::dataset::Dataset;
use crate::opening::time_part::{TimePart, of_period};
use crate::views::grouping::Grouping;
use crate::views::kind::Cut;
use crate::views::part::RecipePart;
use crate::views::recipe::ViewRecipe;
use crate::views::samples::Samples;
use crate::views::scaler::{Scaler, function_in_text};

impl Dataset {
    /// The view that a recipe describes, its numbers as `dtype`.
    ///
    /// # Errors
    /// As [`Dataset::pack`]; `Config` for a recipe from text that names a function of the caller's.
    pub fn view(&self, recipe: impl Into<ViewRecipe>, dtype: Option<DType>) -> Result<Samples> {
        self.cut(recipe.into(), dtype, &|| false)
    }

    /// [`Dataset::view`]; `stop` is asked while statistics are computed, and ends that.
    ///
    /// # Errors
    /// As [`Dataset::view`]; `Interrupted` when asked to stop.
    pub fn cut(&self, recipe: ViewRecipe, dtype: Option<DType>, stop: &dyn Fn() -> bool) -> Result<Samples> {
        let statistics = recipe.kind().statistics();
        statistics.check()?;
        let (source, by) = self.scaled(&recipe, dtype, stop)?;
        let samples = self.assemble(source, recipe, dtype, &by)?;
        if let Ok(Some(why)) = samples.shortage() {
            windrow_core::warn!("{}: the view has no samples: {why}", self.paths);
        }
        samples.recipe.view.kind().warn(self, samples.feed.view());
        Ok(samples)
    }

    // What cannot be assembled is refused before the data is read for its statistics.
    fn scaled(
        &self,
        recipe: &ViewRecipe,
        dtype: Option<DType>,
        stop: &dyn Fn() -> bool,
    ) -> Result<(SharedSource, ScaledBy)> {
        let statistics = recipe.kind().statistics();
        let is_apart = recipe.kind().is_apart();
        let plain = of_view(self.source.clone(), is_apart)?;
        let try_by = |by| self.assemble(plain.clone(), recipe.clone(), dtype, &by);
        match (statistics.scaler, statistics.scaling()) {
            (Scaler::Custom(custom), _) => {
                if custom.is_name() {
                    return Err(function_in_text(custom.name()));
                }
                try_by(ScaledBy::Nothing)?;
                let scaled = Transformed::new(plain, custom.clone())?;
                let scaled = if dtype == Some(DType::F64) { scaled.in_float64() } else { scaled };
                Ok((Arc::new(scaled), ScaledBy::Nothing))
            }
            (_, None) => Ok((plain, ScaledBy::Nothing)),
            (_, Some(scaling)) if scaling.per == Per::Window => {
                let given = statistics.context.unwrap_or(u64::MAX);
                Ok((plain, ScaledBy::Sample(SampleScale::new(scaling, given))))
            }
            (_, Some(scaling)) => {
                try_by(ScaledBy::Unmeasured)?;
                let n = if is_apart { self.channels() } else { 1 };
                let period = self.period.as_ref().map(|period| period.repeated(n));
                let whole = of_view(self.whole.clone(), is_apart)?;
                let scaled = measured(whole, period.as_ref(), scaling, stop).map_err(|e| of_record(e, n))?;
                let scaled = Arc::new(scaled);
                Ok((of_period(scaled.clone(), period.as_ref())?, ScaledBy::Record(scaled)))
            }
        }
    }

    /// Records of a view that has each channel apart, for each record.
    pub(crate) fn channels(&self) -> u64 {
        self.source.schema().channels.map_or(1, |channels| channels as u64)
    }

    /// Samples of `source`: these records, scaled or not.
    ///
    /// # Errors
    /// As [`Dataset::view`].
    pub(crate) fn assemble(
        &self,
        source: SharedSource,
        recipe: ViewRecipe,
        dtype: Option<DType>,
        by: &ScaledBy,
    ) -> Result<Samples> {
        store::whole(|| self.assembled(source.clone(), recipe.clone(), dtype, by))
    }

    fn assembled(
        &self,
        source: SharedSource,
        recipe: ViewRecipe,
        asked: Option<DType>,
        by: &ScaledBy,
    ) -> Result<Samples> {
        let kind = recipe.kind();
        let source = kind.source(source)?;
        let is_scaled = *kind.statistics().scaler != Scaler::None;
        let dtype = match asked {
            None if is_scaled => Some(DType::F32),
            Some(dtype) if is_scaled && dtype.is_integer() => {
                return Err(Error::config(format!("scaled values are fractions, which {dtype} cannot hold"))
                    .hint("choose @as_dtype=float32@"));
            }
            dtype => dtype,
        };
        let (view, collate) = kind.cut(&Cut { data: self, source: source.clone(), dtype, by })?;
        let feed = Feed::new(source.clone(), view, collate)
            .stored_in(self.stores.clone())
            .called(self.numbering.clone());
        let feed = if kind.is_apart() { feed.apart(self.channels()) } else { feed };
        let feed = kind.feed(feed, &source)?;
        let grouping =
            kind.group().map(|(length, rows)| Grouping::of(length, rows, source.as_ref())).transpose()?;
        let (path, options) = (self.paths.clone(), self.options.clone());
        let recipe = RecipePart { path, options, view: recipe, dtype: asked };
        Ok(Samples { feed, data: self.clone(), recipe, by: by.clone(), grouping })
    }
}

// The records as a view reads them.
fn of_view(source: SharedSource, is_apart: bool) -> Result<SharedSource> {
    if is_apart { Apart::of(source) } else { Ok(source) }
}

// Parts in time are scaled by what the first of them knows.
fn measured(
    whole: SharedSource,
    period: Option<&TimePart>,
    scaling: Scaling,
    stop: &dyn Fn() -> bool,
) -> Result<Scaled> {
    let first = period.filter(|_| scaling.fit.is_none());
    match first.map(|part| &part.fit) {
        None => Scaled::new(whole, scaling, stop),
        Some(Border::Fraction(to)) => {
            Scaled::new(whole, Scaling { fit: Some(Fit::Fraction(0.0, *to)), ..scaling }, stop)
        }
        Some(border) => Scaled::until(whole, border.clone(), scaling, stop),
    }
}

// An error of the n-th part of a record names the record.
fn of_record(error: Error, n: u64) -> Error {
    match error.place().record {
        Some(record) => error.record(record / n.max(1)),
        None => error,
    }
}
