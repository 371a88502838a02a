//! Audio codes as they are prepared for a codec language model: a folder of `.pt` tensors `[T, C]` with their prompts.
//! The layout of Dia's stereo fine-tuning.

mod prompts;
mod pt;
mod read;
mod tensor_file;
mod verify;
mod write;

use std::collections::HashSet;
use std::sync::Arc;

use windrow_core::format::discover::natural_order;
use windrow_core::format::verify::Verify;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, FileNames, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::{Entry, Object, Store, entry_if_there, key, open_if_there};
use windrow_core::threads::{cores, in_parts};
use windrow_core::{Error, Kind, Result};
use windrow_pickle::torch::TorchSave;

pub use self::prompts::read_prompt;
use self::prompts::{Prompts, read_metadata};
use self::pt::Grid;
use self::read::Tracks;
pub use self::tensor_file::tensor_file;
use self::write::WriteCodes;
use windrow_core::format::data_files::{DataFiles, OPENED_AT_ONCE};
use windrow_core::format::numbers::check_number_options;

/// The folder of the tensors, in the usual layout.
pub(crate) const FOLDER: &str = "encoded_audio";
pub(crate) use self::prompts::METADATA;
const SUFFIX: &str = ".pt";
/// Codes of a codebook that is not otherwise known: that of the Descript Audio Codec.
pub(crate) const CODEBOOK: u64 = 1024;

/// A folder of pre-encoded tracks, or one of them.
#[derive(Clone, Copy, Debug)]
pub struct Codes;

const EDITED: &str = "`windrow rebuild-metadata` takes an edited one as it is now";

static INFO: FormatInfo = FormatInfo {
    name: "codes",
    title: "Pre-encoded audio",
    layout: "a folder with `encoded_audio/*.pt`, or `*.pt` without such a folder; prompts in `metadata.json` or \
             `.txt` files; or one `.pt`",
    records: "codes [T, C] of a tensor, with `text`, `name` and the fields of `metadata.json` beside it",
    written_by: "`windrow encode`, `windrow convert --to codes`, `wr.write`, Dia's preencode_audio.py, torch.save",
    holds: &[Holds::Codes],
    written_as: "a folder of encoded_audio/NAME.pt, torch tensors [T, C], and metadata.json with their prompts",
    names: FileNames {
        // Prompts may come from elsewhere, and earlier versions kept no checksums of theirs.
        may_lack_checksums: |name| (name == METADATA || name.ends_with(".txt")).then_some(true),
        edited: |name| (name == METADATA).then_some(EDITED),
        ..FileNames::NONE
    },
    ..FormatInfo::NONE
};

impl Format for Codes {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        if !probe.is_folder {
            return if !probe.file_name().ends_with(SUFFIX) {
                Confidence::No
            } else if TorchSave::begins(&probe.head) {
                Confidence::Yes
            } else {
                Confidence::Maybe
            };
        }
        let is_track = |name: &str| {
            let name = name.strip_prefix(FOLDER).and_then(|n| n.strip_prefix('/')).unwrap_or(name);
            key::has_suffix(name, SUFFIX) && !name.contains('/')
        };
        Confidence::yes_if(probe.names().any(is_track))
    }

    fn writer(&self, _options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        Ok(Some(Box::new(WriteCodes)))
    }

    fn verifier(&self) -> &'static dyn Verify {
        &Codes
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        if !options.trust {
            no_more_than_told(probe)?;
        }
        // What the manifest says of the codebook is so: codes are checked before they are written.
        let manifest =
            probe.manifest.as_ref().filter(|manifest| probe.is_folder && manifest.format == self.name());
        let known = manifest.and_then(|manifest| manifest.vocab_size);
        let told = Options { vocab_size: options.vocab_size.or(known), ..options.clone() };
        let source: SharedSource = Arc::new(tracks(probe, &told)?);
        check_number_options(source.as_ref(), manifest, options, &probe.display())?;
        Ok(source)
    }
}

/// What is declared of a track and is wrong.
pub(crate) struct Contradiction {
    /// The file that says it.
    pub(crate) file: String,
    /// The record, where it is about one.
    pub(crate) record: Option<u64>,
    /// What it is about.
    pub(crate) what: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

fn tracks(probe: &Probe, options: &Options) -> Result<Tracks> {
    if probe.is_folder {
        build(probe, &probe.key, list(probe)?, &probe.entries, options)
    } else {
        let folder = key::folder_of(&probe.key);
        // A prompt may be beside it; its folder is nothing else of the data set.
        let prompt = key::without_suffix(&probe.key, SUFFIX).unwrap_or(&probe.key).to_string() + ".txt";
        let beside = entry_if_there(probe.store.as_ref(), &prompt)?.filter(|e| !e.is_folder);
        let beside: Vec<Entry> = beside.into_iter().collect();
        build(probe, folder, vec![probe.key.clone()], &beside, options)
    }
}

fn build(
    probe: &Probe,
    folder: &str,
    keys: Vec<String>,
    found: &[Entry],
    options: &Options,
) -> Result<Tracks> {
    let named: Vec<(String, String)> = keys
        .into_iter()
        .map(|key| {
            let name = key::name_of(&key);
            let stem = key::without_suffix(name, SUFFIX).unwrap_or(name).to_string();
            (key, stem)
        })
        .collect();
    let prompts = Prompts::of(&probe.store, folder, &named, found)?;
    let (keys, stems): (Vec<_>, Vec<_>) = named.into_iter().unzip();
    let (grids, objects) = grids(probe.store.as_ref(), &keys)?;
    let files = if objects.len() == keys.len() {
        DataFiles::from_objects(probe.store.clone(), keys, objects)
    } else {
        DataFiles::open(probe.store.clone(), keys, |key, _| {
            Error::not_found("the track is gone since the folder was opened").at(key)
        })?
    };
    Tracks::new(files, stems, grids, prompts, options.vocab_size)
}

// A manifest that names tracks names all of them.
fn no_more_than_told(probe: &Probe) -> Result<()> {
    let told = probe.manifest.as_ref().filter(|manifest| probe.is_folder && manifest.format == Codes.name());
    let Some(manifest) = told.filter(|manifest| !manifest.files.is_empty()) else { return Ok(()) };
    let named: HashSet<String> = manifest.files.iter().map(|row| probe.below(&row.name)).collect();
    match list(probe)?.into_iter().find(|key| !named.contains(key)) {
        Some(more) => Err(Error::new(Kind::Stale, "the manifest of the folder does not name this track")
            .at(probe.store.display(&more))
            .hint("move it to another folder; @trust=true@ reads it too")),
        None => Ok(()),
    }
}

// The keys of the tensors in natural order.
fn list(probe: &Probe) -> Result<Vec<String>> {
    let found = &probe.entries;
    let nested = probe.below(FOLDER);
    // Where that folder is, even an empty one, tensors beside it are none of the data set.
    let is_nested = match probe.store.entry(&nested) {
        Ok(entry) => entry.is_folder,
        Err(e) if e.is_absent() => false,
        Err(e) => return Err(e),
    };
    let folder = if is_nested { nested } else { probe.key.clone() };
    let start = if folder.is_empty() { 0 } else { folder.len() + 1 };
    let below = |key: &str| -> bool {
        let inside = start == 0 || (key.starts_with(&folder) && key.as_bytes().get(start - 1) == Some(&b'/'));
        inside && !key[start..].contains('/')
    };
    let is_track = |key: &str| below(key) && key::has_suffix(key, SUFFIX);
    let mut keys: Vec<String> = found.iter().filter(|e| is_track(&e.key)).map(|e| e.key.clone()).collect();
    keys.extend(told_though_hidden(probe)?.into_iter().filter(|key| is_track(key)));
    if keys.is_empty() {
        return Err(Error::not_found(format!(
            "expected {} below the folder, found none among {} files",
            if is_nested { "encoded_audio/*.pt" } else { "*.pt or encoded_audio/*.pt" },
            found.len()
        ))
        .at(probe.display())
        .hint(if is_nested {
            "an encoded_audio folder is the only place that is looked into; remove it if it is not meant"
        } else {
            "tracks are .pt files of codes [T, C], as torch.save and `windrow convert` write them"
        }));
    }
    keys.sort_by(|a, b| natural_order(a, b).then_with(|| a.cmp(b)));
    Ok(keys)
}

// Tracks of hidden names that metadata.json lists.
fn told_though_hidden(probe: &Probe) -> Result<Vec<String>> {
    let hidden =
        || probe.hidden.iter().filter(|name| key::has_suffix(name, SUFFIX)).map(|name| probe.below(name));
    let metadata = match hidden().next() {
        Some(_) => open_if_there(probe.store.as_ref(), &probe.below(METADATA))?,
        None => None,
    };
    let Some(metadata) = metadata else { return Ok(Vec::new()) };
    let (told, _) = read_metadata(metadata.as_ref())?;
    Ok(hidden().filter(|key| told.contains_key(key::name_of(key))).collect())
}

type Opened = (Vec<Grid>, Vec<Arc<dyn Object>>);

// The grid of every file, and the files where they are few enough to stay open. On all cores: each file takes some system
// calls and a look at its pickle.
fn grids(store: &dyn Store, keys: &[String]) -> Result<Opened> {
    const ALONE: usize = 64;
    let stays_open = keys.len() <= OPENED_AT_ONCE;
    let read = |keys: &[String]| -> Result<Opened> {
        let mut opened = (Vec::with_capacity(keys.len()), Vec::new());
        for key in keys {
            let object = store.open(key)?;
            opened.0.push(Grid::of(object.as_ref())?);
            if stays_open {
                opened.1.push(object);
            }
        }
        Ok(opened)
    };
    let threads = cores().min(16);
    if keys.len() <= ALONE || threads == 1 {
        return read(keys);
    }
    let parts: Vec<&[String]> = keys.chunks(keys.len().div_ceil(threads)).collect();
    let found = in_parts(parts.len(), |i, (): &mut ()| read(parts[i]));
    let mut all = (Vec::with_capacity(keys.len()), Vec::new());
    for part in found {
        // The first error in the order of the files: the same one on any number of threads.
        let (grids, objects) = part?;
        all.0.extend(grids);
        all.1.extend(objects);
    }
    Ok(all)
}
