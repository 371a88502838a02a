//! stub
pub struct Pack;
