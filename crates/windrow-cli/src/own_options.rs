//! Options of one format that is written, as they can be typed: the table of formats says which there are.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use serde_json::{Map, Value};
use windrow::format::WriteOption;

use crate::options::{self, Of};

/// Their heading in a help.
pub(crate) const OF_FORMAT: &str = "Of one format";

/// Options that belong to one format, by name; with `TOKENIZE` those that only `tokenize` has, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnOptions<const TOKENIZE: bool>(Map<String, Value>);

impl<const TOKENIZE: bool> OwnOptions<TOKENIZE> {
    /// Those that are given.
    pub(crate) fn given(&self) -> &Map<String, Value> {
        &self.0
    }

    // Each option with what the formats that have it say of it.
    fn all() -> Vec<(&'static WriteOption, Vec<Of>)> {
        let mut all: Vec<(&WriteOption, Vec<Of>)> = Vec::new();
        let written = windrow::written();
        for format in written.iter().filter(|format| format.is_for_tokenize || !TOKENIZE) {
            for option in format.info.write_options.iter().filter(|option| TOKENIZE || !option.of_tokenize) {
                if all.iter().all(|(known, _)| known.name != option.name) {
                    all.push((option, Vec::new()));
                }
                for (_, of) in all.iter_mut().filter(|(known, _)| known.name == option.name) {
                    Of::add(of, format.to, option.help.to_string());
                }
            }
        }
        all
    }
}

impl<const TOKENIZE: bool> FromArgMatches for OwnOptions<TOKENIZE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |(option, _): (&WriteOption, _)| {
            Some((option.name.to_string(), options::given(matches, option.name, option.takes)?))
        };
        Ok(OwnOptions(Self::all().into_iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const TOKENIZE: bool> Args for OwnOptions<TOKENIZE> {
    fn augment_args(command: Command) -> Command {
        Self::all().into_iter().fold(command, |command, (option, of)| {
            command.arg(
                options::arg(option.name, option.takes).help(Of::help(&of, "--to ")).help_heading(OF_FORMAT),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
