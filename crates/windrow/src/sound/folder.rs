//! A folder of sound files and what is beside them.

use std::path::{Path, PathBuf};

use windrow_audio::{Decoder, Options};
use windrow_core::format::discover;
use windrow_core::store::{Local, Store, at_home, not_only_hidden};
use windrow_core::{Error, Result};

use super::Skip;
use crate::opening::unread::unread;

/// Endings of sound files that are read, in any case.
pub const SUFFIXES: [&str; 15] = [
    ".wav", ".flac", ".mp3", ".m4a", ".ogg", ".aac", ".mp4", ".oga", ".wave", ".bwf", ".mpga", ".m4b",
    ".mov", ".3gp", ".adts",
];

/// Endings of sound files that are not: they are reported, and not passed over.
pub const SUFFIXES_NOT_READ: [&str; 28] = [
    ".opus", ".aif", ".aiff", ".aifc", ".caf", ".wma", ".ape", ".wv", ".amr", ".au", ".snd", ".webm",
    ".weba", ".mka", ".mp1", ".mp2", ".spx", ".w64", ".rf64", ".ac3", ".dts", ".ra", ".dsf", ".dff", ".tta",
    ".mpc", ".gsm", ".sph",
];

/// The folder of prompts that is looked for beside a folder of sound.
pub const PROMPTS_BESIDE: &str = "audio_prompts";

/// Why a file in a folder below is not encoded.
pub(super) const IN_FOLDER_BELOW: &str =
    "it is in a folder below; those directly in the folder become tracks";

/// One sound file with its prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoundFile {
    /// The file.
    pub path: PathBuf,
    /// Its name without the ending: the name of the track.
    pub name: String,
    /// Its prompt; empty where there is none, or where it cannot be read.
    pub prompt: String,
    /// Size in bytes.
    pub size: u64,
    /// Why it cannot be encoded, where that is known before it is opened.
    pub refused: Option<String>,
}

/// How a folder of sound is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderOptions {
    /// Folders of prompts, the first one first. None at all: `audio_prompts` beside the folder, where it is there.
    pub prompts: Vec<PathBuf>,
    /// Files that are left out, by their prompts.
    pub skip: Skip,
    /// A file without a prompt has its name for one, `_` and `-` as spaces.
    pub prompt_from_name: bool,
}

/// Whether the name of a file says that it is sound, of a kind that is read or of another.
pub fn has_sound_name(name: &str) -> bool {
    ending(name, &SUFFIXES).or_else(|| ending(name, &SUFFIXES_NOT_READ)).is_some()
}

fn ending(name: &str, suffixes: &[&'static str]) -> Option<&'static str> {
    let name = name.to_lowercase();
    suffixes.iter().copied().find(|suffix| name.ends_with(suffix))
}

impl SoundFile {
    /// Why it cannot be encoded, where that is known before it is opened.
    pub(super) fn refusal(&self) -> Option<Error> {
        self.refused.as_ref().map(|why| Error::unsupported(why.clone()).at(&self.path))
    }
}

/// The sound files directly in a folder, in natural order, or the one file at `path`. Files in subfolders follow; they cannot
/// become tracks and are reported. Files of kinds that are not read are in their place, since encoding reports them.
///
/// The prompt of `song.mp3` is the first of `song.txt` beside it, and `song.txt` and `song_prompt.txt` in each folder of
/// prompts, without a byte order mark and the white space around it. A file whose prompt is not text is not encoded, and that is
/// reported.
///
/// # Errors
/// `NotFound` without a sound file, or where a folder of prompts is not there; `Config` where two files would become one
/// track, and where every file is left out.
pub fn sound_files(path: &Path, options: &FolderOptions) -> Result<Vec<SoundFile>> {
    let whole = std::path::absolute(at_home(path)).map_err(|e| Error::io("find it", path, e))?;
    let entry = Local::new(&whole).entry("")?;
    let (folder, names) = match (entry.is_folder, whole.parent()) {
        (false, Some(folder)) => {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| Error::config("the name of the file is not UTF-8").at(path))?;
            (folder, vec![(name.to_string(), entry.size)])
        }
        _ => (whole.as_path(), sounds_in(&whole)?),
    };
    let mut found: Vec<Named> = names
        .into_iter()
        .map(|(file, size)| {
            let is_read = ending(&file, &SUFFIXES);
            let ending = is_read.or_else(|| ending(&file, &SUFFIXES_NOT_READ)).unwrap_or_default();
            let name = file[..file.len() - ending.len()].to_string();
            Named { name, file, size, is_read: is_read.is_some() }
        })
        .collect();
    found.sort_by(|a, b| discover::natural_order(&a.file, &b.file).then(a.file.cmp(&b.file)));
    let (found, below): (Vec<Named>, Vec<Named>) = found.into_iter().partition(|f| !f.file.contains('/'));
    if found.is_empty() {
        let hint = match below.first() {
            Some(first) => {
                format!("{} in folders below, first {}: encode each folder", below.len(), first.file)
            }
            None => "looked for .wav, .flac, .mp3, .m4a, .ogg, .aac, .mp4, .oga directly in it".to_string(),
        };
        return Err(Error::not_found("there is no sound file in the folder").at(path).hint(hint));
    }
    refuse_twins(&whole, path, &found)?;
    let prompts = Prompts::of(folder, options)?;
    let mut files = Vec::new();
    for Named { name, file, size, .. } in found {
        let (mut prompt, refused) = match prompts.of_track(&name) {
            Ok(prompt) => (prompt, None),
            Err(e) if e.is_of_the_run() => return Err(e),
            Err(e) => (String::new(), Some(unread(&e))),
        };
        if options.prompt_from_name && prompt.is_empty() && refused.is_none() {
            prompt = name.replace(['_', '-'], " ");
        }
        if !options.skip.skips(&prompt) {
            let path = if entry.is_folder { path.join(file) } else { path.to_path_buf() };
            files.push(SoundFile { path, name, prompt, size, refused });
        }
    }
    if files.is_empty() {
        return Err(Error::config("every file is left out because of its prompt").at(path));
    }
    files.extend(below.into_iter().map(|Named { name, file, size, .. }| SoundFile {
        path: path.join(file),
        name,
        prompt: String::new(),
        size,
        refused: Some(IN_FOLDER_BELOW.to_string()),
    }));
    Ok(files)
}

/// A file by its name.
struct Named {
    /// Without the ending.
    name: String,
    file: String,
    size: u64,
    /// Whether its ending is one of a kind that is read.
    is_read: bool,
}

// Names and sizes of the sound files in a folder, and in those below it.
fn sounds_in(folder: &Path) -> Result<Vec<(String, u64)>> {
    let entries = not_only_hidden(&Local::new(folder), "")?.entries;
    let sounds = entries.into_iter().filter(|e| !e.is_folder && has_sound_name(&e.key));
    Ok(sounds.map(|e| (e.key, e.size)).collect())
}

// Two files that would be one track; one whose content cannot be read becomes none.
fn refuse_twins(folder: &Path, path: &Path, found: &[Named]) -> Result<()> {
    let mut seen = std::collections::HashMap::new();
    let becomes_track =
        |f: &&Named| f.is_read || Decoder::open(folder.join(&f.file), &Options::default()).is_ok();
    for Named { name, file, .. } in found.iter().filter(becomes_track) {
        if let Some(other) = seen.insert(name.as_str(), file) {
            return Err(Error::config(format!("{other:?} and {file:?} would be one track, {name:?}"))
                .at(path)
                .hint("rename one of them, or take it out of the folder"));
        }
    }
    Ok(())
}

/// Where prompts are looked for, in this order.
struct Prompts {
    /// Each folder, and the endings of a prompt in it.
    places: Vec<(Local, &'static [&'static str])>,
}

impl Prompts {
    fn of(folder: &Path, options: &FolderOptions) -> Result<Prompts> {
        let mut places: Vec<(Local, &[&str])> = vec![(Local::new(folder), &[".txt"])];
        let mut folders = options.prompts.clone();
        if folders.is_empty() {
            let beside = folder.parent().map(|parent| parent.join(PROMPTS_BESIDE));
            folders.extend(beside.filter(|beside| Local::new(beside).entry("").is_ok_and(|e| e.is_folder)));
        }
        for folder in folders {
            let store = Local::new(&folder);
            if !store.entry("")?.is_folder {
                return Err(Error::config("expected a folder of prompts, found a file").at(folder));
            }
            places.push((store, &[".txt", "_prompt.txt"]));
        }
        Ok(Prompts { places })
    }

    fn of_track(&self, name: &str) -> Result<String> {
        for (store, endings) in &self.places {
            for ending in *endings {
                let key = format!("{name}{ending}");
                match store.entry(&key) {
                    Ok(entry) if !entry.is_folder => {
                        return windrow_formats::read_prompt(store.open(&key)?.as_ref());
                    }
                    Ok(_) => {}
                    Err(e) if e.kind() == windrow_core::Kind::NotFound => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(String::new())
    }
}
