//! Shards: `meta.json` and `<prefix>-<i>-of-<n>.bin`, headerless numbers; sequences are ranges of all shards joined.
//! The layout of Time-MoE and of FoundationTS.

mod meta;
mod others;
mod table;
mod verify;
mod write;

use std::sync::Arc;

use half::f16;
use windrow_core::format::verify::Verify;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe, Takes};
use windrow_core::manifest::Manifest;
use windrow_core::option_rows;
use windrow_core::source::{Extras, FileInfo, Location, Schema, SharedSource, Source, check_span};
use windrow_core::store::{Object, at_once, entry_if_there};
use windrow_core::{DType, Decode, Element, Error, Kind, Lengths, Result, Span, Values};

use self::meta::shard_number;
use self::table::{Pair, Table};
use self::write::WriteShards;
use windrow_core::format::data_files::DataFiles;
use windrow_core::format::numbers::check_number_options;

/// What describes the shards of a folder.
pub(super) const META: &str = "meta.json";
/// What comes before the manifest's text, where `prepare` writes one at the end of the description.
const TOLD: &str = "\n\"windrow\": ";
/// A manifest at the end of a description takes less.
const MOST_TOLD: u64 = 8 << 20;

/// A folder of shards.
#[derive(Clone, Copy, Debug)]
pub struct Shards;

static INFO: FormatInfo = FormatInfo {
    name: "shards",
    title: "Shards of series",
    layout: "a folder of `meta.json` and `<prefix>-<i>-of-<n>.bin`, headerless numbers",
    records: "one sequence [T], or [T, C] where `meta.json` says `channels`: a range of all shards joined, de-normalised \
              where mean and std are given",
    written_by: "`windrow convert --to shards`, `windrow tokenize --to shards`, `wr.write`, Time-MoE, FoundationTS",
    holds: &[Holds::Series, Holds::Tokens, Holds::Codes],
    written_as: "meta.json and data-<i>-of-<n>.bin",
    write_options: option_rows! {
        /// most bytes of a shard [default: 5368709120]
        max_shard_bytes: Takes::Bytes;
        /// store series as (x - mean) / std in float32, and mean and std of each record beside it; not for token IDs
        normalize: Takes::On;
    },
    ..FormatInfo::NONE
};

impl Format for Shards {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let has = |fits: &dyn Fn(&str) -> bool| probe.names().any(fits);
        // Asked by name: among very many shards it may not be one of the names that are looked at.
        let described = || probe.store.entry(&probe.below(META)).is_ok_and(|entry| !entry.is_folder);
        if !probe.is_folder || !described() {
            Confidence::No
        } else if has(&|name| shard_number(name).is_some()) {
            Confidence::Yes
        } else if has(&|name| name.ends_with(".bin") && !name.contains('/')) {
            Confidence::Maybe
        } else {
            Confidence::No
        }
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteShards::of(options)?)))
    }

    // It is in the description of the shards, where `prepare` wrote one there: a file beside them would be taken for data by
    // other readers.
    fn find_manifest(&self, probe: &Probe) -> Result<Option<Manifest>> {
        if !probe.is_folder {
            return Ok(None);
        }
        let object = match probe.store.open(&probe.below(META)) {
            Ok(object) => object,
            Err(e) if e.is_of_the_run() => return Err(e),
            // What else is wrong with it is reported by whoever needs it.
            Err(_) => return Ok(None),
        };
        let size = object.size().min(MOST_TOLD);
        let mut scratch = Vec::new();
        let end = object.read(object.size() - size, size as usize, &mut scratch)?;
        let Some(at) = memchr::memmem::rfind(end, TOLD.as_bytes()) else { return Ok(None) };
        // What follows the manifest closes the description.
        let told = end[at + TOLD.len()..].trim_ascii_end();
        Manifest::parse(told.strip_suffix(b"}").unwrap_or(told), object.name()).map(Some)
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Shards
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let object = probe.store.open(&probe.below(META)).map_err(|e| match e.kind() {
            Kind::NotFound => Error::not_found(format!("expected {META} beside the shards, found none"))
                .at(probe.display())
                .hint("open the folder; numbers without a description are read with @format=tokens@"),
            _ => e,
        })?;
        let table = Table::of(&object)?;
        let keys = table.files.iter().map(|(name, _)| probe.below(name)).collect();
        let files = DataFiles::open(probe.store.clone(), keys, |key, _| {
            Error::not_found("meta.json names a shard that is not there").at(key).hint(UNFINISHED)
        })?;
        check_sizes(probe, &table, &files)?;
        let manifest = probe.manifest.as_ref().filter(|manifest| manifest.format == self.name());
        let known = manifest.and_then(|manifest| manifest.vocab_size);
        let vocab_size = options.vocab_size.or(known);
        let source: SharedSource = Arc::new(Sequences::new(object, table, files, vocab_size));
        check_number_options(source.as_ref(), manifest, options, &probe.display())?;
        Ok(source)
    }
}

/// A shard that is not as long as declared, in bytes.
pub(crate) struct OtherSize {
    pub(crate) file: String,
    pub(crate) said: u64,
    /// `None` where it is not there.
    pub(crate) found: Option<u64>,
}

impl Shards {
    /// Shards that are not as long as declared: the first shorter one is what opening stops at, a longer one is
    /// no error, but rarely meant.
    ///
    /// # Errors
    /// `Corrupt` when the description is bad; `Io`.
    pub(crate) fn other_sizes(&self, probe: &Probe) -> Result<Vec<OtherSize>> {
        let table = Table::of(&probe.store.open(&probe.below(META))?)?;
        let mut others = Vec::new();
        for (name, count) in &table.files {
            let key = probe.below(name);
            let said = count.saturating_mul(table.element.size() as u64);
            let found = entry_if_there(probe.store.as_ref(), &key)?.map(|entry| entry.size);
            if found != Some(said) {
                others.push(OtherSize { file: probe.store.display(&key), said, found });
            }
        }
        Ok(others)
    }
}

const UNFINISHED: &str = "the copy looks unfinished; `windrow verify` lists every shard";

// A shard may be longer than declared: what follows belongs to no sequence.
fn check_sizes(probe: &Probe, table: &Table, files: &DataFiles) -> Result<()> {
    let width = table.element.size() as u64;
    for (file, (name, count)) in table.files.iter().enumerate() {
        let size = if files.opened_at_once() {
            files.get(file)?.size()
        } else {
            probe.store.entry(&probe.below(name))?.size
        };
        if count.checked_mul(width).is_none_or(|wanted| wanted > size) {
            return Err(Error::corrupt(format!(
                "the shard holds {} {} numbers ({size} bytes), {META} promises {count}",
                size / width,
                table.element.dtype
            ))
            .at(files.name(file))
            .field("files")
            .hint(UNFINISHED));
        }
    }
    Ok(())
}

struct Sequences {
    description: Arc<dyn Object>,
    table: Table,
    files: DataFiles,
    /// First number of each shard, and the number of numbers at the end.
    starts: Vec<u64>,
    schema: Schema,
}

/// A part of a span that is in one shard.
struct Piece {
    file: usize,
    /// First byte in the shard.
    start: u64,
    /// Number of bytes.
    size: u64,
}

impl Sequences {
    fn new(
        description: Arc<dyn Object>,
        table: Table,
        files: DataFiles,
        vocab_size: Option<u64>,
    ) -> Sequences {
        let mut starts = vec![0u64];
        let mut total = 0u64;
        for (_, count) in &table.files {
            // The sum was checked.
            total = total.saturating_add(*count);
            starts.push(total);
        }
        // De-normalised, whole numbers are whole no more, and bfloat16 would lose most of their digits.
        let widens = table.element.dtype.is_integer() || table.element.dtype == DType::Bf16;
        let element =
            if table.scales_in_float32() && widens { Element::little(DType::F32) } else { table.element };
        // Checked to be small when the description was read.
        let channels = table.channels.map(|channels| channels as usize);
        let mut schema = Schema { vocab_size, channels, ..Schema::numbers(element) };
        // All sequences were written with the same.
        if starts[starts.len() - 1] > 0 {
            let first = others::others(description.as_ref(), &table, 0).ok();
            schema.beside = first.map(|first| first.names().map(str::to_string).collect());
        }
        Sequences { description, table, files, starts, schema }
    }

    // The first number of a span among those of all shards.
    fn first(&self, span: Span) -> Result<u64> {
        let (first, length) = self.table.place(span.record)?;
        let channels = self.channels();
        check_span(span, length / channels)?;
        // Within the numbers of all shards, as the whole sequence is.
        Ok(first + span.start * channels)
    }

    // Numbers per value.
    fn channels(&self) -> u64 {
        self.table.channels.unwrap_or(1)
    }

    // The bytes of `len` values from number `first` on.
    fn pieces(&self, first: u64, len: u64) -> impl Iterator<Item = Piece> + '_ {
        let width = self.table.element.size() as u64;
        let end = first + len * self.channels();
        // The last shard that begins at or before it: an empty one begins where the next one does.
        let shard = self.starts.partition_point(|start| *start <= first).saturating_sub(1);
        let shards = self.starts.windows(2).enumerate().skip(shard).take_while(move |(_, s)| s[0] < end);
        shards.filter_map(move |(file, s)| {
            let (from, to) = (first.max(s[0]), end.min(s[1]));
            (from < to).then(|| Piece { file, start: (from - s[0]) * width, size: (to - from) * width })
        })
    }

    fn bytes<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let first = self.first(span)?;
        let mut pieces = self.pieces(first, span.len).peekable();
        let Some(piece) = pieces.next() else { return Ok(&[]) };
        if pieces.peek().is_none() {
            let size = at_once(piece.size)?;
            return self.files.get(piece.file)?.read(piece.start, size, scratch);
        }
        scratch.clear();
        let mut part = Vec::new();
        for piece in std::iter::once(piece).chain(pieces) {
            let size = at_once(piece.size)?;
            scratch.extend_from_slice(self.files.get(piece.file)?.read(piece.start, size, &mut part)?);
        }
        Ok(scratch)
    }
}

impl Lengths for Sequences {
    fn len(&self) -> u64 {
        self.table.records
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.table.place(record).map(|(_, length)| length / self.channels())
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        self.table.lengths(first, out)?;
        let channels = self.channels();
        if channels > 1 {
            out.iter_mut().for_each(|length| *length /= channels);
        }
        Ok(())
    }

    fn uniform(&self) -> Option<u64> {
        self.table.uniform.map(|length| length / self.channels())
    }
}

impl Source for Sequences {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let element = self.table.element;
        let values = |bytes, decode| Values { bytes, element, channels: self.channels() as usize, decode };
        let failed = |e: Error| e.record(span.record);
        // In a scratch of its own where the numbers are copied into the caller's, scaled.
        let mut stored = Vec::new();
        match self.table.pair(span.record)? {
            Pair::Double([std, mean]) => {
                scale_f64(
                    self.bytes(span, &mut stored).map_err(failed)?,
                    element.big_endian,
                    std,
                    mean,
                    scratch,
                );
                Ok(values(scratch, Decode::Plain))
            }
            Pair::Single([std, mean]) if element.dtype == DType::F16 => {
                scale_f16(
                    self.bytes(span, &mut stored).map_err(failed)?,
                    element.big_endian,
                    std,
                    mean,
                    scratch,
                );
                Ok(values(scratch, Decode::Plain))
            }
            Pair::Single([std, mean]) => {
                let decode = Decode::Affine { mul: std, add: mean, sub: 0.0, div: 1.0 };
                Ok(values(self.bytes(span, scratch).map_err(failed)?, decode))
            }
            Pair::None => Ok(values(self.bytes(span, scratch).map_err(failed)?, Decode::Plain)),
        }
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        others::others(self.description.as_ref(), &self.table, record)
    }

    fn text<'a>(&'a self, record: u64, scratch: &'a mut String) -> Result<&'a str> {
        others::text(self.description.as_ref(), &self.table, record, scratch)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            let Ok(first) = self.first(span) else { continue };
            for piece in self.pieces(first, span.len) {
                if let Ok(object) = self.files.get(piece.file) {
                    object.prefetch(piece.start, piece.size);
                }
            }
        }
    }

    fn touch(&self, span: Span) {
        if let Ok(first) = self.first(span)
            && let Some(piece) = self.pieces(first, span.len).next()
            && let Ok(object) = self.files.get(piece.file)
        {
            object.touch(piece.start, piece.size);
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let first = self.first(span)?;
        let place = |p: Piece| Location { file: self.files.name(p.file), start: p.start, size: p.size };
        Ok(self.pieces(first, span.len).map(place).collect())
    }

    fn files(&self) -> Vec<FileInfo> {
        let description =
            FileInfo { file: self.description.name().to_string(), size: self.description.size() };
        [description].into_iter().chain(self.files.infos()).collect()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.files.fingerprint(&[Shards.name().as_bytes(), &self.table.content.to_le_bytes()])
    }

    fn format(&self) -> &'static str {
        Shards.name()
    }
}

// In float64, as numpy does it with float64 numbers: float32, in which the batch scales, would lose their last bits.
fn scale_f64(bytes: &[u8], big_endian: bool, std: f64, mean: f64, out: &mut Vec<u8>) {
    out.clear();
    for stored in bytes.chunks_exact(8) {
        let mut number = [0; 8];
        number.copy_from_slice(stored);
        if big_endian {
            out.extend((f64::from_be_bytes(number) * std + mean).to_be_bytes())
        } else {
            out.extend((f64::from_le_bytes(number) * std + mean).to_le_bytes())
        }
    }
}

// Rounded to float16 after each step, as the program does that these shards were made for; the mean is rounded first.
fn scale_f16(bytes: &[u8], big_endian: bool, std: f32, mean: f32, out: &mut Vec<u8>) {
    let mean = f16::from_f32(mean).to_f32();
    let scale = |x: f16| f16::from_f32(f16::from_f32(x.to_f32() * std).to_f32() + mean);
    out.clear();
    for stored in bytes.chunks_exact(2) {
        let number = [stored[0], stored[1]];
        if big_endian {
            out.extend(scale(f16::from_be_bytes(number)).to_be_bytes())
        } else {
            out.extend(scale(f16::from_le_bytes(number)).to_le_bytes())
        }
    }
}
