//! Places of records as the tfrecord package (`.tfindex`) and NVIDIA DALI (`.idx`) list them beside a file: lines of place and size.

use std::io::{BufRead, BufReader, Read, Write};

use windrow_core::store::{Object, Store, Stream, key, open_if_there};
use windrow_core::{Error, Kind, Result};

use super::{AFTER, BEFORE, Shared};

const SUFFIXES: [&str; 2] = [".tfindex", ".idx"];
/// Part of the cache file's name: a new number makes every table be made again.
pub(super) const VERSION: &str = "listed frames 1";
/// Two numbers of 64 bits, and what is between and behind them.
const LONGEST_LINE: u64 = 64;

/// The index beside a file, where there is one: `a.tfindex` or `a.tfrecord.tfindex` of `a.tfrecord`.
pub(super) fn beside(store: &dyn Store, file: &str) -> Option<Shared> {
    let stem = key::name_of(file).rsplit_once('.').map_or(file, |(stem, _)| stem);
    let stem = key::below(key::folder_of(file), stem);
    let names = SUFFIXES.iter().flat_map(|suffix| [format!("{stem}{suffix}"), format!("{file}{suffix}")]);
    // One that cannot be opened is not needed.
    names.into_iter().find_map(|name| open_if_there(store, &name).ok().flatten())
}

/// Writes the end of each frame of a file of `size` bytes, as the index says. That frames follow each other from the beginning to the
/// end of the file is checked here, and a frame's own length when it is read.
///
/// # Errors
/// `Corrupt` with the line that does not fit; `Io`.
pub(super) fn ends(index: &dyn Object, size: u64, out: &mut dyn Write) -> Result<()> {
    let io = |cause| Error::new(Kind::Io, "cannot read the index").at(index.name()).caused_by(cause);
    let mut lines = BufReader::with_capacity(1 << 18, Stream::new(index));
    let (mut at, mut line, mut number) = (0u64, Vec::new(), 0u64);
    loop {
        line.clear();
        if lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(io)? == 0 {
            break;
        }
        let end = numbers(&line).filter(|(place, size)| *place == at && *size >= BEFORE + AFTER);
        let end = end.and_then(|(place, size)| place.checked_add(size)).filter(|end| *end <= size);
        at = end.ok_or_else(|| wrong(index, format!("line {number} is not the frame at byte {at}")))?;
        out.write_all(&at.to_le_bytes()).map_err(io)?;
        number += 1;
    }
    if at == size { Ok(()) } else { Err(wrong(index, format!("it lists {at} bytes of a file of {size}"))) }
}

fn numbers(line: &[u8]) -> Option<(u64, u64)> {
    let mut numbers = std::str::from_utf8(line).ok()?.split_ascii_whitespace().map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(place)), Some(Ok(size)), None) => Some((place, size)),
        _ => None,
    }
}

fn wrong(index: &dyn Object, what: String) -> Error {
    Error::corrupt(what).at(index.name())
}
