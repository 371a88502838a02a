//! A manifest of any bytes: what is understood is written and understood again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_core::manifest::Manifest;
use windrow_core::store::{Memory, Store};

fuzz_target!(|data: &[u8]| {
    let Ok(side) = parse(data) else { return };
    let text = side.to_text();
    let again = parse(text.as_bytes()).expect("what was written can be read");
    assert_eq!(side, again);
    assert_eq!(text, again.to_text());
});

fn parse(bytes: &[u8]) -> windrow_core::Result<Manifest> {
    let object = Memory::new().with("windrow.json", bytes).open("windrow.json")?;
    Manifest::read(object.as_ref())
}
