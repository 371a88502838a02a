//! A pair is one data set: what is said of one file is said of both.

use super::{DATA, INDEX, Megatron};
use windrow_core::format::verify::Verify;

impl Verify for Megatron {
    fn other_half(&self, name: &str) -> Option<String> {
        let other = |this: &str, other: &str| name.strip_suffix(this).map(|stem| format!("{stem}{other}"));
        other(DATA, INDEX).or_else(|| other(INDEX, DATA))
    }
}
