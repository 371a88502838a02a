//! One test binary for the face.

#[cfg(test)]
mod docs;
