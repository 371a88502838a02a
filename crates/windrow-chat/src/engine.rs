//! The engine's filters that are Jinja's but for some of the values they are given.

use minijinja::value::{Rest, Value, ValueOrKwargs};
use minijinja::{Environment, Error, State, filters};

/// What a filter is given instead of a value; or that it is not given to it.
pub(crate) type Before = fn(Value) -> Result<Value, Error>;

/// Takes away what Jinja does not have or has otherwise, and keeps the engine's filters for [`before`].
pub(crate) fn keep(environment: &mut Environment<'_>) {
    for name in ["attr", "bool", "chain", "lines", "pprint", "split", "zip"] {
        environment.remove_filter(name);
    }
    environment.add_filter("engine's batch", filters::batch);
    environment.add_filter("engine's capitalize", filters::capitalize);
    environment.add_filter("engine's dictsort", filters::dictsort);
    environment.add_filter("engine's first", filters::first);
    environment.add_filter("engine's groupby", filters::groupby);
    environment.add_filter("engine's items", filters::items);
    environment.add_filter("engine's last", filters::last);
    environment.add_filter("engine's list", filters::list);
    environment.add_filter("engine's lower", filters::lower);
    environment.add_filter("engine's max", filters::max);
    environment.add_filter("engine's min", filters::min);
    environment.add_filter("engine's replace", filters::replace);
    environment.add_filter("engine's reverse", filters::reverse);
    environment.add_filter("engine's slice", filters::slice);
    environment.add_filter("engine's sort", filters::sort);
    environment.add_filter("engine's sum", filters::sum);
    environment.add_filter("engine's unique", filters::unique);
    environment.add_filter("engine's upper", filters::upper);
}

/// Has the engine's filters of these names called with what `before` gives.
pub(crate) fn before(environment: &mut Environment<'_>, names: &[&'static str], before: Before) {
    for name in names {
        let engines = format!("engine's {name}");
        environment.add_filter(*name, move |state: &mut State, value: Value, rest: Rest<ValueOrKwargs>| {
            let rest = rest.0.into_iter().map(ValueOrKwargs::into_value);
            state.apply_filter(&engines, &std::iter::once(before(value)?).chain(rest).collect::<Vec<_>>())
        });
    }
}
