//! What makes one data set of all parts.

use std::sync::Arc;

use windrow_core::format::write::{PartFile, Parts};
use windrow_core::manifest::{FileRow, MANIFEST_FILE, Manifest, PARTS, PartRow};
use windrow_core::output::hex;
use windrow_core::source::SharedSource;
use windrow_core::store::Store;
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::files::Files;
use super::names::{FOLDER, JOBS, TABLE, file_name};
use super::source::Records;
use super::table::{Stored, Table};

/// How many parts are rows of the manifest, at most.
const MOST_ROWS: usize = 10_000;

/// A data set in parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout;

impl Parts for Layout {
    fn name(&self) -> &'static str {
        PARTS
    }

    fn folder(&self) -> &'static str {
        FOLDER
    }

    fn file(&self, task: u64, what: PartFile) -> String {
        format!("{FOLDER}/{}", file_name(task, what))
    }

    fn job(&self, hash: &str) -> String {
        format!("{JOBS}/{hash}.json")
    }

    fn jobs(&self) -> &'static str {
        JOBS
    }

    fn joined(&self, mut manifest: Manifest, parts: &[PartRow]) -> Result<Vec<(String, Vec<u8>)>> {
        let total = |of: fn(&PartRow) -> u64, what: &str| {
            let sum = parts.iter().try_fold(0u64, |sum, row| sum.checked_add(of(row)));
            sum.ok_or_else(|| {
                Error::config(format!("the parts hold more {what} together than 64 bits can count"))
            })
        };
        manifest.format = PARTS.to_string();
        manifest.records = Some(total(|row| row.records, "records")?);
        manifest.values = Some(total(|row| row.values, "values")?);
        // Of whoever did not say that records are [T, C], the bytes do.
        let filled = parts.iter().find(|row| row.values > 0);
        let numbers =
            filled.zip(manifest.dtype).map(|(row, dtype)| row.bytes / row.values / dtype.size() as u64);
        manifest.channels = manifest.channels.or(numbers.filter(|numbers| *numbers > 1));
        let mut files = Vec::new();
        if parts.len() <= MOST_ROWS {
            manifest.parts = parts.to_vec();
        } else {
            let table: Vec<u8> = parts.iter().flat_map(PartRow::to_bytes).collect();
            let (size, xxh3) = (table.len() as u64, Some(hex(xxh3_64(&table))));
            manifest.parts = Vec::new();
            manifest.index = vec![FileRow { name: TABLE.to_string(), size, xxh3, ..FileRow::default() }];
            files.push((TABLE.to_string(), table));
        }
        files.push((MANIFEST_FILE.to_string(), manifest.to_text().into_bytes()));
        Ok(files)
    }

    fn records(&self, store: Arc<dyn Store>, manifest: &Manifest, parts: &[PartRow]) -> Result<SharedSource> {
        let stored = Stored::of(manifest.dtype, manifest.channels)?;
        let files = Files::new(store, FOLDER.to_string(), 0, Table::new(parts, stored)?, stored);
        Ok(Arc::new(Records::new(files, stored.schema(manifest.vocab_size))))
    }
}
