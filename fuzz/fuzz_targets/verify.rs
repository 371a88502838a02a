//! A folder of arbitrary parts on disk: verifying it finds what is bad, and never more than an error.
#![no_main]

use std::fs;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow::prepare::VerifyOptions;
use windrow::verify;
use windrow_fuzz::Folder;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    at: u8,
    gc: bool,
    folder: Folder<'a>,
}

fuzz_target!(|input: Input<'_>| {
    let folder = tempfile::tempdir().expect("a folder");
    for (key, bytes) in input.folder.objects() {
        // Nothing is written beside the folder.
        if key.starts_with('/') || key.contains("..") {
            continue;
        }
        let path = folder.path().join(key);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    let at = ["", "index", "a.bin", "e.jsonl", "index/windrow.json"][usize::from(input.at) % 5];
    let options = VerifyOptions { gc: input.gc, ..VerifyOptions::default() };
    if let Err(error) = verify(&folder.path().join(at), &options, &()) {
        assert!(!error.to_string().is_empty());
    }
});
