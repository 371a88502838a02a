//! A file of torch of any bytes: codes or an error, little memory, and nothing run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_fuzz::array;

fuzz_target!(|data: &[u8]| array("codes", "a.pt", data));
