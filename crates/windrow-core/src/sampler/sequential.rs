//! stub
pub struct Sequential;
