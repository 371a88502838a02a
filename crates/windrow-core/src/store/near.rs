//! The name that was meant, where a path is not there: the nearest one in the folder that is.

use std::fs;
use std::path::Path;

use super::home;
use crate::error::{Error, Kind};
use crate::near::difference;

/// Adds to an error that `path` is not there which name beside it is nearly the same.
#[must_use]
pub fn with_near_name(error: Error, path: &Path) -> Error {
    if error.kind() != Kind::NotFound || error.hint_text().is_some() {
        return error;
    }
    // Whoever made it absolute took it for a name in this folder.
    let here = std::env::current_dir().unwrap_or_default();
    let written = path.strip_prefix(here).unwrap_or(path);
    if let Some(user) = home::user(written).filter(|user| !user.is_empty()) {
        return error
            .hint(format!("~{user} is the home folder of {user}, who is not a user of this machine"));
    }
    match near_name(path) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error,
    }
}

// The path with its first part that is not there replaced; only where the rest is there, too.
fn near_name(path: &Path) -> Option<String> {
    const LOOKED_AT: usize = 10_000;
    let above = path.ancestors().take_while(|above| !above.as_os_str().is_empty());
    let missing = above.take_while(|above| !above.exists()).last()?;
    let wanted = missing.file_name()?.to_str()?;
    let folder = missing.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let rest = path.strip_prefix(missing).ok()?;
    let names = fs::read_dir(folder)
        .ok()?
        .flatten()
        .take(LOOKED_AT)
        .filter_map(|item| item.file_name().into_string().ok());
    let at = |name: &str| {
        let near = missing.with_file_name(name);
        if rest.as_os_str().is_empty() { near } else { near.join(rest) }
    };
    let near = names
        .filter(|name| !name.starts_with('.') || wanted.starts_with('.'))
        .filter_map(|name| Some((difference(wanted, &name)?, name)))
        .filter(|(_, name)| at(name).exists())
        .min()?;
    Some(at(&near.1).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["corpus/train.jsonl", "corpus/val.jsonl", "tokens.bin", ".hidden"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let near = |name: &str| {
            let path = folder.path().join(name);
            let error = with_near_name(Error::not_found("cannot find it").at(&path), &path);
            let hint = error.hint_text()?.strip_prefix("did you mean ")?.strip_suffix('?')?.to_string();
            Some(Path::new(&hint).strip_prefix(folder.path()).unwrap().display().to_string())
        };
        for (wrong, right) in [
            ("tokesn.bin", Some("tokens.bin")),
            ("Tokens.bin", Some("tokens.bin")),
            ("tokens", Some("tokens.bin")),
            ("corpsu", Some("corpus")),
            ("corpsu/val.jsonl", Some("corpus/val.jsonl")),
            ("corpus/trian.jsonl", Some("corpus/train.jsonl")),
            ("corpus/train.json", Some("corpus/train.jsonl")),
            ("corpsu/other.jsonl", None),
            ("something", None),
            ("hidden", None),
        ] {
            assert_eq!(near(wrong).as_deref(), right, "{wrong}");
        }
    }
}
