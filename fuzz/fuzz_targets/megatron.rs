//! Megatron's pairs: an index of any counts and rows, whole, cut or with a byte changed, over any data.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::format::{Options, Probe, open};
use windrow_core::store::Memory;
use windrow_formats::FORMATS;
use windrow_fuzz::{Cut, drive, dtype};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    code: u8,
    sequences: Vec<(i32, i64)>,
    borders: Vec<i64>,
    modes: bool,
    counts: Option<(u64, u64)>,
    changed: Option<(u16, u8)>,
    cut: Option<u16>,
    trust: bool,
    as_folder: bool,
    vocab_size: Option<u64>,
    batch_dtype: Option<u8>,
    pad: i8,
    cuts: [Cut; 2],
    data: &'a [u8],
}

impl Input<'_> {
    fn index(&self) -> Vec<u8> {
        let (sequences, borders) =
            self.counts.unwrap_or((self.sequences.len() as u64, self.borders.len() as u64));
        let mut bytes = b"MMIDIDX\0\0".to_vec();
        bytes.extend(1u64.to_le_bytes());
        bytes.push(1 + self.code % 8);
        bytes.extend(sequences.to_le_bytes());
        bytes.extend(borders.to_le_bytes());
        bytes.extend(self.sequences.iter().flat_map(|(length, _)| length.to_le_bytes()));
        bytes.extend(self.sequences.iter().flat_map(|(_, place)| place.to_le_bytes()));
        bytes.extend(self.borders.iter().flat_map(|border| border.to_le_bytes()));
        if self.modes {
            bytes.extend(self.sequences.iter().map(|(length, _)| *length as u8));
        }
        if let Some(place) = self.changed.and_then(|(at, byte)| Some((bytes.get_mut(usize::from(at))?, byte)))
        {
            *place.0 = place.1;
        }
        bytes.truncate(self.cut.map_or(usize::MAX, usize::from));
        bytes
    }
}

fuzz_target!(|input: Input<'_>| {
    let store = Memory::new().with("x.idx", input.index()).with("x.bin", input.data);
    let options = Options {
        format: Some("megatron".to_string()),
        trust: input.trust,
        vocab_size: input.vocab_size,
        ..Options::default()
    };
    let key = if input.as_folder { "" } else { "x.idx" };
    let Ok(source) = Probe::at(FORMATS, Arc::new(store), key).and_then(|look| open(FORMATS, &look, &options))
    else {
        return;
    };
    for record in 0..source.len().min(100) {
        source.extras(record).expect("what stands beside a record");
    }
    drive(&source, &input.cuts, input.batch_dtype.map(dtype), input.pad.into());
});
