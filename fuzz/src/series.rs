//! Series that are converted once: opened with a cache of their own, which is emptied after each.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;

use crate::{Cut, drive, is_compressed};

static CACHE: OnceLock<TempDir> = OnceLock::new();

/// Opens the bytes by a format, and puts what opens through everything it can be asked.
pub fn series(format: &str, name: &str, bytes: &[u8]) {
    // Its expansion is looked at by `open_jsonl`.
    if is_compressed(bytes) {
        return;
    }
    cached_alone(|| {
        let options = Options { format: Some(format.to_string()), ..Options::default() };
        let store = Arc::new(Memory::new().with(name, bytes));
        match Probe::at(FORMATS, store, name).and_then(|look| open(FORMATS, &look, &options)) {
            Ok(source) => {
                for record in 0..source.len().min(100) {
                    source.extras(record).expect("what stands beside a record");
                }
                let cuts =
                    [Cut::Windows { width: 5, stride: 3, pad: true }, Cut::Pack { length: 7, eos: None }];
                drive(&source, &cuts, None, 0);
            }
            Err(error) => assert!(error.place().file.is_some(), "{error}"),
        }
    });
}

/// Does something with a cache of its own, and empties it.
pub fn cached_alone(work: impl FnOnce()) {
    let cache = CACHE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        // SAFETY: targets run on one thread, and nothing has asked for the environment before the first input.
        unsafe { std::env::set_var("WINDROW_CACHE", folder.path()) };
        folder
    });
    work();
    empty(cache.path());
}

fn empty(folder: &Path) {
    for item in fs::read_dir(folder).expect("the cache") {
        fs::remove_file(item.expect("a file of the cache").path()).expect("a file of the cache");
    }
}
