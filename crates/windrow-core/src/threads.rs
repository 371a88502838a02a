//! How many threads may be asked for.

use crate::error::{Error, Result};

const MOST: usize = 1024;

/// That a number of threads, where one is asked for, is `least` to 1024.
///
/// # Errors
/// `Config`.
pub fn check_threads(asked: Option<usize>, least: usize) -> Result<()> {
    match asked.filter(|threads| !(least..=MOST).contains(threads)) {
        None => Ok(()),
        Some(threads) => Err(Error::config(format!("threads is {threads}; expected {least} to {MOST}"))
            .hint("left out, it follows the number of cores")),
    }
}
