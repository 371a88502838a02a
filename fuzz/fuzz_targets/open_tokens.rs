//! Raw token files of any bytes, read as any dtype against any vocabulary, whole or cut at any end id.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::DType;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::{Cut, Side, drive, dtype, values};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    dtype: Option<u8>,
    vocab_size: Option<u64>,
    eos: Option<i64>,
    tokenizer: bool,
    trust: bool,
    as_folder: bool,
    batch_dtype: Option<u8>,
    pad: i8,
    cuts: [Cut; 2],
    side: Option<Side<'a>>,
    more: Option<&'a [u8]>,
    data: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut files = vec![("a.bin", input.data)];
    files.extend(input.more.map(|more| ("b2.bin", more)));
    let mut store = files.iter().fold(Memory::new(), |store, (name, bytes)| store.with(name, *bytes));
    if let Some(side) = &input.side {
        let names: Vec<&str> = files.iter().map(|f| f.0).collect();
        let sizes: Vec<usize> = files.iter().map(|f| f.1.len()).collect();
        store = store.with("windrow.json", side.text(&names, &sizes));
    }
    let options = Options {
        dtype: input.dtype.map(dtype),
        vocab_size: input.vocab_size,
        document_eos: input.eos,
        tokenizer: input.tokenizer.then(|| "00".to_string()),
        trust: input.trust,
        ..Options::default()
    };
    let Ok(look) = Probe::at(FORMATS, Arc::new(store), if input.as_folder { "" } else { "a.bin" }) else {
        return;
    };
    let Ok(source) = open(FORMATS, &look, &options) else { return };
    // A manifest may tell that the ids are lines of JSON.
    if source.format() != "tokens" {
        return;
    }
    let stored = source.schema().element.dtype;
    let claimed = look.manifest.as_ref().filter(|s| s.format == "tokens").and_then(|s| s.vocab_size);
    let read = source.files();
    assert!(input.eos.is_some() || source.len() == read.len() as u64);
    let mut record = 0;
    for file in read {
        let (_, bytes) = files.iter().find(|f| f.0 == file.file).expect("a file that was put there");
        let ids: Vec<i128> = ids(bytes, stored).collect();
        match input.eos.map(i128::from) {
            Some(eos) => {
                for document in ids.split_inclusive(|id| *id == eos) {
                    let found = values(&source, record).expect("a whole document");
                    assert!(self::ids(&found, stored).eq(document.iter().copied()));
                    record += 1;
                }
            }
            None => {
                assert_eq!(values(&source, record).expect("a whole file"), *bytes);
                record += 1;
            }
        }
        // What a manifest says was checked when it was written.
        if let Some(size) = input.vocab_size.filter(|size| claimed.is_none_or(|claimed| claimed > *size)) {
            assert!(ids.iter().all(|id| (0..i128::from(size)).contains(id)), "an id outside {size}");
        }
    }
    assert_eq!(source.len(), record);
    drive(&source, &input.cuts, input.batch_dtype.map(dtype), input.pad.into());
});

fn ids(bytes: &[u8], dtype: DType) -> impl Iterator<Item = i128> + '_ {
    let signed = matches!(dtype, DType::I32 | DType::I64);
    bytes.chunks_exact(dtype.size()).map(move |id| {
        let negative = signed && id.last().is_some_and(|b| *b >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; 16];
        wide[..id.len()].copy_from_slice(id);
        i128::from_le_bytes(wide)
    })
}
