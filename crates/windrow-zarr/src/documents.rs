//! Flat-tokens as `tokenize` writes them: a sequence per document, with restart points.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windrow_core::format::Format;
use windrow_core::manifest::{MANIFEST_FILE, Manifest};
use windrow_core::output::WorkFolder;
use windrow_core::prepare::{CHUNK_BYTES, CHUNK_FILES, DocumentLayout, DocumentPlace, DocumentWriter};
use windrow_core::{DType, Error, Result};

use crate::format::{FlatTokens, LARGEST_ID};
use crate::group::{GroupWriter, root_group};
use crate::writer::{WriteOptions, is_ours};

/// Flat-tokens with these chunks, for [`windrow_core::prepare::tokenize_as`]; `append`, `overwrite` and `durable` are those
/// of the task instead.
#[derive(Clone, Debug, Default)]
pub struct FlatTokensDocuments(pub WriteOptions);

impl DocumentLayout for FlatTokensDocuments {
    fn format(&self) -> &'static str {
        FlatTokens.name()
    }

    fn dtypes(&self) -> &[DType] {
        &[DType::U32]
    }

    fn largest_id(&self) -> Option<i64> {
        i64::try_from(LARGEST_ID).ok()
    }

    fn describe(&self) -> Map<String, Value> {
        let WriteOptions { zarr_format, tokens_chunk_size, seq_starts_chunk_size, chunks_per_shard, .. } =
            self.0;
        let said = [
            ("zarr_format", json!(zarr_format)),
            ("tokens_chunk_size", json!(tokens_chunk_size)),
            ("seq_starts_chunk_size", json!(seq_starts_chunk_size)),
            ("chunks_per_shard", json!(chunks_per_shard)),
        ];
        said.map(|(name, value)| (name.to_string(), value)).into_iter().collect()
    }

    fn check(&self) -> Result<()> {
        GroupWriter::new(&self.0).map(drop)
    }

    fn begin(&self, at: &DocumentPlace<'_>, kept: Option<&Value>) -> Result<Box<dyn DocumentWriter>> {
        let (mut folder, aside) = (at.data()?, at.aside()?);
        // A run that was killed near its end wrote it: written anew, it has a checksum again.
        folder.remove(".zgroup")?;
        let mut group = GroupWriter::new(&self.0)?;
        let mut earlier = (0, 0);
        let kept = match kept {
            None => {
                group.begin(&mut folder)?;
                None
            }
            Some(kept) => {
                let kept: Kept = serde_json::from_value(kept.clone())
                    .map_err(|e| Error::corrupt("no restart point of flat-tokens").caused_by(e))?;
                let rest = |name: &str| {
                    aside.read(name).ok_or_else(|| Error::corrupt(format!("expected {name}, found none")))
                };
                let [tokens, starts] = kept.names();
                group.tokens = group.tokens.go_on(kept.tokens, rest(&tokens)?)?;
                group.starts = group.starts.go_on(kept.starts, rest(&starts)?)?;
                group.max_id = kept.max_id;
                for chunk in group.tokens.full_chunks().chain(group.starts.full_chunks()) {
                    earlier = (earlier.0 + 1, earlier.1 + folder.found(&chunk)?);
                }
                Some(kept)
            }
        };
        Ok(Box::new(Documents { folder, aside, group, ids: Vec::new(), earlier, kept, before: None }))
    }

    fn is_one(&self, out: &Path) -> bool {
        is_ours(out)
    }

    fn surround(&self, out: &Path) -> Result<()> {
        root_group(out, self.0.zarr_format == 3)
    }
}

/// How much was written at a restart point; what fills no chunk lies beside it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    tokens: u64,
    starts: u64,
    max_id: u64,
}

impl Kept {
    // Each restart point has files of its own: the one before it counts until it is complete.
    fn names(&self) -> [String; 2] {
        [format!("tokens-{}-{}", self.tokens, self.starts), format!("starts-{}-{}", self.tokens, self.starts)]
    }
}

struct Documents {
    folder: WorkFolder,
    aside: WorkFolder,
    group: GroupWriter,
    ids: Vec<u32>,
    /// Files that an earlier run wrote, and their bytes.
    earlier: (u64, u64),
    /// The last restart point, and the one before it.
    kept: Option<Kept>,
    before: Option<Kept>,
}

impl DocumentWriter for Documents {
    fn add(&mut self, ids: &[u8]) -> Result<()> {
        self.ids.clear();
        self.ids.extend(ids.as_chunks::<4>().0.iter().map(|id| u32::from_le_bytes(*id)));
        self.group.add(&mut self.folder, &self.ids, true, true)
    }

    fn keep(&mut self) -> Result<Value> {
        let now = Kept {
            tokens: self.group.tokens.len(),
            starts: self.group.starts.len(),
            max_id: self.group.max_id,
        };
        if self.kept != Some(now) {
            if let Some(before) = self.before.take() {
                before.names().iter().try_for_each(|name| self.aside.remove(name))?;
            }
            let [tokens, starts] = now.names();
            self.aside.write(&tokens, self.group.tokens.rest())?;
            self.aside.write(&starts, self.group.starts.rest())?;
            (self.before, self.kept) = (self.kept, Some(now));
        }
        self.folder.sync()?;
        self.aside.sync()?;
        serde_json::to_value(now).map_err(|e| Error::corrupt("a restart point").caused_by(e))
    }

    fn finish(mut self: Box<Self>, mut manifest: Manifest) -> Result<Manifest> {
        let (files, bytes) = self.group.finish(&mut self.folder)?;
        // Files of a run that was stopped before this one went on are among them.
        let (files, bytes) = (files + self.earlier.0, bytes + self.earlier.1);
        manifest.statistics.insert(CHUNK_FILES.to_string(), json!(files));
        manifest.statistics.insert(CHUNK_BYTES.to_string(), json!(bytes));
        self.folder.write(MANIFEST_FILE, manifest.to_text().as_bytes())?;
        self.folder.finish_checksums()?;
        self.folder.sync()?;
        Ok(manifest)
    }
}
