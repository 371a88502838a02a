//! The inputs of a task: files of lines, those of folders, and what formats read as rows; none of them twice.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use windrow_core::format::verify::Content;
use windrow_core::format::{Confidence, Format, Holds, Probe, Table, choose, discover, lake, lines, splits};
use windrow_core::output::{self, files};
use windrow_core::store::{Entry, Local, Store, is_read_once, is_url, key};
use windrow_core::{Error, Result};

use super::options::TokenizeOptions;
use crate::fields::Takes;
use crate::names::{Given, Named, below_common_folder};
use crate::places::Places;
use crate::rows::RowInput;

/// Every input with the name it goes by, none of them twice; those that hold rows are opened.
pub(crate) fn find(
    table: Table,
    places: Places<'_>,
    inputs: &[PathBuf],
    takes: Option<Takes<'_>>,
    options: &TokenizeOptions,
) -> Result<(Vec<Named>, Vec<Option<RowInput>>)> {
    let (mut found, mut opened) = (Vec::new(), Vec::new());
    let (mut single, mut empty, is_several, mut pipes) = (Vec::new(), None, inputs.len() > 1, 0);
    // One alone gives each of its files once.
    let mut given = (inputs.len() > 1).then(Given::default);
    let mut note = |number, file: &Path| given.as_mut().map_or(Ok(()), |given| given.add(number, file));
    let split = options.split.as_deref();
    let at = |input: &PathBuf| At::of(table, places, &absolute(input)?, split);
    let mut inputs: Vec<(usize, At<'_>)> =
        inputs.iter().map(at).collect::<Result<Vec<_>>>()?.into_iter().enumerate().collect();
    choose_files(&mut inputs, split)?;
    for (number, input) in inputs {
        match input.content()? {
            Holding::Rows(probe, format) => {
                let split = input.split.as_deref();
                let rows = RowInput::open(table, places, &input.path, &probe, format, takes, split);
                let rows = match rows {
                    Err(e) if is_several && is_empty_part(&probe, format) => {
                        empty.get_or_insert(e);
                        continue;
                    }
                    rows => rows?,
                };
                rows.files().try_for_each(|(file, _)| note(number, file))?;
                single.push((found.len(), input.path.clone()));
                found.push(Named { file: input.path, relative: String::new() });
                opened.push(Some(rows));
            }
            // The shell gives it any number for a name.
            Holding::File if is_unnamed(&input.path) => {
                pipes += 1;
                let relative = if pipes == 1 { "pipe".to_string() } else { format!("pipe-{pipes}") };
                found.push(Named { file: input.path, relative });
                opened.push(None);
            }
            Holding::File => {
                note(number, &input.path)?;
                single.push((found.len(), input.path.clone()));
                found.push(Named { file: input.path, relative: String::new() });
                opened.push(None);
            }
            Holding::Lines(entries) => {
                if entries.is_empty() && !options.allow_empty {
                    return Err(input.no_lines()?);
                }
                for entry in entries {
                    let file = input.path.join(&entry.key);
                    note(number, &file)?;
                    found.push(Named { file, relative: entry.key });
                    opened.push(None);
                }
            }
        }
    }
    if found.is_empty() && !options.allow_empty {
        return Err(empty.unwrap_or_else(|| Error::not_found("no input is given")));
    }
    let (places, files): (Vec<usize>, Vec<PathBuf>) = single.into_iter().unzip();
    for (place, relative) in places.into_iter().zip(below_common_folder(&files)) {
        found[place].relative = relative;
    }
    Ok((found, opened))
}

// A pipe that has no file: the standard input, or one of the shell.
fn is_unnamed(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder)) && is_read_once(path)
}

// Of one that a manifest is of, that says what was in it.
fn is_empty_part(probe: &Probe, format: &dyn Format) -> bool {
    format.info().may_be_empty && !probe.is_folder && probe.head.is_empty() && probe.manifest.is_none()
}

// Where a split is wanted, of files those whose names say it; a folder chooses among what is in it.
fn choose_files(inputs: &mut Vec<(usize, At<'_>)>, split: Option<&str>) -> Result<()> {
    let files = inputs.iter().filter(|(_, at)| !at.is_folder).map(|(_, at)| at.path.clone());
    let files: Vec<PathBuf> = files.collect();
    let (Some(split), Some(first)) = (split, files.first()) else { return Ok(()) };
    let at = if files.len() == 1 { first } else { first.parent().unwrap_or(first) };
    let names = below_common_folder(&files);
    let chosen = splits::chosen(names.iter().map(String::as_str), split, &at.display().to_string())?;
    let mut chosen = chosen.into_iter();
    inputs.retain(|(_, at)| at.is_folder || chosen.next().unwrap_or_default());
    Ok(())
}

// An input's path from the root. What goes up and down again is followed: names of outputs are made from it.
fn absolute(input: &Path) -> Result<PathBuf> {
    if is_url(input) {
        return Ok(input.to_path_buf());
    }
    let goes_up = input.components().any(|part| part == Component::ParentDir);
    match files::real_path(input).filter(|_| goes_up) {
        Some(path) => Ok(path),
        None => output::absolute("tokenize", input),
    }
}

/// An input that is there.
struct At<'a> {
    table: Table,
    places: Places<'a>,
    path: PathBuf,
    is_folder: bool,
    /// The split that is meant, where it is not a folder of its own.
    split: Option<String>,
}

/// What an input holds.
enum Holding {
    /// A file of lines, as far as can be told.
    File,
    /// Files of lines in a folder.
    Lines(Vec<Entry>),
    /// What this format reads as rows.
    Rows(Box<Probe>, &'static dyn Format),
}

impl<'a> At<'a> {
    fn of(table: Table, places: Places<'a>, path: &Path, split: Option<&str>) -> Result<At<'a>> {
        let is_folder = places.root(path)?.entry("")?.is_folder;
        let Some(split) = split else {
            return Ok(At { table, places, path: path.to_path_buf(), is_folder, split: None });
        };
        if split.is_empty() || split.starts_with('.') || split.contains(['/', '\\', '\0']) {
            return Err(Error::config(format!("split {split:?}, expected the name of a split"))
                .at(path)
                .field("split"));
        }
        if !is_folder {
            return Ok(At { table, places, path: path.to_path_buf(), is_folder, split: None });
        }
        let inside = path.join(split);
        let is_own = places.root(&inside)?.entry("").is_ok_and(|entry| entry.is_folder);
        Ok(At {
            table,
            places,
            path: if is_own { inside } else { path.to_path_buf() },
            is_folder,
            split: (!is_own).then(|| split.to_string()),
        })
    }

    fn content(&self) -> Result<Holding> {
        if !self.is_folder {
            return self.of_file();
        }
        let store = self.root()?;
        let walked = store.walk_all("")?;
        // What is hidden may be listed by a file of the data set.
        let mut names = walked.entries.iter().chain(&walked.hidden);
        if self.split.is_none() && !names.any(|entry| self.may_be_rows(&entry.key)) {
            lake::refuse_walked(store.as_ref(), &walked)?;
            return Ok(Holding::Lines(self.lines(store.as_ref(), &walked.entries)?));
        }
        let mut probe = self.probe()?;
        lake::refuse(&probe)?;
        if let Some(split) = &self.split {
            probe = probe.only_split(split)?;
        }
        let lines = self.lines(store.as_ref(), &probe.entries)?;
        // Lines may lie beside what might be something else, such as an archive of them.
        let least = if lines.is_empty() { Confidence::Maybe } else { Confidence::Yes };
        let rows: Vec<&'static dyn Format> =
            self.of_rows().filter(|format| format.recognise(&probe) >= least).collect();
        self.refuse_mixed(&probe, &rows, &lines)?;
        let chosen = if lines.is_empty() {
            match choose(self.table, &probe, None) {
                Err(e) if e.is_of_the_run() => return Err(e),
                found => found.ok().filter(|format| is_of_rows(*format)),
            }
        } else {
            None
        };
        Ok(match chosen {
            Some(format) => Holding::Rows(Box::new(probe), format),
            None => Holding::Lines(lines),
        })
    }

    // Those of one split, unless one is named.
    fn lines(&self, store: &dyn Store, entries: &[Entry]) -> Result<Vec<Entry>> {
        let lines: Vec<Entry> =
            lines::lines_among(self.table, store, entries, false)?.into_iter().cloned().collect();
        let names = lines.iter().map(|entry| entry.key.as_str());
        discover::refuse_copies(names.clone(), |key| store.display(key))?;
        if self.split.is_none() {
            splits::refuse_several(names, &store.display(""))?;
        }
        Ok(lines)
    }

    // That there are none, and whether that is because they are hidden.
    fn no_lines(&self) -> Result<Error> {
        let hidden = self.probe()?.only_hidden();
        let store = self.root()?;
        Ok(hidden.unwrap_or_else(|| lines::no_line_files(self.table, store.as_ref())).at(&self.path))
    }

    fn of_file(&self) -> Result<Holding> {
        if lines::is_named(&self.path.to_string_lossy()) {
            return Ok(Holding::File);
        }
        let probe = match self.probe() {
            Ok(probe) => probe,
            Err(error) if self.may_be_rows(&self.path.to_string_lossy()) => return Err(error),
            // Whoever reads its lines says what is wrong with it.
            Err(_) => return Ok(Holding::File),
        };
        let format = self.of_rows().find(|format| format.recognise(&probe) == Confidence::Yes);
        Ok(format.map_or(Holding::File, |format| Holding::Rows(Box::new(probe), format)))
    }

    fn root(&self) -> Result<Arc<dyn Store>> {
        self.places.root(&self.path)
    }

    fn probe(&self) -> Result<Probe> {
        if is_url(&self.path) {
            let (store, key) = self.places.0.at(&self.path)?;
            return if self.is_folder {
                Probe::at(self.table, self.root()?, "")
            } else {
                // So that what is beside it can be found.
                Probe::at(self.table, store, &key)
            };
        }
        let (root, key) = match (self.is_folder, self.path.parent(), self.path.file_name()) {
            (false, Some(folder), Some(name)) => (folder, name.to_string_lossy().into_owned()),
            _ => (self.path.as_path(), String::new()),
        };
        Probe::at(self.table, Arc::new(Local::new(root)), &key)
    }

    fn of_rows(&self) -> impl Iterator<Item = &'static dyn Format> {
        self.table.iter().copied().filter(|format| is_of_rows(*format))
    }

    // By its name alone; of a `.json` the content tells.
    fn may_be_rows(&self, name: &str) -> bool {
        let may_be_array = lines::may_hold_records(name) && !lines::is_description(name);
        let name = key::name_of(name).to_ascii_lowercase();
        may_be_array || self.of_rows().any(|format| is_data(format, &name))
    }

    // A folder is read by one format: what another one reads would be left out unseen.
    fn refuse_mixed(&self, probe: &Probe, rows: &[&'static dyn Format], lines: &[Entry]) -> Result<()> {
        let first = |format: &&'static dyn Format| {
            let mut names = probe.names();
            let name = names.find(|name| is_data(*format, &key::name_of(name).to_ascii_lowercase()));
            Some((format.info().title, name?.to_string()))
        };
        let lines = lines.first().map(|entry| ("JSON Lines", entry.key.clone()));
        let found: Vec<String> = (rows.iter().filter_map(first).chain(lines))
            .map(|(title, name)| format!("{title} ({name})"))
            .collect();
        if found.len() > 1 {
            Err(Error::config(format!("the folder holds several formats: {}", found.join(", ")))
                .at(&self.path)
                .hint("name the files of one of them, or move the others elsewhere"))
        } else {
            Ok(())
        }
    }
}

// Whether a format's records are rows, and it is not the lines themselves or an index of them.
fn is_of_rows(format: &dyn Format) -> bool {
    format.info().holds.contains(&Holds::Rows) && format.verifier().content() == Content::Records
}

fn is_data(format: &dyn Format, name: &str) -> bool {
    format.info().data_suffixes.iter().any(|suffix| name.ends_with(suffix))
}
