//! stub
pub struct Mix;
pub struct Stop;
