//! Object stores for windrow: S3, Google Cloud Storage, Azure, HTTP and the Hugging Face Hub, read by ranges; the first three are
//! written, too.
//!
//! A [`Remote`] is a [`Store`](windrow_core::store::Store) as any other: formats read it and know nothing of networks. What
//! was fetched is kept in a sparse copy beside a checksum for each 64 KiB, or in memory. Threads, sockets and locks belong to
//! a process: the child of a fork makes its own.

mod attempt;
mod backend;
mod by_name;
mod copies;
mod copy;
mod held;
mod list;
mod listed;
mod measure;
mod names;
mod net;
mod object;
mod options;
mod place;
mod put;
mod queue;
mod ranges;
mod stats;
mod store;
mod stream;
mod told;
mod trouble;
mod url;

pub use backend::hub_home;
pub use measure::{Measured, measure};
pub use net::MOST_REQUESTS;
pub use options::Options;
pub use put::Put;
pub use store::Remote;
pub use url::{Location, Scheme};
