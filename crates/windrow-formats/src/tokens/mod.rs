//! Headerless token files: IDs one after the other, little-endian, one stream per file.

mod claims;
mod documents;
mod ends;
mod guess;
mod scan;
mod verify;
mod write;

use std::sync::Arc;

use windrow_core::format::discover::{natural_order, refuse_copies};
use windrow_core::format::verify::Verify;
use windrow_core::format::vocabulary::check_asked;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, FileNames, Format, FormatInfo, Holds, Options, Probe, Takes, splits};
use windrow_core::option_rows;
use windrow_core::source::{FileInfo, Location, Schema, SharedSource, Source, check_span};
use windrow_core::store::{Object, expanded, key, plain_name};
use windrow_core::{DType, Decode, Element, Error, Lengths, Result, Span, Values};

use self::claims::Claims;
use self::documents::Documents;
use self::write::WriteTokens;
use windrow_core::format::data_files::DataFiles;

use crate::foreign;
use crate::in_files::none_found;
use crate::open_options::EOS;

/// Headerless token files.
#[derive(Clone, Copy, Debug)]
pub struct Tokens;

const DTYPES: [DType; 5] = [DType::U8, DType::U16, DType::U32, DType::I32, DType::I64];

static INFO: FormatInfo = FormatInfo {
    name: "tokens",
    title: "Raw tokens",
    layout: "headerless `.bin` files of little-endian uint8, uint16, uint32, int32 or int64, also `.gz` and `.zst`",
    records: "one stream of token IDs per file; one document with `document_eos=`",
    written_by: "`windrow tokenize --to tokens`, `windrow convert --to tokens`, `windrow dummy`, `wr.write`, numpy's tofile",
    holds: &[Holds::Tokens],
    data_suffixes: &[".bin"],
    foreign: foreign::FOREIGN,
    open_options: &[EOS],
    written_as: "one headerless row of token IDs",
    tokenize_options: option_rows! {
        /// keep no block checksums
        block_sums: Takes::Off;
    },
    checks_manifest: true,
    is_declared: true,
    names: FileNames {
        before: |name| Some(plain_name(name)).filter(|plain| *plain != name && is_bin(plain)),
        ..FileNames::NONE
    },
    ..FormatInfo::NONE
};

impl Format for Tokens {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let named = if probe.is_folder {
            probe.names().any(|name| is_bin(name) && !name.contains('/'))
                && !probe.names().any(|name| name == "meta.json")
        } else {
            is_bin(&probe.file_name()) && !is_half(probe)
        };
        match (&probe.manifest, named) {
            (Some(manifest), _) if manifest.format == self.name() => Confidence::Yes,
            (_, true) => Confidence::Maybe,
            _ => Confidence::No,
        }
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteTokens::of(options)?)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Tokens
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let mut keys: Vec<String> = if probe.is_folder {
            let named = |is: fn(&str) -> bool| -> Vec<String> {
                let top = probe.names().filter(|name| is(name) && !name.contains('/'));
                top.map(|name| probe.below(name)).collect()
            };
            let bins = named(is_bin);
            // Some programs call headerless files so; numpy's own begin otherwise and are refused.
            if bins.is_empty() { named(|name| key::has_suffix(name, ".npy")) } else { bins }
        } else {
            vec![probe.key.clone()]
        };
        if keys.is_empty() {
            return Err(none_found(probe, ".bin", &[".bin"]));
        }
        probe.refuse_checksums_alone()?;
        refuse_halves(probe, &keys)?;
        keys.sort_by(|a, b| natural_order(a, b));
        refuse_copies(keys.iter().map(String::as_str), |key| probe.store.display(key))?;
        let claims = Claims::of(probe, &keys, options)?;
        if probe.is_folder && !claims.is_whole() {
            splits::refuse_in(probe, keys.iter().map(|key| probe.name_of(key)))?;
        }
        let said = dtype(claims.dtype, options.dtype, probe)?;
        let files = match declared(probe, &keys) {
            Some(files) => files,
            None => opened(probe, keys, &claims, options)?,
        };
        if !options.trust {
            claims.check(probe, &files)?;
        }
        let dtype = said.unwrap_or(guess::GUESSED);
        let mut lengths = Vec::with_capacity(files.count());
        for file in 0..files.count() {
            lengths.push(length(&files, file, dtype)?);
        }
        if said.is_none() {
            guess::warn(&files, &probe.display())?;
        }
        let mut schema = Schema::numbers(Element::little(dtype));
        let known = claims.vocab_size;
        schema.vocab_size = options.vocab_size.or(known);
        let streams = Streams { files, lengths, schema };
        let source: SharedSource = match options.document_eos {
            Some(eos) => Arc::new(Documents::new(streams, eos).map_err(|e| e.or_at(probe.display()))?),
            None => Arc::new(streams),
        };
        check_asked(source.as_ref(), options.vocab_size, known)?;
        Ok(source)
    }
}

// Whether a file holds raw IDs by its name.
fn is_bin(name: &str) -> bool {
    key::has_suffix(plain_name(name), ".bin")
}

// Whether a compressed file is one of Megatron's, whose index is beside it: which IDs it holds, that says.
fn is_half(probe: &Probe) -> bool {
    let plain = plain_name(&probe.key);
    let index = plain.strip_suffix(".bin").filter(|_| plain != probe.key).map(|stem| format!("{stem}.idx"));
    index.is_some_and(|index| probe.store.entry(&index).is_ok_and(|entry| !entry.is_folder))
}

// A pair of Megatron's is told by its names in small letters: without its index, its numbers would be one stream of IDs.
fn refuse_halves(probe: &Probe, keys: &[String]) -> Result<()> {
    let is_index = |name: &&str| {
        let stem = key::without_suffix(name, ".idx").filter(|_| !name.ends_with(".idx"));
        stem.is_some_and(|stem| {
            keys.iter().any(|of| key::without_suffix(probe.name_of(of), ".bin") == Some(stem))
        })
    };
    match probe.names().find(is_index) {
        None => Ok(()),
        Some(index) => Err(Error::config(format!("{index} beside it may be the index of a pair"))
            .at(probe.display())
            .hint(
                "end the names of both files in `.idx` and `.bin`, or name the `.bin` instead of the folder",
            )),
    }
}

// Files that were found to hold IDs when their folder was listed, each with some.
fn declared(probe: &Probe, keys: &[String]) -> Option<DataFiles> {
    let are_plain = keys.iter().all(|key| plain_name(key) == key);
    let files = DataFiles::declared(Tokens.name(), probe, keys).filter(|_| are_plain)?;
    (0..files.count()).all(|file| files.size(file).is_ok_and(|size| size > 0)).then_some(files)
}

// Files of which each is looked at.
fn opened(probe: &Probe, mut keys: Vec<String>, claims: &Claims, options: &Options) -> Result<DataFiles> {
    let mut objects = keys.iter().map(|key| ids(probe, key, options)).collect::<Result<Vec<_>>>()?;
    let named = claims.names();
    let is_named = |key: &String| named.contains(plain_name(key::name_of(key)));
    if objects.iter().any(|object| object.size() > 0) {
        // A part of no byte has no record; of those that a manifest names it says the size.
        let is_kept = |(key, object): &(String, Arc<dyn Object>)| object.size() > 0 || is_named(key);
        (keys, objects) = std::iter::zip(keys, objects).filter(is_kept).unzip();
    }
    if !options.trust {
        let mut unknown = keys.iter().zip(&objects).filter(|(key, _)| !is_named(key));
        unknown.try_for_each(|(_, object)| foreign::refuse_as_ids(object.as_ref()))?;
    }
    Ok(DataFiles::from_objects(probe.store.clone(), keys, objects).noted(probe))
}

// The file with the IDs: by its name the one that it was compressed to, expanded, or the file itself.
fn ids(probe: &Probe, key: &str, options: &Options) -> Result<Arc<dyn Object>> {
    if plain_name(key) == key {
        probe.store.open(key)
    } else {
        expanded(&probe.store, key, options.cache_limit)
    }
}

// The dtype that the manifest or the caller says.
fn dtype(written: Option<DType>, asked: Option<DType>, probe: &Probe) -> Result<Option<DType>> {
    let dtype = match (written, asked) {
        (Some(written), Some(asked)) if written != asked => {
            return Err(Error::mismatch(format!("dtype {asked} was asked for, the manifest says {written}"))
                .at(probe.display())
                .hint("leave @dtype@ out"));
        }
        (Some(dtype), _) | (None, Some(dtype)) => dtype,
        (None, None) => return Ok(None),
    };
    if DTYPES.contains(&dtype) {
        Ok(Some(dtype))
    } else {
        let names: Vec<_> = DTYPES.iter().map(|d| d.name()).collect();
        Err(Error::config(format!("token files do not hold {dtype}"))
            .at(probe.display())
            .hint(format!("one of {}", names.join(", "))))
    }
}

fn length(files: &DataFiles, file: usize, dtype: DType) -> Result<u64> {
    let (size, width) = (files.size(file)?, dtype.size() as u64);
    if size == 0 {
        return Err(Error::corrupt(format!(
            "the file is empty: expected at least one {dtype} of {width} bytes"
        ))
        .at(files.name(file))
        .hint("the copy looks unfinished"));
    }
    match size % width {
        0 => Ok(size / width),
        over => Err(Error::corrupt(format!(
            "the file has {size} bytes: {over} more than whole {dtype} IDs of {width} bytes"
        ))
        .at(files.name(file))
        .byte(size - over)
        .hint("the copy looks unfinished, or the token IDs are of another @dtype@")),
    }
}

struct Streams {
    files: DataFiles,
    lengths: Vec<u64>,
    schema: Schema,
}

impl Streams {
    // A record's number is its file's.
    fn file(&self, span: Span) -> Result<usize> {
        check_span(span, self.length(span.record)?)?;
        Ok(span.record as usize)
    }

    // `cut` says how the streams are cut; nothing where they are whole.
    fn fingerprint_with(&self, cut: &[u8]) -> Result<u64> {
        let mut claims = vec![Tokens.name().as_bytes(), self.schema.element.dtype.name().as_bytes()];
        claims.extend((!cut.is_empty()).then_some(cut));
        self.files.fingerprint(&claims)
    }
}

impl Lengths for Streams {
    fn len(&self) -> u64 {
        self.lengths.len() as u64
    }

    fn length(&self, record: u64) -> Result<u64> {
        let found = usize::try_from(record).ok().and_then(|r| self.lengths.get(r).copied());
        found.ok_or_else(|| Error::out_of_range("record", record, self.len()))
    }

    fn uniform(&self) -> Option<u64> {
        self.lengths.first().copied().filter(|first| self.lengths.iter().all(|l| l == first))
    }
}

impl Source for Streams {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let file = self.file(span)?;
        let width = self.schema.element.size() as u64;
        let size = usize::try_from(span.len * width)
            .map_err(|_| Error::unsupported(format!("{} values at once on this machine", span.len)))?;
        let bytes = self.files.get(file)?.read(span.start * width, size, scratch)?;
        Ok(Values { bytes, element: self.schema.element, channels: 1, decode: Decode::Plain })
    }

    fn touch(&self, span: Span) {
        let width = self.schema.element.size() as u64;
        if let Ok(file) = self.file(span)
            && let Ok(object) = self.files.get(file)
        {
            object.touch(span.start * width, span.len * width);
        }
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        let width = self.schema.element.size() as u64;
        for (span, _) in spans {
            if let Ok(file) = self.file(span) {
                self.files.prefetch(file, span.start * width, span.len * width);
            }
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let file = self.file(span)?;
        let width = self.schema.element.size() as u64;
        Ok(vec![Location { file: self.files.name(file), start: span.start * width, size: span.len * width }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.files.infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.fingerprint_with(&[])
    }

    fn format(&self) -> &'static str {
        Tokens.name()
    }
}
