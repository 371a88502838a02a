//! Files that are no text of UTF-8.

use serde_json::Value;
use windrow_core::Error;
use windrow_core::format::foreign;
use windrow_core::store::{Memory, Store};

/// Whether lines were refused for what one of the files is instead: text of UTF-16 or UTF-32, or another kind of file, which the
/// error names. A file whose first line is JSON is neither.
pub fn is_no_text(error: &Error, parts: &[&[u8]]) -> bool {
    let says = |name: &str| error.message().contains(&format!("found {name}"));
    parts.iter().any(|part| match part {
        _ if begins_with_json(part) => false,
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] if says("UTF-32") => true,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [_, 0, _, 0, ..] | [0, _, 0, _, ..] if says("UTF-16") => true,
        _ => {
            let object = Memory::new().with("x", *part).open("x").expect("an object that was put there");
            foreign::of(foreign::listed(windrow_formats::FORMATS), object.as_ref())
                .expect("its bytes")
                .is_some_and(|kind| says(kind.name))
        }
    })
}

fn begins_with_json(bytes: &[u8]) -> bool {
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    serde_json::from_slice::<Value>(line).is_ok()
}
