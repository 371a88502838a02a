//! Keys: the names of objects in a store, with `/` between their parts.

/// The key of something in a folder, which may be the root, `""`.
///
/// ```
/// # use windrow_core::store::key;
/// assert_eq!(key::below("train", "a.bin"), "train/a.bin");
/// assert_eq!(key::below("", "a.bin"), "a.bin");
/// ```
pub fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

/// Whether it is in the folder, at any depth.
///
/// ```
/// # use windrow_core::store::key;
/// assert!(key::is_below("train", "train/part/a.bin"));
/// assert!(!key::is_below("train", "train_2/a.bin"));
/// ```
pub fn is_below(folder: &str, key: &str) -> bool {
    folder.is_empty() || key.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The key of the folder it is in; `""` for what is in the root.
pub fn folder_of(key: &str) -> &str {
    key.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Its last part.
pub fn name_of(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

/// A name without this end, which is ASCII and may be written in capitals; `None` for a name with another one.
///
/// ```
/// # use windrow_core::store::key;
/// assert_eq!(key::without_suffix("A.NPY", ".npy"), Some("A"));
/// assert_eq!(key::without_suffix("a.npz", ".npy"), None);
/// ```
pub fn without_suffix<'n>(name: &'n str, suffix: &str) -> Option<&'n str> {
    let at = name.len().checked_sub(suffix.len())?;
    name.get(at..)?.eq_ignore_ascii_case(suffix).then(|| &name[..at])
}

/// Whether a name ends so, in small letters or in capitals.
pub fn has_suffix(name: &str, suffix: &str) -> bool {
    without_suffix(name, suffix).is_some()
}
