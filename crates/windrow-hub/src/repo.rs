//! What a data set of the hub is called.

use hf_hub::{Repo, RepoType};
use windrow_core::{Error, Result};

/// `owner/name` of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoName(String);

impl RepoName {
    /// Takes `owner/name`.
    ///
    /// # Errors
    /// `Config` when it is something else.
    pub fn parse(text: &str) -> Result<RepoName> {
        let is_word = |word: &str| {
            let fits = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            fits && !word.is_empty() && !word.starts_with('.') && word.len() <= 96
        };
        match text.split_once('/') {
            Some((owner, name)) if is_word(owner) && is_word(name) => Ok(RepoName(text.to_string())),
            _ => Err(Error::config(format!("{text:?} is not a data set of the hub"))
                .hint("it is called owner/name, as in the address of its page")),
        }
    }

    /// `owner/name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name after the owner.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The data set at a revision, as hf-hub names it in addresses and in the cache.
    pub(crate) fn at(&self, revision: &str) -> Repo {
        Repo::with_revision(self.0.clone(), RepoType::Dataset, revision.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repo_is_owner_and_name() {
        assert_eq!(RepoName::parse("Maple728/Time-300B").unwrap().name(), "Time-300B");
        for bad in ["", "name", "a/b/c", "a/", "/b", "../b", "a/..", "a/b?x", "a b/c", "https://x/a/b"] {
            assert!(RepoName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
