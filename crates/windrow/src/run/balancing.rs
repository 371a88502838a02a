//! Which rows can be dealt to ranks by what they cost.

use log::Level;
use windrow_core::plan::Balance;
use windrow_core::sampler::Order;
use windrow_core::{Error, Result};

use crate::order::ordered::once;
use crate::run::builder::LoaderBuilder;
use crate::views::samples::Samples;

impl LoaderBuilder {
    /// Refuses views whose rows cost the same, or nobody knows what, and warns of an order that is no longer read as it was meant.
    pub(crate) fn check_balance(&self, by: &Balance, orders: &[Order]) -> Result<()> {
        // Where lengths are given, rows cost what these say.
        if self.tokens().lengths.is_none() {
            self.parts().iter().try_for_each(|samples| check(by, samples))?;
        }
        if orders.iter().any(|order| matches!(order, Order::Blocks(_))) {
            let text = "@balance@ with a shuffle by blocks: a rank gets rows of all lanes, so each rank reads the blocks of all";
            once(Level::Warn, text.to_string());
        }
        Ok(())
    }
}

/// Refuses a view whose rows cost the same by this, or nobody knows what.
///
/// # Errors
/// `Config`.
pub(crate) fn check(by: &Balance, samples: &Samples) -> Result<()> {
    let feed = samples.feed();
    let refused = |why: &str, hint: &str| {
        let text = format!("@balance@ of {}: {why}", feed.view().describe());
        Err(Error::config(text).at(samples.dataset().paths().to_string()).field("balance").hint(hint))
    };
    if let Some((why, hint)) = samples.recipe().view.kind().alike(by) {
        return refused(why, hint);
    }
    match feed.source().len() {
        1 => refused(
            "documents are records, and this is one record, whose documents are seen only when it is read",
            "a stream of tokens is opened as documents with @open_with_eos@, the token that ends each",
        ),
        _ => Ok(()),
    }
}
