//! Items that are dicts of plain JSON: each chunk is a file of Arrow behind offsets that are all alike, then its size and a mark.

use std::sync::Arc;

use windrow_core::format::data_files::DataFiles;
use windrow_core::format::{Format, Options, Probe, columns};
use windrow_core::store::{Object, Section};
use windrow_core::{Error, Result};
use windrow_ipc::{Columns, Joined, Table};

use super::LitData;
use super::chunks::{Chunks, offsets_end, word};

/// What such a chunk ends in.
const MARK: &[u8; 8] = b"LDARW01\0";
/// Bytes of the size of the Arrow file, and of the mark.
const TAIL: u64 = 4 + MARK.len() as u64;

/// Whether a chunk is one of rows.
pub(super) fn is_rows(object: &dyn Object) -> Result<bool> {
    let Some(at) = object.size().checked_sub(MARK.len() as u64) else { return Ok(false) };
    let mut mark = [0; MARK.len()];
    object.read_into(at, &mut mark)?;
    Ok(mark == *MARK)
}

/// Whether a chunk holds rows, and not trees of leaves, whose bytes follow its offsets.
///
/// # Errors
/// `Io`.
pub(super) fn are_rows(chunks: &Chunks, chunk: usize) -> Result<bool> {
    let object = chunks.files.get(chunk)?;
    if is_rows(object)? {
        return Ok(true);
    }
    let mut scratch = Vec::new();
    // The size was compared with the number of items.
    let items = chunks.items_of(chunk);
    let end = word(object.read(4 + 4 * items, 4, &mut scratch)?, 0);
    Ok(end <= offsets_end(items))
}

/// The rows of all chunks.
///
/// # Errors
/// `Corrupt` for a chunk of another size or number of rows than its index and itself say.
pub(super) fn open(probe: &Probe, chunks: Chunks, options: &Options) -> Result<Joined> {
    let tables = (0..chunks.files.count()).map(|chunk| table(&chunks, chunk, options));
    let tables = tables.collect::<Result<Vec<_>>>()?;
    joined(probe, chunks.files, tables, options)
}

/// The rows of the chunks of which `are_rows` says so, and the number of the first of each.
///
/// # Errors
/// As [`open`].
pub(super) fn some(
    probe: &Probe,
    chunks: &Chunks,
    are_rows: &[bool],
    options: &Options,
) -> Result<(Joined, Vec<Option<u64>>)> {
    let (mut tables, mut keys, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    let (mut firsts, mut count) = (Vec::new(), 0);
    for ((chunk, key), are_rows) in chunks.files.keys().enumerate().zip(are_rows) {
        firsts.push(are_rows.then_some(count));
        if *are_rows {
            tables.push(table(chunks, chunk, options)?);
            keys.push(key.to_string());
            objects.push(chunks.files.object(chunk)?.clone());
            // The sum over all chunks was compared with 64 bits.
            count += chunks.items_of(chunk);
        }
    }
    let files = DataFiles::from_objects(probe.store.clone(), keys, objects);
    Ok((joined(probe, files, tables, options)?, firsts))
}

fn joined(probe: &Probe, files: DataFiles, tables: Vec<Table>, options: &Options) -> Result<Joined> {
    let columns = Columns::of(&tables, &|name| columns::is_asked(options, name))?;
    if let Some(column) = &options.column {
        columns.refuse_lacking(column, &tables, &mut tables.iter().map(Table::rows))?;
    }
    let joined = Joined::new(LitData.name(), files, tables, &columns);
    Ok(joined.map_err(|e| e.or_at(probe.display()))?.with_lists())
}

fn table(chunks: &Chunks, chunk: usize, options: &Options) -> Result<Table> {
    let (object, items) = (chunks.files.object(chunk)?.clone(), chunks.items_of(chunk));
    let name = object.name().to_string();
    let wrong = |what: String, byte: u64| {
        Error::corrupt(what).at(&name).byte(byte).hint("the chunk is damaged: copy it again")
    };
    let begin = offsets_end(items);
    let tail = object
        .size()
        .checked_sub(TAIL)
        .filter(|tail| *tail >= begin && is_rows(object.as_ref()).unwrap_or(false));
    let tail =
        tail.ok_or_else(|| wrong("a chunk without rows of Arrow, which the first one has".to_string(), 0))?;
    let mut scratch = Vec::new();
    let count = word(object.read(0, 4, &mut scratch)?, 0);
    if count != items {
        return Err(wrong(format!("{count} items, the index says {items}"), 0));
    }
    let size = word(object.read(tail, 4, &mut scratch)?, 0);
    if size != tail - begin {
        return Err(wrong(format!("an Arrow file of {size} bytes, {} are there", tail - begin), tail));
    }
    let usual = object.size().saturating_mul(1000).saturating_add(64 << 20);
    let section = Section::new(object, begin, size, name.clone());
    let section = section.ok_or_else(|| wrong("an Arrow file outside its chunk".to_string(), begin))?;
    let table = Table::open(Arc::new(section), options.cache_limit.unwrap_or(usual))?;
    if table.rows() == items {
        Ok(table)
    } else {
        Err(wrong(format!("{} rows, the index says {items}", table.rows()), begin))
    }
}
