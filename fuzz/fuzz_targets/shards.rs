//! A folder of shards: `meta.json`, then two shards, parted by NUL bytes (the last has the rest).
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_core::store::Memory;
use windrow_fuzz::arrays;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let store = Memory::new()
        .with("s/meta.json", part())
        .with("s/data-1-of-2.bin", part())
        .with("s/data-2-of-2.bin", part());
    arrays("shards", store, "s");
});
