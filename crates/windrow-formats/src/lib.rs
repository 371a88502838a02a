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
mod firsts;
mod forager;
mod gluonts;
mod in_files;
mod index_json;
mod json_array;
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
mod shards;
mod tfrecord;
mod token_runs;
mod tokens;
mod tsf;
mod webdataset;
mod written_folder;
mod yaml;

use array_record::ArrayRecord;
pub use arrow::Arrow;
use bagz::Bagz;
pub use codes::{Codes, read_prompt, tensor_file};
pub use collection::Collection;
pub use csv::Csv;
use datatrove::Datatrove;
pub use empty_part::is_empty_part;
pub use forager::{Forager, Layout, LayoutArray};
pub use gluonts::GluonTs;
use in_files::InFiles;
use json_array::JsonArray;
pub use json_value::parse_json;
pub use jsonl::Jsonl;
pub use key_rows::key_rows;
pub use litdata::LitData;
use llmc::Llmc;
pub use mds::Mds;
pub use megatron::Megatron;
pub use npy::Npy;
pub use npz::{NamedArray, Npz, npz_of};
use olmo::Olmo;
pub use parts::Parts;
pub use pickle::Pickle;
pub use series_json::{SeriesJson, SeriesJsonLines};
pub use shards::Shards;
use tfrecord::TfRecord;
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
    &JsonArray,
    &InFiles(Llmc),
    &InFiles(Datatrove),
    &InFiles(Olmo),
    &InFiles(TfRecord),
    &InFiles(ArrayRecord),
    &InFiles(Bagz),
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
