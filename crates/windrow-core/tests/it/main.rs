//! One test binary for the heart.

#[cfg(test)]
mod view;
