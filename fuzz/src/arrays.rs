//! Series that are read where they lie: opened from memory, and driven.

use std::sync::Arc;

use windrow_core::format::{Options, Probe, open};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;

use crate::{Cut, drive, is_compressed};

/// Opens `key` of a store of small files by a format, and puts what opens through everything it can be asked.
pub fn arrays(format: &str, store: Memory, key: &str) {
    let options = Options { format: Some(format.to_string()), ..Options::default() };
    match Probe::at(FORMATS, Arc::new(store), key).and_then(|look| open(FORMATS, &look, &options)) {
        Ok(source) => {
            for record in 0..source.len().min(100) {
                source.extras(record).expect("what stands beside a record");
            }
            let cuts = [Cut::Windows { width: 5, stride: 3, pad: true }, Cut::Pack { length: 7, eos: None }];
            drive(&source, &cuts, None, 0);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Opens the bytes of one file.
pub fn array(format: &str, name: &str, bytes: &[u8]) {
    // Its expansion is looked at by `open_jsonl`.
    if !is_compressed(bytes) {
        arrays(format, Memory::new().with(name, bytes), name);
    }
}
