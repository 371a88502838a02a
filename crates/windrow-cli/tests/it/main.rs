//! One test binary for the command line: every command as it is typed, every exit code, every way of being stopped.

#[cfg(test)]
#[cfg(feature = "full")]
mod cache;
#[cfg(test)]
#[cfg(feature = "full")]
mod chat;
#[cfg(test)]
#[cfg(feature = "full")]
mod commands;
#[cfg(test)]
#[cfg(feature = "full")]
mod demo;
#[cfg(test)]
#[cfg(feature = "full")]
mod download;
#[cfg(test)]
#[cfg(feature = "full")]
mod encode;
#[cfg(test)]
#[cfg(feature = "full")]
mod failures;
#[cfg(test)]
#[cfg(feature = "full")]
mod flips;
#[cfg(test)]
#[cfg(feature = "full")]
mod help;
#[cfg(test)]
#[cfg(feature = "full")]
mod limits;
#[cfg(test)]
#[cfg(feature = "full")]
mod messages;
#[cfg(test)]
#[cfg(feature = "full")]
mod outputs;
#[cfg(test)]
#[cfg(feature = "full")]
mod plan;
#[cfg(test)]
#[cfg(feature = "full")]
mod prep;
#[cfg(test)]
#[cfg_attr(not(feature = "full"), expect(dead_code, reason = "the other tests use all of it"))]
mod program;
#[cfg(test)]
#[cfg(feature = "full")]
mod report;
#[cfg(test)]
#[cfg(feature = "full")]
#[expect(dead_code, reason = "the tests of windrow use all of it")]
#[path = "../../../windrow/tests/it/download/server.rs"]
mod server;
#[cfg(test)]
#[cfg(feature = "full")]
mod spelling;
#[cfg(test)]
#[cfg(feature = "full")]
mod stopped;
#[cfg(test)]
#[cfg(feature = "full")]
mod tokenizers;
#[cfg(test)]
#[cfg(not(feature = "full"))]
mod without;
