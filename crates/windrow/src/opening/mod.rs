//! One way in: a path, and the format that recognises what is there.

pub(crate) mod choosing;
pub(crate) mod dataset;
mod declared;
pub(crate) mod exclude;
pub(crate) mod formats;
pub(crate) mod in_memory;
pub(crate) mod listing;
pub(crate) mod own;
pub(crate) mod owner;
pub(crate) mod part;
pub(crate) mod paths;
pub(crate) mod records;
pub(crate) mod remote;
pub(crate) mod resolve;
pub(crate) mod select;
pub(crate) mod several;
pub(crate) mod split;
pub(crate) mod split_by_time;
pub(crate) mod time_part;
pub(crate) mod together;
pub(crate) mod unread;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::format::lines::INDEX_FOLDER;
use windrow_core::format::{self, Options, Probe, Table, splits};
use windrow_core::source::SharedSource;
use windrow_core::store::{self, Local, is_url, key};
use windrow_core::{Error, Result};
use windrow_prepare::{self, Findings, VerifyOptions, Watch};

use crate::opening::dataset::Dataset;
use crate::opening::formats::formats;
use crate::opening::paths::Paths;
use crate::opening::remote::{Place, ReadOnce, Stores};

/// Opens a file or folder; its format is recognised by content. A `file://` URL is the path that it names. A glob
/// (`data/*.parquet`, `**`) and braces (`x-{000..127}.tar`, `{a,b}.bin`) stand for the files and folders of these names, which
/// are opened as one data set: those of a glob in natural order, those of braces as they are written. A file whose name really
/// has these characters is that file. [`Paths::list`](crate::Paths::list) opens a list of paths.
///
/// # Errors
/// `NotFound`, `Unrecognised`; `Corrupt` or `Stale` when a claim in the files does not hold; `Mismatch` where the records of
/// several paths cannot be joined.
///
/// ```no_run
/// let corpus = windrow::open("corpus/")?;
/// println!("{} records", corpus.len());
/// let shards = windrow::open("shards/x-{000..127}.tar")?;
/// # Ok::<(), windrow::Error>(())
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<Dataset> {
    open_with(path, &Options::default())
}

/// Opens a file or folder with options: a forced format, a dtype, a vocabulary to check.
///
/// # Errors
/// As [`open`]; `Config` for options that do not fit.
pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Dataset> {
    Paths::from(path.as_ref()).open(options)
}

/// Opens one path, which is no pattern.
pub(crate) fn open_one(path: &Path, options: &Options, stores: &Stores) -> Result<Dataset> {
    if let Some(split) = &options.split {
        if split.is_empty() || split == ".." || split == "." || split.contains(['/', '\\', '\0']) {
            return Err(Error::config(format!("split {split:?}, expected the name of a folder"))
                .at(path)
                .field("split"));
        }
        if path.is_file() && !is_url(path) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            splits::chosen([name.as_ref()].into_iter(), split, &path.display().to_string())?;
            return open_one(path, &Options { split: None, ..options.clone() }, stores);
        }
        if !is_url(path) && (path.join(split).exists() || !path.is_dir()) {
            return open_one(&path.join(split), &Options { split: None, ..options.clone() }, stores);
        }
    }
    if let Some(place) = stores.place(path, options)? {
        return open_at(place, options, stores.table);
    }
    let asked = path;
    let path = &file_of_pair(path);
    // The store's root is the folder above a file, so that what is beside the file can be found.
    // So it is above an index folder, whose file names start there.
    let index = options.index_folder.as_deref().unwrap_or(INDEX_FOLDER);
    let is_index = |name: &OsStr| name == index && path.join("file_location.txt").is_file();
    let (root, key) = match path.file_name() {
        Some(name) if !path.is_dir() || is_index(name) => {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            (parent, key_of(path, name)?)
        }
        _ => (path.as_path(), String::new()),
    };
    let store = Local::new(root).io(options.io).allow_outside(options.allow_outside);
    let store = store.cache_limit(options.cache_limit);
    let probe = Probe::at(stores.table, Arc::new(store), &key);
    open_probed(probe.map_err(|e| store::with_near_name(e, path))?, asked, options)
}

// What a URL leads to.
fn open_at(place: Place, options: &Options, table: Table) -> Result<Dataset> {
    let Place { store, key, url } = place;
    if let Some(split) = &options.split {
        // A folder of that name, before words in the names of files.
        let below = key::below(&key, split);
        if store::entry_if_there(store.as_ref(), &below)?.is_some_and(|entry| entry.is_folder) {
            let of_folder = Options { split: None, ..options.clone() };
            return open_probed(Probe::at(table, store, &below)?, &url.join(split), &of_folder);
        }
    }
    let probe = Probe::at(table, store.clone(), &key).map_err(|e| store::or_encoded(e, store.as_ref()))?;
    open_probed(probe, &url, options)
}

pub(crate) fn open_probed(probe: Probe, asked: &Path, options: &Options) -> Result<Dataset> {
    let path = asked;
    let probe = match &options.split {
        // No folder is called so: words in the names of files decide.
        Some(split) => probe.only_split(split)?,
        None => probe,
    };
    let options_of_formats = with_tokenizer_hash(options)?;
    let source = store::whole(|| format::open(probe.table, &probe, &options_of_formats))?;
    log::debug!("opened {} as {}: {} records", path.display(), source.format(), source.len());
    let hidden = not_read(&probe, &source);
    let stores = probe.store.into();
    let opened = Dataset::new(asked.into(), options.clone(), source, probe.manifest, stores);
    Ok(Dataset { hidden, ..opened.map_err(|e| e.or_at(path))? })
}

// The hidden names below a folder without those that it reads all the same, as a file of its own lists them.
fn not_read(probe: &Probe, source: &SharedSource) -> Vec<String> {
    if probe.hidden.is_empty() {
        return Vec::new();
    }
    let files: HashSet<String> = source.files().into_iter().map(|info| info.file).collect();
    let is_read = |name: &&String| files.contains(&probe.store.display(&probe.below(name)));
    probe.hidden.iter().filter(|name| !is_read(name) && !store::is_of_a_run(name)).cloned().collect()
}

/// The path that a file:// URL names, or one that begins with `~`; any other path as it is.
pub(crate) fn local(path: &Path) -> Result<Cow<'_, Path>> {
    let text = path.to_string_lossy();
    let Some((scheme, place)) = text.split_once("://") else { return Ok(store::at_home(path)) };
    let place_here = place.strip_prefix("localhost").unwrap_or(place);
    match scheme {
        "file" if place_here.starts_with('/') => {
            let bytes = unescaped(place_here.as_bytes())
                .ok_or_else(|| Error::config("a % in a URL comes before two hexadecimal digits").at(path))?;
            Ok(Cow::Owned(PathBuf::from(OsString::from_vec(bytes))))
        }
        "file" => Err(Error::unsupported("a file:// URL of another machine")
            .at(path)
            .hint("a file on this machine is file:///PATH, or the path alone")),
        // A store's: it is opened as it is written.
        _ => Ok(Cow::Borrowed(path)),
    }
}

// %20 is a space, and so on; None where they are not a byte.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |d: &u8| char::from(*d).to_digit(16);
                u8::try_from(digit(rest.next()?)? * 16 + digit(rest.next()?)?).ok()?
            }
            other => other,
        });
    }
    Some(bytes)
}

/// Checks the data set or file at `path`, or those that a glob or braces stand for, by the formats of all crates; see
/// [`windrow_prepare::verify()`].
///
/// # Errors
/// `NotFound` when nothing is there; `Interrupted`; `Io`. Bad data is not an error.
pub fn verify(path: &Path, options: &VerifyOptions, watch: &dyn Watch) -> Result<Findings> {
    Paths::from(path).verify(options, watch)
}

/// Checks one path, which is no pattern.
pub(crate) fn verify_one(
    path: &Path,
    options: &VerifyOptions,
    far: &ReadOnce,
    watch: &dyn Watch,
) -> Result<Findings> {
    let path = if is_url(path) { path.to_path_buf() } else { file_of_pair(path) };
    store::whole(|| windrow_prepare::verify_from(formats(), far, &path, options, watch))
}

// A store names its objects in text.
fn key_of(path: &Path, name: &OsStr) -> Result<String> {
    match name.to_str() {
        Some(name) => Ok(name.to_string()),
        // Nothing of that name is there.
        None if !path.exists() => Ok(name.to_string_lossy().into_owned()),
        None => Err(Error::unsupported("a file name that is not UTF-8").at(path).hint("rename the file")),
    }
}

// A pair of files may be named by what both names begin with, as Megatron's programs do.
fn file_of_pair(path: &Path) -> PathBuf {
    let pair = path.file_name().map(|name| path.with_file_name(format!("{}.idx", name.to_string_lossy())));
    pair.filter(|pair| !path.exists() && pair.is_file()).unwrap_or_else(|| path.to_path_buf())
}

/// Formats compare hashes; people name tokenizers.
pub(crate) fn with_tokenizer_hash(options: &Options) -> Result<Options> {
    let Some(named) = &options.tokenizer else { return Ok(options.clone()) };
    let is_hash = named.len() == 16 && named.bytes().all(|b| b.is_ascii_hexdigit());
    let hash = if is_hash { named.clone() } else { hash_of_tokenizer(named)? };
    Ok(Options { tokenizer: Some(hash), ..options.clone() })
}

#[cfg(feature = "text")]
fn hash_of_tokenizer(name: &str) -> Result<String> {
    Ok(windrow_text::Tokenizer::load(name)?.lock().hash)
}

#[cfg(not(feature = "text"))]
fn hash_of_tokenizer(_name: &str) -> Result<String> {
    Err(Error::built_without("text"))
}
