//! One test binary for the face.

#[cfg(test)]
mod docs;
#[cfg(test)]
#[cfg(feature = "zarr")]
mod flat_tokens;
#[cfg(test)]
mod real_series;
