//! The inputs of a task: files, and the files of folders, none of them twice.

use std::path::{Component, Path, PathBuf};

use windrow_core::format::lines;
use windrow_core::output::files;
use windrow_core::store::{Local, Store};
use windrow_core::{Error, Result};

use super::options::TokenizeOptions;
use crate::names::{Given, Named, below_common_folder};

// An input's path from the root. What goes up and down again is followed: names of outputs are made from it.
fn absolute(input: &Path) -> Result<PathBuf> {
    let goes_up = input.components().any(|part| part == Component::ParentDir);
    match files::real_path(input).filter(|_| goes_up) {
        Some(path) => Ok(path),
        None => std::path::absolute(input).map_err(|e| Error::io("find it", input, e)),
    }
}

// Every input with the name it goes by, none of them twice.
pub(super) fn find(inputs: &[PathBuf], options: &TokenizeOptions) -> Result<Vec<Named>> {
    let mut found = Vec::new();
    let mut single = Vec::new();
    // One alone gives each of its files once.
    let mut given = (inputs.len() > 1).then(Given::default);
    let mut note = |number, file: &Path| given.as_mut().map_or(Ok(()), |given| given.add(number, file));
    for (number, input) in inputs.iter().enumerate() {
        let path = absolute(input)?;
        let store = Local::new(&path);
        if !store.entry("")?.is_folder {
            note(number, &path)?;
            single.push((found.len(), path.clone()));
            found.push(Named { file: path, relative: String::new() });
            continue;
        }
        let entries = lines::line_files(&store, "")?;
        let before = found.len();
        for entry in entries {
            let file = path.join(&entry.key);
            note(number, &file)?;
            found.push(Named { file, relative: entry.key });
        }
        if found.len() == before && !options.allow_empty {
            return Err(lines::no_line_files(&store).at(input));
        }
    }
    if found.is_empty() && !options.allow_empty {
        return Err(Error::not_found("no input is given"));
    }
    let (places, files): (Vec<usize>, Vec<PathBuf>) = single.into_iter().unzip();
    for (place, relative) in places.into_iter().zip(below_common_folder(&files)) {
        found[place].relative = relative;
    }
    Ok(found)
}
