//! A file that a command writes: something else that is there is not replaced unasked, an input never.

use std::fs;
use std::path::Path;

use windrow::dev::manifest::{CHECKSUMS_FILE, MANIFEST_FILE};
use windrow::dev::output::write_whole;
use windrow::{Error, Kind};

use crate::failure::Failure;

/// Writes a file, unless it is there with this content already. Something else that is there is replaced with `overwrite` alone.
///
/// # Errors
/// As [`refuse_existing`]; those of writing.
pub(crate) fn write(path: &Path, content: &[u8], overwrite: bool) -> Result<(), Failure> {
    if holds(path, content) {
        return Ok(());
    }
    refuse_existing(path, overwrite)?;
    Ok(write_whole(path, content)?)
}

/// Whether a file is there with this content.
pub(crate) fn holds(path: &Path, content: &[u8]) -> bool {
    // By its size first: what is there may be large, or a pipe.
    let may_be = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == content.len() as u64);
    may_be && fs::read(path).is_ok_and(|found| found == content)
}

/// Refuses an output that is there already.
///
/// # Errors
/// `Exists`; `Config` for a folder.
pub(crate) fn refuse_existing(path: &Path, overwrite: bool) -> Result<(), Failure> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if found.is_dir() {
        return Err(Error::config("a folder, expected the path of a file").at(path).into());
    }
    if overwrite {
        Ok(())
    } else {
        Err(Error::new(Kind::Exists, "the file is there already")
            .at(path)
            .hint("--overwrite replaces it")
            .into())
    }
}

/// Refuses an output that is an input, or one of the files in a folder that is an input: `--overwrite` is never for that. A page
/// only describes data, so it may lie there.
///
/// # Errors
/// `Config`.
pub(crate) fn refuse_input(
    path: &Path,
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<(), Failure> {
    let Ok(out) = path.canonicalize() else { return Ok(()) };
    let is_page = out.extension().is_some_and(|end| end.eq_ignore_ascii_case("html"));
    let is_part = |input: &Path| {
        input == out || describes(&out, input) || (input.is_dir() && out.starts_with(input) && !is_page)
    };
    if inputs.into_iter().any(|input| input.as_ref().canonicalize().is_ok_and(|input| is_part(&input))) {
        Err(Error::config("the output would replace its own input").at(path).into())
    } else {
        Ok(())
    }
}

// Whether a file is what windrow wrote to describe another one: beside it, or in its folder.
fn describes(file: &Path, data: &Path) -> bool {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (name, data_name) = (name(file), name(data));
    file.parent() == data.parent()
        && [MANIFEST_FILE, CHECKSUMS_FILE]
            .iter()
            .any(|side| name == *side || name == format!("{data_name}.{side}"))
}

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
