//! One test binary for the heart.

#[cfg(test)]
mod sampler;
#[cfg(test)]
mod view;
