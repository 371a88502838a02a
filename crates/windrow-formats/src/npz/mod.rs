//! numpy's `.npz`: a zip archive of arrays. Members that are stored are read where they lie; compressed ones are
//! expanded once, together, into the cache.

mod arrays;
mod latched;
mod verify;
mod write;

pub use self::arrays::{NamedArray, npz_of};
use std::io::{Read, Write};
use std::ops::Range;
use std::sync::Arc;

use windrow_core::format::verify::Verify;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Axis, Confidence, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::{FileInfo, SharedSource};
use windrow_core::store::{Object, Section, cached};
use windrow_core::{Error, Result};
use windrow_pickle::archive::{Archive, archive, broken, too_many};
use zip::CompressionMethod;

use self::write::WriteNpz;
use super::arrays::{Array, Arrays, Lies};
use super::npy::{Header, MOST_PREFIX};
use windrow_core::format::numbers::check_number_options;

use crate::open_options::AXIS;

const SUFFIXES: &[&str] = &[".npz"];

/// Expanding more than [`FREE_BYTES`] at a higher ratio than this is refused. Deflate itself ends at 1,032.
const MOST_RATIO: u64 = 1_000;
const FREE_BYTES: u64 = 64 << 20;
/// What one archive may expand to.
const MOST_EXPANDED: u64 = 1 << 38;

/// An archive of arrays.
#[derive(Clone, Copy, Debug)]
pub struct Npz;

static INFO: FormatInfo = FormatInfo {
    name: "npz",
    title: "numpy archive",
    layout: "one `.npz` file: a zip of `.npy` arrays of one kind, stored or deflated",
    records: "the sequences of each array as in `npy`, in the archive's order",
    written_by: "`windrow convert --to npz`, `wr.write`, numpy.savez, numpy.savez_compressed",
    holds: &[Holds::Series, Holds::Tokens],
    series_suffixes: SUFFIXES,
    data_suffixes: SUFFIXES,
    open_options: &[AXIS],
    written_as: "an archive of an array per record",
    has_own_checksums: true,
    ..FormatInfo::NONE
};

impl Format for Npz {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        // Other formats are zip archives, too; this one is recognised by its name.
        if probe.is_folder || !SUFFIXES.iter().any(|suffix| probe.file_name().ends_with(suffix)) {
            Confidence::No
        } else if probe.head.starts_with(b"PK\x03\x04") {
            Confidence::Yes
        } else {
            Confidence::Maybe
        }
    }

    fn writer(&self, _options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteNpz)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Npz
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let object = probe.store.open(&probe.key)?;
        let mut archive = archive(object.as_ref())?;
        let members = members(&mut archive, object.as_ref())?;
        let arrays = arrays(&mut archive, &object, members, options.axis)?;
        let file = FileInfo { file: object.name().to_string(), size: object.size() };
        let source: SharedSource = Arc::new(Arrays::new(self.name(), file, arrays, options.vocab_size)?);
        check_number_options(source.as_ref(), None, options, &probe.display())?;
        Ok(source)
    }
}

impl Npz {
    /// Compares each array with the CRC-32 that the archive holds of it, and gives those that have another one. Opening
    /// compares none, so that stored arrays are read in place. `step` gets how many bytes were gone through, and its
    /// error ends the work.
    ///
    /// # Errors
    /// As [`Format::open`]; what `step` says.
    pub(crate) fn damaged(
        &self,
        object: &dyn Object,
        step: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Vec<Damaged>> {
        let mut archive = archive(object)?;
        let mut found = Vec::new();
        let mut buffer = vec![0; 1 << 20];
        for member in members(&mut archive, object)? {
            let damaged = |crc32, cause| Damaged {
                name: member.name.clone(),
                bytes: member.bytes.clone(),
                crc32,
                cause,
            };
            let mut entry = match archive.by_index(member.index) {
                Ok(entry) => entry,
                Err(e) => {
                    found.push(damaged(None, e.to_string()));
                    continue;
                }
            };
            let crc32 = entry.crc32();
            loop {
                match entry.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => step(n as u64)?,
                    Err(e) => {
                        found.push(damaged(Some(crc32), e.to_string()));
                        break;
                    }
                }
            }
        }
        Ok(found)
    }
}

/// An array that is not what was put into the archive.
pub(crate) struct Damaged {
    /// The archive's name and its own.
    pub(crate) name: String,
    /// Where its bytes are in the archive.
    pub(crate) bytes: Range<u64>,
    /// The sum that it should have, where that is known.
    pub(crate) crc32: Option<u32>,
    /// What reading it returned.
    pub(crate) cause: String,
}

/// The arrays of an archive, which are files of numpy: their names without `.npy`, and their bytes.
///
/// # Errors
/// As [`Format::open`] of such an archive.
pub(crate) fn arrays_in(object: &dyn Object) -> Result<Vec<(String, Vec<u8>)>> {
    let mut archive = archive(object)?;
    let mut found = Vec::new();
    for member in members(&mut archive, object)? {
        let size = member.expands_to.unwrap_or(member.bytes.end - member.bytes.start);
        let mut bytes = Vec::new();
        expand_member(&mut archive, &member, size, &mut bytes)?;
        let name = member.name.split_once('#').map_or("", |(_, name)| name);
        found.push((name.strip_suffix(".npy").unwrap_or(name).to_string(), bytes));
    }
    Ok(found)
}

/// One array in the archive.
struct Member {
    /// Its number in the archive.
    index: usize,
    /// The archive's name and its own.
    name: String,
    /// Where its bytes are in the archive.
    bytes: Range<u64>,
    /// What it expands to; `None` when it is stored.
    expands_to: Option<u64>,
}

// The arrays of the archive, every claim of their sizes and places checked.
fn members(archive: &mut Archive<'_>, object: &dyn Object) -> Result<Vec<Member>> {
    too_many(archive.len() as u64, object)?;
    let corrupt = |what: String| Error::corrupt(what).at(object.name());
    if archive.has_duplicate_names() {
        return Err(corrupt("two members of the archive have one name".to_string())
            .hint("which of them is meant cannot be known: save it again"));
    }
    let overlap = archive
        .has_overlapping_entries()
        .map_err(|e| broken(object, "a member of the archive cannot be found", e))?;
    if overlap {
        return Err(corrupt("members of the archive overlap, or run into its directory".to_string())
            .hint("no honest program writes that: do not expand it with other tools either"));
    }
    let mut found = Vec::new();
    let mut expanded = 0u64;
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(|e| broken(object, "a member cannot be read", e))?;
        let short = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let name = format!("{}#{short}", object.name());
        let own = name_at(object, entry.header_start())?;
        if own != entry.name_raw() {
            let own = String::from_utf8_lossy(&own);
            let what = format!("the directory of the archive calls a member {short:?}, its header {own:?}");
            return Err(corrupt(what).hint("one of the two is damaged: copy the archive again"));
        }
        if !short.ends_with(".npy") {
            windrow_core::warn!("{}: no array, it is left out", name.escape_debug());
            continue;
        }
        let (packed, size) = (entry.compressed_size(), entry.size());
        let start = entry.data_start().unwrap_or(u64::MAX);
        let bytes = start..start.saturating_add(packed);
        if entry.encrypted() {
            return Err(Error::unsupported("the array is encrypted").at(name).hint("decrypt the archive"));
        }
        let expands_to = match entry.compression() {
            CompressionMethod::Stored if packed == size => None,
            CompressionMethod::Stored => {
                return Err(
                    Error::corrupt(format!("a stored array of {size} bytes is in {packed} bytes")).at(name)
                );
            }
            CompressionMethod::Deflated => Some(size),
            other => {
                return Err(Error::unsupported(format!("an array compressed by {other}"))
                    .at(name)
                    .hint("save it with numpy.savez or numpy.savez_compressed"));
            }
        };
        if let Some(size) = expands_to {
            expanded = expanded.saturating_add(size);
            let ratio = size / packed.max(1);
            if expanded > MOST_EXPANDED || (expanded > FREE_BYTES && ratio > MOST_RATIO) {
                return Err(Error::unsupported(format!(
                    "{packed} bytes that expand to {size}, {ratio} times as many, {expanded} in all; expected at most \
                     {MOST_RATIO} times and {MOST_EXPANDED} in all"
                ))
                .at(name)
                .hint("if it is meant so, save it with numpy.savez, uncompressed"));
            }
        }
        found.push(Member { index, name, bytes, expands_to });
    }
    if found.is_empty() {
        Err(corrupt(format!("expected arrays, found {} members and no .npy", archive.len())))
    } else {
        Ok(found)
    }
}

// What the header of the member at `start` calls it: no checksum covers a name.
fn name_at(object: &dyn Object, start: u64) -> Result<Vec<u8>> {
    let mut head = [0; 30];
    object.read_into(start, &mut head)?;
    let mut name = vec![0; usize::from(u16::from_le_bytes([head[26], head[27]]))];
    object.read_into(start.saturating_add(head.len() as u64), &mut name)?;
    Ok(name)
}

fn arrays(
    archive: &mut Archive<'_>,
    object: &Arc<dyn Object>,
    members: Vec<Member>,
    axis: Option<Axis>,
) -> Result<Vec<Array>> {
    // Headers first: what contradicts its own header is not expanded.
    for member in &members {
        if let Some(size) = member.expands_to {
            check_header(archive, member, size)?;
        }
    }
    let cache = if members.iter().any(|m| m.expands_to.is_some()) {
        Some(cached(object.as_ref(), "expanded", "npz", |draft| expand(archive, &members, draft))?)
    } else {
        None
    };
    let mut arrays = Vec::with_capacity(members.len());
    let mut next = 0;
    for Member { name, bytes, expands_to, .. } in members {
        let size = bytes.end - bytes.start;
        let (inner, start, length, lies) = match (expands_to, &cache) {
            (Some(length), Some(cache)) => {
                let start = next;
                next += length;
                (cache.clone(), start, length, Lies::Within { start: bytes.start, size })
            }
            _ => (object.clone(), bytes.start, size, Lies::From(bytes.start)),
        };
        let Some(section) = Section::new(inner, start, length, name.clone()) else {
            return Err(Error::corrupt(format!("{length} bytes expected at byte {start}, found fewer"))
                .at(name)
                .hint("remove the cache folder if it was changed"));
        };
        let header = Header::of(&section)?;
        arrays.push(Array::new(Arc::new(section), header, lies, axis)?);
    }
    Ok(arrays)
}

fn check_header(archive: &mut Archive<'_>, member: &Member, size: u64) -> Result<()> {
    let mut prefix = Vec::new();
    let entry = archive.by_index(member.index).map_err(|e| damaged(member, e.to_string()))?;
    entry.take(MOST_PREFIX as u64).read_to_end(&mut prefix).map_err(|e| damaged(member, e.to_string()))?;
    prefix.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    Header::of_prefix(&prefix, size, &member.name).map(drop)
}

// Writes the compressed members one after the other; each gives exactly the bytes that the directory says.
fn expand(archive: &mut Archive<'_>, members: &[Member], out: &mut dyn Write) -> Result<()> {
    for member in members {
        if let Some(size) = member.expands_to {
            expand_member(archive, member, size, out)?;
        }
    }
    Ok(())
}

fn expand_member(archive: &mut Archive<'_>, member: &Member, size: u64, out: &mut dyn Write) -> Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut entry = archive.by_index(member.index).map_err(|e| damaged(member, e.to_string()))?;
    let mut done = 0;
    loop {
        let n = entry.read(&mut buffer).map_err(|e| damaged(member, e.to_string()))?;
        if n == 0 {
            break;
        }
        done += n as u64;
        if done > size {
            return Err(damaged(member, format!("it expands to more than the {size} bytes it promises")));
        }
        out.write_all(&buffer[..n])
            .map_err(|e| Error::io("write what it expands to", member.name.as_str(), e))?;
    }
    if done < size {
        Err(damaged(member, format!("it promises {size} bytes and expands to {done}")))
    } else {
        Ok(())
    }
}

fn damaged(member: &Member, cause: String) -> Error {
    Error::corrupt(format!("the compressed array is damaged: {cause}"))
        .at(&member.name)
        .byte(member.bytes.start)
        .hint("the copy looks unfinished: fetch it again")
}
