//! Pickles of any bytes: data or an error, little memory, and nothing run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_fuzz::series;

fuzz_target!(|data: &[u8]| series("pickle", "a.pkl", data));
