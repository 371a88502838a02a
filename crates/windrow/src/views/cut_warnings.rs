//! What is said of samples that are not what their user means, most likely.

use windrow_core::collate::Labels;
use windrow_core::view::Overlong;
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;
use crate::opening::formats::format_info;
use crate::views::recipe::ViewRecipe;
use crate::views::samples::Samples;

impl Samples {
    /// An error where there are none: nothing would be learned, and nobody would say so.
    pub(crate) fn refuse_none(&self) -> Result<()> {
        let Some(why) = self.shortage()? else { return Ok(()) };
        let error =
            Error::config(format!("the view has no samples: {why}")).at(self.data.paths().to_string());
        let has_values = self.coverage().is_ok_and(|coverage| coverage.used + coverage.unseen > 0);
        Err(match has_values {
            false => error,
            true => error.hint("choose a shorter length; view.coverage() counts what it leaves out"),
        })
    }

    /// Why there are none: what the data has, and what a sample needs.
    pub(crate) fn shortage(&self) -> Result<Option<String>> {
        if !self.is_empty() {
            return Ok(None);
        }
        if self.data.is_empty() {
            return Ok(Some("there are no records".to_string()));
        }
        let coverage = self.coverage()?;
        let found = format!("all records together have {} values", coverage.used + coverage.unseen);
        Ok(Some(match self.recipe.view {
            ViewRecipe::Pack { length, .. } => {
                let label = u64::from(self.recipe.view.labels() == Some(Labels::Next));
                format!("{found}, and each sample needs {}", length.saturating_add(label))
            }
            _ => found,
        }))
    }
}

impl Dataset {
    // A DataLoader over it would run no batch and say nothing.
    pub(crate) fn warn_of_no_samples(&self, samples: &Samples) {
        if let Ok(Some(why)) = samples.shortage() {
            log::warn!("{}: the view has no samples: {why}", self.paths);
        }
    }

    // What is cut is never seen, however many epochs there are.
    pub(crate) fn warn_of_cut_records(&self, samples: &Samples) {
        let ViewRecipe::Bins { length, overlong: Overlong::Cut, .. } = samples.recipe.view else { return };
        let cut = samples.feed.view().overlong();
        if cut > 0 {
            log::warn!(
                "{}: {cut} of {} records are longer than {length} positions and are cut; coverage() counts what is never \
                 seen, overlong=\"split\" reads all of them",
                self.paths,
                self.len()
            );
        }
    }

    // Tokens of many documents in one file are one record, and nothing would be kept apart.
    pub(crate) fn warn_of_one_document(&self, samples: &Samples) {
        let ViewRecipe::Pack { documents: Some(_), eos: None, .. } = samples.recipe.view else { return };
        if self.len() == 1 && self.source.joined().is_none() {
            log::warn!(
                "{}: documents are records, and this is one record of {} tokens; say with eos= which token ends a document",
                self.paths,
                self.source.length(0).unwrap_or_default()
            );
        }
    }

    // An array [T, C] that is read as T series of C values gives padded windows only, and a model that learns nothing.
    pub(crate) fn warn_of_padding(&self, samples: &Samples) {
        let view = samples.feed.view();
        let (short, all) = (view.short(), view.len());
        if all < 2 || short < all - all / 10 {
            return;
        }
        let info = format_info(self.source.format());
        let reads_axis =
            info.is_some_and(|info| info.takes("axis")) && self.source.schema().channels.is_none();
        let hint = match reads_axis && self.options.axis.is_none() {
            true => {
                "if an array [T, C] is one series, open it with wr.open(x, axis=\"time\"); else segments packs short series"
            }
            false => "segments packs short series without padding",
        };
        log::warn!(
            "{}: {short} of {all} windows are padded, as their series have fewer than the {} values of a window; {hint}",
            self.paths,
            view.positions() + 1
        );
    }
}
