//! stub
pub struct Bins;
pub struct Strategy;
