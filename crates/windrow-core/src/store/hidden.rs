//! Names that no walk takes for data unless they are asked for: notes of the system, and what Spark, Hive and pyarrow hide.

use super::Entry;
use crate::error::{Error, Result};

/// What is below a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// The objects, sorted by key.
    pub entries: Vec<Entry>,
    /// What was passed over because of its name: objects, or the folders that they are in.
    pub hidden: Vec<Entry>,
}

impl Walked {
    /// Parts what was listed below `folder`.
    pub fn of(folder: &str, listed: impl IntoIterator<Item = Entry>) -> Walked {
        let (hidden, entries) =
            listed.into_iter().partition(|entry| hidden_part(folder, &entry.key).is_some());
        Walked { entries, hidden }
    }

    /// The names that were passed over, relative to `folder`; of a hidden folder its own. Sorted, each once.
    pub fn hidden_names(&self, folder: &str) -> Vec<String> {
        let start = if folder.is_empty() { 0 } else { folder.len() + 1 };
        let name = |entry: &Entry| Some(hidden_part(folder, &entry.key)?.get(start..)?.to_string());
        let mut names: Vec<String> = self.hidden.iter().filter_map(name).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Whether it is what a run of ours has beside its output while it writes: its lock, and the folder or file that is not whole
/// yet.
pub fn is_of_a_run(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.starts_with('.')
        && (name.ends_with(".lock") || name.rsplit_once(".tmp-").is_some_and(|(_, hash)| is_hash(hash)))
}

/// Whether a walk passes over a name: `.x` and `_x`, but not `_x=value`, the folder of a partition.
///
/// ```
/// use windrow_core::store::is_hidden;
///
/// assert!(is_hidden("_SUCCESS") && is_hidden(".git"));
/// assert!(!is_hidden("_day=1") && !is_hidden("a_b"));
/// ```
pub fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('='))
}

/// The key up to the first hidden name on the way from `folder` to it; `None` where none is.
pub fn hidden_part<'k>(folder: &str, key: &'k str) -> Option<&'k str> {
    let start = if folder.is_empty() { 0 } else { folder.len() + 1 };
    let mut end = start;
    for name in key.get(start..)?.split('/') {
        end += name.len();
        if is_hidden(name) {
            return key.get(..end);
        }
        end += 1;
    }
    None
}

/// The error that a folder holds nothing but names that are passed over.
pub fn only_hidden(names: &[String], at: String) -> Error {
    Error::not_found(format!("only hidden names are there: {}", some_of(names))).at(at).hint(
        "names that begin with _ or . are passed over: name one by its path, or by a pattern that begins so",
    )
}

/// Names in words: `a, b, c and 3 more`.
pub fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0..=SHOWN => shown,
        n => format!("{shown} and {} more", n - SHOWN),
    }
}

/// What is below a folder of `store`, where that is not nothing but hidden names.
///
/// # Errors
/// `NotFound` naming them; as [`super::Store::walk`].
pub fn not_only_hidden(store: &dyn super::Store, folder: &str) -> Result<Walked> {
    let walked = store.walk_all(folder)?;
    if walked.entries.is_empty() && !walked.hidden.is_empty() {
        Err(only_hidden(&walked.hidden_names(folder), store.display(folder)))
    } else {
        Ok(walked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hidden_name_on_the_way_counts() {
        let check = |folder, key, expected| assert_eq!(hidden_part(folder, key), expected, "{key}");
        check("", "_temporary/0/a", Some("_temporary"));
        check("d", "d/x/.a", Some("d/x/.a"));
        check("_d", "_d/a", None);
        check("", "_day=1/a_b", None);
        let entry =
            |key: &str| Entry { key: key.into(), size: 1, is_folder: false, modified_ns: None, tag: None };
        let walked = Walked::of("d", ["d/_a/x", "d/_a/y", "d/b", "d/.c"].map(entry));
        assert_eq!(walked.hidden_names("d"), [".c", "_a"]);
        assert_eq!(walked.entries.len(), 1);
    }
}
