//! `metadata.json` and a prompt of any bytes beside two tracks: prompts or an error.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use windrow_core::DType;
use windrow_core::format::{Options, Probe, open};
use windrow_core::source::conformance;
use windrow_core::store::Memory;
use windrow_formats::{FORMATS, tensor_file};

fuzz_target!(|data: (&[u8], Option<&[u8]>)| {
    let (metadata, prompt) = data;
    let track = tensor_file("a", DType::I16, [2, 2], &[1, 0, 2, 0, 3, 0, 4, 0]).expect("a tensor");
    let mut store = Memory::new()
        .with("encoded_audio/a.pt", track.clone())
        .with("encoded_audio/b.pt", track)
        .with("metadata.json", metadata);
    if let Some(prompt) = prompt {
        store = store.with("prompts/a.txt", prompt);
    }
    match Probe::at(FORMATS, Arc::new(store), "").and_then(|look| open(FORMATS, &look, &Options::default())) {
        Ok(source) => {
            let mut scratch = String::new();
            for record in 0..source.len() {
                match (source.text(record, &mut scratch), source.extras(record)) {
                    (Ok(text), Ok(extras)) => {
                        assert_eq!(extras.get("text").and_then(windrow_core::Value::as_text), Some(text))
                    }
                    (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
                    (one, other) => panic!("{one:?} {other:?}"),
                }
                if source.extras(record).is_ok() {
                    let _ = source.locate(windrow_core::Span { record, start: 0, len: 2 }).expect("a place");
                }
            }
            // Prompts are read only when they are asked for: one that is no text leaves the codes readable.
            if (0..source.len()).all(|record| source.extras(record).is_ok()) {
                conformance::check(source.as_ref()).expect("a source that keeps its promises");
            }
        }
        Err(error) => assert!(error.place().file.is_some(), "{error}"),
    }
});
