//! Sound and its codes: files, the codec, folders into data sets, views over codes.

pub(crate) mod audio;
pub(crate) mod codec;
pub(crate) mod codes;
pub(crate) mod folder;
pub(crate) mod samples;
