//! Writes flat-tokens, new or on top of what is there: beside it, chunk by chunk, and visible by one rename.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use windrow_core::format::{Confidence, Format, Options, Probe};
use windrow_core::manifest::{MANIFEST_FILE, Manifest};
use windrow_core::output::WholeFolder;
use windrow_core::prepare::{Progress, Report, Watch, manifest_of};
use windrow_core::source::{Kind as SourceKind, Source};
use windrow_core::store::{Local, Store, key, read_small, whole_at_once};
use windrow_core::values::copy_values;
use windrow_core::{DType, Error, Kind, Result, Span};

use crate::format::{FlatTokens, STARTS};
use crate::group::{GroupWriter, root_group};
use crate::growing::Growing;
use crate::metadata::{METADATA_V2, METADATA_V3, MOST_METADATA};

/// Values of a record that are converted at a time.
const PART: u64 = 1 << 20;

/// How to write flat-tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Version of zarr: 2, as seqax writes it (blosc: lz4, bitshuffle; starts as differences), or 3 (zstd, crc32c).
    pub zarr_format: u8,
    /// Tokens in a chunk.
    pub tokens_chunk_size: u64,
    /// Starts in a chunk.
    pub seq_starts_chunk_size: u64,
    /// Chunks in a shard, in version 3: that many chunks make a file.
    pub chunks_per_shard: Option<u64>,
    /// Go on behind the sequences that are there, stored as they are: sizes of chunks are theirs then.
    pub append: bool,
    /// The manifest of what is converted, where it has one: what it says of the ids is said of the new ones too.
    pub of: Option<Arc<Manifest>>,
    /// Replace what is there.
    pub overwrite: bool,
    /// Bring everything to the disk before it becomes visible.
    pub durable: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            zarr_format: 2,
            tokens_chunk_size: 1 << 22,
            seq_starts_chunk_size: 1 << 20,
            chunks_per_shard: None,
            append: false,
            of: None,
            overwrite: false,
            durable: true,
        }
    }
}

/// Writes sequences one after the other. Dropped before [`FlatTokensWriter::finish`], it leaves nothing behind.
///
/// ```
/// # use windrow_zarr::{FlatTokensWriter, WriteOptions};
/// # let dir = tempfile::tempdir().unwrap();
/// let mut writer = FlatTokensWriter::create(&dir.path().join("corpus.zarr/train"), &WriteOptions::default())?;
/// writer.add(&[1, 2])?;
/// writer.add(&[3, 4, 5])?;
/// assert_eq!(writer.finish()?.tokens, 5);
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct FlatTokensWriter {
    folder: WholeFolder,
    overwrite: bool,
    group: GroupWriter,
    manifest: Manifest,
    report: Report,
}

impl FlatTokensWriter {
    /// Begins at `out`, the folder of one split: `corpus.zarr/train`.
    ///
    /// # Errors
    /// `Exists` when something is there and neither `append` nor `overwrite` is set; `Config` for sizes of 0, for both of
    /// them, and for version 3 behind version 2; with `append` what opening says; `Io`.
    pub fn create(out: &Path, options: &WriteOptions) -> Result<FlatTokensWriter> {
        if options.append && options.overwrite {
            return Err(Error::config(
                "append and overwrite: one goes on behind what is there, the other replaces it",
            )
            .hint("set one of them"));
        }
        let mut folder = WholeFolder::begin(out, options.durable)?;
        let group = match (folder.is_there(), options.append, options.overwrite) {
            (true, true, _) => behind(&mut folder, options.zarr_format)?,
            (true, false, false) => {
                return Err(Error::new(Kind::Exists, "something is there already")
                    .at(folder.out())
                    .hint("append=True goes on behind it, overwrite=True replaces it"));
            }
            (true, false, true) if !is_ours(folder.out()) => {
                return Err(Error::new(Kind::Exists, "what is there is no group of flat-tokens: it is left")
                    .at(folder.out()));
            }
            _ => {
                let mut group = GroupWriter::new(options)?;
                group.begin(folder.files())?;
                group
            }
        };
        let report = Report { output: folder.out().to_path_buf(), ..Report::default() };
        let overwrite = options.overwrite || options.append;
        let manifest = Manifest::new(FlatTokens.name());
        Ok(FlatTokensWriter { folder, overwrite, group, manifest, report })
    }

    /// Writes the next sequence; it may be empty.
    ///
    /// # Errors
    /// `Config` for an id above 2^31 - 1, naming the sequence; `Io`. After an error only dropping is left.
    pub fn add(&mut self, ids: &[u32]) -> Result<()> {
        self.add_part(ids, true, true)
    }

    // Writes a part of the next sequence.
    fn add_part(&mut self, ids: &[u32], is_first: bool, is_last: bool) -> Result<()> {
        self.group
            .add(self.folder.files(), ids, is_first, is_last)
            .map_err(|e| e.record(self.report.records))?;
        self.report.records += u64::from(is_last);
        self.report.tokens += ids.len() as u64;
        Ok(())
    }

    /// Completes the arrays and makes them visible in one rename.
    ///
    /// # Errors
    /// `Exists` when somebody wrote there meanwhile; `Io`.
    pub fn finish(mut self) -> Result<Report> {
        (self.report.files, self.report.output_bytes) = self.group.finish(self.folder.files())?;
        self.manifest.records = Some(self.group.sequences());
        self.folder.files().write(MANIFEST_FILE, self.manifest.to_text().as_bytes())?;
        root_group(self.folder.out(), self.group.is_v3())?;
        self.folder.finish(self.overwrite)?;
        Ok(self.report)
    }
}

// Behind the sequences that are there, whoever wrote them.
fn behind(folder: &mut WholeFolder, zarr_format: u8) -> Result<GroupWriter> {
    let store: Arc<dyn Store> = Arc::new(Local::new(folder.out()));
    // What fills no chunk is written again, with new checksums: it must be what was written.
    let probe = Probe::at(store, "")?.verified()?;
    let group = FlatTokens.group(&probe, &Options::default())?;
    let store = probe.store;
    let is_v3 = store.entry(METADATA_V3).is_ok();
    // 2 is what nobody asked for, too; any other was.
    if zarr_format != WriteOptions::default().zarr_format && (zarr_format, is_v3) != (3, true) {
        let found = if is_v3 { 3 } else { 2 };
        return Err(Error::config(format!(
            "zarr_format {zarr_format}, and what is there is of version {found}"
        ))
        .at(folder.out())
        .field("zarr_format")
        .hint("what is appended is stored as what is there: leave zarr_format out"));
    }
    folder.keep_all()?;
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

/// Whether flat-tokens lie there.
pub(crate) fn is_ours(out: &Path) -> bool {
    let store: Arc<dyn Store> = Arc::new(Local::new(out));
    Probe::at(store, "").is_ok_and(|probe| FlatTokens.recognise(&probe) != Confidence::No)
}

/// Writes all records of a source, which must be ids, as flat-tokens, with a manifest that says what they came from.
///
/// # Errors
/// As [`FlatTokensWriter`]; what reading the source says; `Interrupted`. After an error nothing visible has changed.
pub fn convert(source: &dyn Source, out: &Path, options: &WriteOptions, watch: &dyn Watch) -> Result<Report> {
    whole_at_once(|| written(source, out, options, watch))?.finish()
}

/// A writer that has taken all records.
fn written(
    source: &dyn Source,
    out: &Path,
    options: &WriteOptions,
    watch: &dyn Watch,
) -> Result<FlatTokensWriter> {
    let schema = source.schema();
    if schema.kind == SourceKind::Json {
        return Err(Error::config("the records are JSON texts, not numbers")
            .hint("`windrow tokenize --to flat-tokens` makes token ids of them"));
    }
    if schema.channels.is_some() || !schema.element.dtype.is_integer() {
        let shape = if schema.channels.is_some() { "[T, C]" } else { "[T]" };
        return Err(Error::config(format!(
            "flat-tokens hold token ids [T], whole numbers, and these records are {} {shape}",
            schema.element.dtype
        )));
    }
    let mut writer = FlatTokensWriter::create(out, options)?;
    if !options.append {
        let mut manifest = manifest_of(source, FlatTokens.name())?;
        if let Some(of) = &options.of {
            manifest.take_ids_of(of);
        }
        writer.manifest = manifest;
    }
    let (mut scratch, mut ids) = (Vec::new(), Vec::new());
    let mut warned = false;
    for record in 0..source.len() {
        if !warned && !source.extras(record)?.is_empty() {
            log::warn!("flat-tokens hold ids only: what stands beside them is left out");
            warned = true;
        }
        let len = source.length(record)?;
        let mut start = 0;
        // A record without values is one part, too.
        while start < len || start == 0 {
            if watch.cancelled() {
                return Err(Error::new(
                    Kind::Interrupted,
                    "stopped before the end; nothing visible was written",
                ));
            }
            let span = Span { record, start, len: PART.min(len - start) };
            let values = source.read(span, &mut scratch)?;
            ids.resize(values.bytes.len() / values.element.size(), 0u32);
            copy_values(&values, 0, bytemuck::cast_slice_mut(&mut ids), DType::U32).map_err(|e| {
                let error = Error::config("a number is no token id: expected 0 to 2147483647");
                error.record(record).caused_by(e)
            })?;
            let end = start + span.len;
            writer.add_part(&ids, start == 0, end == len)?;
            let done_bytes = writer.report.tokens * 4;
            watch.progress(Progress { done_bytes, total_bytes: 0, records: writer.report.records });
            start += span.len.max(1);
        }
    }
    Ok(writer)
}
