//! The splits that the README.md of a folder from the Hub lists: `configs` in its front matter, with patterns of file names.
//!
//! Source: huggingface.co/docs/hub/datasets-manual-configuration.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use windrow_core::format::{Probe, splits};
use windrow_core::store::glob::among;
use windrow_core::store::{braces, open_if_there, read_small};
use windrow_core::{Error, Result};

const README: &str = "README.md";
/// Larger ones are no README.
const MOST_BYTES: u64 = 16 << 20;

/// The splits that a README lists, each with the files that its patterns mean.
pub(crate) struct Listed {
    splits: Vec<(String, Vec<String>)>,
}

#[derive(Deserialize)]
struct Front {
    #[serde(default)]
    configs: Vec<Config>,
}

#[derive(Deserialize)]
struct Config {
    config_name: String,
    #[serde(default)]
    data_files: Option<Files>,
    /// The folder that these are in; by itself, all in it.
    #[serde(default)]
    data_dir: Option<String>,
    #[serde(default)]
    default: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Files {
    Splits(Vec<Split>),
    Paths(Paths),
    Named(BTreeMap<String, Paths>),
}

#[derive(Deserialize)]
struct Split {
    split: String,
    path: Paths,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Paths {
    One(String),
    Many(Vec<String>),
}

impl Listed {
    /// Those of a folder, among its files `keys`; `None` where no README lists any of them.
    ///
    /// # Errors
    /// `Config` where it lists several configs and says none to be the usual one; `Io`.
    pub(crate) fn of(probe: &Probe, keys: &[String]) -> Result<Option<Listed>> {
        let mut found = configs(probe, keys)?;
        let usual = found.iter().position(|config| config.is_usual);
        match (found.len(), usual) {
            (0, _) => Ok(None),
            (1, _) => Ok(found.pop().map(|config| config.listed)),
            (_, Some(at)) => Ok(Some(found.swap_remove(at).listed)),
            (_, None) => {
                let names: Vec<&str> = found.iter().map(|config| config.name.as_str()).collect();
                Err(Error::config(format!("the folder holds several configs: {}", names.join(", ")))
                    .at(probe.display())
                    .hint("open the folder of one of them"))
            }
        }
    }

    /// The files of each split of each config, and of what is in none; `None` where no README lists any of them.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn each(probe: &Probe, keys: &[String]) -> Result<Option<Vec<Vec<String>>>> {
        let configs = configs(probe, keys)?;
        if configs.is_empty() {
            return Ok(None);
        }
        let splits = configs.into_iter().flat_map(|config| config.listed.splits);
        let mut groups: Vec<Vec<String>> = splits.map(|(_, keys)| keys).collect();
        let listed: HashSet<&String> = groups.iter().flatten().collect();
        let others: Vec<Vec<String>> =
            keys.iter().filter(|key| !listed.contains(key)).map(|key| vec![key.clone()]).collect();
        groups.extend(others);
        Ok(Some(groups))
    }

    /// The files of a split; of the only one where none is asked for.
    ///
    /// # Errors
    /// `NotFound` for a split that is not there; `Config` where one of several has to be named.
    pub(crate) fn chosen(&self, asked: Option<&str>, probe: &Probe) -> Result<Vec<String>> {
        let names: Vec<&str> = self.splits.iter().map(|(name, _)| name.as_str()).collect();
        let is = |name: &str, asked: &str| {
            name == asked || splits::of_name(asked).is_some_and(|of| splits::of_name(name) == Some(of))
        };
        match (asked, self.splits.as_slice()) {
            (None, [(_, keys)]) => Ok(keys.clone()),
            (None, _) => Err(Error::config(format!("the folder holds several splits: {}", names.join(", ")))
                .at(probe.display())
                .field("split")
                .hint(format!("open one of them with @split={:?}@", names[0]))),
            (Some(asked), splits) => {
                let found = splits
                    .iter()
                    .find(|(name, _)| name == asked)
                    .or_else(|| splits.iter().find(|(name, _)| is(name, asked)));
                found.map(|(_, keys)| keys.clone()).ok_or_else(|| {
                    Error::not_found(format!("no file is of the split {asked:?}"))
                        .at(probe.display())
                        .field("split")
                        .hint(format!("{README} lists {}", names.join(", ")))
                })
            }
        }
    }
}

// A config that lists files which are there.
struct Found {
    name: String,
    is_usual: bool,
    listed: Listed,
}

// The configs of a folder that list any of its files `keys`.
fn configs(probe: &Probe, keys: &[String]) -> Result<Vec<Found>> {
    if !probe.is_folder || !probe.names().any(|name| name == README) {
        return Ok(Vec::new());
    }
    let Some(object) = open_if_there(probe.store.as_ref(), &probe.below(README))? else {
        return Ok(Vec::new());
    };
    if object.size() > MOST_BYTES {
        return Ok(Vec::new());
    }
    let bytes = read_small(object.as_ref(), MOST_BYTES)?;
    // A page for people that does not begin with YAML says nothing of files.
    let front = front(&bytes).map(|front| front.configs).unwrap_or_default();
    let mut found = Vec::new();
    for config in front {
        let is_usual = config.default.unwrap_or(config.config_name == "default");
        let folder = config.data_dir.as_deref().map(|dir| plain(dir).trim_end_matches('/').to_string());
        let mut splits: Vec<(String, Vec<String>)> = match (config.data_files, &folder) {
            (None, Some(folder)) => of_folder(probe, keys, folder),
            (files, folder) => patterns(files)
                .into_iter()
                .map(|(split, patterns)| {
                    (split, matching(probe, keys, folder.as_deref().unwrap_or_default(), &patterns))
                })
                .collect(),
        };
        splits.retain(|(_, keys)| !keys.is_empty());
        if !splits.is_empty() {
            found.push(Found { name: config.config_name, is_usual, listed: Listed { splits } });
        }
    }
    Ok(found)
}

// What is between the first two lines of three dashes; `None` where that is no YAML with configs.
fn front(bytes: &[u8]) -> Option<Front> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.trim_start_matches('\u{feff}').strip_prefix("---")?;
    let (yaml, _) = text.split_once("\n---")?;
    let most = yaml.len().saturating_add(16);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: most.saturating_mul(4),
            max_nodes: most,
            max_total_scalar_bytes: most,
            max_depth: 32,
            flow_nesting_limit: 32,
            max_documents: 1,
            max_aliases: 0,
        },
        with_snippet: false,
    };
    serde_saphyr::with_deserializer_from_str_with_options(yaml, options, |yaml| Front::deserialize(yaml)).ok()
}

fn patterns(files: Option<Files>) -> Vec<(String, Vec<String>)> {
    let list = |paths: Paths| match paths {
        Paths::One(path) => vec![path],
        Paths::Many(paths) => paths,
    };
    match files {
        None => Vec::new(),
        Some(Files::Paths(paths)) => vec![("train".to_string(), list(paths))],
        Some(Files::Splits(splits)) => {
            splits.into_iter().map(|split| (split.split, list(split.path))).collect()
        }
        Some(Files::Named(splits)) => splits.into_iter().map(|(split, paths)| (split, list(paths))).collect(),
    }
}

// The splits of a folder, as the names of its files and folders say; what says none is for training.
fn of_folder(probe: &Probe, keys: &[String], folder: &str) -> Vec<(String, Vec<String>)> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for key in keys {
        if let Some(name) = inside(probe.name_of(key), folder) {
            found
                .entry(name.rsplit('/').find_map(splits::of_name).unwrap_or("train"))
                .or_default()
                .push(key.clone());
        }
    }
    found.into_iter().map(|(split, keys)| (split.to_string(), keys)).collect()
}

// A name without the folder that it is in.
fn inside<'n>(name: &'n str, folder: &str) -> Option<&'n str> {
    if folder.is_empty() { Some(name) } else { name.strip_prefix(folder)?.strip_prefix('/') }
}

fn plain(path: &str) -> &str {
    let path = path.trim_start_matches("./");
    if path == "." { "" } else { path }
}

// Files whose names, from a folder below the data set, a pattern means; each once, in their order.
fn matching(probe: &Probe, keys: &[String], folder: &str, patterns: &[String]) -> Vec<String> {
    let names: Vec<&str> = keys.iter().filter_map(|key| inside(probe.name_of(key), folder)).collect();
    let mut meant: HashSet<&str> = HashSet::new();
    for pattern in patterns {
        // A pattern that cannot be expanded names nothing.
        let _ = braces::expand(plain(pattern), &mut |pattern| {
            meant.extend(among(pattern, &names).found);
            Ok(())
        });
    }
    let is_meant =
        |key: &&String| inside(probe.name_of(key), folder).is_some_and(|name| meant.contains(name));
    keys.iter().filter(is_meant).cloned().collect()
}
