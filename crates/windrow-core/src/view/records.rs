//! stub
pub struct Records;
