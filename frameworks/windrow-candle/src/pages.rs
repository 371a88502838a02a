//! The Rust example of docs/candle.md: `cargo test --doc` compiles and runs it.

#[doc = include_str!("../../../docs/candle.md")]
struct Candle;
