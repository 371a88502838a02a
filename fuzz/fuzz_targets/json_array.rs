//! An array of objects of any bytes: the objects that a reader of JSON finds, or an error.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::{Memory, Store};
use windrow_formats::FORMATS;
use windrow_fuzz::{drive, is_compressed, values};

fuzz_target!(|data: &[u8]| {
    // Its expansion is looked at by `open_jsonl`.
    if is_compressed(data) {
        return;
    }
    let store: Arc<dyn Store> = Arc::new(Memory::new().with("a.json", data));
    let options = Options { format: Some("json-array".to_string()), ..Options::default() };
    let opened = Probe::at(FORMATS, store, "a.json").and_then(|look| open(FORMATS, &look, &options));
    let text = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let wanted: Option<Vec<Value>> = serde_json::from_slice(text).ok();
    let wanted = wanted.filter(|all| !all.is_empty() && all.iter().all(Value::is_object));
    let Ok(source) = opened else {
        // Bytes of other programs may be such an array by chance, which the error names.
        assert!(wanted.is_none() || opened.is_err_and(|error| error.hint_text().is_some()));
        return;
    };
    if let Some(wanted) = wanted {
        assert_eq!(source.len(), wanted.len() as u64);
        for (record, value) in (0..).zip(&wanted).take(1_000) {
            let bytes = values(&source, record).expect("an object of an array that is one");
            assert_eq!(serde_json::from_slice::<Value>(&bytes).ok().as_ref(), Some(value));
        }
    }
    drive(&source, &[], None, 0);
});
