//! The Hugging Face Hub for windrow: files of a data set from there into a folder, each of them whole and checked.
//!
//! ```no_run
//! # fn main() -> windrow_core::Result<()> {
//! use windrow_hub::{Hub, RepoName, Request};
//!
//! let hub = Hub::from_env()?;
//! let mut request = Request::new(RepoName::parse("owner/name")?, "out");
//! request.include = vec!["train/*.parquet".to_string()];
//! let report = hub.download(&request, &())?;
//! assert!(report.failed.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! Names, the cache's layout and the place of the token are those of the `hf-hub` crate. The bytes are asked for here, with
//! the client that crate brings: a body that was cut continues where it ended, and nothing is shown before its hash is right.

mod digest;
mod download;
mod fetch;
mod folder;
mod http;
mod hub;
mod listing;
mod named;
mod offline;
mod remote_file;
mod repo;
mod retry;
mod select;

pub use digest::Digest;
pub use download::{Failed, Report, Request};
pub use hub::Hub;
pub use listing::Listing;
pub use named::{NAMED, Named};
pub use remote_file::RemoteFile;
pub use repo::RepoName;
pub use retry::Patience;
