//! flat-tokens: a group of `encoded_tokens`, `seq_starts` and the attribute `max_token_id`, recognised.

use windrow_core::Result;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{
    Confidence, Format, FormatInfo, Holds, OpenOption, OptionRow, Options, Probe, Takes,
};
use windrow_core::option_rows;
use windrow_core::source::SharedSource;

use crate::{layout, opened};

/// Token sequences in zarr groups, v2 or v3.
#[derive(Clone, Copy, Debug)]
pub struct FlatTokens;

const FILL_MISSING: OpenOption = OpenOption::of_some(
    OptionRow::new(
        "fill_missing",
        Takes::On,
        "Of chunked arrays: read missing chunks as zeros instead of refusing them.",
    ),
    "has no chunks that may be missing",
    "it is for chunked arrays; leave it out",
);

const MEMORY_LIMIT: OpenOption = OpenOption::of_some(
    OptionRow::new(
        "memory_limit",
        Takes::Bytes,
        "Of chunked arrays: bytes of decoded chunks that are kept in memory, all threads together.",
    ),
    "keeps no decoded chunks in memory",
    "it is for chunked arrays; leave it out",
);

static INFO: FormatInfo = FormatInfo {
    name: layout::NAME,
    title: "Flat tokens",
    layout: "a zarr group (v2 or v3) of `encoded_tokens`, `seq_starts` and the attribute `max_token_id`; \
             a data set holds one in `train` and one in `validation`",
    records: "one sequence of token IDs",
    written_by: "`windrow convert --to flat-tokens`, `windrow tokenize --to flat-tokens`, `wr.write`, seqax",
    holds: &[Holds::Tokens],
    open_options: &[FILL_MISSING, MEMORY_LIMIT],
    written_as: "a zarr group of token IDs: encoded_tokens, seq_starts",
    write_options: option_rows! {
        /// version of zarr: 2 as seqax writes it (blosc), or 3 (zstd, crc32c) [default: 2]
        zarr_format: Takes::Number("2|3");
        /// tokens in a chunk [default: 4194304]
        tokens_chunk_size: Takes::Number("N");
        /// starts in a chunk [default: 1048576]
        seq_starts_chunk_size: Takes::Number("N");
        /// with zarr 3, chunks in a shard, which is a file
        chunks_per_shard: Takes::Number("N");
    },
    ..FormatInfo::NONE
};

impl Format for FlatTokens {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        Confidence::yes_if(layout::is_here(probe))
    }

    fn parts(&self, probe: &Probe) -> Vec<String> {
        layout::parts(probe)
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        opened::writer(options)
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        opened::open(probe, options)
    }
}
