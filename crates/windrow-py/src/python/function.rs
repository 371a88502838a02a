//! What tells one Python function from another in every run: its name, and a checksum of what it is made of.

use std::collections::BTreeSet;

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyFrozenSet, PyFunction, PyInt, PyList, PySet, PyString, PyTuple,
    PyType,
};

use crate::python::interrupt::Attempt;
use crate::python::said::{class_of, shown};

/// Functions and containers in each other are looked at so far: one may hold itself.
const MOST_DEPTH: u32 = 16;
/// Members of containers that are looked at, of all together; of more only the number counts.
const MOST_MEMBERS: usize = 1_000_000;

/// A function's name, and what tells it from another one of that name, as two lambdas are: the checksum of its code, where
/// it has some.
///
/// # Errors
/// What is raised to end the program.
pub(crate) fn described(function: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = function.py();
    let part = |of: &Bound<'_, PyAny>, name: &str| {
        of.getattr(name).and_then(|found| found.extract::<String>()).attempt(py)
    };
    // What is called through its class is named by that.
    let (of, name) = match part(function, "__qualname__")? {
        Some(name) => (function.clone(), name),
        None => {
            let class = function.get_type().into_any();
            let name = part(&class, "__qualname__")?.unwrap_or_default();
            (class, name)
        }
    };
    let name = format!("{}.{name}", part(&of, "__module__")?.unwrap_or_default());
    Ok(match checksum(function).attempt(py)?.flatten() {
        Some(sum) => format!("{name}#{sum:08x}"),
        None => name,
    })
}

/// [`described`], for what is written in Python.
#[pyfunction]
pub(crate) fn _described(function: &Bound<'_, PyAny>) -> PyResult<String> {
    described(function)
}

// Of what it is made of beside its name; `None` where that cannot be seen.
fn checksum(function: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    let mut text = Vec::new();
    add_function(function, 0, &mut Seen::default(), &mut text)?;
    // That of zlib.
    Ok((!text.is_empty()).then(|| crc32fast::hash(&text)))
}

/// What was looked at.
#[derive(Default)]
struct Seen<'py> {
    /// What the first function calls global: its module, the only one that is looked into.
    globals: Option<Bound<'py, PyAny>>,
    functions: Vec<Bound<'py, PyAny>>,
    members: usize,
}

// A function's code and what it holds: its own, or that of the class through which it is called.
fn add_function<'py>(
    function: &Bound<'py, PyAny>,
    depth: u32,
    seen: &mut Seen<'py>,
    text: &mut Vec<u8>,
) -> PyResult<()> {
    if depth > MOST_DEPTH {
        return Ok(());
    }
    if function.is_instance(&function.py().import("functools")?.getattr("partial")?)? {
        add_part(described(&function.getattr("func")?)?.as_bytes(), text);
        add_value(&function.getattr("args")?, depth, seen, text)?;
        return add_named(named(&function.getattr("keywords")?)?, depth, seen, text);
    }
    if !function.hasattr("__code__")? {
        add_fields(function, depth, seen, text)?;
        let call = function.get_type().getattr("__call__")?;
        return match call.hasattr("__code__")? {
            true => add_function(&call, depth + 1, seen, text),
            false => Ok(()),
        };
    }
    // They may call each other, and themselves.
    if let Some(number) = seen.functions.iter().position(|one| one.is(function)) {
        add_part(&number.to_le_bytes(), text);
        return Ok(());
    }
    seen.functions.push(function.clone());
    // A method's object.
    if function.hasattr("__self__")? {
        add_fields(&function.getattr("__self__")?, depth, seen, text)?;
    }
    let code = function.getattr("__code__")?;
    add_code(&code, seen, text)?;
    add_value(&function.getattr("__defaults__")?, depth, seen, text)?;
    let defaults = function.getattr("__kwdefaults__")?;
    if !defaults.is_none() {
        add_named(named(&defaults)?, depth, seen, text)?;
    }
    add_captured(function, &code, depth, seen, text)?;
    add_globals(function, &code, depth, seen, text)
}

fn add_captured<'py>(
    function: &Bound<'py, PyAny>,
    code: &Bound<'py, PyAny>,
    depth: u32,
    seen: &mut Seen<'py>,
    text: &mut Vec<u8>,
) -> PyResult<()> {
    let cells = function.getattr("__closure__")?;
    if cells.is_none() {
        return Ok(());
    }
    for (name, cell) in code.getattr("co_freevars")?.try_iter()?.zip(cells.try_iter()?) {
        // An empty cell holds nothing yet.
        if let Ok(value) = cell?.getattr("cell_contents")
            && !is_cache(&name?.extract::<String>()?, &value)
        {
            add_value(&value, depth, seen, text)?;
        }
    }
    Ok(())
}

// Plain values of its module that it reads, and functions of that module. A module of others may have its state there.
fn add_globals<'py>(
    function: &Bound<'py, PyAny>,
    code: &Bound<'py, PyAny>,
    depth: u32,
    seen: &mut Seen<'py>,
    text: &mut Vec<u8>,
) -> PyResult<()> {
    let Ok(globals) = function.getattr("__globals__") else { return Ok(()) };
    if !seen.globals.get_or_insert_with(|| globals.clone()).is(&globals) {
        return Ok(());
    }
    let (mut read, mut set) = (BTreeSet::new(), BTreeSet::new());
    find_globals(code, &mut read, &mut set)?;
    let mut found = Vec::new();
    for name in read.difference(&set) {
        // What it sets is state, and what Python sets says where it is.
        if name.starts_with("__") || !globals.contains(name)? {
            continue;
        }
        let value = globals.get_item(name)?;
        let is_of_others =
            value.is_exact_instance_of::<PyFunction>() && !value.getattr("__globals__")?.is(&globals);
        if !is_of_others {
            found.push((name.clone(), value));
        }
    }
    add_named(found, depth, seen, text)
}

// The names of globals that code reads and sets, with that inside it.
fn find_globals(
    code: &Bound<'_, PyAny>,
    read: &mut BTreeSet<String>,
    set: &mut BTreeSet<String>,
) -> PyResult<()> {
    let instructions = code.py().import("dis")?.call_method1("get_instructions", (code,))?;
    for instruction in instructions.try_iter()? {
        let instruction = instruction?;
        match instruction.getattr("opname")?.extract::<String>()?.as_str() {
            "LOAD_GLOBAL" | "LOAD_NAME" => read.insert(instruction.getattr("argval")?.extract()?),
            "STORE_GLOBAL" | "DELETE_GLOBAL" => set.insert(instruction.getattr("argval")?.extract()?),
            _ => false,
        };
    }
    for constant in code.getattr("co_consts")?.try_iter()? {
        let constant = constant?;
        if constant.hasattr("co_code")? {
            find_globals(&constant, read, set)?;
        }
    }
    Ok(())
}

// What an object holds in containers is not looked at: it may come with its first call.
fn add_fields<'py>(
    object: &Bound<'py, PyAny>,
    depth: u32,
    seen: &mut Seen<'py>,
    text: &mut Vec<u8>,
) -> PyResult<()> {
    if !object.hasattr("__dict__")? || object.is_instance_of::<PyType>() {
        return Ok(());
    }
    let mut fields = named(&object.getattr("__dict__")?)?;
    fields.retain(|(_, value)| !may_grow(value));
    add_named(fields, depth, seen, text)
}

type Named<'py> = Vec<(String, Bound<'py, PyAny>)>;

fn named<'py>(values: &Bound<'py, PyAny>) -> PyResult<Named<'py>> {
    values.call_method0("items")?.try_iter()?.map(|item| item?.extract()).collect()
}

// What of named values tells apart, by their names.
fn add_named<'py>(
    mut named: Named<'py>,
    depth: u32,
    seen: &mut Seen<'py>,
    text: &mut Vec<u8>,
) -> PyResult<()> {
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (name, value) in named.iter().filter(|(name, value)| !is_cache(name, value)) {
        let mut inner = Vec::new();
        add_value(value, depth, seen, &mut inner)?;
        if !inner.is_empty() {
            add_part(name.as_bytes(), text);
            text.append(&mut inner);
        }
    }
    Ok(())
}

fn add_code<'py>(code: &Bound<'py, PyAny>, seen: &mut Seen<'py>, text: &mut Vec<u8>) -> PyResult<()> {
    add_part(&code.getattr("co_code")?.extract::<Vec<u8>>()?, text);
    add_part(shown(&code.getattr("co_names")?)?.as_bytes(), text);
    for constant in code.getattr("co_consts")?.try_iter()? {
        let constant = constant?;
        match constant.hasattr("co_code")? {
            true => add_code(&constant, seen, text)?,
            false => add_value(&constant, 0, seen, text)?,
        }
    }
    Ok(())
}

// Only what is written the same in every run: the repr of an object may hold its address.
fn add_value<'py>(
    value: &Bound<'py, PyAny>,
    depth: u32,
    seen: &mut Seen<'py>,
    text: &mut Vec<u8>,
) -> PyResult<()> {
    if value.is_none() || is_number_or_text(value) {
        add_part(shown(value)?.as_bytes(), text);
        return Ok(());
    }
    if value.is_exact_instance_of::<PyFunction>() {
        return add_function(value, depth + 1, seen, text);
    }
    let is_fixed = value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyFrozenSet>();
    if depth > MOST_DEPTH || !(is_fixed || may_grow(value)) {
        return Ok(());
    }
    if !is_fixed {
        add_part(class_of(value)?.as_bytes(), text);
    }
    let n_members = value.len()?;
    add_part(&n_members.to_le_bytes(), text);
    seen.members = seen.members.saturating_add(n_members);
    if seen.members > MOST_MEMBERS {
        return Ok(());
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        // In their order: a function may go through them.
        return dict.items().iter().try_for_each(|item| add_value(&item, depth + 1, seen, text));
    }
    if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        return add_set(value, seen, text);
    }
    for member in value.try_iter()? {
        add_value(&member?, depth + 1, seen, text)?;
    }
    Ok(())
}

// Its order is another one in every run, so members are sorted, and functions, which are numbered in order, are left out.
fn add_set<'py>(set: &Bound<'py, PyAny>, seen: &mut Seen<'py>, text: &mut Vec<u8>) -> PyResult<()> {
    let mut members = Vec::new();
    for member in set.try_iter()? {
        let mut inner = Vec::new();
        add_value(&member?, MOST_DEPTH, seen, &mut inner)?;
        members.push(inner);
    }
    // By their text: its length is in front.
    members.sort_by(|a, b| a.get(8..).cmp(&b.get(8..)));
    members.iter_mut().for_each(|member| text.append(member));
    Ok(())
}

// With its length, so that what follows is never taken for a part of it.
fn add_part(part: &[u8], text: &mut Vec<u8>) {
    text.extend((part.len() as u64).to_le_bytes());
    text.extend(part);
}

// A function that remembers what it gave is the same when it is called again.
fn is_cache(name: &str, value: &Bound<'_, PyAny>) -> bool {
    let name = name.to_lowercase();
    may_grow(value) && (name.contains("cache") || name.contains("memo"))
}

fn may_grow(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyDict>() || value.is_instance_of::<PyList>() || value.is_instance_of::<PySet>()
}

fn is_number_or_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBytes>()
}
