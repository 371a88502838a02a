//! Options of one format that is written, as they can be typed: the table of formats says which there are.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use serde_json::{Map, Value, json};
use windrow::format::{Takes, WriteOption};

/// Options that belong to one format, by name; with `TOKENIZE` those that only `tokenize` has, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnOptions<const TOKENIZE: bool>(Map<String, Value>);

/// What some formats say of an option.
struct Said {
    formats: Vec<&'static str>,
    help: &'static str,
}

impl<const TOKENIZE: bool> OwnOptions<TOKENIZE> {
    /// Those that are given.
    pub(crate) fn given(&self) -> &Map<String, Value> {
        &self.0
    }

    // Each option with what the formats that have it say of it.
    fn all() -> Vec<(&'static WriteOption, Vec<Said>)> {
        let mut all: Vec<(&WriteOption, Vec<Said>)> = Vec::new();
        let written = windrow::written();
        for format in written.iter().filter(|format| format.is_for_tokenize || !TOKENIZE) {
            for option in format.info.write_options.iter().filter(|option| TOKENIZE || !option.of_tokenize) {
                if all.iter().all(|(known, _)| known.name != option.name) {
                    all.push((option, Vec::new()));
                }
                let said = all.iter_mut().filter(|(known, _)| known.name == option.name);
                for (_, said) in said {
                    match said.iter_mut().find(|said| said.help == option.help) {
                        Some(said) => said.formats.push(format.to),
                        None => said.push(Said { formats: vec![format.to], help: option.help }),
                    }
                }
            }
        }
        all
    }

    fn arg((option, said): (&'static WriteOption, Vec<Said>)) -> Arg {
        let long = option.name.replace('_', "-");
        let help =
            said.iter().map(|Said { formats, help }| format!("With --to {}: {help}", formats.join(", ")));
        let arg = Arg::new(option.name).help(help.collect::<Vec<_>>().join(". "));
        match option.takes {
            Takes::Number(value) => arg.long(long).value_name(value).value_parser(value_parser!(u64)),
            Takes::Text(value) => arg.long(long).value_name(value),
            Takes::On => arg.long(long).action(ArgAction::SetTrue),
            Takes::Off => arg.long(format!("no-{long}")).action(ArgAction::SetTrue),
        }
    }
}

impl<const TOKENIZE: bool> FromArgMatches for OwnOptions<TOKENIZE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |(option, _): (&WriteOption, _)| {
            let name = option.name;
            let value = match option.takes {
                Takes::Number(_) => matches.get_one::<u64>(name).map(|number| json!(number)),
                Takes::Text(_) => matches.get_one::<String>(name).map(|text| json!(text)),
                Takes::On => matches.get_flag(name).then_some(json!(true)),
                Takes::Off => matches.get_flag(name).then_some(json!(false)),
            };
            Some((name.to_string(), value?))
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
        Self::all().into_iter().fold(command, |command, option| command.arg(Self::arg(option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
