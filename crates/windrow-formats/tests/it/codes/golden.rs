//! Batches and delays as Dia's program made them.

use serde_json::Value;
use windrow_core::collate::{Batch, Codes, CodesLayout, Delays, Example, Masks, Tags, TextCut, Undelayed};
use windrow_core::source::Schema;
use windrow_core::{DType, Decode, Draw, Element, Kind, Result, Values};

use super::{flat, recorded};

struct Codebooks {
    bytes: Vec<u8>,
    element: Element,
    channels: usize,
}

// The codes of a case, cut where the program cut them.
fn encodings(case: &Value) -> Vec<Codebooks> {
    let length = case["effective"]["audio_length"].as_u64().unwrap() as usize;
    let draws = case["randint_calls_lo_hi_result"].as_array().unwrap();
    let cut = |(i, encoding): (usize, &Value)| {
        let dtype = DType::parse(encoding["dtype"].as_str().unwrap()).unwrap();
        let channels = encoding["shape"][1].as_u64().unwrap() as usize;
        let codes = flat(&encoding["data"]);
        let frames = codes.len() / channels;
        let start = draws.get(i).map_or(0, |draw| draw[2].as_u64().unwrap() as usize);
        let end = (start + length).min(frames);
        let bytes = codes[start * channels..end * channels].iter();
        let bytes = bytes.flat_map(|code| code.to_le_bytes()[..dtype.size()].to_vec()).collect();
        Codebooks { bytes, element: Element::little(dtype), channels }
    };
    case["encodings"].as_array().unwrap().iter().enumerate().map(cut).collect()
}

fn layout(case: &Value) -> CodesLayout {
    let data = &case["data_config"];
    let usual = CodesLayout::default();
    let number = |key: &str, otherwise: i64| data[key].as_i64().unwrap_or(otherwise);
    CodesLayout {
        text_length: case["effective"]["text_length"].as_u64().unwrap(),
        text_pad_value: number("text_pad_value", usual.text_pad_value),
        audio_eos_value: number("audio_eos_value", usual.audio_eos_value),
        audio_pad_value: number("audio_pad_value", usual.audio_pad_value),
        audio_bos_value: number("audio_bos_value", usual.audio_bos_value),
        delay_pattern: Some(flat(&data["delay_pattern"]).into_iter().map(|d| d as u64).collect()),
        tags: Some(Tags { shuffle: false, dropout: 0.0, limit: case["train_cfg"]["tag_limit"].as_u64() }),
        codebook_size: None,
        cut: TextCut::Byte,
        ..usual
    }
}

fn assemble(case: &Value, layout: &CodesLayout) -> Result<Batch> {
    let encodings = encodings(case);
    let texts: Vec<&str> = case["texts"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    let channels = encodings.iter().map(|e| e.channels).max();
    let schema = Schema { channels, ..Schema::numbers(Element::little(DType::I64)) };
    let examples: Vec<Example<'_>> = encodings
        .iter()
        .zip(&texts)
        .map(|(e, text)| Example {
            codes: Values {
                bytes: &e.bytes,
                element: e.element,
                channels: e.channels,
                decode: Decode::Plain,
            },
            text,
            draw: Draw::new(0, 0, 0, 0),
        })
        .collect();
    Codes::new(&schema, 128, layout, None)?.batch(&examples)
}

#[track_caller]
fn same_shape(batch: &Batch, field: &str, expected: &Value) {
    let found = batch.fields().iter().find(|f| f.name == field).unwrap();
    let shape: Vec<i64> = [batch.rows()].iter().chain(&found.shape).map(|n| *n as i64).collect();
    assert_eq!(shape, flat(&expected["shape"]), "{field}");
    assert_eq!(found.dtype.name(), expected["dtype"].as_str().unwrap(), "{field}");
}

fn strings(rows: &Value) -> Vec<u8> {
    let rows = rows.as_array().unwrap().iter().flat_map(|rows| rows.as_array().unwrap());
    rows.flat_map(|row| row.as_str().unwrap().bytes().map(|b| b - b'0').collect::<Vec<_>>()).collect()
}

fn check(name: &str) {
    let case = recorded(name);
    let expected = &case["expected"]["ok"];
    let batch = assemble(&case, &layout(&case)).unwrap_or_else(|e| panic!("{name}: {e}"));
    for field in ["src_tokens", "tgt_tokens", "tgt_lens"] {
        same_shape(&batch, field, &expected[field]);
        assert_eq!(batch.get::<i64>(field).unwrap(), flat(&expected[field]["data"]), "{name}: {field}");
    }
    for field in ["src_positions", "tgt_positions"] {
        same_shape(&batch, field, &expected[field]);
        let row = flat(&expected[field]["row0"]);
        assert_eq!(batch.get::<i64>(field).unwrap(), row.repeat(batch.rows()), "{name}: {field}");
    }
    same_shape(&batch, "enc_self_attn_mask", &expected["enc_self_attn_mask"]);
    let text = case["effective"]["text_length"].as_u64().unwrap() as usize;
    let mask = batch.get::<u8>("enc_self_attn_mask").unwrap();
    let sums: Vec<i64> = mask.chunks(text).map(|row| row.iter().map(|b| i64::from(*b)).sum()).collect();
    assert_eq!(sums, flat(&expected["enc_self_attn_mask"]["row_sums"]), "{name}");
    // Every row that attends at all attends to the same tokens: those that attend.
    for rows in mask.chunks(text * text) {
        let attends: Vec<u8> = rows.chunks(text).map(|row| u8::from(row.contains(&1))).collect();
        assert!(rows.chunks(text).all(|row| !row.contains(&1) || row == attends), "{name}");
    }
    for (field, key) in [("dec_self_attn_mask", "rows"), ("dec_cross_attn_mask", "row_strings")] {
        same_shape(&batch, field, &expected[field]);
        assert_eq!(batch.get::<u8>(field).unwrap(), strings(&expected[field][key]), "{name}: {field}");
    }
    let lengths = batch.get::<i64>("tgt_lens").unwrap().iter().map(|n| n - 2).collect::<Vec<_>>();
    assert_eq!(batch.get::<i64>("seq_lens").unwrap(), lengths, "{name}");
    // Without masks the same tokens, and with lengths the number of text tokens.
    let lengths = CodesLayout { masks: Masks::Lengths, ..layout(&case) };
    let shorter = assemble(&case, &lengths).unwrap();
    let names: Vec<_> = shorter.fields().iter().map(|f| &*f.name).collect();
    assert_eq!(
        names,
        ["src_tokens", "src_positions", "tgt_tokens", "tgt_positions", "src_lens", "seq_lens", "tgt_lens"]
    );
    for field in ["src_tokens", "src_positions", "tgt_tokens", "tgt_positions", "seq_lens", "tgt_lens"] {
        assert_eq!(shorter.get::<i64>(field).unwrap(), batch.get::<i64>(field).unwrap(), "{name}: {field}");
    }
}

#[test]
fn batches_are_those_of_the_program() {
    let mut n = 0;
    for entry in std::fs::read_dir(super::dia()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("collate_") && recorded(&name)["expected"].get("ok").is_some() {
            check(&name);
            n += 1;
        }
    }
    assert_eq!(n, 17);
}

#[test]
fn codes_of_another_width_are_refused_as_there() {
    for name in ["collate_15_mono_9_with_18_delays.json", "collate_17_mixed_channels.json"] {
        let case = recorded(name);
        assert!(case["expected"].get("error").is_some());
        if name.contains("15") {
            assert_eq!(assemble(&case, &layout(&case)).unwrap_err().kind(), Kind::Config);
        }
        // What the configuration says is stereo is written with both sides: the mistake cannot be seen in one batch.
        let stereo = CodesLayout { channels: Some(18), ..layout(&case) };
        let batch = assemble(&case, &stereo).unwrap();
        let frame = &batch.get::<i64>("tgt_tokens").unwrap()[18..36];
        assert_eq!((frame[0], frame[9]), (flat(&case["encodings"][0]["data"])[0], frame[0]), "{name}");
    }
}

#[test]
fn delays_and_their_inverse_are_those_of_the_program() {
    let cases = recorded("delay.json");
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let pattern: Vec<u64> = flat(&case["pattern"]).into_iter().map(|d| d as u64).collect();
        let delays = Delays::new(&pattern, pattern.len()).unwrap();
        let codes = flat(&case["input"]);
        let delayed = delays.apply(&codes, 1026, None).unwrap();
        assert_eq!(delayed, flat(&case["delayed"]));
        assert_eq!(delays.undo(&delayed, Undelayed::Repeat).unwrap(), flat(&case["reverted"]));
        let whole = delays.apply(&codes, 1026, Some(1024)).unwrap();
        assert_eq!(delays.undo(&whole, Undelayed::Cut).unwrap(), codes);
    }
}
