//! The Rust examples of README.md and docs/: `cargo test --doc` compiles and runs each.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/README.md")]
struct Start;

#[doc = include_str!("../../../docs/loading.md")]
struct Loading;

#[cfg(feature = "text")]
#[doc = include_str!("../../../docs/rust.md")]
struct Rust;

#[cfg(feature = "audio")]
#[doc = include_str!("../../../docs/sound.md")]
struct Sound;
