//! `index.json`: which chunks there are, how items are stored in them, and what the leaves of an item are. Everything in it is
//! a declared value.

use serde::Deserialize;
use serde_json::Value as Json;
use windrow_core::store::{Object, read_small};
use windrow_core::{Error, Result};

use super::leaf::Leaf;
use super::temporal::Temporal;
use super::tree::Tree;

/// Larger ones are none: a chunk takes some 100 bytes.
const MOST_BYTES: u64 = 1 << 30;

/// The chunks of a data set, and the items in them.
pub(super) struct Index {
    pub(super) chunks: Vec<Chunk>,
    pub(super) storage: Storage,
    pub(super) items: Items,
    /// A hash of the text.
    pub(super) hash: u64,
}

/// A chunk as the index describes it.
pub(super) struct Chunk {
    /// Below the folder of the index.
    pub(super) file: String,
    pub(super) items: u64,
    /// Of the file, expanded where the whole of it is compressed.
    pub(super) bytes: u64,
    /// Values of all items, where they are tokens.
    pub(super) tokens: Option<u64>,
}

/// How items are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// As they are.
    Plain,
    /// Each is a zstd frame.
    Items,
    /// Several together are one.
    Frames,
    /// A chunk is one.
    Chunks,
}

/// What an item is.
pub(super) enum Items {
    /// A tree of leaves.
    Trees { leaves: Vec<Leaf>, tree: Tree },
    /// The bytes of one array.
    Tokens(Leaf),
    /// Arrays with the same number of frames.
    Temporal(Temporal),
}

#[derive(Deserialize)]
struct IndexText {
    chunks: Vec<ChunkText>,
    config: Config,
}

#[derive(Deserialize)]
struct ChunkText {
    filename: String,
    chunk_size: u64,
    chunk_bytes: u64,
    #[serde(default)]
    dim: Option<u64>,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    compression: Option<String>,
    #[serde(default)]
    compression_level: Option<Json>,
    #[serde(default)]
    data_format: Option<Vec<String>>,
    #[serde(default)]
    data_spec: Option<String>,
    #[serde(default)]
    item_loader: Option<String>,
    #[serde(default)]
    encryption: Option<Json>,
    #[serde(default)]
    temporal_schema: Option<Json>,
}

impl Index {
    /// Reads and checks it.
    ///
    /// # Errors
    /// `Corrupt` naming the field; `Unsupported` for other kinds of leaves, storage and loaders.
    pub(super) fn read(object: &dyn Object) -> Result<Index> {
        let text = read_small(object, MOST_BYTES)?;
        let read: IndexText = serde_json::from_slice(&text).map_err(|cause| {
            Error::corrupt("expected the index of a LitData folder").at(object.name()).caused_by(cause)
        })?;
        let hash = xxhash_rust::xxh3::xxh3_64(&text);
        Index::checked(read, hash).map_err(|e| e.at(object.name()))
    }

    fn checked(text: IndexText, hash: u64) -> Result<Index> {
        let config = text.config;
        if config.encryption.as_ref().is_some_and(|encryption| !encryption.is_null()) {
            return Err(Error::unsupported("an encrypted data set")
                .field("encryption")
                .hint("write it without encryption"));
        }
        let storage = storage(&config)?;
        let items = items(config)?;
        let mut chunks = Vec::with_capacity(text.chunks.len());
        for (number, chunk) in text.chunks.into_iter().enumerate() {
            let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
            let is_below = !chunk.filename.contains(['\\', '\0']) && chunk.filename.split('/').all(is_plain);
            if !is_below {
                return Err(Error::corrupt(format!(
                    "the file name {:?} leads outside of the folder",
                    chunk.filename
                ))
                .field(format!("chunks[{number}].filename")));
            }
            chunks.push(Chunk {
                file: chunk.filename,
                items: chunk.chunk_size,
                bytes: chunk.chunk_bytes,
                tokens: chunk.dim,
            });
        }
        if chunks.is_empty() {
            Err(Error::corrupt("expected chunks, found none").field("chunks"))
        } else {
            Ok(Index { chunks, storage, items, hash })
        }
    }
}

fn storage(config: &Config) -> Result<Storage> {
    let Some(compression) = &config.compression else { return Ok(Storage::Plain) };
    if compression.split(':').next() != Some("zstd") {
        return Err(Error::unsupported(format!("chunks compressed with {compression:?}; zstd is read"))
            .field("compression"));
    }
    match config.compression_level.as_ref().and_then(Json::as_str) {
        None | Some("chunk") => Ok(Storage::Chunks),
        Some("batch") => Ok(Storage::Frames),
        Some("sample") => Ok(Storage::Items),
        Some(other) => {
            Err(Error::unsupported(format!("compression of {other:?}")).field("compression_level"))
        }
    }
}

fn items(config: Config) -> Result<Items> {
    let leaves: Vec<Leaf> = config
        .data_format
        .unwrap_or_default()
        .iter()
        .map(|kind| Leaf::parse(kind))
        .collect::<Result<_>>()
        .map_err(|e| e.field("data_format"))?;
    match config.item_loader.as_deref() {
        Some("TokensLoader") => match leaves.as_slice() {
            [leaf @ Leaf::Bare(_)] => Ok(Items::Tokens(leaf.clone())),
            _ => Err(Error::corrupt("tokens that are not one array without a header").field("data_format")),
        },
        Some("TemporalArrayLoader") => {
            let schema = config.temporal_schema.unwrap_or_default();
            Temporal::parse(schema).map(Items::Temporal).map_err(|e| e.field("temporal_schema"))
        }
        Some("PyTreeLoader") | None => {
            let spec = config.data_spec.unwrap_or_default();
            let tree = Tree::parse(&spec).map_err(|e| e.field("data_spec"))?;
            if tree.leaves() == leaves.len() {
                Ok(Items::Trees { leaves, tree })
            } else {
                Err(Error::corrupt(format!(
                    "a tree of {} leaves, of which {} are described",
                    tree.leaves(),
                    leaves.len()
                ))
                .field("data_spec"))
            }
        }
        Some(other) => Err(Error::unsupported(format!("items of the loader {other:?}"))
            .field("item_loader")
            .hint("PyTreeLoader, TokensLoader and TemporalArrayLoader are read")),
    }
}
