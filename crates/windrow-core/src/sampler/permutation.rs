//! stub
pub struct Permutation;
