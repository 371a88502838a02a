//! Flat-tokens as they are written: a sequence per record, new or on top of what is there, with checkpoints.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windrow_core::format::write::{
    Begin, CHUNK_BYTES, CHUNK_FILES, OwnOptions, RecordWriter, Stored, Target, WriteFormat, WriteInfo,
    Written,
};
use windrow_core::format::{Options, Probe};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::output::{Disk, WorkFolder, files};
use windrow_core::store::{Local, Store, key, read_small};
use windrow_core::{DType, Error, Result};

use crate::group::Group;
use crate::group_writer::{Chunking, GroupWriter, root_group};
use crate::growing::Growing;
use crate::layout::{self, LARGEST_ID, METADATA_V2, METADATA_V3, NAME, STARTS};
use crate::metadata::MOST_METADATA;

const USUAL: Chunking = Chunking {
    zarr_format: 2,
    tokens_chunk_size: 1 << 22,
    seq_starts_chunk_size: 1 << 20,
    chunks_per_shard: None,
};

/// A zarr group of one split.
pub(crate) struct WriteFlatTokens(Chunking);

impl WriteFlatTokens {
    /// With these options.
    ///
    /// # Errors
    /// `Config` for sizes that no file may have.
    pub(crate) fn of(options: &mut OwnOptions) -> Result<WriteFlatTokens> {
        let chunking = Chunking {
            zarr_format: options.number("zarr_format")?.unwrap_or(USUAL.zarr_format),
            tokens_chunk_size: options.number("tokens_chunk_size")?.unwrap_or(USUAL.tokens_chunk_size),
            seq_starts_chunk_size: options
                .number("seq_starts_chunk_size")?
                .unwrap_or(USUAL.seq_starts_chunk_size),
            chunks_per_shard: options.number("chunks_per_shard")?,
        };
        GroupWriter::new(&chunking)?;
        Ok(WriteFlatTokens(chunking))
    }
}

impl WriteFormat for WriteFlatTokens {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            appends: true,
            id_dtypes: &[DType::U32],
            largest_id: i64::try_from(LARGEST_ID).ok(),
            ..WriteInfo::of(NAME, Target::Folder)
        }
    }

    fn describe(&self) -> Map<String, Value> {
        let Chunking { zarr_format, tokens_chunk_size, seq_starts_chunk_size, chunks_per_shard } = self.0;
        let said = [
            ("zarr_format", json!(zarr_format)),
            ("tokens_chunk_size", json!(tokens_chunk_size)),
            ("seq_starts_chunk_size", json!(seq_starts_chunk_size)),
            ("chunks_per_shard", json!(chunks_per_shard)),
        ];
        said.map(|(name, value)| (name.to_string(), value)).into_iter().collect()
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        match asked {
            None | Some(DType::U32) if given.is_integer() => Ok(DType::U32),
            None | Some(DType::U32) => {
                Err(Error::config(format!("flat-tokens hold token IDs, and these records are {given}")))
            }
            Some(dtype) => {
                Err(Error::config(format!("flat-tokens store uint32, not {dtype}")).field("dtype"))
            }
        }
    }

    fn is_own(&self, name: &str) -> bool {
        layout::is_of_group(name) || [MANIFEST_FILE, CHECKSUMS_FILE].contains(&name)
    }

    fn is_one(&self, out: &Path) -> bool {
        // A single group: not the folder of a group for each split.
        let Some(tokens) = layout::tokens_name(&Local::new(out), "") else {
            return files::names(out).is_ok_and(|names| names.is_empty());
        };
        files::names(out).is_ok_and(|names| names.iter().all(|name| name == tokens || self.is_own(name)))
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        if let Some(channels) = begin.channels {
            return Err(Error::config(format!(
                "flat-tokens hold token IDs [T], and these records are [T, {channels}]"
            )));
        }
        let mut folder = WorkFolder::with_checksums_at(begin.work.join(begin.name), begin.fsync)?;
        let aside = WorkFolder::at(begin.work.join(format!("{}.aside", begin.name)), begin.fsync)?;
        // A run that was killed near its end wrote it: written again, it gets its checksum.
        folder.remove(".zgroup")?;
        let mut group = GroupWriter::new(&self.0)?;
        let mut earlier = (0, 0);
        let kept: Option<Kept> = begin.continued(NAME)?;
        match (begin.append_to, kept) {
            (Some(out), _) => group = behind(out, &mut folder, self.0.zarr_format)?,
            (None, None) => group.begin(&mut folder)?,
            (None, Some(kept)) => {
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
            }
        }
        Ok(Box::new(Writer {
            out: begin.out.to_path_buf(),
            folder,
            aside,
            group,
            ids: Vec::new(),
            counts_chunks: begin.corpus.is_some(),
            earlier,
            kept,
            before: None,
            warned: false,
        }))
    }
}

/// How much was written at a checkpoint; what fills no chunk is beside it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    tokens: u64,
    starts: u64,
    max_id: u64,
}

impl Kept {
    // Each checkpoint has files of its own: the one before it counts until it is complete.
    fn names(&self) -> [String; 2] {
        [format!("tokens-{}-{}", self.tokens, self.starts), format!("starts-{}-{}", self.tokens, self.starts)]
    }
}

struct Writer {
    /// Where the group will be.
    out: PathBuf,
    folder: WorkFolder,
    aside: WorkFolder,
    group: GroupWriter,
    ids: Vec<u32>,
    /// The manifest says how many chunks there are.
    counts_chunks: bool,
    /// Files that an earlier run wrote, and their bytes.
    earlier: (u64, u64),
    /// The last checkpoint, and the one before it.
    kept: Option<Kept>,
    before: Option<Kept>,
    warned: bool,
}

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.extras.is_empty() && !self.warned {
            windrow_core::warn!("flat-tokens hold token IDs only: the metadata of records is left out");
            self.warned = true;
        }
        self.ids.clear();
        self.ids.extend(record.bytes.as_chunks::<4>().0.iter().map(|id| u32::from_le_bytes(*id)));
        self.group
            .add(&mut self.folder, &self.ids, record.is_first, record.is_last)
            .map_err(|e| e.record(record.number))
    }

    fn checkpoint(&mut self, _disk: &mut Disk) -> Result<Value> {
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
        serde_json::to_value(now).map_err(|e| Error::corrupt("a checkpoint").caused_by(e))
    }

    fn finish(mut self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        let (files, bytes) = self.group.finish(&mut self.folder)?;
        // Files of a run that was stopped before this one continued are among them.
        let (files, bytes) = (files + self.earlier.0, bytes + self.earlier.1);
        if self.counts_chunks {
            manifest.statistics.insert(CHUNK_FILES.to_string(), json!(files));
            manifest.statistics.insert(CHUNK_BYTES.to_string(), json!(bytes));
        }
        manifest.records = Some(self.group.sequences());
        self.folder.write(MANIFEST_FILE, manifest.to_text().as_bytes())?;
        self.folder.finish_checksums()?;
        self.folder.sync()?;
        root_group(&self.out, self.group.is_v3())?;
        Ok(Written { files, bytes, manifest })
    }
}

// Behind the sequences that are there, whoever wrote them.
fn behind(out: &Path, folder: &mut WorkFolder, zarr_format: u64) -> Result<GroupWriter> {
    let store: Arc<dyn Store> = Arc::new(Local::new(out));
    // What fills no chunk is written again, with new checksums: it must be what was written.
    let probe = Probe::at(&[], store, "")?.verified()?;
    let group = Group::open(&probe, &Options::default())?;
    let store = probe.store;
    let is_v3 = store.entry(METADATA_V3).is_ok();
    // 2 is what nobody asked for, too; any other was.
    if zarr_format != USUAL.zarr_format && (zarr_format, is_v3) != (3, true) {
        let found = if is_v3 { 3 } else { 2 };
        return Err(Error::config(format!(
            "zarr_format {zarr_format}, and what is there is of version {found}"
        ))
        .at(out)
        .field("zarr_format")
        .hint("what is appended is stored as what is there: leave zarr_format out"));
    }
    folder.take_over(out)?;
    let read = |name: &str| -> Result<Value> {
        let object = store.open(name)?;
        serde_json::from_slice(&read_small(object.as_ref(), MOST_METADATA)?)
            .map_err(|e| Error::corrupt("no JSON").caused_by(e).at(object.name()))
    };
    let attributes = read(if is_v3 { METADATA_V3 } else { ".zattrs" })?;
    let array = |name| {
        Growing::new(name, read(&key::below(name, if is_v3 { METADATA_V3 } else { METADATA_V2 }))?, is_v3)
    };
    let (tokens, starts) = (array(group.tokens_name)?, array(STARTS)?);
    let (mut token_rest, mut start_rest) = (Vec::new(), Vec::new());
    let (first, rest) = tokens.unfilled_of(group.tokens.len());
    group.tokens_as_here(first, rest, &mut token_rest)?;
    let (first, rest) = starts.unfilled_of(group.starts.len());
    group.starts_as_here(first, rest, &mut start_rest)?;
    Ok(GroupWriter::behind(
        is_v3,
        attributes,
        tokens.go_on(group.tokens.len(), token_rest)?,
        starts.go_on(group.starts.len(), start_rest)?,
        group.max_id,
    ))
}
