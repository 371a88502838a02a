//! The Rust example of docs/burn.md: `cargo test --doc` compiles and runs it.

#[doc = include_str!("../../../docs/burn.md")]
struct Burn;
