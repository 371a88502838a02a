//! stub
pub struct Shuffle;
