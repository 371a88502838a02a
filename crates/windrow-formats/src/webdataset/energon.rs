//! What Megatron-Energon keeps beside archives: which of them are of a split, and what is left out.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;
use windrow_core::format::{Probe, splits};
use windrow_core::store::braces::expand;
use windrow_core::store::{open_if_there, read_small};
use windrow_core::{Error, Result};

/// The file that lists the splits. A walk leaves out its folder.
const SPLITS: &str = ".nv-meta/split.yaml";
const MOST_BYTES: u64 = 16 << 20;

/// The splits of a folder.
pub(super) struct Splits {
    parts: BTreeMap<String, Vec<String>>,
    exclude: Vec<String>,
    /// The file that says so.
    name: String,
}

/// The file as it is written.
#[derive(Deserialize)]
struct SplitFile {
    split_parts: BTreeMap<String, Option<Vec<String>>>,
    #[serde(default)]
    exclude: Option<Vec<String>>,
}

impl SplitFile {
    #[cfg(feature = "yaml")]
    fn of(text: &str) -> Result<SplitFile> {
        let most = text.len().saturating_add(16);
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_events: most.saturating_mul(4),
                max_nodes: most,
                max_total_scalar_bytes: most,
                max_depth: 16,
                flow_nesting_limit: 16,
                max_documents: 1,
                max_aliases: 0,
            },
            with_snippet: false,
        };
        let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
            SplitFile::deserialize(yaml)
        });
        read.map_err(|cause| {
            Error::corrupt("expected YAML with `split_parts`, lists of names by split")
                .caused_by(cause.to_string())
                .hint("`energon prepare` writes it")
        })
    }

    #[cfg(not(feature = "yaml"))]
    fn of(_text: &str) -> Result<SplitFile> {
        Err(Error::built_without("yaml"))
    }
}

/// An archive that was chosen.
pub(super) struct Chosen {
    pub(super) key: String,
    /// Numbers of its samples that are left out, sorted.
    pub(super) excluded: Vec<u64>,
}

impl Splits {
    /// Those of a folder that was prepared.
    ///
    /// # Errors
    /// `Corrupt` for a file that is not YAML, or says something else; `Io`.
    pub(super) fn of(probe: &Probe) -> Result<Option<Splits>> {
        if !probe.is_folder {
            return Ok(None);
        }
        let Some(object) = open_if_there(probe.store.as_ref(), &probe.below(SPLITS))? else {
            return Ok(None);
        };
        let bytes = read_small(object.as_ref(), MOST_BYTES)?;
        let wrong = |what: String| Error::corrupt(what).at(object.name());
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong("expected UTF-8".to_string()))?;
        let file = SplitFile::of(text).map_err(|e| e.at(object.name()))?;
        let parts = file.split_parts.into_iter().map(|(name, shards)| (name, shards.unwrap_or_default()));
        Ok(Some(Splits {
            parts: parts.collect(),
            exclude: file.exclude.unwrap_or_default(),
            name: object.name().to_string(),
        }))
    }

    /// The archives of a split, in the order in which they are listed; where none is asked for, of the only one.
    ///
    /// # Errors
    /// `NotFound` for a split that is not there, or has no archive; `Config` where one of several has to be named; `Corrupt`
    /// for names that are not there.
    pub(super) fn chosen(&self, asked: Option<&str>, probe: &Probe) -> Result<Vec<Chosen>> {
        let listed: Vec<String> = self
            .parts
            .iter()
            .filter(|(_, shards)| !shards.is_empty())
            .map(|(name, shards)| format!("{name} ({})", shards.join(", ")))
            .collect();
        let part = match asked {
            Some(asked) => self.part(asked).filter(|(_, shards)| !shards.is_empty()).ok_or_else(|| {
                Error::not_found(format!("no archive is of the split {asked:?}"))
                    .at(probe.display())
                    .field("split")
                    .hint(format!("{} has {}", self.name, listed.join(", ")))
            })?,
            None => {
                let mut parts = self.parts.iter().filter(|(_, shards)| !shards.is_empty());
                match (parts.next(), parts.next()) {
                    (Some(part), None) => part,
                    (None, _) => {
                        return Err(Error::not_found("no split has an archive").at(&self.name));
                    }
                    (Some((first, _)), Some(_)) => {
                        return Err(Error::config(format!(
                            "the folder holds several splits: {}",
                            listed.join(", ")
                        ))
                        .at(probe.display())
                        .field("split")
                        .hint(format!("open one of them, as with @split={first:?}@")));
                    }
                }
            }
        };
        let names: HashSet<&str> = probe.names().collect();
        let mut keys: Vec<&str> = Vec::new();
        let mut seen = HashSet::new();
        for pattern in part.1 {
            expand(pattern, &mut |name| {
                let Some(name) = names.get(name) else {
                    return Err(
                        self.wrong(format!("the split {:?} names {name:?}, which is not there", part.0))
                    );
                };
                if !seen.insert(*name) {
                    return Err(self.wrong(format!("the split {:?} names {name:?} twice", part.0)));
                }
                keys.push(name);
                Ok(())
            })
            .map_err(|e| e.or_at(&self.name))?;
        }
        let excluded = self.excluded(&names)?;
        let is_kept = |name: &&&str| !excluded.get(**name).is_some_and(Option::is_none);
        let chosen = |name: &&str| Chosen {
            key: probe.below(name),
            excluded: excluded.get(*name).cloned().flatten().unwrap_or_default(),
        };
        Ok(keys.iter().filter(is_kept).map(chosen).collect())
    }

    // By its own name, or another word for the same split.
    fn part(&self, asked: &str) -> Option<(&String, &Vec<String>)> {
        let same = |name: &&String| name.eq_ignore_ascii_case(asked);
        let meant = splits::of_name(asked);
        let alike = |name: &&String| meant.is_some() && splits::of_name(name) == meant;
        let name = self.parts.keys().find(same).or_else(|| self.parts.keys().find(alike))?;
        self.parts.get_key_value(name)
    }

    // By archive the samples that are left out, or `None` where all of it is.
    fn excluded(&self, names: &HashSet<&str>) -> Result<HashMap<String, Option<Vec<u64>>>> {
        let mut found: HashMap<String, Option<Vec<u64>>> = HashMap::new();
        for pattern in &self.exclude {
            let mut seen = HashSet::new();
            expand(pattern, &mut |name| {
                let sample =
                    name.rsplit_once('/').and_then(|(shard, number)| Some((shard, number.parse().ok()?)));
                let known = match sample.filter(|_| !names.contains(name)) {
                    Some((shard, number)) => {
                        if let Some(numbers) =
                            found.entry(shard.to_string()).or_insert_with(|| Some(Vec::new()))
                        {
                            numbers.push(number);
                        }
                        names.contains(shard)
                    }
                    None => {
                        found.insert(name.to_string(), None);
                        names.contains(name)
                    }
                };
                if known && seen.insert(name.to_string()) {
                    Ok(())
                } else {
                    Err(self.wrong(format!("{name:?} is excluded, which is not there, or twice")))
                }
            })
            .map_err(|e| e.or_at(&self.name))?;
        }
        found.values_mut().flatten().for_each(|numbers| {
            numbers.sort_unstable();
            numbers.dedup();
        });
        Ok(found)
    }

    fn wrong(&self, what: String) -> Error {
        Error::corrupt(what).at(&self.name).hint("`energon prepare` writes it again")
    }
}
