//! What Parquet is called, and how its files are found.

use windrow_core::format::{COLUMN, COLUMNS, FormatInfo, Holds, Probe, Takes, WriteOption, discover};
use windrow_core::store::key;

/// How the names of its files end.
pub(crate) const SUFFIXES: &[&str] = &[".parquet", ".pq"];
pub(crate) const MAGIC: &[u8] = b"PAR1";

pub(crate) static INFO: FormatInfo = FormatInfo {
    name: "parquet",
    title: "Parquet",
    layout: "`.parquet` files, alone or in a folder, also as the Hub names them: `data/train-00000-of-00002.parquet`",
    records: "a row of the columns; with `column=`, or where the only column holds lists of numbers, its numbers [T] or [T, C] with the other columns beside them",
    written_by: "`windrow convert --to parquet`, `wr.write`, pyarrow, pandas, polars, DuckDB, Spark, `datasets`, the Hub",
    holds: &[Holds::Rows, Holds::Tokens, Holds::Series],
    data_suffixes: SUFFIXES,
    open_options: &[COLUMN, COLUMNS],
    written_as: "one `.parquet` file: rows, or numbers in a column `tokens` with their metadata beside it",
    write_options: &[
        WriteOption::TO_COLUMN,
        WriteOption {
            name: "compression",
            takes: Takes::Text("CODEC"),
            help: "zstd, zstd:LEVEL, snappy or none [default: zstd]",
            of_tokenize: false,
        },
    ],
    ..FormatInfo::NONE
};

/// Whether a file has a name of Parquet.
pub(crate) fn is_named(key: &str) -> bool {
    let name = key::name_of(key).to_ascii_lowercase();
    SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// What img2dataset says of the samples in the archive of the same name.
pub(crate) fn is_beside_archive(probe: &Probe, key: &str) -> bool {
    let archive = key.strip_suffix(".parquet").map(|stem| format!("{stem}.tar"));
    archive.is_some_and(|archive| {
        probe.entries.binary_search_by(|entry| entry.key.as_str().cmp(&archive)).is_ok()
    })
}

/// The file, or those of a folder at any depth, in natural order.
pub(crate) fn keys(probe: &Probe) -> Vec<String> {
    match probe.is_folder {
        false => vec![probe.key.clone()],
        true => {
            discover::among(&probe.entries, SUFFIXES).into_iter().map(|entry| entry.key.clone()).collect()
        }
    }
}
