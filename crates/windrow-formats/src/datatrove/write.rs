//! A folder with all records in one `.ds`, the ends of documents, and the metadata that datatrove's reader checks.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windrow_core::format::write::{
    Begin, MaskTrack, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written, no_ids,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::output::{ChecksumsWriter, Disk, Growing, files};
use windrow_core::{DType, Result};

use super::{DATA, INDEX, INFO, LEARNED, LOSS, METADATA};

/// What datatrove calls the only file of the only rank.
const STEM: &str = "00000_00000_shuffled";

/// A folder of token files.
pub(super) struct WriteDatatrove;

impl WriteFormat for WriteDatatrove {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            mask_track: Some(MaskTrack { name: LEARNED, excludes: false }),
            id_dtypes: &[DType::U16, DType::U32],
            ..WriteInfo::of(INFO.name, Target::Folder)
        }
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        // Token IDs of other types fit, or are refused one by one.
        Ok(asked.unwrap_or(if given == DType::U16 { DType::U16 } else { DType::U32 }))
    }

    fn is_own(&self, name: &str) -> bool {
        let data = format!("{STEM}{DATA}");
        let own =
            [data.clone(), format!("{data}{INDEX}"), format!("{data}{LOSS}"), format!("{data}{METADATA}")];
        own.iter().any(|own| own == name) || [MANIFEST_FILE, CHECKSUMS_FILE].contains(&name)
    }

    fn is_description(&self, name: &str) -> bool {
        name == MANIFEST_FILE || name == format!("{STEM}{DATA}{INDEX}")
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        begin.only(&[DType::U16, DType::U32], "datatrove's files")?;
        let folder = begin.work.join(begin.name);
        files::make_folder(&folder)?;
        let from: Kept = begin.continued("datatrove's files")?;
        let data = format!("{STEM}{DATA}");
        let loss = || Growing::create(folder.join(format!("{data}{LOSS}")));
        Ok(Box::new(Writer {
            loss: begin.has_mask.then(loss).transpose()?,
            data: Growing::at(folder.join(&data), from.data)?,
            ends: Growing::at(folder.join(format!("{data}{INDEX}")), from.ends)?,
            folder,
            dtype: begin.dtype,
            fsync: begin.fsync,
            warned: false,
        }))
    }
}

/// How much was written at a checkpoint.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    data: u64,
    ends: u64,
}

struct Writer {
    folder: PathBuf,
    data: Growing,
    ends: Growing,
    /// A byte a token, where a mask is beside them.
    loss: Option<Growing>,
    dtype: DType,
    fsync: bool,
    warned: bool,
}

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.extras.is_empty() && !self.warned {
            windrow_core::warn!("datatrove's files hold token IDs only: the metadata of records is left out");
            self.warned = true;
        }
        self.data.write(record.bytes)?;
        for (loss, mask) in self.loss.iter_mut().zip(record.tracks) {
            loss.write(mask)?;
        }
        if record.is_last {
            let end = self.data.size() / self.dtype.size() as u64;
            self.ends.write(&end.to_le_bytes())?;
        }
        if self.fsync {
            self.data.begin_sync();
        }
        Ok(())
    }

    fn checkpoint(&mut self, disk: &mut Disk) -> Result<Value> {
        disk.bring(self.data.unsynced()?)?;
        disk.bring(self.ends.unsynced()?)?;
        Ok(json!(Kept { data: self.data.size(), ends: self.ends.size() }))
    }

    fn finish(self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        let bytes = self.data.size();
        if bytes == 0 {
            return Err(no_ids());
        }
        let (width, records) = (self.dtype.size() as u64, self.ends.size() / 8);
        let name = format!("{STEM}{DATA}");
        let mut sums = ChecksumsWriter::at(self.folder.join(CHECKSUMS_FILE), [])?;
        let data = sums.add(name.clone(), self.data.finish(self.fsync)?)?;
        let index = sums.add(format!("{name}{INDEX}"), self.ends.finish(self.fsync)?)?;
        let tokenizer = manifest.tokenizer.as_ref().map_or("Unknown Tokenizer", |lock| lock.name.as_str());
        // Lines end the three fields: a name with a break in it would be another field.
        let tokenizer = tokenizer.replace(['\n', '\r'], " ");
        let count = bytes / width;
        let text = format!("{tokenizer}|{width}\n{count}\n{}", in_words(count));
        let metadata = format!("{name}{METADATA}");
        let metadata_row = sums
            .add(metadata.clone(), files::write(&self.folder.join(metadata), text.as_bytes(), self.fsync)?)?;
        manifest.files = vec![data, index, metadata_row];
        if let Some(loss) = self.loss {
            manifest.files.push(sums.add(format!("{name}{LOSS}"), loss.finish(self.fsync)?)?);
        }
        manifest.records = Some(records);
        sums.finish(&manifest.files, self.fsync)?;
        files::write(&self.folder.join(MANIFEST_FILE), manifest.to_text().as_bytes(), self.fsync)?;
        files::sync_folder(&self.folder, self.fsync)?;
        Ok(Written { files: 1, bytes, manifest })
    }
}

// The number as people say it: 1.2 million is `1.2 MT`.
fn in_words(count: u64) -> String {
    let units = [(1_000_000_000_000, "TT"), (1_000_000_000, "GT"), (1_000_000, "MT"), (1_000, "KT")];
    match units.iter().find(|(size, _)| count >= *size) {
        Some((size, unit)) => format!("{}.{} {unit}", count / size, count % size * 10 / size),
        None => format!("{count} T"),
    }
}
