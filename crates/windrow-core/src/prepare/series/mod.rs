//! Numbers into files, record by record: shards, `.npy`, `.npz`, `.jsonl`, and ids in the layouts of tokens. What is
//! written becomes visible at once.

mod body;
mod codes;
mod convert;
mod forager;
mod jsonl;
mod latched;
mod megatron;
mod npy;
mod npz;
mod options;
mod origin;
mod shards;
mod tokens;
mod writer;

pub use convert::convert;
pub(super) use megatron::MegatronDocuments;
pub use options::{SeriesLayout, SeriesOptions};
pub use origin::manifest_of;
pub(super) use shards::ShardDocuments;
pub use writer::SeriesWriter;
