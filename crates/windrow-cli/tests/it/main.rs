//! One test binary for the command line: every command as it is typed, every exit code, every way of being stopped.

#[cfg(test)]
mod cache;
#[cfg(test)]
mod chat;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod demo;
#[cfg(feature = "hub")]
#[cfg(test)]
mod download;
#[cfg(test)]
mod encode;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod flips;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod outputs;
#[cfg(test)]
mod prep;
#[cfg(test)]
mod program;
#[cfg(test)]
mod report;
#[cfg(feature = "hub")]
#[cfg(test)]
#[expect(dead_code, reason = "the tests of windrow-hub use all of it")]
#[path = "../../../windrow-hub/tests/it/server.rs"]
mod server;
#[cfg(test)]
mod stopped;
mod tokenizers;
#[cfg(not(feature = "hub"))]
#[cfg(test)]
mod without_the_hub;
