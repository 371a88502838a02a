//! One test binary for the heart.
