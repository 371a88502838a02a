//! Megatron's indexed data sets: `<prefix>.bin` holds numbers, `<prefix>.idx` says where each sequence is in it.

mod index;
mod write;

use std::sync::Arc;

use windrow_core::format::discover::natural_order;
use windrow_core::format::vocabulary::{check_asked, tokenizer_must_be};
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{
    Confidence, FileNames, Format, FormatInfo, Holds, Options, Probe, manifest_beside,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::source::{Concat, Extras, FileInfo, Location, Schema, SharedSource, Source, check_span};
use windrow_core::store::{key, open_if_there};
use windrow_core::{Decode, Element, Error, Lengths, Result, Span, Values};

use self::index::{Index, MAGIC, VERSION, code};
use self::write::WriteMegatron;
use windrow_core::format::data_files::DataFiles;

const INDEX: &str = ".idx";
const DATA: &str = ".bin";
/// Extras: the number of a sequence's document, and its mode.
const DOCUMENT: &str = "document";
const MODE: &str = "mode";

/// Megatron's indexed data sets.
#[derive(Clone, Copy, Debug)]
pub struct Megatron;

static INFO: FormatInfo = FormatInfo {
    name: "megatron",
    title: "Megatron",
    layout: "`<prefix>.bin` and `<prefix>.idx`, one pair or a folder of them",
    records: "one sequence: a document, or a part of one with the number of its document beside it",
    written_by: "`windrow convert --to megatron`, `windrow tokenize --to megatron`, `wr.write`, Megatron's preprocess_data",
    holds: &[Holds::Tokens],
    data_suffixes: &[".bin", ".idx"],
    written_as: "`.bin` and `.idx`, a sequence per record",
    checks_manifest: true,
    names: FileNames { other_half, checksums_beside, ..FileNames::NONE },
    ..FormatInfo::NONE
};

impl Format for Megatron {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        // A pair by name is one, whatever it begins with: its numbers without their index would be one stream of IDs.
        let is_one = |prefix: &String| {
            let there = |suffix| probe.store.entry(&format!("{prefix}{suffix}")).is_ok_and(|e| !e.is_folder);
            there(INDEX) && (there(DATA) || begins_as_index(probe, prefix))
        };
        Confidence::yes_if(prefixes(probe).first().is_some_and(is_one))
    }

    fn joins(&self, probe: &Probe) -> Vec<String> {
        prefixes(probe).iter().map(|key| probe.name_of(key).to_string()).collect()
    }

    fn writer(&self, _options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteMegatron)))
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let prefixes = prefixes(probe);
        if prefixes.is_empty() {
            return Err(Error::not_found(format!("expected <prefix>{INDEX} and <prefix>{DATA}, found none"))
                .at(probe.display()));
        }
        let mut parts: Vec<SharedSource> = Vec::with_capacity(prefixes.len());
        for prefix in &prefixes {
            let part: SharedSource = Arc::new(pair(probe, prefix, options)?);
            let element = part.schema().element;
            if let Some(first) = parts.first().map(|part| part.schema().element).filter(|e| *e != element) {
                return Err(Error::mismatch(format!(
                    "numbers are {}, those of the files before are {}",
                    element.dtype, first.dtype
                ))
                .at(probe.store.display(&format!("{prefix}{INDEX}")))
                .hint("open the files one by one"));
            }
            parts.push(part);
        }
        match (parts.len(), parts.pop()) {
            (1, Some(one)) => Ok(one),
            (_, last) => {
                parts.extend(last);
                Ok(Arc::new(Concat::new(self.name(), parts)?))
            }
        }
    }
}

// A pair is one data set: what is declared of one file holds for both.
fn other_half(name: &str) -> Option<String> {
    let other = |this: &str, other: &str| name.strip_suffix(this).map(|stem| format!("{stem}{other}"));
    other(DATA, INDEX).or_else(|| other(INDEX, DATA))
}

// Both files of a pair are in the checksums of its index.
fn checksums_beside(name: &str) -> Option<String> {
    Some(format!("{}{INDEX}.{CHECKSUMS_FILE}", name.strip_suffix(DATA)?))
}

fn begins_as_index(probe: &Probe, prefix: &str) -> bool {
    let index = open_if_there(probe.store.as_ref(), &format!("{prefix}{INDEX}")).ok().flatten();
    index.is_some_and(|index| {
        let size = index.size().min(MAGIC.len() as u64) as usize;
        index.read(0, size, &mut Vec::new()).is_ok_and(|head| head == MAGIC)
    })
}

// The keys of the pairs, without their suffixes, in natural order.
fn prefixes(probe: &Probe) -> Vec<String> {
    if !probe.is_folder {
        let stem = probe.key.strip_suffix(INDEX).or_else(|| probe.key.strip_suffix(DATA));
        return stem.map(str::to_string).into_iter().collect();
    }
    let top = probe.names().filter(|name| !name.contains('/'));
    let mut found: Vec<String> =
        top.filter_map(|name| name.strip_suffix(INDEX)).map(|stem| probe.below(stem)).collect();
    found.sort_by(|a, b| natural_order(a, b));
    found
}

fn pair(probe: &Probe, prefix: &str, options: &Options) -> Result<Sequences> {
    let index_key = format!("{prefix}{INDEX}");
    let store = probe.store.as_ref();
    let manifest = manifest(probe, &index_key)?;
    tokenizer_must_be(manifest.as_ref(), options.tokenizer.as_deref(), &store.display(&index_key))?;
    let data_key = format!("{prefix}{DATA}");
    let missing = |key: &str, _| {
        let hint = format!("a data set is <prefix>{DATA} and <prefix>{INDEX}: the copy looks unfinished");
        Error::not_found("half a data set: the other file is gone").at(key).hint(hint)
    };
    let index = store.open(&index_key).map_err(|e| match e.kind() {
        windrow_core::Kind::NotFound => missing(&store.display(&index_key), 0),
        _ => e,
    })?;
    // Asked at random from now on.
    index.bring_near()?;
    let mut index = Index::open(index, options.trust)?;
    if let Some(asked) = options.dtype.filter(|asked| *asked != index.dtype) {
        return Err(Error::mismatch(format!("dtype {asked} was asked for, the index says {}", index.dtype))
            .at(store.display(&index_key))
            .hint("leave @dtype@ out"));
    }
    let files = DataFiles::open(probe.store.clone(), vec![data_key, index_key], missing)?;
    if let Some(manifest) = manifest.as_ref().filter(|_| !options.trust) {
        check_told(manifest, &files, &index)?;
    }
    index.check_places(files.size(0)?)?;
    let mut schema = Schema::numbers(Element::little(index.dtype));
    let known = manifest.as_ref().and_then(|s| s.vocab_size);
    schema.vocab_size = options.vocab_size.or(known);
    let source = Sequences { files, index, schema };
    check_asked(&source, options.vocab_size, known)?;
    Ok(source)
}

// Sizes of both files, how many sequences there are, and their dtype, as the manifest says them.
fn check_told(manifest: &Manifest, files: &DataFiles, index: &Index) -> Result<()> {
    for (file, key) in files.keys().enumerate() {
        let name = key::name_of(key);
        if let Some(row) = manifest.files.iter().find(|row| row.name == name) {
            row.check_size(Some(files.size(file)?), &files.name(file))?;
        }
    }
    let wrong = |what: String| Err(Error::corrupt(what).at(files.name(1)));
    match (manifest.dtype, manifest.records) {
        (Some(said), _) if said != index.dtype => {
            wrong(format!("the index says {}, the manifest {said}", index.dtype))
        }
        (_, Some(said)) if said != index.sequences => {
            wrong(format!("the index has {} sequences, the manifest says {said}", index.sequences))
        }
        _ => Ok(()),
    }
}

// The manifest of one pair, or that of its folder where it names the pair.
fn manifest(probe: &Probe, index_key: &str) -> Result<Option<Manifest>> {
    let name = key::name_of(index_key);
    let of_folder = key::below(key::folder_of(index_key), MANIFEST_FILE);
    for (key, is_own) in [(format!("{index_key}.{MANIFEST_FILE}"), true), (of_folder, false)] {
        if let Some(object) = open_if_there(probe.store.as_ref(), &key)? {
            let manifest = if is_own {
                manifest_beside(probe.table, object.as_ref(), name)?
            } else {
                Manifest::read(object.as_ref())?
            };
            if is_own || manifest.files.iter().any(|file| file.name == name) {
                return Ok(Some(manifest));
            }
        }
    }
    Ok(None)
}

/// The sequences of one pair.
struct Sequences {
    /// The data, then the index.
    files: DataFiles,
    index: Index,
    schema: Schema,
}

impl Sequences {
    // First byte and number of bytes of a span.
    fn place(&self, span: Span) -> Result<(u64, u64)> {
        let (start, length) = self.index.place(span.record, self.files.size(0)?)?;
        check_span(span, length)?;
        let width = self.schema.element.size() as u64;
        Ok((start + span.start * width, span.len * width))
    }
}

impl Lengths for Sequences {
    fn len(&self) -> u64 {
        self.index.sequences
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.index.length(record)
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        self.index.lengths(first, out)
    }

    fn uniform(&self) -> Option<u64> {
        self.index.uniform
    }
}

impl Source for Sequences {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (start, size) = self.place(span)?;
        let size = usize::try_from(size)
            .map_err(|_| Error::unsupported(format!("{} values at once on this machine", span.len)))?;
        let bytes = self.files.get(0)?.read(start, size, scratch)?;
        Ok(Values { bytes, element: self.schema.element, channels: 1, decode: Decode::Plain })
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        if record >= self.index.sequences {
            return Err(Error::out_of_range("record", record, self.index.sequences));
        }
        let mut extras = Extras::new();
        if let Some(document) = self.index.document(record)? {
            extras.insert(DOCUMENT, document);
        }
        if let Some(mode) = self.index.mode(record)? {
            extras.insert(MODE, i64::from(mode));
        }
        Ok(extras)
    }

    fn touch(&self, span: Span) {
        if let Ok((start, size)) = self.place(span)
            && let Ok(object) = self.files.get(0)
        {
            object.touch(start, size);
        }
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok((start, size)) = self.place(span) {
                self.files.prefetch(0, start, size);
            }
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (start, size) = self.place(span)?;
        Ok(vec![Location { file: self.files.name(0), start, size }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.files.infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.files.fingerprint(&[Megatron.name().as_bytes()])
    }

    fn format(&self) -> &'static str {
        Megatron.name()
    }
}
