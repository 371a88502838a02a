//! What a recipe holds of how rows are dealt to ranks.

use std::sync::Arc;

use windrow_core::plan::Balance;
use windrow_core::{Error, Result};

/// By what, as a recipe has it.
pub(crate) fn in_text(by: &Balance) -> String {
    match by {
        Balance::By(_) => FUNCTION.to_string(),
        by => by.to_string(),
    }
}

/// A function in a recipe.
const FUNCTION: &str = "function";

/// What a recipe says. Of a function it does not know which, so the rows of a rank are not known either.
///
/// # Errors
/// `Config` for what no recipe holds.
pub(crate) fn of_text(text: &str) -> Result<Balance> {
    if text != FUNCTION {
        return text.parse();
    }
    Ok(Balance::By(Arc::new(|_: &[u64]| {
        Err(Error::config("a function says what rows cost, and a plan as text does not hold it")
            .field("balance")
            .hint("ask the loader itself, or leave @ranks@ out: the rows of all ranks are known"))
    })))
}
