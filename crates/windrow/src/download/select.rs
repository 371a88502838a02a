//! Which files of a listing are wanted: patterns that choose, and patterns that leave out.

use std::collections::BTreeSet;

use windrow_core::store::glob::Flat;
use windrow_core::{Error, Result};

use super::file::RemoteFile;

/// Most names in a hint.
const MOST_NAMES: usize = 24;

/// Which files are wanted: those that a pattern of `include` chooses (all, without any) and none of `exclude` leaves out.
///
/// As in the Hub's own tools `*` also goes over `/`, and a pattern that ends in `/` means all below it.
pub(super) struct Selection<'a> {
    include: &'a [String],
    wanted: Vec<Flat>,
    unwanted: Vec<Flat>,
}

impl<'a> Selection<'a> {
    /// # Errors
    /// `Config` for a wrong pattern.
    pub(super) fn new(include: &'a [String], exclude: &[String]) -> Result<Selection<'a>> {
        Ok(Selection { include, wanted: globs(include)?, unwanted: globs(exclude)? })
    }

    /// The wanted ones of these files.
    ///
    /// # Errors
    /// `NotFound` when a pattern of `include` chooses nothing, or nothing is left.
    pub(super) fn of(&self, mut files: Vec<RemoteFile>) -> Result<Vec<RemoteFile>> {
        let any = |globs: &[Flat], path: &str| globs.iter().any(|glob| glob.fits(path));
        let is_idle = |glob: &Flat| !files.iter().any(|file| glob.fits(&file.path));
        if let Some(i) = self.wanted.iter().position(is_idle) {
            return Err(Error::not_found(format!(
                "{:?} chooses none of {} files",
                self.include[i],
                files.len()
            ))
            .hint(format!("there is {}", names(&files))));
        }
        files.retain(|f| {
            (self.wanted.is_empty() || any(&self.wanted, &f.path)) && !any(&self.unwanted, &f.path)
        });
        if files.is_empty() {
            Err(Error::not_found("no file is left to download").hint("it is empty there, or all is left out"))
        } else {
            Ok(files)
        }
    }
}

fn globs(patterns: &[String]) -> Result<Vec<Flat>> {
    let glob = |pattern: &String| {
        Flat::new(&if pattern.ends_with('/') { format!("{pattern}*") } else { pattern.clone() })
    };
    patterns.iter().map(glob).collect()
}

// The folders that hold files, or the files where there are no folders.
fn names(files: &[RemoteFile]) -> String {
    let folders: BTreeSet<&str> = files.iter().filter_map(|f| Some(f.path.rsplit_once('/')?.0)).collect();
    let all: Vec<&str> = if folders.is_empty() {
        files.iter().map(|f| f.path.as_str()).collect()
    } else {
        folders.into_iter().collect()
    };
    let more = all.len().saturating_sub(MOST_NAMES);
    let shown = all[..all.len() - more].join(", ");
    if more > 0 { format!("{shown}, and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::download::digest::Digest;

    fn chosen(include: &[&str], exclude: &[&str]) -> Result<String> {
        let paths = [
            "README.md",
            "energy/x/meta.json",
            "energy_2/y/a.bin",
            "energy_2/y/a.bin.lock",
            "other/m4/b.bin",
        ];
        let digest = Digest::Git("0".repeat(40));
        let file = |path: &str| RemoteFile { path: path.to_string(), size: 0, digest: digest.clone() };
        let owned = |patterns: &[&str]| patterns.iter().map(|p| p.to_string()).collect::<Vec<_>>();
        let (include, exclude) = (owned(include), owned(exclude));
        let files = Selection::new(&include, &exclude)?.of(paths.map(file).to_vec())?;
        Ok(files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn patterns_choose_and_leave_out() {
        assert_eq!(chosen(&["energy*/**"], &["**/*.lock"]).unwrap(), "energy/x/meta.json energy_2/y/a.bin");
        assert_eq!(chosen(&["energy/**"], &[]).unwrap(), "energy/x/meta.json");
        assert_eq!(chosen(&["other/"], &[]).unwrap(), "other/m4/b.bin");
        assert_eq!(chosen(&["*.bin"], &["other/*"]).unwrap(), "energy_2/y/a.bin");
        assert_eq!(
            chosen(&["{energy,other}/**/*.{json,bin}"], &[]).unwrap(),
            "energy/x/meta.json other/m4/b.bin"
        );
        assert_eq!(chosen(&["**/README.md"], &[]).unwrap(), "README.md");
        assert_eq!(chosen(&[], &["energy*", "other*"]).unwrap(), "README.md");
    }

    #[test]
    fn what_chooses_nothing_is_an_error_that_says_what_there_is() {
        let e = format!("{:#}", chosen(&["energy*/**", "othre/**"], &[]).unwrap_err());
        assert!(
            e.contains("\"othre/**\" chooses none") && e.contains("energy/x, energy_2/y, other/m4"),
            "{e}"
        );
        assert!(chosen(&["a[b"], &[]).unwrap_err().to_string().contains("is not a pattern"));
        assert!(chosen(&[], &["*"]).is_err());
    }
}
