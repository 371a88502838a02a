//! stub
pub fn copy_pieces() {}
pub fn copy_values() {}
