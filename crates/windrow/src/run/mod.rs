//! From samples to batches: the loader that a plan is run by, its ranks, the plan as text and back, what a step read.

pub(crate) mod balance_text;
pub(crate) mod balancing;
pub mod bench;
pub(crate) mod budget;
pub(crate) mod builder;
pub(crate) mod compared;
pub(crate) mod metrics;
pub(crate) mod mixing;
pub(crate) mod neighbours;
pub(crate) mod options;
pub(crate) mod padding;
pub mod ranks;
pub(crate) mod recipe;
pub(crate) mod reopen;
pub(crate) mod traced;
pub(crate) mod waiting;
