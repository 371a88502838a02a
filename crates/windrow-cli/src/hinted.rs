//! Values that a shell completes, of arguments that take others too.

use std::ffi::OsStr;

use crate::args::shuffle;
use crate::options::dtype;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// A parser that takes what `parser` takes, and offers `values` to a shell that completes.
pub(crate) fn hinted<P: TypedValueParser>(parser: P, values: fn() -> Vec<PossibleValue>) -> Hinted<P> {
    Hinted { parser, values }
}

#[derive(Clone)]
pub(crate) struct Hinted<P> {
    parser: P,
    values: fn() -> Vec<PossibleValue>,
}

impl<P: TypedValueParser> TypedValueParser for Hinted<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter()))
    }
}

fn listed(words: &[&'static str]) -> Vec<PossibleValue> {
    words.iter().map(|word| PossibleValue::new(*word)).collect()
}

/// An argument, its values completed where it is one of these, in whatever command.
pub(crate) fn completed(arg: Arg) -> Arg {
    const COMPLETED: [&str; 6] = ["tokenizer", "made_with", "format", "dtype", "as_dtype", "shuffle"];
    // One that takes only some values says so itself. Asked of these alone: what `help` completes are all commands.
    if !COMPLETED.contains(&arg.get_id().as_str()) || !arg.get_possible_values().is_empty() {
        return arg;
    }
    let arg = match arg.get_id().as_str() {
        "tokenizer" | "made_with" => {
            arg.value_parser(hinted(StringValueParser::new(), || listed(&TOKENIZERS)))
        }
        "format" => arg.value_parser(hinted(StringValueParser::new(), || {
            windrow::formats().iter().map(|format| PossibleValue::new(format.name())).collect()
        })),
        "dtype" | "as_dtype" => arg.value_parser(hinted(dtype, || listed(&DTYPES))),
        "shuffle" => arg.value_parser(hinted(shuffle, || listed(&["on", "off", "blocks"]))),
        _ => return arg,
    };
    arg.hide_possible_values(true)
}

const TOKENIZERS: [&str; 6] = ["bytes", "cl100k_base", "deepseek_v3", "gpt2", "llama3", "o200k_base"];
const DTYPES: [&str; 13] = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16",
    "float32", "float64",
];

#[cfg(test)]
mod tests {
    use windrow::DType;

    use super::*;

    #[test]
    fn what_is_completed_is_taken() {
        for word in DTYPES {
            assert!(DType::parse(word).is_ok(), "{word}");
        }
        let row = windrow::prep::TOKENIZING.iter().find(|row| row.name == "tokenizer").unwrap();
        for name in TOKENIZERS {
            assert!(row.help.contains(name), "{name}: {}", row.help);
        }
    }
}
