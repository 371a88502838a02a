//! Parts of data that hold no record: files without a byte, and tables of a header alone. Alone they are an error, since a copy that
//! was cut short looks so.

use windrow_core::format::{Probe, lines};
use windrow_core::store::{expanded_head, key, plain_name};

/// Files of these endings may have no byte: their formats have nothing before the first record. So may files of lines.
const ENDINGS: [&str; 8] = [".csv", ".tsv", ".tsf", ".yaml", ".yml", ".bin", ".array_record", ".arrayrecord"];
/// Of these the first line names the columns.
const TABLES: [&str; 2] = [".csv", ".tsv"];
/// More than the header of a table takes.
const HEAD: usize = 64 << 10;

/// Whether a file holds no record, and is a part of data among others by its name. Not one of which a manifest or an index says something
/// else.
pub fn is_empty_part(probe: &Probe) -> bool {
    let name = probe.file_name();
    let plain = plain_name(&name);
    let is_json = lines::may_hold_records(&name) && !lines::is_description(&name);
    let is_part = is_json || lines::is_named(&name) || ENDINGS.iter().any(|ending| plain.ends_with(ending));
    if probe.is_folder || probe.manifest.is_some() || !is_part {
        return false;
    }
    let index = key::without_suffix(&probe.key, ".bin").map(|stem| format!("{stem}.idx"));
    if index.is_some_and(|index| probe.store.entry(&index).is_ok()) {
        return false;
    }
    let head = || expanded_head(probe.store.open(&probe.key).ok()?.as_ref(), HEAD).ok();
    match head() {
        Some(head) if head.is_empty() => true,
        Some(head) => TABLES.iter().any(|ending| plain.ends_with(ending)) && is_header_alone(&head),
        None => false,
    }
}

// One line, in which something is no number.
fn is_header_alone(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty());
    let (first, second) = (lines.next(), lines.next());
    let names = |line: &str| line.split([',', '\t']).any(|cell| cell.trim().parse::<f64>().is_err());
    head.len() < HEAD && second.is_none() && first.is_some_and(names)
}
