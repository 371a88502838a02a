//! Wrongs of the past, one test each: bytes or numbers that once gave a panic, a wrong value, or a claim that did not hold.

use std::fs;
use std::sync::Arc;

use windrow_core::collate::NextToken;
use windrow_core::format::{FORMATS, Look, Options, SideFile, open, parse_json};
use windrow_core::plan::Feed;
use windrow_core::prepare::{VerifyOptions, verify};
use windrow_core::store::{Memory, Store};
use windrow_core::view::Pack;
use windrow_core::{DType, Kind, Place};

/// A number was off by its last bit when it was read, so that a side file changed each time it was written.
#[test]
fn r0001_a_float_is_read_as_it_was_written() {
    for text in ["0.10006499999999999", "1e-24", "2.2250738585072014e-308", "5e-324", "9007199254740993.0"] {
        let found = parse_json(text.as_bytes(), &Place::default()).unwrap();
        assert_eq!(found.as_f64().map(f64::to_bits), text.parse().ok().map(f64::to_bits), "{text}");
    }
    let read = |text: &str| {
        let object = Memory::new().with("windrow.json", text.as_bytes()).open("windrow.json").unwrap();
        SideFile::read(object.as_ref()).unwrap()
    };
    let text =
        r#"{"version":1,"windrow":"0.1.0","format":"tokens","statistics":{"std":1.0000000000000001e-24}}"#;
    let side = read(text);
    assert_eq!(read(&side.to_text()), side);
}

/// The claimed sizes were added up before they were held against the files.
#[test]
fn r0002_claimed_sizes_past_64_bits_are_problems_of_their_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.bin"), [1, 0, 2, 0]).unwrap();
    let files = format!(r#"[{{"name":"a.bin","size":{0}}},{{"name":"b.bin","size":{0}}}]"#, u64::MAX);
    let side = format!(r#"{{"version":1,"windrow":"0.1.0","format":"tokens","files":{files}}}"#);
    fs::write(folder.path().join("windrow.json"), side).unwrap();
    let found = verify(folder.path(), &VerifyOptions::default(), &()).unwrap();
    let what: Vec<(&str, &str)> = found.problems.iter().map(|p| (&*p.file, &*p.what)).collect();
    assert_eq!(what, [("a.bin", "size"), ("b.bin", "file")]);
    assert_eq!(found.checked_bytes, 4);
}

/// An end id that the batch's dtype cannot hold was laid as its low bits: another id.
#[test]
fn r0003_an_end_id_that_does_not_fit_the_batch_is_an_error() {
    let store = Memory::new().with("a.bin", [1u8, 0, 2, 0]).with("b.bin", [3u8, 0]);
    let look = Look::at(Arc::new(store), "").unwrap();
    let options = Options { dtype: Some(DType::U16), ..Options::default() };
    let source = open(FORMATS, &look, &options).unwrap();
    for (eos, dtype, fits) in [(255, DType::U8, true), (256, DType::U8, false), (256, DType::U16, true)] {
        let view = Arc::new(Pack::new(source.clone(), 4, Some(eos)).unwrap());
        let collate = NextToken::new(source.schema(), 4, Some(dtype), false, 0).unwrap();
        let laid = Feed::new(source.clone(), view, Arc::new(collate)).batch(&[0], 0);
        assert_eq!(laid.is_ok(), fits, "{eos} as {dtype}");
        assert!(laid.is_ok() || laid.unwrap_err().kind() == Kind::Config);
    }
}
