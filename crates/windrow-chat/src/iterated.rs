//! What loops and filters go over: not none, of which the engine makes an empty list and Python an error.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

use crate::expression::ITERATED;
use crate::{engine, written};

/// Filters of all items, for which none is an error in Python.
const FILTERS: [&str; 14] = [
    "batch", "dictsort", "first", "groupby", "items", "last", "list", "max", "min", "reverse", "slice",
    "sort", "sum", "unique",
];

/// Loops, and the filters that go over what they are given.
pub(crate) fn add(environment: &mut Environment<'_>) {
    environment.add_function(ITERATED, iterated);
    engine::before(environment, &FILTERS, iterated);
    environment.add_filter("join", join);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_sequence);
    environment.add_function("range", range);
}

// The test `iterable`.
fn is_iterable(value: &Value) -> bool {
    value.kind() == ValueKind::Iterable || is_sequence(value)
}

// The test `sequence`: what has a length and items, as Python's strings and dicts do, and what is not defined.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map | ValueKind::Undefined)
}

// A range as a list, which it is like in all but how it is written.
fn range(lower: isize, upper: Option<isize>, step: Option<isize>) -> Result<Value, Error> {
    Ok(minijinja::functions::range(lower, upper, step)?.try_iter()?.collect())
}

fn iterated(value: Value) -> Result<Value, Error> {
    if value.is_none() {
        Err(Error::new(ErrorKind::InvalidOperation, "none is not iterable"))
    } else {
        Ok(value)
    }
}

fn join(
    state: &mut State,
    value: Value,
    between: Option<Value>,
    attribute: Option<Value>,
    options: Kwargs,
) -> Result<String, Error> {
    let between = between.map_or_else(|| options.get::<Option<Value>>("d"), |given| Ok(Some(given)))?;
    let attribute =
        attribute.map_or_else(|| options.get::<Option<Value>>("attribute"), |given| Ok(Some(given)))?;
    options.assert_all_used()?;
    let mut value = iterated(value)?;
    if let Some(attribute) = attribute.filter(|name| !name.is_none()) {
        value = state.apply_filter("map", &[value, Kwargs::from_iter([("attribute", attribute)]).into()])?;
    }
    let texts: Vec<String> = value.try_iter()?.map(|item| written::text(&item)).collect();
    Ok(texts.join(&between.map_or_else(String::new, |between| written::text(&between))))
}
