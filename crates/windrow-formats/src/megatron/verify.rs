//! A pair is one data set: what is said of one file is said of both.

use windrow_core::format::verify::Verify;

use super::{DATA, INDEX, Megatron};

impl Verify for Megatron {
    fn other_half(&self, name: &str) -> Option<String> {
        let other = |this: &str, other: &str| name.strip_suffix(this).map(|stem| format!("{stem}{other}"));
        other(DATA, INDEX).or_else(|| other(INDEX, DATA))
    }
}
