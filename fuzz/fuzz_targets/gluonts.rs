//! Lines of GluonTS of any bytes: series or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_fuzz::series;

fuzz_target!(|data: &[u8]| series("gluonts", "data.json", data));
