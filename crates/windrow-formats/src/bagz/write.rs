//! One `.bagz` of zstd frames or `.bag` of plain records, the ends behind them, and its manifest.

use windrow_core::format::Payload;
use windrow_core::format::write::{Begin, RecordWriter, Target, WriteFormat, WriteInfo};
use windrow_core::output::Growing;
use windrow_core::store::key;
use windrow_core::{Error, Result};

use super::{INFO, most_expanded};
use crate::payload::{self, Layout};

const LEVEL: i32 = 3;

/// A file of records.
pub(super) struct WriteBagz;

impl WriteFormat for WriteBagz {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            holds_rows: true,
            bytes_per_number: Some(0),
            ..WriteInfo::of(INFO.name, Target::File(&[".bagz", ".bag"]))
        }
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        let is_compressed = key::has_suffix(begin.name, ".bagz");
        let joined = Joined { is_compressed, ends: Vec::new(), compressor: None };
        payload::begin(begin, "Bagz", Payload::Json, None, joined)
    }
}

struct Joined {
    is_compressed: bool,
    /// The end of each record: eight bytes of memory each, as the table comes last.
    ends: Vec<u64>,
    compressor: Option<zstd::bulk::Compressor<'static>>,
}

impl Joined {
    fn frame(&mut self, record: &[u8]) -> Result<Vec<u8>> {
        let failed = |cause| Error::new(windrow_core::Kind::Io, "cannot compress a record").caused_by(cause);
        let compressor = match self.compressor.take() {
            Some(compressor) => compressor,
            None => zstd::bulk::Compressor::new(LEVEL).map_err(failed)?,
        };
        let frame = self.compressor.insert(compressor).compress(record).map_err(failed)?;
        if record.len() as u64 <= most_expanded(frame.len() as u64) {
            Ok(frame)
        } else {
            Err(Error::config(format!(
                "a record of {} bytes whose frame has {}: readers refuse what expands to so much",
                record.len(),
                frame.len()
            ))
            .hint("a name that ends in .bag holds records as they are"))
        }
    }
}

impl Layout for Joined {
    fn put(&mut self, record: &[u8], file: &mut Growing) -> Result<()> {
        // An empty record is no frame.
        if self.is_compressed && !record.is_empty() {
            file.write(&self.frame(record)?)?
        } else {
            file.write(record)?
        }
        self.ends.push(file.size());
        Ok(())
    }

    fn end(&mut self, file: &mut Growing) -> Result<()> {
        self.ends.iter().try_for_each(|end| file.write(&end.to_le_bytes()))
    }
}
