//! Where data is: a path, which may be a pattern for many, or a list of them.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use windrow_core::store::without_secrets;

/// Where data lies, as it was written: a path, which may be a glob or hold braces, or a list of such paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths(Vec<PathBuf>);

impl Paths {
    /// The paths of a list.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # for name in ["b.jsonl", "a.jsonl", "c.jsonl"] {
    /// #     std::fs::write(dir.path().join(name), format!("{{\"from\": \"{name}\"}}\n")).unwrap();
    /// # }
    /// let paths = windrow::Paths::list([dir.path().join("b.jsonl"), dir.path().join("[ac].jsonl")]);
    /// let ds = paths.open(&windrow::format::Options::default())?;
    /// let from = (0..3).map(|record| ds.json(record).unwrap()["from"].clone());
    /// assert_eq!(from.collect::<Vec<_>>(), ["b.jsonl", "a.jsonl", "c.jsonl"]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn list(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Paths {
        Paths(paths.into_iter().map(Into::into).collect())
    }

    /// The paths as they were written.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    /// The only one; `None` for a list of another length.
    pub fn only(&self) -> Option<&Path> {
        match &self.0[..] {
            [path] => Some(path),
            _ => None,
        }
    }

    /// Replaces each path by another one.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn try_map<E>(
        &self,
        each: impl FnMut(&Path) -> std::result::Result<PathBuf, E>,
    ) -> std::result::Result<Paths, E> {
        self.iter().map(each).collect::<std::result::Result<_, _>>().map(Paths)
    }
}

impl<P: Into<PathBuf>> From<P> for Paths {
    fn from(path: P) -> Paths {
        Paths(vec![path.into()])
    }
}

/// As errors and pages name them: the first ones of a long list, of URLs without a query or a password. None at all stand for
/// memory.
impl fmt::Display for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        if self.0.is_empty() {
            return f.write_str("memory");
        }
        let name = |path: &Path| without_secrets(&path.display().to_string());
        let shown: Vec<String> = self.iter().take(SHOWN).map(name).collect();
        f.write_str(&shown.join(", "))?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            n => write!(f, " and {n} more"),
        }
    }
}

/// A path in JSON, which holds text: what is not UTF-8 is a list of its bytes.
struct InJson<P>(P);

impl Serialize for InJson<&Path> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => text.serialize(to),
            None => self.0.as_os_str().as_bytes().serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for InJson<PathBuf> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(PathBuf),
            Bytes(Vec<u8>),
        }
        Ok(InJson(match Written::deserialize(from)? {
            Written::Text(path) => path,
            Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }))
    }
}

/// One path as itself, another number of them as a list.
impl Serialize for Paths {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self.only() {
            Some(path) => InJson(path).serialize(to),
            None => to.collect_seq(self.iter().map(InJson)),
        }
    }
}

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(InJson<PathBuf>),
            List(Vec<InJson<PathBuf>>),
        }
        Ok(match Written::deserialize(from)? {
            Written::One(path) => Paths(vec![path.0]),
            Written::List(paths) => Paths(paths.into_iter().map(|path| path.0).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_text_in_json_and_a_list_where_there_are_several() {
        let odd = || PathBuf::from(OsString::from_vec(vec![b'a', 0xff]));
        for (paths, json) in [
            (Paths::from("a/*.bin"), r#""a/*.bin""#),
            (Paths::from(odd()), "[97,255]"),
            (Paths::list(["a", "b"]), r#"["a","b"]"#),
            (Paths::list([PathBuf::from("a"), odd()]), r#"["a",[97,255]]"#),
        ] {
            assert_eq!(serde_json::to_string(&paths).unwrap(), json);
            assert_eq!(serde_json::from_str::<Paths>(json).unwrap(), paths);
        }
        assert_eq!(Paths::list(["a", "b", "c", "d", "e"]).to_string(), "a, b, c and 2 more");
    }
}
