//! Series written as YAML: the shapes of JSON in another notation; converted once, then read in place.
//!
//! YAML lets a few bytes stand for millions: nodes are counted against the file's size, and aliases are refused.

#[cfg(feature = "yaml")]
mod overflow;
#[cfg(feature = "yaml")]
mod parse;

use windrow_core::Result;
use windrow_core::format::{Confidence, Format, FormatInfo, Holds, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::plain_name;

use crate::open_options::{AXIS, COLUMN};

/// A list of series in one YAML file.
#[derive(Clone, Copy, Debug)]
pub struct Yaml;

static INFO: FormatInfo = FormatInfo {
    name: "yaml",
    title: "Series in YAML",
    layout: "one `.yaml` or `.yml` file, also `.gz` and `.zst`: a list of series, or numbers that are one series",
    records: "numbers [T] or [T, C]: a list, or the `sequence` of a mapping with extras beside it",
    written_by: "any program",
    holds: &[Holds::Series],
    series_suffixes: &[".yaml", ".yaml.gz", ".yaml.zst", ".yml", ".yml.gz", ".yml.zst"],
    open_options: &[COLUMN, AXIS],
    ..FormatInfo::NONE
};

impl Format for Yaml {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let name = probe.file_name();
        let plain = plain_name(&name);
        if !probe.is_folder && (plain.ends_with(".yaml") || plain.ends_with(".yml")) {
            Confidence::Maybe
        } else {
            Confidence::No
        }
    }

    /// A small mapping: settings, as they are beside data.
    fn is_description(&self, probe: &Probe) -> bool {
        probe.is_small() && begins_with_a_mapping(&probe.head)
    }

    #[cfg(feature = "yaml")]
    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        use crate::converted::{self, Parse};
        converted::open(self.name(), probe, options, Parse::Whole(parse::parse))
    }

    #[cfg(not(feature = "yaml"))]
    fn open(&self, probe: &Probe, _options: &Options) -> Result<SharedSource> {
        Err(windrow_core::Error::built_without("yaml").at(probe.display()))
    }
}

// Whether the first line that says anything is a key, and not that of a record.
fn begins_with_a_mapping(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with(['#', '%']) && *line != "---";
    let first = text.trim_start_matches('\u{feff}').lines().map(str::trim).find(is_said);
    first.is_some_and(|line| {
        let is_key = line.ends_with(':') || line.contains(": ");
        is_key && !line.starts_with(['-', '[', '{']) && !line.starts_with("sequence:")
    })
}
