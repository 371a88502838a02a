//! Object stores for windrow: S3, Google Cloud Storage, Azure, HTTP and the Hugging Face Hub, read by ranges; the first three are
//! written, too.
//!
//! A [`Remote`] is a [`Store`](windrow_core::store::Store) as any other: formats read it and know nothing of networks. What
//! was fetched is kept in a sparse copy beside a checksum for each 4 KiB, or in memory. Threads, sockets and locks belong to
//! a process: the child of a fork makes its own.
//!
//! # Modules
//!
//! * `url`: which store, and which key in it;
//! * `options`: how stores are asked, and what is cached;
//! * `store`: a bucket or server as a store of the core;
//! * `object`: one remote object, read by position;
//! * `place`: a bucket or server: how it is asked, and what was listed of it;
//! * `backend`: one request each: S3, Google Cloud Storage, Azure, HTTP, the Hub;
//! * `attempt`: retries and deadlines;
//! * `known`: what is known of an object that is read;
//! * `checksum`: the checksum that a store keeps of an object, compared with the bytes that came;
//! * `pace`: how fast a store answers, and a second request beside a late one;
//! * `whole`: an object of a store that gives no ranges;
//! * `trouble`: what failed, and whether a retry may help;
//! * `net`: the runtime and its threads, one per process;
//! * `queue`: what to fetch, in order, up to 64 requests at a time;
//! * `ranges`: which byte ranges become one request;
//! * `copy`: one object in this process: what is here, what is on its way;
//! * `seen`: what an object without a version was when it was fetched first;
//! * `held`: what was fetched: a sparse copy on disk, or memory;
//! * `stream`: an object's bytes as they arrive, cached nowhere;
//! * `put`: writes objects, large ones in parts;
//! * `listing`: what is in a store, by a manifest or by the store itself, and the objects opened last;
//! * `measure`: latency and bandwidth, by which an order is chosen;
//! * `stats`: counts of requests.

mod attempt;
mod backend;
mod checksum;
mod copy;
mod held;
mod known;
mod listing;
mod measure;
mod net;
mod object;
mod options;
mod pace;
mod place;
mod put;
mod queue;
mod ranges;
mod seen;
mod stats;
mod store;
mod stream;
mod trouble;
mod url;
mod whole;

pub use backend::{Source, credentials_by, hub_home};
pub use measure::{Measured, measure};
pub use net::MOST_REQUESTS;
pub use options::Options;
pub use put::Put;
pub use store::Remote;
pub use url::{Location, Scheme};
