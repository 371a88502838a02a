//! YAML of any bytes: series or an error, and little memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_fuzz::series;

fuzz_target!(|data: &[u8]| series("yaml", "a.yaml", data));
