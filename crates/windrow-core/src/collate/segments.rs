//! stub
pub struct Segments;
