//! Every file below a folder of this machine. Links to folders are followed, and no folder is read twice: a link back
//! to a folder above would never end, and a second link would give every record once more.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use super::times::modified_ns;
use super::{Entry, Walked, is_hidden, key};
use crate::error::{Error, Result};

/// The files below `folder`, whose key is `prefix`; sorted by key. Hidden folders are not looked into.
///
/// # Errors
/// `NotFound`, `Io`.
pub(super) fn walk(folder: PathBuf, prefix: &str) -> Result<Walked> {
    let real = folder.canonicalize().map_err(|e| Error::io("list the folder", &folder, e))?;
    let mut walk = Walk { root: real.clone(), ..Walk::default() };
    walk.seen.insert(real.clone());
    walk.folders.push(Folder { path: folder, key: prefix.to_string(), real });
    loop {
        while let Some(folder) = walk.folders.pop() {
            walk.list(&folder)?;
        }
        // What is there as a folder comes before any link to it; links come in the order of their names.
        walk.links.sort_by(|a, b| b.key.cmp(&a.key));
        match walk.links.pop() {
            Some(link) => walk.add(link),
            None => break,
        }
    }
    walk.warn();
    walk.found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(Walked { entries: walk.found, hidden: walk.hidden })
}

/// A folder, or a link to one.
struct Folder {
    path: PathBuf,
    key: String,
    /// Where it lies once all links are followed.
    real: PathBuf,
}

#[derive(Default)]
struct Walk {
    /// Of the folder that is asked for, as [`Folder::real`].
    root: PathBuf,
    found: Vec<Entry>,
    hidden: Vec<Entry>,
    folders: Vec<Folder>,
    /// They wait until no folder is left.
    links: Vec<Folder>,
    /// [`Folder::real`] of each folder that is listed.
    seen: HashSet<PathBuf>,
    left_out: Vec<PathBuf>,
    /// Names that are not UTF-8.
    unnamed: Vec<PathBuf>,
}

impl Walk {
    fn list(&mut self, folder: &Folder) -> Result<()> {
        let listing =
            fs::read_dir(&folder.path).map_err(|e| Error::io("list the folder", &folder.path, e))?;
        for item in listing {
            let item = item.map_err(|e| Error::io("list the folder", &folder.path, e))?;
            // A name that is not UTF-8 is listed as it can be shown: no format takes it for data, or opening it says what
            // it is.
            let name = item.file_name();
            let text = name.to_string_lossy();
            let (path, key) = (item.path(), key::below(&folder.key, &text));
            if is_hidden(&text) {
                self.hidden.push(Entry { key, size: 0, is_folder: false, modified_ns: None, tag: None });
                continue;
            }
            if name.to_str().is_none() {
                self.unnamed.push(item.path());
            }
            let kind = item.file_type().map_err(|e| Error::io("ask for the file's kind", &path, e))?;
            if kind.is_dir() {
                self.add(Folder { real: folder.real.join(&name), path, key });
                continue;
            }
            // What is no link is asked for by its name in the folder that is open: no path is followed again, unless another
            // folder is in its place by now.
            let about = if kind.is_symlink() {
                fs::metadata(&path)
            } else {
                item.metadata().or_else(|_| fs::metadata(&path))
            };
            match about {
                Ok(about) if about.is_dir() => {
                    let real = path.canonicalize().map_err(|e| Error::io("follow the link", &path, e))?;
                    // Within, it would come back to itself.
                    if [&self.root, &folder.real].iter().any(|above| above.starts_with(&real)) {
                        self.left_out.push(path)
                    } else {
                        self.links.push(Folder { path, key, real })
                    }
                }
                Ok(about) if about.is_file() => {
                    let (size, modified_ns) = (about.len(), modified_ns(&about));
                    self.found.push(Entry { key, size, is_folder: false, modified_ns, tag: None });
                }
                Ok(_) => {}
                // A link that leads nowhere is listed, so that opening it says so: a shard must not vanish.
                Err(_) if kind.is_symlink() => {
                    self.found.push(Entry { key, size: 0, is_folder: false, modified_ns: None, tag: None });
                }
                Err(e) => return Err(Error::io("ask for the file's size", &path, e)),
            }
        }
        Ok(())
    }

    // A folder is read by the first of its names.
    fn add(&mut self, folder: Folder) {
        if self.seen.insert(folder.real.clone()) {
            self.folders.push(folder)
        } else {
            self.left_out.push(folder.path)
        }
    }

    // One message of a kind, however many there are.
    fn warn(&self) {
        if let Some((first, more)) = first_of(&self.left_out) {
            warn_once(format!(
                "{}{more}: not followed, a link to a folder that is read already or that holds the link",
                first.display()
            ));
        }
        if let Some((first, more)) = first_of(&self.unnamed) {
            // Escaped, since it could not be distinguished from others.
            warn_once(format!("{first:?}{more}: no data is read from it, as the name is not UTF-8"));
        }
    }
}

fn first_of(paths: &[PathBuf]) -> Option<(&PathBuf, String)> {
    let more = match paths.len().saturating_sub(1) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Some((paths.iter().min()?, more))
}

// A command walks a folder several times, and says it the first time.
fn warn_once(message: String) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    // Not waited for: a process that was forked meanwhile would wait forever.
    let is_new = SAID.try_lock().map_or(true, |mut said| said.insert(message.clone()));
    if is_new {
        crate::warn!("{message}");
    }
}
