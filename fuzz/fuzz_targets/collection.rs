//! A folder of series: files of any bytes beside each other, read as one data set.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::cached_alone;

const NAMES: [&str; 4] = ["a.json", "b.npy", "c.yaml", "d/meta.json"];

fuzz_target!(|files: [&[u8]; 4]| {
    cached_alone(|| {
        let store =
            NAMES.iter().zip(files).fold(Memory::new(), |store, (name, bytes)| store.with(name, bytes));
        let options = Options { format: Some("collection".to_string()), ..Options::default() };
        let opened =
            Probe::at(FORMATS, Arc::new(store), "").and_then(|probe| open(FORMATS, &probe, &options));
        let Ok(source) = opened else { return };
        let mut scratch = Vec::new();
        for record in 0..source.len().min(100) {
            source.extras(record).expect("metadata");
            source.read_whole(record, &mut scratch).map(drop).unwrap_or_default();
        }
    });
});
