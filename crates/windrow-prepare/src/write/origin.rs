//! What the records of a conversion come from, as the manifest describes it.

use serde_json::{Map, Value, json};
use windrow_core::Result;
use windrow_core::manifest::{FileRow, Manifest};
use windrow_core::output::hex;
use windrow_core::source::Source;
use windrow_core::store::without_secrets;

/// A manifest of what a source is converted into: `format`, and what it came from.
///
/// # Errors
/// What the source says of its fingerprint.
pub fn manifest_of(source: &dyn Source, format: &str) -> Result<Manifest> {
    Ok(Origin::of(source)?.manifest(format))
}

/// What the records of a conversion come from.
pub(crate) struct Origin {
    format: &'static str,
    fingerprint: u64,
    /// The first of them, where there are very many.
    files: Vec<FileRow>,
}

impl Origin {
    const MOST_FILES: usize = 10_000;

    pub(crate) fn of(source: &dyn Source) -> Result<Origin> {
        let files = source.files().into_iter().take(Self::MOST_FILES);
        Ok(Origin {
            format: source.format(),
            fingerprint: source.fingerprint()?,
            files: files
                .map(|f| FileRow { name: without_secrets(&f.file), size: f.size, ..FileRow::default() })
                .collect(),
        })
    }

    /// Sets other names for its files.
    pub(crate) fn of_files(self, files: Vec<FileRow>) -> Origin {
        Origin { files, ..self }
    }

    pub(super) fn manifest(&self, format: &str) -> Manifest {
        Manifest { inputs: self.files.clone(), options: self.described(), ..Manifest::new(format) }
    }

    /// Its format and fingerprint, in words of a manifest.
    fn described(&self) -> Map<String, Value> {
        Map::from_iter([
            ("task".to_string(), json!("convert")),
            ("from_format".to_string(), json!(self.format)),
            ("from_fingerprint".to_string(), json!(hex(self.fingerprint))),
        ])
    }
}
