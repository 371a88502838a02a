//! One test binary for the face.

#[cfg(test)]
mod docs;
#[cfg(test)]
mod real_series;
