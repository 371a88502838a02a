//! The formats that need no heavy library: a folder or a file each, and the table of them.
//!
//! Recognising, `inspect`, the table in the docs, the conformance suite and the fuzz list walk the table; nothing else
//! names a format.

mod array_record;
mod arrays;
mod arrow;
mod bagz;
mod codes;
mod collection;
mod converted;
mod csv;
mod datatrove;
mod empty_part;
mod forager;
mod gluonts;
mod json_lines;
mod json_value;
mod jsonl;
mod key_rows;
mod litdata;
mod llmc;
mod mds;
mod megatron;
mod npy;
mod npz;
mod olmo;
mod open_options;
mod parts;
mod payload;
mod pickle;
mod protobuf;
mod series_json;
mod shard_names;
mod shards;
mod tfrecord;
mod token_runs;
mod tokens;
mod tsf;
mod webdataset;
mod written_folder;
mod yaml;

pub use array_record::ArrayRecord;
pub use arrow::Arrow;
pub use bagz::Bagz;
pub use codes::{Codes, read_prompt, tensor_file};
pub use collection::Collection;
pub use csv::Csv;
pub use datatrove::Datatrove;
pub use empty_part::is_empty_part;
pub use forager::{Forager, Layout, LayoutArray};
pub use gluonts::GluonTs;
pub use json_value::parse_json;
pub use jsonl::Jsonl;
pub use key_rows::key_rows;
pub use litdata::LitData;
pub use llmc::Llmc;
pub use mds::Mds;
pub use megatron::Megatron;
pub use npy::Npy;
pub use npz::{NamedArray, Npz, npz_of};
pub use olmo::Olmo;
pub use parts::Parts;
pub use pickle::Pickle;
pub use series_json::{SeriesJson, SeriesJsonLines};
pub use shards::Shards;
pub use tfrecord::TfRecord;
pub use tokens::Tokens;
pub use tsf::Tsf;
pub use webdataset::WebDataset;
use windrow_core::format::Table;
pub use yaml::Yaml;

/// Every format here, in the order in which they are asked.
pub static FORMATS: Table = &[
    &Parts,
    &Forager,
    &Mds,
    &LitData,
    &Arrow,
    &Jsonl,
    &Llmc,
    &Datatrove,
    &Olmo,
    &TfRecord,
    &ArrayRecord,
    &Bagz,
    &WebDataset,
    &Tokens,
    &Megatron,
    &Shards,
    &Npy,
    &Npz,
    &GluonTs,
    &SeriesJson,
    &SeriesJsonLines,
    &Yaml,
    &Pickle,
    &Csv,
    &Tsf,
    &Codes,
    &Collection,
];
