//! Downloads from a Hub on loopback, from a bucket and from a web server: what is there, and all that can go wrong on the way.

mod broken;
mod desk;
mod here;
mod other_stores;
mod refused;
mod server;
#[expect(dead_code, reason = "the tests of windrow-remote use all of it")]
#[path = "../../../../windrow-remote/tests/it/server.rs"]
mod store;
mod whole;
