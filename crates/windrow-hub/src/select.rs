//! Which files of a listing are wanted: patterns that choose, and patterns that leave out.

use std::collections::BTreeSet;

use globset::{Glob, GlobMatcher};
use windrow_core::{Error, Result};

use crate::remote_file::RemoteFile;

/// Most names in a hint.
const MOST_NAMES: usize = 24;

/// Which files are wanted: those that a pattern of `include` chooses (all, without any) and none of `exclude` leaves out.
///
/// As in the hub's own tools `*` also goes over `/`, and a pattern that ends in `/` means all below it.
pub(crate) struct Selection<'a> {
    include: &'a [String],
    wanted: Vec<GlobMatcher>,
    unwanted: Vec<GlobMatcher>,
}

impl<'a> Selection<'a> {
    /// # Errors
    /// `Config` for a pattern that is none.
    pub(crate) fn new(include: &'a [String], exclude: &[String]) -> Result<Selection<'a>> {
        Ok(Selection { include, wanted: globs(include)?, unwanted: globs(exclude)? })
    }

    /// The wanted ones of these files.
    ///
    /// # Errors
    /// `NotFound` when a pattern of `include` chooses nothing, or nothing is left.
    pub(crate) fn of(&self, mut files: Vec<RemoteFile>) -> Result<Vec<RemoteFile>> {
        let any = |globs: &[GlobMatcher], path: &str| globs.iter().any(|glob| glob.is_match(path));
        let is_idle = |glob: &GlobMatcher| !files.iter().any(|file| glob.is_match(&file.path));
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
        match files.is_empty() {
            true => Err(Error::not_found("no file is left to download")
                .hint("the data set is empty, or all is left out")),
            false => Ok(files),
        }
    }
}

fn globs(patterns: &[String]) -> Result<Vec<GlobMatcher>> {
    let glob = |pattern: &String| {
        let whole = if pattern.ends_with('/') { format!("{pattern}*") } else { pattern.clone() };
        let glob = Glob::new(&whole)
            .map_err(|e| Error::config(format!("{pattern:?} is not a pattern")).caused_by(e))?;
        Ok(glob.compile_matcher())
    };
    patterns.iter().map(glob).collect()
}

// The folders that hold files, or the files where there are no folders.
fn names(files: &[RemoteFile]) -> String {
    let folders: BTreeSet<&str> = files.iter().filter_map(|f| Some(f.path.rsplit_once('/')?.0)).collect();
    let all: Vec<&str> = match folders.is_empty() {
        true => files.iter().map(|f| f.path.as_str()).collect(),
        false => folders.into_iter().collect(),
    };
    let more = all.len().saturating_sub(MOST_NAMES);
    let shown = all[..all.len() - more].join(", ");
    if more > 0 { format!("{shown}, and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

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
