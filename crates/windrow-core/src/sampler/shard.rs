//! stub
use crate::error::Result;
/// stub
#[derive(Clone, Copy, Debug)]
pub struct Shard;
impl Shard {
    /// stub
    pub fn world_size(&self) -> u64 {
        1
    }
    /// stub
    pub fn new(_r: u64, _w: u64) -> Result<Shard> {
        Ok(Shard)
    }
    /// stub
    pub fn rows(&self, n: u64) -> std::ops::Range<u64> {
        0..n
    }
}
