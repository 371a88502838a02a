//! Batches of crops: what decides them, special values, texts, what is refused.

use std::sync::Arc;

use windrow_core::collate::{Codes, CodesLayout, Masks, Tags};
use windrow_core::plan::Feed;
use windrow_core::source::SharedSource;
use windrow_core::view::{Crop, Mode};
use windrow_core::{DType, Draw, Kind, Piece, Result, Span};

use crate::disk::{open, whole};
use crate::folder::folder_of;

/// Tracks whose code at frame t of channel c is 18 t + c, modulo 1000, and whose prompts are their names.
fn tracks(frames: &[u64], channels: u64) -> tempfile::TempDir {
    let track = |(i, frames): (usize, &u64)| {
        let codes: Vec<u8> =
            (0..frames * channels).flat_map(|code| ((code % 1000) as i16).to_le_bytes()).collect();
        let name = format!("encoded_audio/{i}.pt");
        (name, windrow_formats::tensor_file("t", DType::I16, [*frames, channels], &codes).unwrap())
    };
    let mut files: Vec<(String, Vec<u8>)> = frames.iter().enumerate().map(track).collect();
    files.extend(
        (0..frames.len()).map(|i| (format!("prompts/{i}.txt"), format!("a{i}, b{i}, c{i}").into_bytes())),
    );
    let files: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    folder_of(&files)
}

fn feed(source: &SharedSource, length: u64, mode: Mode, layout: &CodesLayout) -> Result<Feed> {
    let collate = Codes::new(source.schema(), length, layout, None)?;
    let view = Crop::new(source.clone(), length, mode)?.keep_empty();
    Ok(Feed::new(source.clone(), Arc::new(view), Arc::new(collate)))
}

fn short() -> CodesLayout {
    CodesLayout { text_length: 8, ..CodesLayout::default() }
}

#[test]
fn a_crop_holds_the_codes_of_its_place() {
    let folder = tracks(&[50, 7, 0], 18);
    let source = open(folder.path()).unwrap();
    let feed = feed(&source, 20, Mode::Random, &short()).unwrap();
    for seed in 0..20 {
        let batch = feed.batch(&[0, 1, 2], seed).unwrap();
        let tokens = batch.get::<i64>("tgt_tokens").unwrap();
        assert_eq!(batch.get::<i64>("seq_lens").unwrap(), [20, 7, 0]);
        assert_eq!(batch.get::<i64>("tgt_lens").unwrap(), [22, 9, 2]);
        let mut pieces = Vec::new();
        feed.view().pieces(0, Draw::new(seed, 0, 0, 0), &mut pieces).unwrap();
        let [Piece::Read(Span { start, .. })] = pieces[..] else { panic!("{pieces:?}") };
        let code = |t: u64, c: u64| ((start + t) * 18 + c) as i64 % 1000;
        for t in 0..20 {
            for c in 0..18 {
                let delay = c % 9;
                let expected = if t < delay { 1026 } else { code(t - delay, c) };
                assert_eq!(tokens[((t + 1) * 18 + c) as usize], expected, "frame {t}, channel {c}");
            }
        }
        // A track without frames is its prompt, a beginning and an end.
        assert_eq!(&tokens[2 * 22 * 18..][..18], [1026; 18]);
        assert_eq!(&tokens[2 * 22 * 18 + 18..][..18], [1024; 18]);
        assert!(tokens[2 * 22 * 18 + 36..].iter().all(|code| *code == 1025));
        assert_eq!(batch.get::<i64>("src_tokens").unwrap()[16..24], b"a2, b2, ".map(i64::from));
    }
}

#[test]
fn with_the_tail_kept_no_code_is_lost() {
    let folder = tracks(&[12, 3], 18);
    let source = open(folder.path()).unwrap();
    let feed = feed(&source, 12, Mode::Start, &CodesLayout { keep_tail: true, ..short() }).unwrap();
    let batch = feed.batch(&[0, 1], 0).unwrap();
    assert_eq!(batch.get::<i64>("tgt_lens").unwrap(), [22, 13]);
    let tokens = batch.get::<i64>("tgt_tokens").unwrap();
    for (row, frames) in [(0, 12), (1, 3)] {
        let at = |t: usize, c: usize| tokens[(row * 22 + t) * 18 + c];
        for c in 0..18 {
            let delay = c % 9;
            for t in 0..22usize {
                let expected = match t.checked_sub(1 + delay) {
                    None => 1026,
                    Some(t) if t < frames => (t * 18 + c) as i64,
                    Some(t) if t == frames => 1024,
                    Some(_) => 1025,
                };
                assert_eq!(at(t, c), expected, "row {row}, frame {t}, channel {c}");
            }
        }
    }
    // The mask covers what the length says.
    let mask = batch.get::<u8>("dec_self_attn_mask").unwrap();
    assert_eq!(mask[22 * 22..].chunks(22).filter(|row| row.contains(&1)).count(), 13);
}

#[test]
fn one_side_is_written_twice_where_the_layout_says_stereo() {
    let folder = tracks(&[5], 9);
    let source = open(folder.path()).unwrap();
    let mono = feed(&source, 5, Mode::Start, &short()).unwrap().batch(&[0], 0).unwrap();
    let layout = CodesLayout { channels: Some(18), ..short() };
    let stereo = feed(&source, 5, Mode::Start, &layout).unwrap().batch(&[0], 0).unwrap();
    let mono = mono.get::<i64>("tgt_tokens").unwrap();
    let stereo = stereo.get::<i64>("tgt_tokens").unwrap();
    assert_eq!(stereo.chunks(18).flat_map(|frame| frame[..9].to_vec()).collect::<Vec<_>>(), mono);
    assert!(stereo.chunks(18).all(|frame| frame[..9] == frame[9..]));
}

#[test]
fn texts_are_drawn_by_the_samples_own_numbers() {
    let folder = tracks(&[4; 40], 18);
    let source = open(folder.path()).unwrap();
    let layout = CodesLayout {
        masks: Masks::Lengths,
        unconditional: 0.5,
        tags: Some(Tags::default()),
        text_length: 32,
        ..CodesLayout::default()
    };
    let feed = feed(&source, 4, Mode::Random, &layout).unwrap();
    let all: Vec<u64> = (0..40).collect();
    let lens = |seed| feed.batch(&all, seed).unwrap().get::<i64>("src_lens").unwrap().to_vec();
    let dropped = lens(3).iter().filter(|n| **n == 0).count();
    assert!((8..32).contains(&dropped), "{dropped}");
    assert_ne!(lens(3), lens(4));
    // A sample's draws are its own: they do not depend on what else is in the batch.
    let whole = feed.batch(&all, 3).unwrap();
    for sample in [0, 7, 39] {
        let alone = feed.batch(&[sample], 3).unwrap();
        let at = sample as usize * 32;
        assert_eq!(
            alone.get::<i64>("src_tokens").unwrap(),
            &whole.get::<i64>("src_tokens").unwrap()[at..at + 32]
        );
    }
}

#[test]
fn narrow_tokens_are_the_same_numbers() {
    let folder = tracks(&[9], 18);
    let source = open(folder.path()).unwrap();
    let wide = feed(&source, 9, Mode::Start, &short()).unwrap().batch(&[0], 0).unwrap();
    for dtype in [DType::I16, DType::I32] {
        let collate = Codes::new(source.schema(), 9, &short(), Some(dtype)).unwrap();
        let view = Crop::new(source.clone(), 9, Mode::Start).unwrap().keep_empty();
        let batch = Feed::new(source.clone(), Arc::new(view), Arc::new(collate)).batch(&[0], 0).unwrap();
        for (narrow, same) in batch.fields().iter().zip(wide.fields()) {
            assert_eq!(narrow.name, same.name);
            if narrow.name.ends_with("_tokens") {
                assert_eq!(narrow.dtype, dtype);
            }
        }
        let found: Vec<i64> = match dtype {
            DType::I16 => batch.get::<i16>("tgt_tokens").unwrap().iter().map(|n| i64::from(*n)).collect(),
            _ => batch.get::<i32>("tgt_tokens").unwrap().iter().map(|n| i64::from(*n)).collect(),
        };
        assert_eq!(found, wide.get::<i64>("tgt_tokens").unwrap());
        for mask in ["enc_self_attn_mask", "dec_self_attn_mask", "dec_cross_attn_mask"] {
            assert_eq!(batch.get::<u8>(mask).unwrap(), wide.get::<u8>(mask).unwrap());
        }
    }
}

#[test]
fn a_code_outside_the_codebook_names_its_track() {
    let mut codes = [5i16; 36];
    codes[20] = 1024;
    let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
    let tensor = windrow_formats::tensor_file("t", DType::I16, [2, 18], &bytes).unwrap();
    let folder = folder_of(&[("encoded_audio/good.pt", tensor.clone()), ("encoded_audio/z.pt", tensor)]);
    let source = open(folder.path()).unwrap();
    let no_delay = CodesLayout { delay_pattern: Some(vec![0; 18]), ..short() };
    let error = feed(&source, 2, Mode::Start, &no_delay).unwrap().batch(&[1], 0).unwrap_err();
    assert_eq!((error.kind(), error.place().record), (Kind::Corrupt, Some(1)), "{error}");
    assert!(
        error.place().file.as_deref().unwrap().ends_with("z.pt")
            && format!("{error:#}").contains("0 to 1023")
    );
    let unchecked = CodesLayout { codebook_size: None, ..no_delay };
    assert!(feed(&source, 2, Mode::Start, &unchecked).unwrap().batch(&[1], 0).is_ok());
    assert_eq!(whole(source.as_ref(), 1).unwrap(), bytes);
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    let folder = tracks(&[5], 9);
    let source = open(folder.path()).unwrap();
    let refused = |layout: CodesLayout, length, says: &str| {
        let error = feed(&source, length, Mode::Start, &layout).err().unwrap();
        assert!(error.kind() == Kind::Config && format!("{error:#}").contains(says), "{error}");
    };
    refused(CodesLayout { channels: Some(12), ..short() }, 5, "12 channels, where the codes have 9");
    refused(
        CodesLayout { delay_pattern: Some(vec![0; 18]), ..short() },
        5,
        "18 channels, where the codes have 9",
    );
    refused(CodesLayout { delay_pattern: Some(vec![1 << 40; 9]), ..short() }, 5, "a delay of");
    refused(CodesLayout { text_length: 0, ..short() }, 5, "at least 1");
    refused(CodesLayout { text_length: u64::MAX, ..short() }, 5, "at least 1");
    refused(short(), 0, "at least 1");
    refused(short(), u64::MAX, "at least 1");
    refused(CodesLayout { unconditional: 1.5, ..short() }, 5, "unconditional 1.5");
    refused(CodesLayout { unconditional: f64::NAN, ..short() }, 5, "unconditional NaN");
    let tags = Some(Tags { dropout: -0.1, ..Tags::default() });
    refused(CodesLayout { tags, ..short() }, 5, "tag_dropout -0.1");
    let error =
        Codes::new(source.schema(), 5, &CodesLayout { audio_eos_value: 40_000, ..short() }, Some(DType::I16));
    assert_eq!(error.unwrap_err().place().field.as_deref(), Some("audio_eos_value"));
    assert_eq!(Codes::new(source.schema(), 5, &short(), Some(DType::F32)).unwrap_err().kind(), Kind::Config);
    assert_eq!(source.length(0).unwrap(), 5);
}

#[test]
fn a_configuration_of_dias_is_read_as_it_stands() {
    let text = r#"{"version": "1", "model": {"src_vocab_size": 256}, "data": {"text_length": 100, "audio_length": 600,
        "channels": 18, "text_pad_value": 1, "audio_eos_value": 2024, "audio_pad_value": 2025, "audio_bos_value": 2026,
        "delay_pattern": [0, 8]}}"#;
    let (layout, length) = CodesLayout::from_config(text).unwrap();
    assert_eq!(
        layout,
        CodesLayout {
            text_length: 100,
            channels: Some(18),
            text_pad_value: 1,
            audio_eos_value: 2024,
            audio_pad_value: 2025,
            audio_bos_value: 2026,
            delay_pattern: Some(vec![0, 8]),
            codebook_size: Some(2024),
            ..CodesLayout::default()
        }
    );
    assert_eq!(length, Some(600));
    for wrong in ["", "[]", "{}", r#"{"data": {"channels": -1}}"#, r#"{"data": {"delay_pattern": 5}}"#] {
        assert_eq!(CodesLayout::from_config(wrong).unwrap_err().kind(), Kind::Config, "{wrong}");
    }
}
