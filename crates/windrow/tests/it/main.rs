//! One test binary for the face.

#[cfg(test)]
mod docs;
#[cfg(all(test, feature = "zarr"))]
mod flat_tokens;
#[cfg(test)]
mod real_series;
