//! Batches of codes of any shape under any layout: as many bytes as the fields say, each of them right, or an error.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::collate::{Codes, CodesLayout, Example, Masks, Tags, TextCut};
use windrow_core::source::Schema;
use windrow_core::{DType, Decode, Draw, Element, Values};
use windrow_fuzz::dtype;

#[derive(Arbitrary, Debug)]
struct Input {
    stored: u8,
    dtype: Option<u8>,
    schema_channels: u8,
    examples: Vec<(Vec<u8>, u8, String, u64)>,
    length: u64,
    text_length: u64,
    channels: Option<u64>,
    special: [i16; 4],
    delays: Option<Vec<u8>>,
    far: Option<u64>,
    masks: u8,
    keep_tail: bool,
    tags: Option<(bool, f64, Option<u64>)>,
    unconditional: f64,
    codebook_size: Option<u64>,
    cut_byte: bool,
}

fuzz_target!(|input: Input| {
    let element = Element { dtype: dtype(input.stored), big_endian: input.stored >= 128 };
    let schema =
        Schema { channels: Some(1 + usize::from(input.schema_channels % 20)), ..Schema::numbers(element) };
    let mut delays: Option<Vec<u64>> =
        input.delays.map(|delays| delays.into_iter().map(|delay| u64::from(delay % 40)).collect());
    if let (Some(delays), Some(far)) = (&mut delays, input.far) {
        delays.push(far);
    }
    let layout = CodesLayout {
        text_length: input.text_length,
        channels: input.channels.map(|channels| channels % 41),
        text_pad_value: input.special[0].into(),
        audio_eos_value: input.special[1].into(),
        audio_pad_value: input.special[2].into(),
        audio_bos_value: input.special[3].into(),
        delay_pattern: delays,
        masks: [Masks::Dense, Masks::Lengths, Masks::None][usize::from(input.masks % 3)],
        keep_tail: input.keep_tail,
        tags: input.tags.map(|(shuffle, dropout, limit)| Tags { shuffle, dropout, limit }),
        unconditional: input.unconditional,
        codebook_size: input.codebook_size,
        cut: if input.cut_byte { TextCut::Byte } else { TextCut::Character },
    };
    // What is refused for its size is refused for any; what is assembled stays small here.
    let _ = Codes::new(&schema, input.length, &layout, input.dtype.map(dtype));
    let small = CodesLayout {
        text_length: layout.text_length % 300,
        delay_pattern: layout.delay_pattern.map(|d| d.into_iter().map(|delay| delay % 300).collect()),
        ..layout
    };
    let Ok(codes) = Codes::new(&schema, 1 + input.length % 300, &small, input.dtype.map(dtype)) else {
        return;
    };
    let examples: Vec<Example<'_>> = input
        .examples
        .iter()
        .take(4)
        .map(|(bytes, channels, text, sample)| {
            let channels = 1 + usize::from(channels % 20);
            let width = channels * element.size();
            let whole = bytes.len() / width * width;
            let codes = Values { bytes: &bytes[..whole], element, channels, decode: Decode::Plain };
            Example { codes, text, draw: Draw::new(1, 2, 3, *sample) }
        })
        .collect();
    match codes.batch(&examples) {
        Ok(batch) => {
            let n = examples.len();
            let frames: Vec<i64> = examples
                .iter()
                .map(|e| (e.codes.bytes.len() / e.codes.element.size() / e.codes.channels) as i64)
                .collect();
            assert_eq!(batch.get::<i64>("seq_lens").expect("the lengths"), frames);
            for (number, field) in batch.fields().iter().enumerate() {
                assert_eq!(batch.bytes(number).len(), field.row_size() * n);
                if field.dtype == DType::Bool {
                    assert!(batch.bytes(number).iter().all(|b| *b < 2), "{}", field.name);
                }
            }
            let again = codes.batch(&examples).expect("the same batch");
            for number in 0..batch.fields().len() {
                assert_eq!(batch.bytes(number), again.bytes(number));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
