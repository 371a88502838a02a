//! stub
pub struct Raw;
