//! An output in the place of what it is made from: replaced, the input would be lost, with all that the output leaves out.

use std::path::{Path, PathBuf};

use windrow_core::format::write::WriteFormat;
use windrow_core::output::files::real_path;
use windrow_core::source::Source;
use windrow_core::store::{is_url, without_secrets};
use windrow_core::{Error, Result};

/// That what is written to `out`, a path or a URL, takes the place of nothing that `source` reads.
///
/// # Errors
/// `Config` naming the file that it reads.
pub fn refuse_inputs(source: &dyn Source, out: &Path, format: &dyn WriteFormat) -> Result<()> {
    let is_far = is_url(out);
    let place = |path: PathBuf| {
        if is_far { Some(without_secrets(&path.to_string_lossy()).into()) } else { real_path(&path) }
    };
    let places: Vec<PathBuf> = written(out, format).into_iter().filter_map(place).collect();
    if places.is_empty() {
        // Nothing is there, and no file is looked at.
        return Ok(());
    }
    let is_read = |file: &String| {
        let file = place(PathBuf::from(file)).filter(|_| is_url(file) == is_far);
        file.is_some_and(|file| places.iter().any(|place| file.starts_with(place)))
    };
    match source.files().into_iter().map(|info| info.file).find(is_read) {
        None => Ok(()),
        Some(file) => Err(Error::config("the output would replace what it is made from")
            .at(file)
            .hint("write elsewhere; @overwrite=true@ replaces no input")),
    }
}

// What appears for this output.
fn written(out: &Path, format: &dyn WriteFormat) -> Vec<PathBuf> {
    let Some(name) = out.file_name().and_then(|name| name.to_str()) else { return vec![out.to_path_buf()] };
    let names = format.names(format.info().target.stem(name)).into_iter();
    names.map(|name| out.with_file_name(name)).collect()
}
