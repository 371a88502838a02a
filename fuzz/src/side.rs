//! A manifest of arbitrary claims.

use arbitrary::Arbitrary;
use windrow_core::manifest::{FileRow, Manifest, TokenizerLock};

use crate::dtype;

/// Claims of a manifest; names are those of [`crate::Folder`]'s data files.
#[derive(Arbitrary, Debug)]
pub struct Side<'a> {
    format: u8,
    records: Option<u64>,
    record_length: Option<u64>,
    dtype: Option<u8>,
    vocab_size: Option<u64>,
    tokenizer: bool,
    files: Vec<(u8, Option<u64>, Option<u64>, bool)>,
    raw: Option<&'a [u8]>,
}

impl Side<'_> {
    /// Its text: of the claims, or other bytes altogether. `sizes` are the true sizes of the files with these names.
    pub fn text(&self, names: &[&str], sizes: &[usize]) -> Vec<u8> {
        if let Some(raw) = self.raw {
            return raw.to_vec();
        }
        let mut side = Manifest::new(["forager", "tokens", "jsonl", ""][usize::from(self.format) % 4]);
        side.records = self.records;
        side.record_length = self.record_length;
        side.dtype = self.dtype.map(dtype);
        side.vocab_size = self.vocab_size;
        side.tokenizer =
            self.tokenizer.then(|| TokenizerLock { hash: "00".to_string(), ..TokenizerLock::default() });
        for (number, size, modified_ns, hash) in self.files.iter().take(8) {
            let at = usize::from(*number) % names.len().max(1);
            side.files.push(FileRow {
                name: names.get(at).map_or(String::new(), |name| name.to_string()),
                size: size.unwrap_or(sizes.get(at).map_or(0, |size| *size as u64)),
                modified_ns: *modified_ns,
                etag: None,
                xxh3: hash.then(|| "0123456789abcdef".to_string()),
            });
        }
        side.to_text().into_bytes()
    }
}
