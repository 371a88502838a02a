//! Which files are sound: by name in a folder, by content where one file was named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow::audio::{Decoder, Options};
use windrow::dev::format::discover::natural_order;
use windrow::dev::store::{Entry, Io, Local, Object, Store};
use windrow::sound::has_sound_name;
use windrow::{Error, Result};

/// Prompts, lyrics, descriptions.
const NOTES: &[&str] = &["txt", "json"];

/// Sound files, in natural order.
pub struct Files {
    store: Local,
    pub(crate) list: Vec<File>,
    /// Other files in the folder.
    pub(crate) others: u64,
    /// Those of them that are not notes about sounds either.
    others_but_notes: u64,
}

/// One of them.
pub(crate) struct File {
    key: String,
    pub(crate) size: u64,
}

impl File {
    /// What it is called: its path below the folder.
    pub(crate) fn name(&self) -> &str {
        &self.key
    }
}

impl Files {
    /// Those that `path` is or holds at any depth.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    pub(crate) fn find(path: &Path) -> Result<Files> {
        if path.is_dir() {
            let store = Local::new(path).io(Io::Pread);
            let all = store.walk("")?;
            let (mut sounds, others): (Vec<Entry>, Vec<Entry>) =
                all.into_iter().partition(|entry| has_name(Path::new(&entry.key)));
            sounds.sort_by(|a, b| natural_order(&a.key, &b.key).then(a.key.cmp(&b.key)));
            let but_notes = others.iter().filter(|entry| !is_note(Path::new(&entry.key))).count() as u64;
            let list = sounds.into_iter().map(|entry| File { key: entry.key, size: entry.size }).collect();
            return Ok(Files { store, list, others: others.len() as u64, others_but_notes: but_notes });
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(Error::config("the name of the file is not UTF-8").at(path));
        };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let store = Local::new(parent).io(Io::Pread);
        let size = store.entry(name)?.size;
        Ok(Files { store, list: vec![File { key: name.to_string(), size }], others: 0, others_but_notes: 0 })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether the folder is about them: there are more of them than of anything else, notes left out.
    pub(crate) fn are_most(&self) -> bool {
        self.list.len() as u64 > self.others_but_notes
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.list.iter().map(|file| PathBuf::from(self.store.display(&file.key))).collect()
    }

    pub(crate) fn open(&self, file: usize) -> Result<Arc<dyn Object>> {
        self.store.open(&self.list[file].key)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.list.iter().map(|file| file.size).sum()
    }
}

/// Whether the name of a file says that it is sound.
pub(crate) fn has_name(path: &Path) -> bool {
    has_sound_name(&path.to_string_lossy())
}

fn is_note(path: &Path) -> bool {
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    extension.is_some_and(|e| NOTES.contains(&e.as_str()))
}

/// Whether the content of a file is sound that is read.
pub(crate) fn has_content(path: &Path) -> bool {
    path.is_file() && Decoder::open(path, &Options { sample_rate_hz: None, ..Options::default() }).is_ok()
}
