//! Values that a shell completes, of arguments that take others too.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
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
