//! stub
pub struct Shard;
