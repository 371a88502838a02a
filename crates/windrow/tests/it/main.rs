//! One test binary for the facade.

#[cfg(test)]
#[cfg(feature = "remote")]
#[allow(dead_code)] // Shared: each test binary uses a part of it.
#[path = "../../../windrow-core/tests/it/alone.rs"]
mod alone;
#[cfg(test)]
#[cfg(feature = "zarr")]
mod any_to_any;
#[cfg(test)]
mod blocks;
#[cfg(test)]
#[cfg(feature = "remote")]
mod bucket;
#[cfg(test)]
mod docs;
#[cfg(test)]
#[cfg(all(feature = "zarr", feature = "text"))]
mod documents;
#[cfg(test)]
#[cfg(feature = "remote")]
mod download;
#[cfg(test)]
#[cfg(feature = "zarr")]
mod every_format;
#[cfg(test)]
#[cfg(feature = "zarr")]
mod flat_tokens;
#[cfg(test)]
#[cfg(feature = "zarr")]
mod ids;
#[cfg(test)]
mod imports;
#[cfg(test)]
#[cfg(feature = "remote")]
#[allow(dead_code)] // Shared with the tests of formats.
#[path = "../../../windrow-formats/tests/it/in_parts.rs"]
mod in_parts;
#[cfg(test)]
#[cfg(feature = "remote")]
mod many;
#[cfg(test)]
mod masks;
#[cfg(test)]
#[cfg(feature = "remote")]
mod memory;
#[cfg(test)]
mod names;
#[cfg(test)]
mod neighbours;
#[cfg(test)]
mod outputs;
#[cfg(test)]
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(test)]
#[cfg(feature = "remote")]
mod parts;
#[cfg(test)]
#[cfg(feature = "text")]
mod prep;
#[cfg(test)]
#[cfg(all(feature = "remote", feature = "text", feature = "zarr"))]
mod prep_convert;
#[cfg(test)]
#[cfg(all(feature = "dac", feature = "remote", feature = "text", feature = "zarr"))]
mod prep_encode;
#[cfg(test)]
#[cfg(all(feature = "remote", feature = "text", feature = "zarr"))]
mod prep_far;
#[cfg(test)]
mod real_series;
#[cfg(test)]
#[cfg(feature = "remote")]
mod remote;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod runs;
#[cfg(test)]
#[cfg(feature = "remote")]
mod s3;
#[cfg(test)]
mod spelling;
#[cfg(test)]
mod states;
#[cfg(test)]
#[cfg(all(feature = "remote", feature = "text", feature = "zarr"))]
mod taken;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod without;
#[cfg(test)]
#[cfg(all(feature = "remote", feature = "text", feature = "zarr"))]
mod written;
