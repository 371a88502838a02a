//! Content-Encoding: what an answer's bytes are packed with, and objects that are kept or sent so.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use windrow_core::store::key;

use crate::trouble::{Trouble, What};

/// The codings that a header names, without those that change nothing; `None` for none.
pub(super) fn coding(header: Option<&str>) -> Option<String> {
    let codings = header?.split(',').map(|coding| coding.trim().to_ascii_lowercase());
    // Some stores keep how the bytes were put there.
    let codings: Vec<String> =
        codings.filter(|coding| !matches!(coding.as_str(), "" | "identity" | "aws-chunked")).collect();
    (!codings.is_empty()).then(|| codings.join(", "))
}

/// Objects whose answers named a coding that their names do not show.
#[derive(Default)]
pub(super) struct Encodings(Mutex<HashMap<String, String>>);

impl Encodings {
    /// Notes what an answer says. Names may show it: of `a.jsonl.gz` the bytes are those of the file.
    ///
    /// # Errors
    /// A coding that nothing here undoes: formats know those of gzip and Zstandard by their first bytes.
    pub(super) fn note(&self, object: &str, header: Option<&str>) -> Result<(), Trouble> {
        let Some(coding) = coding(header) else { return Ok(()) };
        let suffixes: &[&str] = match coding.as_str() {
            "gzip" | "x-gzip" => &[".gz", ".tgz", ".gzip"],
            "zstd" => &[".zst", ".zstd"],
            "br" => &[".br"],
            _ => &[],
        };
        if suffixes.iter().any(|suffix| key::has_suffix(object, suffix)) {
            return Ok(());
        }
        if !matches!(coding.as_str(), "gzip" | "x-gzip" | "zstd") {
            return Err(Trouble::new(What::Encoded, coding));
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(object.to_string(), coding);
        Ok(())
    }

    /// What was noted of an object.
    pub(super) fn of(&self, object: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(object).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_that_names_do_not_tell_are_noted_and_unknown_ones_refused() {
        let noted = |name: &str, header: &str| {
            let encodings = Encodings::default();
            encodings.note(name, Some(header)).map(|()| encodings.of(name)).map_err(|trouble| trouble.said)
        };
        let expected = |coding: &str| Ok(Some(coding.to_string()));
        assert_eq!(noted("a.bin", "GZIP"), expected("gzip"));
        assert_eq!(noted("a.bin", "aws-chunked, gzip"), expected("gzip"));
        assert_eq!(noted("a.bin", "aws-chunked"), Ok(None));
        assert_eq!(noted("a.bin", " identity"), Ok(None));
        assert_eq!(noted("a.jsonl.GZ", "x-gzip"), Ok(None));
        assert_eq!(noted("a.mds.br", "br"), Ok(None));
        assert_eq!(noted("a.bin", "br"), Err("br".to_string()));
        assert_eq!(noted("a.bin.gz", "gzip, br"), Err("gzip, br".to_string()));
    }
}
