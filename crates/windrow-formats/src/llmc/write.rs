//! One `.bin` of all records with llm.c's header, and its manifest.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windrow_core::format::lines::INDEX_ROWS_BELOW;
use windrow_core::format::write::{
    Begin, CorpusPlace, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written, names_of_file, no_ids,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::output::{Disk, Growing, files, replaced, write_manifest_beside};
use windrow_core::{DType, Error, Result};

use super::{HEADER, INFO, KINDS};

/// What the stream of a corpus is called.
const STREAM: &str = "tokens.bin";
/// What would say of it where its sequences end.
const INDEX_BESIDE: &str = "tokens.idx";

/// A file with a header.
pub(super) struct WriteLlmc;

impl WriteFormat for WriteLlmc {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            id_dtypes: &[DType::U16, DType::U32],
            is_stream: true,
            ..WriteInfo::of(INFO.name, Target::File(&[""]))
        }
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        // Token IDs of other types fit, or are refused one by one.
        Ok(asked.unwrap_or(if given == DType::U16 { DType::U16 } else { DType::U32 }))
    }

    fn corpus_place(&self) -> CorpusPlace {
        CorpusPlace::Inside {
            names: names_of_file(STREAM),
            // Of a corpus of the same name without a header.
            leaving: [CHECKSUMS_FILE, MANIFEST_FILE].map(str::to_string).to_vec(),
            manifest: format!("{STREAM}.{MANIFEST_FILE}"),
            others: [INDEX_ROWS_BELOW, INDEX_BESIDE].map(str::to_string).to_vec(),
        }
    }

    fn may_replace(&self, out: &Path) -> Result<()> {
        replaced::stream(out, STREAM)
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        begin.only(&[DType::U16, DType::U32], "llm.c's files")?;
        let name = if begin.corpus.is_some() { STREAM } else { begin.name };
        let from: Kept = begin.continued("a token file")?;
        let mut file = Growing::at(begin.work.join(name), from.size)?;
        if from.size == 0 {
            file.write(&[0; HEADER as usize])?;
        }
        Ok(Box::new(Writer {
            work: begin.work.to_path_buf(),
            name: name.to_string(),
            file,
            dtype: begin.dtype,
            documents: from.documents,
            fsync: begin.fsync,
            warned: false,
        }))
    }
}

/// How much was written at a checkpoint.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    size: u64,
    documents: u64,
}

struct Writer {
    work: PathBuf,
    name: String,
    file: Growing,
    dtype: DType,
    documents: u64,
    fsync: bool,
    warned: bool,
}

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.extras.is_empty() && !self.warned {
            windrow_core::warn!("llm.c's files hold token IDs only: the metadata of records is left out");
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
        disk.bring(self.file.unsynced()?)?;
        Ok(json!(Kept { size: self.file.size(), documents: self.documents }))
    }

    fn finish(self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        let bytes = self.file.size();
        let count = (bytes - HEADER) / self.dtype.size() as u64;
        if count == 0 {
            return Err(no_ids());
        }
        let Ok(count) = i32::try_from(count) else {
            return Err(Error::config(format!("{count} token IDs; llm.c's header counts to {}", i32::MAX))
                .hint("write several files, or @to=tokens@"));
        };
        self.file.finish(false)?;
        let kind = KINDS.iter().find(|kind| kind.2 == self.dtype);
        let (magic, version, _) =
            *kind.ok_or_else(|| Error::config(format!("no header for {}", self.dtype)))?;
        let header: Vec<u8> = [magic, version, count].iter().flat_map(|word| word.to_le_bytes()).collect();
        let path = self.work.join(&self.name);
        files::write_at(&path, 0, &header)?;
        let file = files::finish(&path, self.fsync)?;
        manifest.records = Some(1);
        manifest.statistics.insert("documents".to_string(), json!(self.documents));
        let manifest = write_manifest_beside(&self.work, &self.name, manifest, file, self.fsync)?;
        Ok(Written { files: 1, bytes, manifest })
    }
}
