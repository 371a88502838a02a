//! One numpy array (`y…`) or an archive of them (`z…`) of any bytes: series or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_fuzz::{array, cached_alone};

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((b'z', archive)) => cached_alone(|| array("npz", "a.npz", archive)),
    Some((_, one)) => array("npy", "a.npy", one),
    None => {}
});
