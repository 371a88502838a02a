//! One test binary for the face.
