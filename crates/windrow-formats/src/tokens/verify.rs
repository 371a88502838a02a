//! Raw tokens: any bytes are token IDs, so only a manifest says more.

use windrow_core::DType;
use windrow_core::format::verify::{Content, Verify};
use windrow_core::manifest::Manifest;
use windrow_core::store::plain_name;

use super::Tokens;

impl Verify for Tokens {
    fn content(&self) -> Content {
        Content::Unknown
    }

    fn ids(&self, manifest: &Manifest) -> Option<(DType, u64)> {
        manifest.dtype.zip(manifest.vocab_size)
    }

    fn name_before<'n>(&self, name: &'n str) -> Option<&'n str> {
        Some(plain_name(name)).filter(|plain| *plain != name && plain.ends_with(".bin"))
    }
}
