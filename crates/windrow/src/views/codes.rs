//! Frames of audio codes with their text.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use windrow_core::collate::{self, CodesLayout, Collate, Masks, Tags, TextCut};
use windrow_core::format::Takes;
use windrow_core::plan::Balance;
use windrow_core::view::{Crop, Mode, View};
use windrow_core::{Error, Result};

use crate::views::kind::{Cut, ViewKind};
use crate::views::option::{Given, view};

view! {
    /// Up to `length` frames of each track of codes `[T, C]`, from a random place or from its start, with its text, as a codec
    /// language model is trained. See [`Codes`](windrow_core::collate::Codes) for the tensors.
    ///
    /// ```
    /// use windrow::{Codes, dev::collate::{CodesLayout, Masks}};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # std::fs::write(dir.path().join("a.jsonl"), "{\"sequence\": [[1, 2], [3, 4]], \"text\": \"hi\"}\n").unwrap();
    /// # let options = windrow::format::Options { format: Some("series-jsonl".into()), ..Default::default() };
    /// # let tracks = windrow::open_with(dir.path().join("a.jsonl"), &options)?;
    /// let layout = CodesLayout { text_length: 4, masks: Masks::Lengths, ..CodesLayout::default() };
    /// let batch = tracks.codes(Codes::new(600).layout(layout))?.batch(&[0], 0)?;
    /// assert_eq!(batch.get::<i64>("src_tokens")?, [104, 105, 0, 0]);
    /// assert_eq!(batch.get::<i64>("tgt_tokens")?, [1026, 1026, 1, 1026, 3, 2, 1024, 1024]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub struct Codes {
        @needs {
            /// Frames of a sample at most.
            length: u64,
        }
        /// Where a sample starts: at a random place, or where its record does.
        #[kept = true]
        mode: Mode,
        @holds {
            /// Special values, delays, masks, draws.
            layout: Box<CodesLayout> as CodesLayout,
        }
    }
    called "codes", "N frames of each track of codes, with its text";
    beside {
        /// Dia's config.json: lengths, channels, special values and delays.
        config: Takes::Text("FILE");
        /// Channels of a batch; of half as many in the data each is used for two.
        channels: Takes::Number("N");
        /// Bytes of a prompt at most: 512.
        text_length: Takes::Number("BYTES");
        /// Frames by which each channel is delayed: 0, 1, 2, …, for 18 channels 0 to 8 twice.
        delay_pattern: Takes::Numbers("FRAMES");
        /// Dense masks, lengths of texts instead, or neither.
        masks: Takes::Words(&["dense", "lengths", "none"]), of Masks;
        /// Keep the last codes of delayed channels: rows are longer by the longest delay.
        keep_tail: Takes::On, of bool;
        /// Fraction of samples without their prompt, drawn again each epoch.
        unconditional: Takes::Fraction, or 0.0;
        /// Put the prompt's comma-separated tags in random order.
        tag_shuffle: Takes::On, of bool;
        /// Leave each tag out with this probability, never all of them.
        tag_dropout: Takes::Fraction, or 0.0;
        /// Tags of a prompt at most.
        tag_limit: Takes::Number("N");
        // `report` asks for the size that its pages show.
        /// Codes must be below this; auto is the lowest special value.
        codebook_size: Takes::WordsOr(&["auto", "none"], "N"), or "auto", flag "codebook";
        /// Where a longer prompt is cut.
        text_cut: Takes::Words(&["character", "byte"]), of TextCut;
    }
    arranged by arrange;
}

/// Puts what a configuration declares, and the other options, where the recipe has it.
///
/// # Errors
/// `Config` for a wrong configuration, and for a length that neither of them gives; `NotFound`, `Io` for one that cannot
/// be read.
fn arrange(mut given: Given) -> Result<Given> {
    let (layout, length) = match given.remove("config") {
        None => (CodesLayout::default(), None),
        Some(Value::String(path)) => config_file(Path::new(&path))?,
        Some(config) => CodesLayout::from_config(&config.to_string())?,
    };
    if given.get("length").is_none_or(Value::is_null) {
        let length = length.ok_or_else(|| {
            Error::config("no length: how many frames a sample has at most")
                .field("length")
                .hint("give @length@, or a config with audio_length")
        })?;
        given.insert("length".into(), length.into());
    }
    let mut layout = match serde_json::to_value(layout) {
        Ok(Value::Object(layout)) => layout,
        _ => Map::new(),
    };
    for (name, key) in [
        ("channels", "channels"),
        ("text_length", "text_length"),
        ("delay_pattern", "delay_pattern"),
        ("masks", "masks"),
        ("keep_tail", "keep_tail"),
        ("unconditional", "unconditional"),
        ("text_cut", "cut"),
    ] {
        layout.extend(given.remove(name).map(|value| (key.to_string(), value)));
    }
    match given.remove("codebook_size") {
        None => {}
        Some(Value::String(word)) if word == "auto" => {}
        Some(Value::String(word)) if word == "none" => _ = layout.insert("codebook_size".into(), Value::Null),
        Some(size) => _ = layout.insert("codebook_size".into(), size),
    }
    layout.extend(tags(&mut given).map(|tags| ("tags".to_string(), tags)));
    given.insert("layout".into(), layout.into());
    Ok(given)
}

// A text is rewritten only where something is drawn.
fn tags(given: &mut Given) -> Option<Value> {
    let shuffle = given.remove("tag_shuffle").is_some_and(|on| on == true);
    let dropout = given.remove("tag_dropout").and_then(|share| share.as_f64()).unwrap_or_default();
    let limit = given.remove("tag_limit").and_then(|limit| limit.as_u64());
    let is_drawn = shuffle || dropout != 0.0 || limit.is_some();
    is_drawn.then(|| serde_json::to_value(Tags { shuffle, dropout, limit }).unwrap_or_default())
}

fn config_file(path: &Path) -> Result<(CodesLayout, Option<u64>)> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_CONFIG_BYTES).read_to_string(&mut text));
    read.map_err(|e| {
        let hint = "@config@ is the path of Dia's config.json, or a dict of what it holds";
        Error::io("read the configuration", path, e).hint(hint)
    })?;
    CodesLayout::from_config(&text).map_err(|e| e.or_at(path))
}

// A configuration has a few hundred bytes; its text is read up to here.
const MOST_CONFIG_BYTES: u64 = 1 << 20;

impl ViewKind for Codes {
    fn is_random(&self) -> bool {
        self.mode == Mode::Random || self.layout.is_random()
    }

    fn alike(&self, _by: &Balance) -> Option<(&'static str, &'static str)> {
        None
    }

    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)> {
        let collate = collate::Codes::new(data.schema(), self.length, &self.layout, data.dtype)?;
        let crop = Crop::new(data.lengths(), self.length, self.mode)?.keep_empty();
        Ok((Arc::new(crop), Arc::new(collate)))
    }
}
