//! What Parquet is called, and how its files are found.

use windrow_core::format::{
    COLUMN, COLUMNS, FormatInfo, Holds, OptionRow, Probe, TO_COLUMN, Takes, discover,
};
use windrow_core::store::key;

/// How the names of its files end.
pub(crate) const SUFFIXES: &[&str] = &[".parquet", ".pq", ".parq"];
/// What pandas, dask and Hive put behind it: the codec of the pages.
const CODECS: &[&str] = &["brotli", "br", "gz", "gzip", "lz4", "snappy", "zst", "zstd"];
pub(crate) const MAGIC: &[u8] = b"PAR1";

pub(crate) static INFO: FormatInfo = FormatInfo {
    name: "parquet",
    title: "Parquet",
    layout: "`.parquet` files, alone or in a folder, also as the Hub names them: `data/train-00000-of-00002.parquet`; of other names by their content",
    records: "a row of the columns; with `column=`, or where the only column holds lists of numbers, its numbers [T] or [T, C] with the other columns beside them",
    written_by: "`windrow convert --to parquet`, `wr.write`, pyarrow, pandas, polars, DuckDB, Spark, `datasets`, the Hub",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: SUFFIXES,
    open_options: &[COLUMN, COLUMNS],
    written_as: "one `.parquet` file: rows, or numbers in a column `tokens` with their metadata beside it",
    write_options: &[
        TO_COLUMN,
        OptionRow::new(
            "compression",
            Takes::Text("CODEC"),
            "zstd, zstd:LEVEL, snappy or none [default: zstd]",
        ),
    ],
    ..FormatInfo::NONE
};

/// Whether a file has a name of Parquet.
pub(crate) fn is_named(key: &str) -> bool {
    let name = key::name_of(key).to_ascii_lowercase();
    let plain =
        name.rsplit_once('.').filter(|(_, codec)| CODECS.contains(codec)).map_or(&*name, |(plain, _)| plain);
    SUFFIXES.iter().any(|suffix| plain.ends_with(suffix))
}

/// What img2dataset says of the samples in the archive of the same name.
pub(crate) fn is_beside_archive(probe: &Probe, key: &str) -> bool {
    let archive = key.strip_suffix(".parquet").map(|stem| format!("{stem}.tar"));
    archive.is_some_and(|archive| {
        probe.entries.binary_search_by(|entry| entry.key.as_str().cmp(&archive)).is_ok()
    })
}

/// The file, or those of a folder at any depth that have a name of Parquet, in natural order.
pub(crate) fn named(probe: &Probe) -> Vec<String> {
    if probe.is_folder { among(probe, is_named) } else { vec![probe.key.clone()] }
}

/// The files with a name of Parquet; where none has one, all files, if the content of the first is Parquet: one that is not
/// is an error when it is opened, as it would be under the right name.
pub(crate) fn keys(probe: &Probe) -> Vec<String> {
    let named = named(probe);
    if !named.is_empty() {
        return named;
    }
    let begins = |key: &String| {
        let mut scratch = Vec::new();
        let object = probe.store.open(key).ok();
        object.is_some_and(|object| object.read(0, MAGIC.len(), &mut scratch).is_ok_and(|head| head == MAGIC))
    };
    let all = among(probe, |_| true);
    if all.first().is_some_and(begins) { all } else { Vec::new() }
}

fn among(probe: &Probe, is_one: impl Fn(&str) -> bool) -> Vec<String> {
    let files = probe.entries.iter().filter(|entry| !entry.is_folder && is_one(&entry.key));
    let mut keys: Vec<String> = files.map(|entry| entry.key.clone()).collect();
    keys.sort_by(|a, b| discover::natural_order(a, b));
    keys
}
