//! One output name per input, never the same twice.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use windrow_core::output::files;
use windrow_core::store::{is_url, key, plain_name};
use windrow_core::{Error, Result};

/// An input by its names.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// Where it lies.
    pub(super) file: PathBuf,
    /// Its name below the folder that was given; for a file that was given, below the folder that holds all such files.
    pub(super) relative: String,
}

/// The files that were found so far, by where they are once links are followed.
#[derive(Default)]
pub(super) struct Given {
    files: HashMap<PathBuf, (usize, PathBuf)>,
}

impl Given {
    /// Notes a file of the input of this number. Several names of one file within an input are its owner's own choice.
    ///
    /// # Errors
    /// `Config` where an input before has it already: a folder and one in it, a link, another spelling.
    pub(super) fn add(&mut self, input: usize, file: &Path) -> Result<()> {
        // What cannot be found is reported by whoever opens it.
        let place = if is_url(file) { Some(file.to_path_buf()) } else { files::real_path(file) };
        let Some(place) = place else { return Ok(()) };
        let (before, other) = self.files.entry(place).or_insert_with(|| (input, file.to_path_buf()));
        if *before == input {
            return Ok(());
        }
        Err(Error::config(format!("an input before has it already, as {}", other.display()))
            .at(file)
            .hint("every record would come twice: give it once"))
    }
}

/// The output name of each input without postfix: the name without its last suffix; among inputs that share it, with the
/// folder before it (`a__b`); among those that still share it, with the suffix too; at last with the whole path.
///
/// # Errors
/// `Config` when an input is given twice.
pub(super) fn output_names(inputs: &[Named]) -> Result<Vec<String>> {
    let mut levels = vec![0; inputs.len()];
    loop {
        let names: Vec<String> =
            inputs.iter().zip(&levels).map(|(input, level)| name(input, *level)).collect();
        let mut first = HashMap::new();
        let mut shared = vec![false; inputs.len()];
        for (i, name) in names.iter().enumerate() {
            if let Some(&other) = first.get(name) {
                shared[i] = true;
                shared[other] = true;
            } else {
                first.insert(name, i);
            }
        }
        let Some(any) = shared.iter().position(|s| *s) else { return Ok(names) };
        let mut moved = false;
        for (level, _) in levels.iter_mut().zip(&shared).filter(|(l, s)| **s && **l < WHOLE_PATH) {
            *level += 1;
            moved = true;
        }
        if !moved {
            return Err(Error::config(format!("two inputs would be written to one file {:?}", names[any]))
                .at(&inputs[any].file)
                .hint("is it given twice?"));
        }
    }
}

const WHOLE_PATH: u8 = 3;

fn name(input: &Named, level: u8) -> String {
    let (folder, file) = (key::folder_of(&input.relative), key::name_of(&input.relative));
    let stem = stem(file);
    match level {
        0 => stem.to_string(),
        1 => flat(folder, stem),
        2 => flat(folder, file),
        _ => flat("", input.file.display().to_string().trim_matches('/')),
    }
}

fn flat(folder: &str, file: &str) -> String {
    key::below(folder, file).replace('/', "__")
}

// The name without `.gz`/`.zst` and without its last suffix.
fn stem(file: &str) -> &str {
    let plain = plain_name(file);
    match plain.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => plain,
    }
}

/// The names of files that were given one by one, below the folder that holds all of them.
pub(super) fn below_common_folder(files: &[PathBuf]) -> Vec<String> {
    let mut common: Option<&Path> = None;
    for file in files {
        let folder = file.parent().unwrap_or(Path::new(""));
        common = Some(match common {
            None => folder,
            Some(common) => common.ancestors().find(|a| folder.starts_with(a)).unwrap_or(Path::new("")),
        });
    }
    let below = |file: &PathBuf| {
        let relative = common.and_then(|c| file.strip_prefix(c).ok()).unwrap_or(file);
        relative.display().to_string()
    };
    files.iter().map(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(relative: &[&str], want: &[&str]) {
        let inputs: Vec<_> = relative
            .iter()
            .map(|r| Named { file: Path::new("/in").join(r), relative: r.to_string() })
            .collect();
        assert_eq!(output_names(&inputs).unwrap(), want);
    }

    #[test]
    fn only_colliding_names_get_longer() {
        check(&["a.b.c.jsonl", "d.jsonl.gz"], &["a.b.c", "d"]);
        check(&["x/a.jsonl", "y/a.jsonl", "b.jsonl"], &["x__a", "y__a", "b"]);
        check(&["a.jsonl", "x/a.jsonl"], &["a", "x__a"]);
        check(&["a.jsonl", "a.JSONL"], &["a.jsonl", "a.JSONL"]);
        check(&["a.jsonl", "a.jsonl.gz"], &["a.jsonl", "a.jsonl.gz"]);
        check(&["x/a.jsonl", "y/a.jsonl", "x__a.jsonl"], &["x__a.jsonl", "y__a", "x__a"]);
    }

    #[test]
    fn one_input_twice_is_refused() {
        let one = Named { file: "/in/a.jsonl".into(), relative: "a.jsonl".into() };
        let error = output_names(&[one.clone(), one]).unwrap_err();
        assert_eq!(error.kind(), windrow_core::Kind::Config);
    }

    #[test]
    fn a_file_of_two_inputs_is_refused_by_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("below")).unwrap();
        std::fs::write(at("below/a"), "").unwrap();
        std::os::unix::fs::symlink("below/a", at("link")).unwrap();
        std::fs::hard_link(at("below/a"), at("another")).unwrap();
        for other in ["below/a", "below/../below/a", "link"] {
            let mut given = Given::default();
            given.add(0, &at("below/a")).unwrap();
            // A second name in one input, and a file of its own.
            given.add(0, &at("link")).unwrap();
            given.add(1, &at("another")).unwrap();
            given.add(1, &at("none")).unwrap();
            let error = given.add(1, &at(other)).unwrap_err();
            assert!(error.message().contains("below/a"), "{error}");
        }
    }

    #[test]
    fn files_are_named_below_what_they_share() {
        let files = ["/d/x/a.jsonl", "/d/y/z/a.jsonl"].map(PathBuf::from);
        assert_eq!(below_common_folder(&files), ["x/a.jsonl", "y/z/a.jsonl"]);
        assert_eq!(below_common_folder(&files[..1]), ["a.jsonl"]);
    }
}
