//! flat-tokens: a group of `encoded_tokens`, `seq_starts` and the attribute `max_token_id`, recognised.

use windrow_core::Result;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{
    Confidence, Format, FormatInfo, Holds, OpenOption, OptionRow, Options, Probe, Takes, WriteOption,
};
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
    write_options: &[
        WriteOption {
            name: "zarr_format",
            takes: Takes::Number("2|3"),
            help: "version of zarr: 2 as seqax writes it (blosc), or 3 (zstd, crc32c) [default: 2]",
            of_tokenize: false,
        },
        WriteOption {
            name: "tokens_chunk_size",
            takes: Takes::Number("N"),
            help: "tokens in a chunk [default: 4194304]",
            of_tokenize: false,
        },
        WriteOption {
            name: "seq_starts_chunk_size",
            takes: Takes::Number("N"),
            help: "starts in a chunk [default: 1048576]",
            of_tokenize: false,
        },
        WriteOption {
            name: "chunks_per_shard",
            takes: Takes::Number("N"),
            help: "with zarr 3, chunks in a shard, which is a file",
            of_tokenize: false,
        },
    ],
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
