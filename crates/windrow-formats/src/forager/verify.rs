//! Every row of a byte-offset index against the data files.

use std::sync::Arc;

use windrow_core::format::verify::{Content, Findings, IndexAt, Verifier, Verify};
use windrow_core::manifest::Manifest;
use windrow_core::store::{Object, Store, key, open_if_there, read_small};
use windrow_core::{DType, Error, Kind, Result};

use super::claims::{expanded_inputs, is_as_it_was};
use super::names::{FILE_LIST, LOCATIONS, SAMPLE_SCHEMA};
use super::{Forager, Layout};

const ROW: u64 = 24;
const MOST_LIST: u64 = 1 << 30;

impl Verify for Forager {
    fn content(&self) -> Content {
        Content::Index
    }

    // What describes samples says that more is beside their tokens.
    fn is_bare(&self, manifest: &Manifest) -> bool {
        let has_tracks = manifest.index.iter().any(|row| key::name_of(&row.name) == SAMPLE_SCHEMA);
        manifest.dtype.is_some() && !has_tracks
    }
}

/// Checks an index, and what it was expanded from.
///
/// # Errors
/// As [`Verify::records`].
pub(super) fn index(at: &IndexAt<'_>, out: &mut Verifier<'_>) -> Result<()> {
    // What was expanded is in the index by its expansion.
    for row in at.manifest.iter().flat_map(|manifest| &manifest.files) {
        out.reads(at.store.display(&key::below(at.key, &row.name)));
    }
    let counted = out.findings.checked_bytes;
    rows(at, out)?;
    if at.manifest.is_some() {
        // With the files that it names.
        out.findings.checked_bytes = counted;
    }
    expanded_from(at, out)
}

/// What the rows are compared with.
struct Index {
    locations_name: String,
    store: Arc<dyn Store>,
    files: Vec<DataFile>,
    /// The data files that were used last, the latest first: their numbers, and what they were opened as.
    opened: Vec<(usize, Arc<dyn Object>)>,
    /// Bytes of every record, where all are equal.
    record_size: Option<u64>,
    /// Bytes of a token, with what is beside it where records differ in length.
    token_size: u64,
    /// Tokens: their dtype, the bytes of a record that are IDs, and the vocabulary.
    tokens: Option<(DType, Option<u64>, Option<u64>)>,
}

struct DataFile {
    name: String,
    /// `false` where it is not, or cannot be opened: that was reported once.
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

// The rows of the index.
fn rows(at: &IndexAt<'_>, out: &mut Verifier<'_>) -> Result<()> {
    let manifest = at.manifest;
    let locations_name = key::below(at.key, &format!("{}/{LOCATIONS}", at.folder));
    let opened = open_index(at, &locations_name, out);
    let Some((index, locations)) = out.findings.take(&locations_name, "index", "to be readable", opened)?
    else {
        return Ok(());
    };
    if manifest.is_none() {
        out.note("the index has no manifest: sizes and hashes of the data files are not known".into());
    }
    let n = locations.size() / ROW;
    if locations.size() % ROW != 0 {
        let found = locations.size().to_string();
        out.findings.problem(&locations_name, None, "size", format!("a multiple of {ROW}"), found);
    }
    if let Some(expected) = manifest.and_then(|s| s.records).filter(|r| *r != n) {
        out.findings.problem(&locations_name, None, "records", expected.to_string(), n.to_string());
    }
    each_row(index, locations.as_ref(), n, out)
}

fn open_index(
    at: &IndexAt<'_>,
    locations_name: &str,
    out: &mut Verifier<'_>,
) -> Result<(Index, Arc<dyn Object>)> {
    let IndexAt { store, key, manifest, .. } = *at;
    let locations = store.open(locations_name)?;
    let folder = key::below(key, at.folder);
    let list = read_small(store.open(&key::below(&folder, FILE_LIST))?.as_ref(), MOST_LIST)?;
    let list = String::from_utf8(list).map_err(|_| Error::corrupt("the file list is not UTF-8"))?;
    let mut files = Vec::new();
    for name in list.lines().map(|name| key::below(key, name)) {
        let entry = out.findings.take(&name, "file", "to be there", store.entry(&name))?;
        if entry.is_some() {
            out.looks_at(&store.display(&name));
        }
        out.expect(entry.as_ref().map_or(0, |entry| entry.size));
        out.reads(store.display(&name));
        files.push(DataFile { is_there: entry.is_some(), last_end: 0, name });
    }
    let schema_name = key::below(&folder, SAMPLE_SCHEMA);
    let layout: Option<Layout> = match open_if_there(store.as_ref(), &schema_name)? {
        Some(object) => {
            let text = read_small(object.as_ref(), 1 << 20)?;
            Some(
                serde_json::from_slice(&text)
                    .map_err(|e| Error::corrupt(format!("{} cannot be understood: {e}", SAMPLE_SCHEMA)))?,
            )
        }
        None => None,
    };
    let dtype =
        layout.as_ref().and_then(|l| l.arrays.first().map(|a| a.dtype)).or(manifest.and_then(|s| s.dtype));
    let length = match &layout {
        Some(layout) => layout.sample_size,
        None => manifest.and_then(|s| s.record_length),
    };
    let id_size = dtype.zip(length).and_then(|(dtype, length)| length.checked_mul(dtype.size() as u64));
    if dtype.is_none() && files.iter().any(|f| f.name.ends_with(".bin")) {
        out.note("nothing says which dtype the samples have: their values are not checked".into());
    }
    let index = Index {
        locations_name: locations_name.to_string(),
        record_size: layout.as_ref().map_or(id_size, Layout::record_size),
        token_size: match &layout {
            Some(layout) if layout.sample_size.is_none() => layout.total_bytes_per_sample.max(1),
            _ => dtype.map_or(1, |dtype| dtype.size() as u64),
        },
        tokens: dtype.map(|dtype| (dtype, id_size, manifest.and_then(|s| s.vocab_size))),
        store: store.clone(),
        files,
        opened: Vec::new(),
    };
    Ok((index, locations))
}

fn each_row(mut index: Index, locations: &dyn Object, n: u64, out: &mut Verifier<'_>) -> Result<()> {
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
            self::row(&mut index, record, row, &mut data, out)?;
            unreported = unreported.saturating_add(row[2].min(MOST_LIST));
            if unreported >= REPORT {
                out.step(std::mem::take(&mut unreported))?;
            }
        }
    }
    out.step(unreported)
}

fn row(
    index: &mut Index,
    record: u64,
    [file, byte, size]: [u64; 3],
    scratch: &mut Vec<u8>,
    out: &mut Verifier<'_>,
) -> Result<()> {
    let n_files = index.files.len();
    let Some(number) = usize::try_from(file).ok().filter(|number| *number < n_files) else {
        let expected = format!("file below {n_files}");
        out.findings.problem(&index.locations_name, Some(record), "row", expected, format!("file {file}"));
        return Ok(());
    };
    let token_size = index.token_size;
    let Some(object) = index.data(number, &mut out.findings)? else { return Ok(()) };
    let DataFile { name, last_end, .. } = &mut index.files[number];
    let Some(end) = byte.checked_add(size).filter(|end| *end <= object.size()) else {
        let found = format!("bytes {byte} + {size}");
        let expected = format!("within the {} bytes of {name}", object.size());
        out.findings.problem(&index.locations_name, Some(record), "row", expected, found);
        return Ok(());
    };
    if byte < *last_end {
        let expected = format!("to begin at byte {last_end} of {name} or after it");
        out.findings.problem(&index.locations_name, Some(record), "row", expected, format!("byte {byte}"));
    }
    *last_end = end;
    if let Some(expected) = index.record_size.filter(|s| *s != size) {
        out.findings.problem(
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
        Some(_) if index.record_size.is_none() && size % token_size != 0 => {
            let expected = format!("a multiple of {} bytes", token_size);
            out.findings.problem(
                &index.locations_name,
                Some(record),
                "row",
                expected,
                format!("{size} bytes"),
            );
        }
        Some((dtype, id_size, Some(vocab))) => {
            let id_size = id_size.unwrap_or(size / token_size * dtype.size() as u64);
            let ids = usize::try_from(id_size).unwrap_or(wanted).min(wanted);
            let read = object.read(byte, ids, scratch);
            let Some(bytes) = out.findings.take(name, "content", "to be readable", read)? else {
                return Ok(());
            };
            out.ids(name, record, byte, bytes, dtype, vocab);
            out.findings.checked_records += 1;
        }
        Some(_) => out.findings.checked_records += 1,
        None if name.ends_with(".bin") => {}
        None => {
            let read = object.read(byte, wanted, scratch);
            let Some(bytes) = out.findings.take(name, "content", "to be readable", read)? else {
                return Ok(());
            };
            out.json(name, record, byte == 0, bytes);
        }
    }
    Ok(())
}

// What an index expanded, beside what it was made of: that may be another one by now.
fn expanded_from(at: &IndexAt<'_>, out: &mut Verifier<'_>) -> Result<()> {
    for row in at.manifest.into_iter().flat_map(expanded_inputs) {
        let name = key::below(at.key, &row.name);
        match at.store.open(&name) {
            Ok(object) => {
                if let Err(found) = is_as_it_was(object.as_ref(), row, true) {
                    let expected = "as it was when it was indexed".to_string();
                    out.findings.problem(&at.store.display(&name), None, "file", expected, found);
                }
            }
            // Nobody needs it any more.
            Err(e) if e.kind() == Kind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
