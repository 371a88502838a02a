//! One test binary for the heart.

mod prepare;
