//! Options as rows of a table: an argument of each, and what was typed as a value.

use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Map, Value, json};
use windrow::dev::store::parse_size;
use windrow::format::Takes;
use windrow::prep::TOKENIZING;
use windrow::{DType, Fit, LOADER, OptionRow, VIEWS};

use crate::text;

/// A sentence, and the things of which it is said.
type Said = (String, Vec<String>);

/// Options of several things, such as formats or views: each once, by what it is typed as, with a sentence after another: of which
/// things it is an option, and what it does. `{sign}{thing}` is how a thing is typed.
pub(crate) fn of_several(
    all: impl Iterator<Item = (&'static str, OptionRow)>,
    sign: &str,
) -> Vec<(OptionRow, String)> {
    // What is said of each option, with the things that say the same.
    let mut several: Vec<(OptionRow, Vec<Said>)> = Vec::new();
    for (thing, row) in all {
        let (thing, says) = (format!("{sign}{thing}"), help(&row));
        let at = several.iter().position(|(known, _)| flag(known) == flag(&row)).unwrap_or_else(|| {
            several.push((row, Vec::new()));
            several.len() - 1
        });
        let of = &mut several[at].1;
        match of.iter_mut().find(|(said, _)| *said == says) {
            Some((_, things)) => things.push(thing),
            None => of.push((says, vec![thing])),
        }
    }
    let sentence = |(says, things): Said| format!("With {}: {says}", things.join(", "));
    let help = |of: Vec<_>| of.into_iter().map(sentence).collect::<Vec<_>>().join(". ");
    several.into_iter().map(|(row, of)| (row, help(of))).collect()
}

/// The argument for an option called `name`, with hyphens.
pub(crate) fn arg(name: &'static str, takes: Takes) -> Arg {
    let long = name.replace('_', "-");
    let arg = Arg::new(name);
    let wide = |arg: Arg| arg.ignore_case(true).allow_hyphen_values(true);
    match takes {
        Takes::On => arg.long(long).action(ArgAction::SetTrue),
        Takes::Off => arg.long(format!("no-{long}")).action(ArgAction::SetTrue),
        Takes::Number(value) => arg.long(long).value_name(value).value_parser(value_parser!(u64)),
        Takes::Id(value) => wide(arg.long(long).value_name(value)).value_parser(value_parser!(i64)),
        Takes::Fraction => arg.long(long).value_name("SHARE").value_parser(value_parser!(f64)),
        Takes::Text("TEXT") => arg.long(long).value_name(name.to_uppercase()),
        Takes::Text(value) => arg.long(long).value_name(value),
        Takes::Words(words) => {
            let words = PossibleValuesParser::new(words).map(|word| word.to_lowercase());
            arg.long(long).value_name(name.to_uppercase()).ignore_case(true).value_parser(words)
        }
        Takes::WordsOr(words, value) => {
            arg.long(long).value_name(value).value_parser(move |text: &str| word_or(text, words, value))
        }
        Takes::WordsOrNumbers(words, value) => arg
            .long(long)
            .value_name(format!("{}|{value},…", words.join("|")))
            .value_parser(move |text: &str| word_or_numbers(text, words)),
        Takes::Numbers(value) => list(arg.long(long), value).value_parser(value_parser!(u64)),
        Takes::Names(value) => list(arg.long(long), value),
        Takes::Each(value) => {
            arg.long(long).value_name(value).allow_hyphen_values(true).action(ArgAction::Append)
        }
        Takes::Part => arg.long(long).value_name("PART").value_parser(part),
        Takes::NamesOrAuto(value) => list(arg.long(long), value),
        Takes::DType => arg.long(long).value_name("DTYPE").value_parser(dtype),
        Takes::Bytes => arg.long(long).value_name("BYTES").value_parser(bytes),
        Takes::Seconds => arg.long(long).value_name("SECONDS").value_parser(value_parser!(u32).range(1..)),
        Takes::Pairs => arg
            .long(long.trim_end_matches('s').to_string())
            .value_name("NAME=VALUE")
            .value_parser(pair)
            .action(ArgAction::Append),
    }
}

fn list(arg: Arg, value: &str) -> Arg {
    arg.value_name(format!("{value},…")).value_delimiter(',').action(ArgAction::Append)
}

/// What was typed for it; `None` where nothing was.
pub(crate) fn given(matches: &ArgMatches, name: &str, takes: Takes) -> Option<Value> {
    match takes {
        Takes::On => matches.get_flag(name).then_some(json!(true)),
        Takes::Off => matches.get_flag(name).then_some(json!(false)),
        Takes::Number(_) => matches.get_one::<u64>(name).map(|number| json!(number)),
        Takes::Id(_) => matches.get_one::<i64>(name).map(|number| json!(number)),
        Takes::Fraction => matches.get_one::<f64>(name).map(|number| json!(number)),
        Takes::Text(_) | Takes::Words(_) => matches.get_one::<String>(name).map(|text| json!(text)),
        Takes::WordsOr(..) | Takes::WordsOrNumbers(..) => matches.get_one::<Value>(name).cloned(),
        Takes::Numbers(_) => matches.get_many::<u64>(name).map(|all| all.copied().collect()),
        Takes::Names(_) | Takes::Each(_) => {
            matches.get_many::<String>(name).map(|all| all.cloned().collect())
        }
        Takes::Part => matches.get_one::<Fit>(name).map(|part| json!(part)),
        Takes::NamesOrAuto(_) => {
            let names = matches.get_many::<String>(name)?.cloned().collect::<Vec<_>>();
            match &names[..] {
                [word] if word.eq_ignore_ascii_case("auto") => None,
                [word] if word.eq_ignore_ascii_case("none") => Some(json!([])),
                _ => Some(json!(names)),
            }
        }
        Takes::DType => matches.get_one::<DType>(name).map(|dtype| json!(dtype)),
        Takes::Bytes => matches.get_one::<u64>(name).map(|number| json!(number)),
        Takes::Seconds => matches.get_one::<u32>(name).map(|number| json!(number)),
        Takes::Pairs => {
            let pairs = matches.get_many::<(String, String)>(name)?.cloned();
            Some(pairs.map(|(name, value)| (name, Value::from(value))).collect::<Map<_, _>>().into())
        }
    }
}

/// What the command line calls it.
pub(crate) fn flag(option: &OptionRow) -> &'static str {
    option.flag.unwrap_or(option.name)
}

/// Its sentence, and what it is where it is not typed.
pub(crate) fn help(option: &OptionRow) -> String {
    let text = typed(option.help.trim().trim_end_matches('.'));
    match (option.default)() {
        Value::String(word) => format!("{text} [default: {word}]"),
        Value::Number(number) => {
            let bytes = number.as_u64().filter(|_| option.takes == Takes::Bytes);
            let number = bytes.map_or_else(|| number.to_string(), text::typed_size);
            format!("{text} [default: {number}]")
        }
        _ => text,
    }
}

// Other options that a sentence names, as they are typed.
fn typed(text: &str) -> String {
    let rows = || VIEWS.iter().flat_map(|view| view.options()).chain(LOADER).chain(TOKENIZING);
    let is_name = |word: &str| word.contains('_') && rows().any(|row| row.name == word);
    let part = |part: &str| {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_lowercase());
        let rest = &part[word.len()..];
        if is_name(word) { format!("--{}{rest}", word.replace('_', "-")) } else { part.to_string() }
    };
    let text: String =
        text.split_inclusive(|c: char| !(c.is_ascii_lowercase() || c == '_')).map(part).collect();
    // `With chat:` begins a sentence about what is done with that option.
    match text.strip_prefix("With ").and_then(|rest| rest.split_once(':')) {
        Some((name, rest)) if rows().any(|row| row.name == name) => format!("With --{name}:{rest}"),
        _ => text,
    }
}

/// An argument of each of these, as `changed` makes it.
pub(crate) fn args(
    command: Command,
    all: impl Iterator<Item = &'static OptionRow>,
    changed: impl Fn(Arg) -> Arg,
) -> Command {
    all.fold(command, |command, option| {
        command.arg(changed(arg(flag(option), option.takes).help(help(option))))
    })
}

/// What was typed of them, by their names.
pub(crate) fn all_given<'a>(
    matches: &ArgMatches,
    all: impl Iterator<Item = &'a OptionRow>,
) -> Map<String, Value> {
    let given =
        |option: &OptionRow| Some((option.name.to_string(), given(matches, flag(option), option.takes)?));
    all.filter_map(given).collect()
}

/// What clap's derive writes for a struct of arguments, of how it is read and of what it adds to a command.
macro_rules! own_args {
    ([$($generics:tt)*] $Given:ty, |$matches:ident| $read:expr, |$command:ident| $added:expr) => {
        impl<$($generics)*> clap::FromArgMatches for $Given {
            fn from_arg_matches($matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                Ok($read)
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl<$($generics)*> clap::Args for $Given {
            fn augment_args($command: clap::Command) -> clap::Command {
                $added
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                Self::augment_args(command)
            }
        }
    };
}
pub(crate) use own_args;

/// Arguments that are made of rows.
macro_rules! of_rows {
    ($Given:ident, $heading:expr, $rows:expr) => {
        crate::options::of_rows!($Given, $heading, $rows, |arg| arg);
    };
    ($Given:ident, $heading:expr, $rows:expr, $changed:expr) => {
        crate::options::own_args!(
            [] $Given,
            |matches| $Given(crate::options::all_given(matches, $rows)),
            |command| {
                let heading: Option<&'static str> = $heading;
                let command = match heading {
                    Some(heading) => command.next_help_heading(heading),
                    None => command,
                };
                // What a command has of its own is not among them.
                crate::options::args(command, $rows, $changed).next_help_heading(None)
            }
        );
    };
}
pub(crate) use of_rows;

/// The parser of a dtype.
pub(crate) fn dtype(text: &str) -> Result<DType, String> {
    DType::parse(text).map_err(|e| text::one_line(&e))
}

/// The parser of a number of bytes, with a unit or without.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    parse_size(text)
        .ok_or_else(|| "expected a number of bytes, or one with a unit as 8MiB or 1MB".to_string())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_string(), value.to_string()))
}

fn word_or(text: &str, words: &[&str], value: &str) -> Result<Value, String> {
    let word = text.trim().to_lowercase();
    match word.parse::<u64>() {
        Ok(number) if number > 0 => Ok(json!(number)),
        _ if words.contains(&word.as_str()) => Ok(json!(word)),
        _ => Err(format!("expected {}, or a number of {}", words.join(", "), value.to_lowercase())),
    }
}

fn word_or_numbers(text: &str, words: &[&str]) -> Result<Value, String> {
    let word = text.trim().to_lowercase();
    if words.contains(&word.as_str()) {
        return Ok(json!(word));
    }
    let numbers = text.split(',').map(|number| number.trim().parse::<u64>());
    let numbers: Result<Vec<u64>, _> = numbers.collect();
    numbers
        .map(|numbers| json!(numbers))
        .map_err(|_| format!("expected {}, or whole numbers with commas", words.join(", ")))
}

// Two fractions with a comma, or values from..to.
fn part(text: &str) -> Result<Fit, String> {
    let numbers = |sign: &str| text.split_once(sign).map(|(from, to)| (from.trim(), to.trim()));
    let fit = match (numbers(".."), numbers(",")) {
        (Some((from, to)), _) => {
            from.parse().ok().zip(to.parse().ok()).map(|(from, to)| Fit::Values(from, to))
        }
        (None, Some((from, to))) => {
            from.parse().ok().zip(to.parse().ok()).map(|(from, to)| Fit::Fraction(from, to))
        }
        (None, None) => None,
    };
    let fit = fit.ok_or_else(|| "expected two fractions as 0,0.7, or values as 0..500".to_string())?;
    fit.check().map(|()| fit).map_err(|e| text::one_line(&e))
}
