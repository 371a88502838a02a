//! A file that a frontend writes: something else that is there is not replaced unasked, an input never.

use std::fs;
use std::path::Path;

use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE};
use windrow_core::output::write_whole;
use windrow_core::{Error, Kind, Result};

/// Writes a file, unless it is there with this content already. Something else that is there is replaced with `overwrite` alone.
///
/// # Errors
/// As [`refuse_existing`]; those of writing.
pub fn write(path: &Path, content: &[u8], overwrite: bool) -> Result<()> {
    if holds(path, content) {
        return Ok(());
    }
    refuse_existing(path, overwrite)?;
    write_whole(path, content)
}

/// Whether a file is there with this content.
pub fn holds(path: &Path, content: &[u8]) -> bool {
    // By its size first: what is there may be large, or a pipe.
    let may_be = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == content.len() as u64);
    may_be && fs::read(path).is_ok_and(|found| found == content)
}

/// Refuses an output that is there already.
///
/// # Errors
/// `Exists`; `Config` for a folder.
pub fn refuse_existing(path: &Path, overwrite: bool) -> Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if found.is_dir() {
        return Err(Error::config("a folder, expected the path of a file").at(path));
    }
    if overwrite {
        return Ok(());
    }
    Err(Error::new(Kind::Exists, "the file is there already").at(path).hint("@overwrite=true@ replaces it"))
}

/// Refuses an output that is an input, or one of the files in a folder that is an input: to overwrite is never meant so. A page
/// only describes data, so it may be there.
///
/// # Errors
/// `Config`.
pub fn refuse_input(path: &Path, inputs: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<()> {
    let Ok(out) = path.canonicalize() else { return Ok(()) };
    let is_page = out.extension().is_some_and(|end| end.eq_ignore_ascii_case("html"));
    let is_part = |input: &Path| {
        input == out || describes(&out, input) || (input.is_dir() && out.starts_with(input) && !is_page)
    };
    if inputs.into_iter().any(|input| input.as_ref().canonicalize().is_ok_and(|input| is_part(&input))) {
        return Err(Error::config("the output would replace its own input").at(path));
    }
    Ok(())
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
