//! In which order samples are read, and what an order costs: blocks that are read together, the memory for them, what is measured.

pub(crate) mod blocks;
pub(crate) mod measure;
pub(crate) mod ordered;
pub(crate) mod room;
pub(crate) mod shuffle;
