//! All records one after the other in a headerless `.bin`, with its manifest.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windrow_core::format::Format;
use windrow_core::format::lines::INDEX_ROWS_BELOW;
use windrow_core::format::write::{
    Begin, CorpusPlace, OwnOptions, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written,
    names_of_file, no_ids, only_of_tokenize,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::output::{ChecksumsWriter, Disk, Growing, files, replaced, write_manifest_beside};
use windrow_core::{DType, Result};

use super::Tokens;

/// What the stream of a corpus is called.
const STREAM: &str = "tokens.bin";
/// What would say of it where its sequences end.
const INDEX_BESIDE: &str = "tokens.idx";

/// One row of token IDs.
pub(super) struct WriteTokens {
    block_sums: bool,
    /// Whether that was given.
    is_given: bool,
}

impl WriteTokens {
    /// With these options.
    pub(super) fn of(options: &mut OwnOptions) -> Result<WriteTokens> {
        let is_given = options.has("block_sums");
        Ok(WriteTokens { block_sums: options.switch_on("block_sums")?, is_given })
    }
}

impl WriteFormat for WriteTokens {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            id_dtypes: &[DType::U16, DType::U32, DType::U8, DType::I32, DType::I64],
            is_stream: true,
            ..WriteInfo::of(Tokens.name(), Target::File(&[""]))
        }
    }

    fn describe(&self) -> Map<String, Value> {
        Map::from_iter([("block_sums".to_string(), json!(self.block_sums))])
    }

    fn corpus_place(&self) -> CorpusPlace {
        // Without the manifest the stream would open as something else: it comes last.
        let mut names = vec![CHECKSUMS_FILE, MANIFEST_FILE, STREAM];
        names.retain(|name| self.block_sums || *name != CHECKSUMS_FILE);
        // What is beside a single file, and the block checksums where none are kept.
        let mut leaving = names_of_file(STREAM);
        leaving.retain(|name| name != STREAM);
        leaving.extend((!self.block_sums).then(|| CHECKSUMS_FILE.to_string()));
        CorpusPlace::Inside {
            names: names.into_iter().map(str::to_string).collect(),
            leaving,
            manifest: MANIFEST_FILE.to_string(),
            others: [INDEX_ROWS_BELOW, INDEX_BESIDE].map(str::to_string).to_vec(),
        }
    }

    fn may_replace(&self, out: &Path) -> Result<()> {
        replaced::stream(out, STREAM)
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        begin.only(self.info().id_dtypes, "token files")?;
        let is_corpus = begin.corpus.is_some();
        if self.is_given && !is_corpus {
            return Err(only_of_tokenize("block_sums"));
        }
        let name = if is_corpus { STREAM } else { begin.name };
        let from: Kept = begin.continued("a token file")?;
        let sums = if is_corpus && self.block_sums {
            Some(ChecksumsWriter::at(begin.work.join(CHECKSUMS_FILE), [])?)
        } else {
            None
        };
        Ok(Box::new(Writer {
            work: begin.work.to_path_buf(),
            name: name.to_string(),
            is_corpus,
            file: Growing::at(begin.work.join(name), from.size)?,
            sums,
            documents: 0,
            fsync: begin.fsync,
            warned: false,
        }))
    }
}

/// How much was written at a checkpoint.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    size: u64,
}

struct Writer {
    work: PathBuf,
    name: String,
    is_corpus: bool,
    file: Growing,
    /// Those of a corpus, whose files have names of their own.
    sums: Option<ChecksumsWriter>,
    documents: u64,
    fsync: bool,
    warned: bool,
}

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.extras.is_empty() && !self.warned {
            windrow_core::warn!("a token file holds token IDs only: the metadata of records is left out");
            self.warned = true;
        }
        self.documents += u64::from(record.is_last);
        self.file.write(record.bytes)?;
        if self.fsync {
            self.file.begin_sync();
        }
        Ok(())
    }

    fn checkpoint(&mut self, disk: &mut Disk) -> Result<Value> {
        if let Some(sums) = &mut self.sums {
            // A thousandth of what is written would grow with it. A rerun that continues makes these again.
            sums.begin(&self.file.take_sums())?;
            disk.bring(sums.file().unsynced()?)?;
        }
        disk.bring(self.file.unsynced()?)?;
        Ok(json!(Kept { size: self.file.size() }))
    }

    fn finish(self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        let bytes = self.file.size();
        if bytes == 0 {
            return Err(no_ids());
        }
        let file = self.file.finish(self.fsync)?;
        manifest.records = Some(1);
        if !self.is_corpus {
            manifest.statistics.insert("documents".to_string(), json!(self.documents));
            manifest = write_manifest_beside(&self.work, &self.name, manifest, file, self.fsync)?;
            return Ok(Written { files: 1, bytes, manifest });
        }
        match self.sums {
            Some(mut sums) => {
                manifest.files = vec![sums.add(self.name, file)?];
                sums.finish(&manifest.files, self.fsync)?;
            }
            None => manifest.files = vec![file.row_called(self.name)],
        }
        files::write(&self.work.join(MANIFEST_FILE), manifest.to_text().as_bytes(), self.fsync)?;
        Ok(Written { files: 1, bytes, manifest })
    }
}
