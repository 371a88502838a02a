//! A file of weights of any bytes: a codec that encodes, or an error; little memory, and nothing run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_dac::{Codec, Options};

fuzz_target!(|data: &[u8]| {
    let Ok(folder) = tempfile::tempdir() else { return };
    let path = folder.path().join("weights");
    if std::fs::write(&path, data).is_err() {
        return;
    }
    if let Ok(codec) = Codec::open(&path, &Options::default().num_threads(1).chunk(64)) {
        let _ = codec.encode(&[0.5; 100]);
    }
});
