//! stub
pub struct Crop;
pub struct Mode;
