//! Files of a folder that a format joins, each opened when a record of it is first read, where a manifest declares what they hold.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::{Options, Probe, Table, info_of};
use crate::array::{DType, Element};
use crate::error::Result;
use crate::source::{Deferred, FileInfo, Later, LaterFiles, Promise, Schema, SharedSource};
use crate::store::{Catalogue, DeclaredPart, Store};

/// Bytes of a file that opening it reads first; what is small comes whole.
const HEAD: u64 = 4096;
const SMALL: u64 = 64 << 10;

/// Opens the file with this key.
pub type OpenFile = Box<dyn Fn(&str) -> Result<SharedSource> + Send + Sync>;

/// What records of files have in common: plain numbers.
#[derive(PartialEq, Serialize, Deserialize)]
struct Shared {
    format: String,
    dtype: DType,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    big_endian: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    own_dtypes: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channels: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vocab_size: Option<u64>,
    /// `null` where it differs from record to record.
    beside: Option<Vec<String>>,
}

impl Shared {
    // `None` for what is more than plain numbers.
    fn of(source: &SharedSource) -> Option<Shared> {
        let schema = source.schema();
        let shared = Shared {
            format: source.format().to_string(),
            dtype: schema.element.dtype,
            big_endian: schema.element.big_endian,
            own_dtypes: schema.own_dtypes,
            channels: schema.channels,
            vocab_size: schema.vocab_size,
            beside: schema.beside.clone(),
        };
        (source.treatment().is_none() && shared.schema() == *schema).then_some(shared)
    }

    fn schema(&self) -> Schema {
        Schema {
            own_dtypes: self.own_dtypes,
            channels: self.channels,
            vocab_size: self.vocab_size,
            beside: self.beside.clone(),
            ..Schema::numbers(Element { dtype: self.dtype, big_endian: self.big_endian })
        }
    }

    fn read(kind: &Value, table: Table) -> Option<(&'static str, Schema)> {
        let shared = Shared::deserialize(kind).ok()?;
        Some((info_of(table, &shared.format)?.name, shared.schema()))
    }
}

/// The files that the format `of` joins, in order, each as a source that `open` opens later; `None` where not all that joining them takes
/// is declared of the versions that were listed.
pub fn parts(of: &str, probe: &Probe, options: &Options, open: OpenFile) -> Option<Vec<SharedSource>> {
    let catalogue = if probe.is_folder { probe.store.catalogue(&probe.key)? } else { return None };
    let declared = catalogue.declared.as_ref().filter(|declared| declared.opened_by() == Some(of))?;
    let (parts, kinds) = declared.parts(decides(options))?;
    // Of a split there are fewer.
    let there: HashSet<&str> = probe.entries.iter().map(|entry| entry.key.as_str()).collect();
    let is_known = |part: DeclaredPart| {
        let object = part.object as usize;
        there.contains(catalogue.key(object)) && catalogue.tag(object).is_some()
    };
    if !parts.iter().all(is_known) {
        return None;
    }
    let (count, store) = (u32::try_from(parts.len()).ok()?, probe.store.clone());
    let kinds = kinds.iter().map(|kind| Shared::read(kind, probe.table)).collect::<Option<Vec<_>>>()?;
    let files: Arc<dyn LaterFiles> = Arc::new(Files { store, catalogue: catalogue.clone(), open });
    let later = |(format, schema)| Arc::new(Later { format, schema, files: files.clone() });
    let kinds: Vec<Arc<Later>> = kinds.into_iter().map(later).collect();
    let of_file = |(file, part): (u32, DeclaredPart)| -> SharedSource {
        Arc::new(Deferred::new(kinds[part.kind as usize].clone(), file))
    };
    Some((0..count).zip(parts.iter()).map(of_file).collect())
}

/// Notes what is in files that are joined, by their keys, where a manifest of their folder is being made. What is more than plain numbers is
/// not noted.
///
/// # Errors
/// As [`Source::fingerprint`](crate::source::Source::fingerprint).
pub fn note(probe: &Probe, options: &Options, parts: &[(String, SharedSource)]) -> Result<()> {
    let Some(catalogue) = probe.store.catalogue(&probe.key).filter(|_| probe.is_folder) else {
        return Ok(());
    };
    let Some(declared) = catalogue.declared.as_ref().filter(|declared| declared.is_noting()) else {
        return Ok(());
    };
    let (mut kinds, mut noted): (Vec<Shared>, Vec<DeclaredPart>) = (Vec::new(), Vec::new());
    for (key, source) in parts {
        let object = catalogue.find(key).and_then(|object| u32::try_from(object).ok());
        let (Some(object), Some(shared), 1) = (object, Shared::of(source), source.files().len()) else {
            return Ok(());
        };
        let known = kinds.iter().position(|kind| *kind == shared);
        let kind = known.unwrap_or_else(|| {
            kinds.push(shared);
            kinds.len() - 1
        });
        noted.push(DeclaredPart {
            object,
            // No more than there are files.
            kind: kind as u32,
            records: source.len(),
            length: source.uniform(),
            fingerprint: source.fingerprint()?,
        });
    }
    // Serialising plain structs cannot fail.
    let kinds = kinds.iter().filter_map(|kind| serde_json::to_value(kind).ok()).collect();
    declared.note_parts(decides(options), kinds, &noted);
    Ok(())
}

/// How many records each of these files has, where the manifest of their folder declares that the format `of` found them in the versions
/// that were listed, whatever its options.
pub fn counts(of: &str, probe: &Probe, keys: &[String]) -> Option<Vec<u64>> {
    let catalogue = if probe.is_folder { probe.store.catalogue(&probe.key)? } else { return None };
    let declared = catalogue.declared.as_ref().filter(|declared| declared.opened_by() == Some(of))?;
    let (parts, _) = declared.parts(decides(&Options::default()))?;
    let by_object: HashMap<u32, u64> = parts.iter().map(|part| (part.object, part.records)).collect();
    let count = |key: &String| {
        let object = catalogue.find(key).filter(|object| catalogue.tag(*object).is_some())?;
        by_object.get(&u32::try_from(object).ok()?).copied()
    };
    keys.iter().map(count).collect()
}

/// Notes how many records each of these files has, where a manifest of their folder is being made.
pub fn note_counts(probe: &Probe, keys: &[String], counts: &[u64]) {
    let Some(catalogue) = probe.store.catalogue(&probe.key).filter(|_| probe.is_folder) else { return };
    let part = |(key, records): (&String, &u64)| {
        let object = u32::try_from(catalogue.find(key)?).ok()?;
        Some(DeclaredPart { object, kind: 0, records: *records, length: None, fingerprint: 0 })
    };
    let parts: Option<Vec<DeclaredPart>> = keys.iter().zip(counts).map(part).collect();
    if let (Some(declared), Some(parts)) = (&catalogue.declared, parts) {
        declared.note_parts(decides(&Options::default()), vec![Value::Null], &parts);
    }
}

// A hash of the options by which a file is another source.
fn decides(options: &Options) -> u64 {
    let Options { dtype, vocab_size, document_eos, fill_missing, allow_empty, payload, axis, .. } = *options;
    let deciding = Options {
        dtype,
        vocab_size,
        document_eos,
        fill_missing,
        allow_empty,
        payload,
        axis,
        tokenizer: options.tokenizer.clone(),
        column: options.column.clone(),
        columns: options.columns.clone(),
        mask_column: options.mask_column.clone(),
        ..Options::default()
    };
    // Serialising plain structs cannot fail.
    xxh3_64(&serde_json::to_vec(&deciding).unwrap_or_default())
}

/// The files of a folder that was listed.
struct Files {
    store: Arc<dyn Store>,
    catalogue: Arc<Catalogue>,
    open: OpenFile,
}

impl Files {
    fn part(&self, file: u32) -> Option<DeclaredPart> {
        self.catalogue.declared.as_ref()?.all_parts().get(file as usize)
    }

    fn object(&self, file: u32) -> usize {
        self.part(file).map_or(usize::MAX, |part| part.object as usize)
    }
}

impl LaterFiles for Files {
    fn promise(&self, file: u32) -> Promise {
        let none = Promise { records: 0, length: None, fingerprint: 0 };
        self.part(file).map_or(none, |part| Promise {
            records: part.records,
            length: part.length,
            fingerprint: part.fingerprint,
        })
    }

    fn open(&self, file: u32) -> Result<SharedSource> {
        (self.open)(self.catalogue.key(self.object(file)))
    }

    fn ask(&self, file: u32) {
        let entry = self.catalogue.entry(self.object(file));
        // What is in the way is the error of whoever reads it.
        if let Ok(object) = self.store.open_listed(&entry) {
            object.prefetch(0, if entry.size <= SMALL { entry.size } else { HEAD });
        }
    }

    fn info(&self, file: u32) -> FileInfo {
        let object = self.object(file);
        FileInfo { file: self.store.display(self.catalogue.key(object)), size: self.catalogue.size(object) }
    }
}
