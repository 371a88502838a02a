//! The formats that need no heavy library: a folder or a file each, and the table of them.
//!
//! Recognising, `inspect`, the table in the docs, the conformance suite and the fuzz list walk the table; nothing else
//! names a format.
//!
//! # Modules
//!
//! * `forager`: byte-offset index of JSONL, or of token samples;
//! * `jsonl`: JSON Lines without an index;
//! * `json_array`: one JSON array of objects;
//! * `tokens`: headerless `.bin` files of token IDs, whole or split into documents;
//! * `llmc`: `.bin` files with the header of llm.c;
//! * `datatrove`: `.ds` files with document ends, loss and metadata;
//! * `olmo`: headerless `.npy` with documents in `.csv.gz`;
//! * `megatron`: `.bin` and `.idx` pairs;
//! * `shards`: `meta.json` and `.bin` shards of series;
//! * `parts`: data sets made by many tasks;
//! * `mds`: MosaicML Streaming;
//! * `litdata`: LitData;
//! * `arrow`: Arrow IPC and Feather files, folders of `datasets`;
//! * `tfrecord`: TFRecord;
//! * `array_record`: ArrayRecord;
//! * `bagz`: Bagz;
//! * `webdataset`: tar archives of samples;
//! * `npy`: NumPy arrays;
//! * `npz`: archives of NumPy arrays;
//! * `series_json`: series in `.json` and `.jsonl`;
//! * `gluonts`: GluonTS data sets in JSON Lines;
//! * `yaml`: series in YAML;
//! * `pickle`: series in Python pickles;
//! * `csv`: series in CSV and TSV;
//! * `tsf`: the Monash archive;
//! * `codes`: pre-encoded audio, `.pt` tensors with prompts;
//! * `collection`: folders of many series files;
//! * `arrays`: shared by npy and npz: which records an array holds;
//! * `converted`: shared by text formats of series: converted once into a file of the cache;
//! * `empty_part`: shared: parts of data without a record;
//! * `foreign`: what other programs write and windrow does not read, or not so;
//! * `firsts`: shared: records of several files, numbered one file after the other;
//! * `in_files`: shared: formats whose data are files of one kind; `FileKind` is the short way to add one;
//! * `index_json`: shared by mds and litdata: folders with an `index.json`;
//! * `json_lines`: shared: records that are lines of JSON;
//! * `json_value`: shared: JSON text as values, with all digits of whole numbers;
//! * `key_rows`: shared: some keys of JSON objects or examples, as rows;
//! * `open_options`: options of opening that only some of these formats follow;
//! * `payload`: shared by tfrecord, array_record and bagz: what a record of bytes holds;
//! * `protobuf`: shared: Protocol Buffers messages, field by field;
//! * `token_runs`: shared by llmc, datatrove and olmo: records that are runs of values in files;
//! * `written_folder`: shared by mds, litdata and webdataset: writes a folder of files with its manifest.

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
mod foreign;
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
