//! A source in memory that uses every part of the traits: `[T, C]`, scaling per record, tracks, extras.

use std::sync::atomic::{AtomicU64, Ordering};

use windrow_core::source::{Extras, FileInfo, Kind, Location, Schema, Source, Track, check_span};
use windrow_core::{DType, Decode, Element, Error, Lengths, Result, Span, Values};

/// Records in memory. Record r of a token source holds `1000 r, 1000 r + 1, …`.
pub(crate) struct Toy {
    schema: Schema,
    lengths: Vec<u64>,
    bytes: Vec<Vec<u8>>,
    track: Vec<Vec<u8>>,
    decode: Vec<Decode>,
    /// Reads left before one fails, for tests of errors.
    pub(crate) fail_after: AtomicU64,
    /// Panics instead of failing.
    pub(crate) panics: bool,
}

impl Toy {
    pub(crate) fn tokens(lengths: &[u64]) -> Toy {
        let bytes = lengths.iter().zip(0u32..).map(|(n, r)| {
            (0..u32::try_from(*n).unwrap()).flat_map(|i| (1000 * r + i).to_le_bytes()).collect()
        });
        Toy {
            schema: Schema::numbers(Element::little(DType::U32)),
            lengths: lengths.to_vec(),
            bytes: bytes.collect(),
            track: Vec::new(),
            decode: vec![Decode::Plain; lengths.len()],
            fail_after: AtomicU64::new(u64::MAX),
            panics: false,
        }
    }

    /// float32 `[T, C]`, scaled per record.
    pub(crate) fn series(records: &[&[f32]], channels: usize, decode: &[Decode]) -> Toy {
        let lengths: Vec<u64> = records.iter().map(|r| (r.len() / channels) as u64).collect();
        let mut toy = Toy::tokens(&lengths);
        toy.schema = Schema::numbers(Element::little(DType::F32));
        toy.schema.channels = Some(channels);
        toy.bytes = records.iter().map(|r| r.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
        toy.decode = decode.to_vec();
        toy
    }

    /// Records of stored bytes, each with what turns its numbers into values.
    pub(crate) fn stored(element: Element, records: Vec<(Vec<u8>, Decode)>) -> Toy {
        let lengths: Vec<u64> = records.iter().map(|r| (r.0.len() / element.size()) as u64).collect();
        let mut toy = Toy::tokens(&vec![0; lengths.len()]);
        toy.schema = Schema::numbers(element);
        toy.lengths = lengths;
        (toy.bytes, toy.decode) = records.into_iter().unzip();
        toy
    }

    /// Adds a track `loss_mask`.
    pub(crate) fn with_mask(mut self, mask: &[&[u8]]) -> Toy {
        self.schema.tracks = vec![Track::stored("loss_mask", Element::little(DType::U8))];
        self.track = mask.iter().map(|m| m.to_vec()).collect();
        self
    }

    pub(crate) fn json() -> Toy {
        let mut toy = Toy::tokens(&[1]);
        toy.schema.kind = Kind::Json;
        toy
    }
}

impl Lengths for Toy {
    fn len(&self) -> u64 {
        self.lengths.len() as u64
    }
    fn length(&self, record: u64) -> Result<u64> {
        self.lengths.length(record)
    }
}

impl Source for Toy {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, _scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        check_span(span, self.length(span.record)?)?;
        if self.fail_after.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.fail_after.store(u64::MAX, Ordering::Relaxed);
            assert!(!self.panics, "the disk caught fire");
            return Err(Error::corrupt("the disk caught fire").record(span.record));
        }
        let channels = self.schema.channels.unwrap_or(1);
        let size = self.schema.element.size() * channels;
        let (start, record) = (span.start as usize * size, span.record as usize);
        Ok(Values {
            bytes: &self.bytes[record][start..start + span.len as usize * size],
            element: self.schema.element,
            channels,
            decode: self.decode[record],
        })
    }

    fn read_track<'a>(&'a self, _track: usize, span: Span, _scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (start, end) = (span.start as usize, (span.start + span.len) as usize);
        Ok(Values {
            bytes: &self.track[span.record as usize][start..end],
            element: Element::little(DType::U8),
            channels: 1,
            decode: Decode::Plain,
        })
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        let mut extras = Extras::new();
        extras.insert("prompt", format!("record {record}"));
        Ok(extras)
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let size = self.schema.element.size() as u64;
        Ok(vec![Location {
            file: format!("toy/{}", span.record),
            start: span.start * size,
            size: span.len * size,
        }])
    }

    fn files(&self) -> Vec<FileInfo> {
        Vec::new()
    }

    fn fingerprint(&self) -> Result<u64> {
        let what = format!("{:?}{:?}{:?}", self.schema, self.decode, self.bytes);
        Ok(what.bytes().fold(17, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(byte.into())))
    }

    fn format(&self) -> &'static str {
        "toy"
    }
}
