//! A store far away, asked over loopback.

#![expect(clippy::unwrap_used, reason = "a test that fails says so")]

mod answers;
mod checksums;
mod faults;
mod opening;
mod puts;
mod reads;
mod server;
mod together;

use std::sync::Arc;
use std::time::Duration;

use windrow_core::store::{Object, Store};
use windrow_remote::{Location, Options, Remote};

/// Bytes that say where they stood.
pub(crate) fn content(size: usize) -> Vec<u8> {
    (0..size.div_ceil(4) as u32).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes()).take(size).collect()
}

/// In memory alone, with little patience.
pub(crate) fn options() -> Options {
    Options { cache_limit: Some(0), timeout: Duration::from_secs(20), ..Options::default() }
}

pub(crate) fn open(url: &str, key: &str, options: Options) -> (Remote, Arc<dyn Object>) {
    let location = Location::of(&format!("{url}/{key}")).unwrap().unwrap();
    let store = Remote::new(&location, options).unwrap();
    let object = store.open(&location.key).unwrap();
    (store, object)
}

/// A bucket of S3, whose requests are unsigned.
pub(crate) fn bucket(server: &server::Server, options: Options) -> Remote {
    s3(server, options, &[("anon", "true"), ("region", "us-east-1")])
}

/// A bucket of S3 with these settings.
pub(crate) fn s3(server: &server::Server, mut options: Options, settings: &[(&str, &str)]) -> Remote {
    for (name, value) in [&[("endpoint_url", server.url.as_str())], settings].concat() {
        options.store.insert(name.to_string(), value.to_string());
    }
    Remote::new(&Location::of("s3://b").unwrap().unwrap(), options).unwrap()
}

pub(crate) fn read(object: &dyn Object, start: u64, size: usize) -> windrow_core::Result<Vec<u8>> {
    object.read(start, size, &mut Vec::new()).map(<[u8]>::to_vec)
}
