//! Every row of a byte-offset index against the data files.

use std::path::Path;
use std::sync::Arc;

use super::{Findings, Work};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::format::{self, Layout};
use crate::manifest::Manifest;
use crate::store::{Io, Local, Object, Store, key, read_small};

const ROW: u64 = 24;
const MOST_LIST: u64 = 1 << 30;

/// What the rows are held against.
struct Index {
    locations_name: String,
    store: Local,
    files: Vec<DataFile>,
    /// The data files that were used last, the latest first: their numbers, and what they were opened as.
    opened: Vec<(usize, Arc<dyn Object>)>,
    /// Bytes of every record, where all are equal.
    record_size: Option<u64>,
    /// Tokens: their dtype, the bytes of a record that are ids, and the vocabulary.
    tokens: Option<(DType, Option<u64>, Option<u64>)>,
}

struct DataFile {
    name: String,
    /// `false` where it is not, or cannot be opened: that was said once.
    is_there: bool,
    /// Where its last row ended.
    last_end: u64,
}

/// Files that are kept open at a time. Rows of one file usually follow each other, and there may be more files than the
/// system lets a program open.
const MOST_OPEN: usize = 16;

impl Index {
    /// A data file, opened; `None` where that cannot be.
    fn data(&mut self, number: usize, findings: &mut Findings) -> Result<Option<Arc<dyn Object>>> {
        if let Some(at) = self.opened.iter().position(|(of, _)| *of == number) {
            self.opened[..=at].rotate_right(1);
            return Ok(Some(self.opened[0].1.clone()));
        }
        let file = &mut self.files[number];
        if !file.is_there {
            return Ok(None);
        }
        self.opened.truncate(MOST_OPEN - 1);
        let object = findings.take(&file.name, "file", "to be readable", self.store.open(&file.name))?;
        file.is_there = object.is_some();
        self.opened.splice(..0, object.iter().map(|object| (number, object.clone())));
        Ok(object)
    }
}

impl Work<'_> {
    /// The index in `folder` of what lies at `key` below `base`; files are named from `base` on.
    pub(super) fn rows(
        &mut self,
        base: &Path,
        key: &str,
        folder: &str,
        manifest: Option<&Manifest>,
    ) -> Result<()> {
        let store = Local::new(base).io(Io::Pread);
        let locations_name = key::below(key, &format!("{folder}/{}", format::LOCATIONS));
        let opened = self.open_index(&store, [key, folder], &locations_name, manifest);
        let Some((index, locations)) =
            self.findings.take(&locations_name, "index", "to be readable", opened)?
        else {
            return Ok(());
        };
        if manifest.is_none() {
            self.note("the index has no manifest: sizes and hashes of the data files are not known".into());
        }
        let n = locations.size() / ROW;
        if locations.size() % ROW != 0 {
            let found = locations.size().to_string();
            self.findings.problem(&locations_name, None, "size", format!("a multiple of {ROW}"), found);
        }
        if let Some(expected) = manifest.and_then(|s| s.records).filter(|r| *r != n) {
            self.findings.problem(&locations_name, None, "records", expected.to_string(), n.to_string());
        }
        self.each_row(index, locations.as_ref(), n)
    }

    fn open_index(
        &mut self,
        store: &Local,
        [key, folder]: [&str; 2],
        locations_name: &str,
        manifest: Option<&Manifest>,
    ) -> Result<(Index, Arc<dyn Object>)> {
        let locations = store.open(locations_name)?;
        let folder = key::below(key, folder);
        let list = read_small(store.open(&key::below(&folder, format::FILE_LIST))?.as_ref(), MOST_LIST)?;
        let list = String::from_utf8(list).map_err(|_| Error::corrupt("the file list is not UTF-8"))?;
        let mut files = Vec::new();
        for name in list.lines().map(|name| key::below(key, name)) {
            let entry = self.findings.take(&name, "file", "to be there", store.entry(&name))?;
            self.findings.checked_files += u64::from(manifest.is_none() && entry.is_some());
            self.expect(entry.as_ref().map_or(0, |entry| entry.size));
            self.seen.insert(store.display(&name));
            files.push(DataFile { is_there: entry.is_some(), last_end: 0, name });
        }
        let schema_name = key::below(&folder, format::SAMPLE_SCHEMA);
        let layout: Option<Layout> = match store.entry(&schema_name) {
            Ok(_) => {
                let text = read_small(store.open(&schema_name)?.as_ref(), 1 << 20)?;
                Some(serde_json::from_slice(&text).map_err(|e| {
                    Error::corrupt(format!("{} cannot be understood: {e}", format::SAMPLE_SCHEMA))
                })?)
            }
            Err(_) => None,
        };
        let dtype = layout
            .as_ref()
            .and_then(|l| l.arrays.first().map(|a| a.dtype))
            .or(manifest.and_then(|s| s.dtype));
        let length = layout.as_ref().map(|l| l.sample_size).or(manifest.and_then(|s| s.record_length));
        let id_size = dtype.zip(length).and_then(|(dtype, length)| length.checked_mul(dtype.size() as u64));
        if dtype.is_none() && files.iter().any(|f| f.name.ends_with(".bin")) {
            self.note("nothing says which dtype the samples have: their values are not checked".into());
        }
        let index = Index {
            locations_name: locations_name.to_string(),
            record_size: layout.as_ref().map(|l| l.total_bytes_per_sample).or(id_size),
            tokens: dtype.map(|dtype| (dtype, id_size, manifest.and_then(|s| s.vocab_size))),
            store: store.clone(),
            files,
            opened: Vec::new(),
        };
        Ok((index, locations))
    }

    fn each_row(&mut self, mut index: Index, locations: &dyn Object, n: u64) -> Result<()> {
        const AT_ONCE: u64 = 10_000;
        const REPORT: u64 = 1 << 20;
        let mut unreported = 0u64;
        let (mut scratch, mut data) = (Vec::new(), Vec::new());
        for first in (0..n).step_by(AT_ONCE as usize) {
            let size = (n - first).min(AT_ONCE) * ROW;
            let bytes = locations.read(first * ROW, size as usize, &mut scratch)?;
            for (record, row) in (first..).zip(bytes.chunks_exact(ROW as usize)) {
                let number = |at: usize| {
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(&row[at..at + 8]);
                    u64::from_le_bytes(bytes)
                };
                let row = [number(0), number(8), number(16)];
                self.row(&mut index, record, row, &mut data)?;
                unreported = unreported.saturating_add(row[2].min(MOST_LIST));
                if unreported >= REPORT {
                    self.step(std::mem::take(&mut unreported))?;
                }
            }
        }
        self.step(unreported)
    }

    fn row(
        &mut self,
        index: &mut Index,
        record: u64,
        [file, byte, size]: [u64; 3],
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let n_files = index.files.len();
        let Some(number) = usize::try_from(file).ok().filter(|number| *number < n_files) else {
            let expected = format!("file below {n_files}");
            self.findings.problem(
                &index.locations_name,
                Some(record),
                "row",
                expected,
                format!("file {file}"),
            );
            return Ok(());
        };
        let Some(object) = index.data(number, &mut self.findings)? else { return Ok(()) };
        let DataFile { name, last_end, .. } = &mut index.files[number];
        let Some(end) = byte.checked_add(size).filter(|end| *end <= object.size()) else {
            let found = format!("bytes {byte} + {size}");
            let expected = format!("within the {} bytes of {name}", object.size());
            self.findings.problem(&index.locations_name, Some(record), "row", expected, found);
            return Ok(());
        };
        if byte < *last_end {
            let expected = format!("to begin at byte {last_end} of {name} or after it");
            self.findings.problem(
                &index.locations_name,
                Some(record),
                "row",
                expected,
                format!("byte {byte}"),
            );
        }
        *last_end = end;
        if let Some(expected) = index.record_size.filter(|s| *s != size) {
            self.findings.problem(
                &index.locations_name,
                Some(record),
                "row",
                format!("{expected} bytes"),
                format!("{size} bytes"),
            );
        }
        // Bounded by the file, which is there.
        let Ok(wanted) = usize::try_from(size) else { return Ok(()) };
        match index.tokens {
            Some((dtype, _, _)) if index.record_size.is_none() && size % dtype.size() as u64 != 0 => {
                let expected = format!("a multiple of {} bytes", dtype.size());
                self.findings.problem(
                    &index.locations_name,
                    Some(record),
                    "row",
                    expected,
                    format!("{size} bytes"),
                );
            }
            Some((dtype, id_size, Some(vocab))) => {
                let ids = id_size.and_then(|s| usize::try_from(s).ok()).unwrap_or(wanted).min(wanted);
                let read = object.read(byte, ids, scratch);
                let Some(bytes) = self.findings.take(name, "content", "to be readable", read)? else {
                    return Ok(());
                };
                self.ids(name, record, byte, bytes, dtype, vocab);
                self.findings.checked_records += 1;
            }
            Some(_) => self.findings.checked_records += 1,
            None if name.ends_with(".bin") => {}
            None => {
                let read = object.read(byte, wanted, scratch);
                let Some(bytes) = self.findings.take(name, "content", "to be readable", read)? else {
                    return Ok(());
                };
                self.json(name, record, byte == 0, bytes);
            }
        }
        Ok(())
    }
}
