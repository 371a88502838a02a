//! stub
pub struct Windows;
pub struct Tail;
