//! A folder of sound files and what stands beside them.

use std::path::{Path, PathBuf};

use windrow_core::store::{Local, Store};
use windrow_core::{Error, Result, format};

use super::Skip;

/// Endings of sound files, in any case.
pub const SUFFIXES: [&str; 5] = [".wav", ".flac", ".mp3", ".m4a", ".ogg"];

/// The folder of prompts that is looked for beside a folder of sound.
pub const PROMPTS_BESIDE: &str = "audio_prompts";

/// One sound file with its prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoundFile {
    /// The file.
    pub path: PathBuf,
    /// Its name without the ending: the name of the track.
    pub name: String,
    /// Its prompt; empty where there is none.
    pub prompt: String,
    /// Size in bytes.
    pub size: u64,
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

/// The sound files that lie directly in a folder, in natural order, or the one file at `path`.
///
/// The prompt of `song.mp3` is the first of `song.txt` beside it, and `song.txt` and `song_prompt.txt` in each folder of
/// prompts, without the white space around it.
///
/// # Errors
/// `NotFound` without a sound file, or where a folder of prompts is not there; `Config` where two files would become one
/// track, and where every file is left out; `Corrupt` for a prompt that is no text.
pub fn sound_files(path: &Path, options: &FolderOptions) -> Result<Vec<SoundFile>> {
    let whole = std::path::absolute(path).map_err(|e| Error::io("find it", path, e))?;
    let entry = Local::new(&whole).entry("")?;
    let (folder, names) = match (entry.is_folder, whole.parent()) {
        (false, Some(folder)) => {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| Error::config("the name of the file is not UTF-8").at(path))?;
            (folder, vec![(name.to_string(), entry.size)])
        }
        _ => (whole.as_path(), names_in(&whole)?),
    };
    let mut found: Vec<(String, String, u64)> = Vec::new();
    for (file, size) in names {
        let ending = SUFFIXES.iter().find(|suffix| file.to_lowercase().ends_with(*suffix));
        let Some(ending) = ending.or((!entry.is_folder).then_some(&"")) else { continue };
        found.push((file[..file.len() - ending.len()].to_string(), file, size));
    }
    found.sort_by(|a, b| format::natural_order(&a.1, &b.1).then(a.1.cmp(&b.1)));
    if found.is_empty() {
        return Err(Error::not_found("no sound file lies in the folder")
            .at(path)
            .hint("looked for .wav, .flac, .mp3, .m4a and .ogg directly in it"));
    }
    refuse_twins(path, &found)?;
    let prompts = Prompts::of(folder, options)?;
    let mut files = Vec::new();
    for (name, file, size) in found {
        let mut prompt = prompts.of_track(&name)?;
        if options.prompt_from_name && prompt.is_empty() {
            prompt = name.replace(['_', '-'], " ");
        }
        if !options.skip.skips(&prompt) {
            let path = if entry.is_folder { path.join(file) } else { path.to_path_buf() };
            files.push(SoundFile { path, name, prompt, size });
        }
    }
    match files.is_empty() {
        false => Ok(files),
        true => Err(Error::config("every file is left out because of its prompt").at(path)),
    }
}

// Names and sizes of what lies directly in a folder.
fn names_in(folder: &Path) -> Result<Vec<(String, u64)>> {
    let entries = Local::new(folder).walk("")?;
    Ok(entries
        .into_iter()
        .filter(|e| !e.is_folder && !e.key.contains('/'))
        .map(|e| (e.key, e.size))
        .collect())
}

fn refuse_twins(folder: &Path, found: &[(String, String, u64)]) -> Result<()> {
    let mut seen = std::collections::HashMap::new();
    for (name, file, _) in found {
        if let Some(other) = seen.insert(name.as_str(), file) {
            return Err(Error::config(format!("{other:?} and {file:?} would become one track, {name:?}"))
                .at(folder)
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
                        return format::read_prompt(store.open(&key)?.as_ref());
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
