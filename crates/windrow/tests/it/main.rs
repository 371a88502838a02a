//! One test binary for the face.

mod docs;
