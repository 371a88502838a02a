//! What a command writes: a file, or stdout.

pub(crate) use windrow::one_file::{refuse_input, write};

use crate::failure::Failure;

/// Refuses `--overwrite` for stdout.
///
/// # Errors
/// Where it was typed.
pub(crate) fn no_overwrite_of_stdout(overwrite: bool) -> Result<(), Failure> {
    if overwrite {
        Err(Failure::usage("--overwrite replaces a file, and --out - is not a file"))
    } else {
        Ok(())
    }
}
