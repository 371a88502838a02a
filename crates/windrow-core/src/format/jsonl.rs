//! stub
use super::{About, Certainty, Format, Look, Options};
use crate::error::Result;
use crate::source::SharedSource;

/// stub
#[derive(Clone, Copy, Debug)]
pub struct Jsonl;

impl Format for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }
    fn about(&self) -> About {
        todo!()
    }
    fn recognise(&self, _look: &Look) -> Certainty {
        todo!()
    }
    fn open(&self, _look: &Look, _options: &Options) -> Result<SharedSource> {
        todo!()
    }
}
