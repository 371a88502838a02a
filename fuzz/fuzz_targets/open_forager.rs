//! A byte-offset index of arbitrary parts over arbitrary data files.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::{Cut, Folder, drive, dtype};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    dtype: Option<u8>,
    vocab_size: Option<u64>,
    tokenizer: bool,
    allow_outside: bool,
    trust: bool,
    at_index: bool,
    batch_dtype: Option<u8>,
    pad: i8,
    cuts: [Cut; 2],
    folder: Folder<'a>,
}

fuzz_target!(|input: Input<'_>| {
    let objects = input.folder.objects();
    let store = objects.into_iter().fold(Memory::new(), |store, (key, bytes)| store.with(&key, bytes));
    let options = Options {
        dtype: input.dtype.map(dtype),
        vocab_size: input.vocab_size,
        tokenizer: input.tokenizer.then(|| "00".to_string()),
        allow_outside: input.allow_outside,
        trust: input.trust,
        ..Options::default()
    };
    let key = if input.at_index { "index" } else { "" };
    let Ok(look) = Probe::at(FORMATS, Arc::new(store), key) else { return };
    match open(FORMATS, &look, &options) {
        Ok(source) => drive(&source, &input.cuts, input.batch_dtype.map(dtype), input.pad.into()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
