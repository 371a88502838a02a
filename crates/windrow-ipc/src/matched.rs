//! The columns of several tables as those of one data set: matched by name, and what records can be made of each.

use windrow_core::format::columns::{Column, Kind as Holds};
use windrow_core::{Error, Result};

use crate::file::Table;
use crate::schema::{Kind, Node};

/// What GluonTS calls the column with the shape of a flat one beside it.
pub const SHAPE: &str = "._np_shape";

/// What records can be made of a column.
pub(crate) fn described(node: &Node, is_shaped: bool) -> Column {
    let kind = match (node.numbers(), &node.kind) {
        (Some((dtype, _)), _) if is_shaped => Holds::Array(Some(dtype), None),
        (Some((dtype, _)), _) if node.shape.is_some() => Holds::Array(Some(dtype), node.shape.clone()),
        (Some((dtype, uniform)), _) => {
            let channels = match node.children.first().map(|child| &child.kind) {
                Some(Kind::FixedList(width)) => Some(*width),
                _ => None,
            };
            Holds::Array(Some(dtype), uniform.map(|len| [len].into_iter().chain(channels).collect()))
        }
        (None, Kind::Bytes(_) | Kind::View(false) | Kind::Fixed(_)) => Holds::Bytes,
        _ if node.is_unread() => Holds::LeftOut,
        _ => Holds::Value,
    };
    Column { name: node.name.clone(), holds: node.holds(), kind }
}

/// The columns of a table that are no shapes of others, with the one that is its shape.
pub(crate) fn visible(columns: &[Node]) -> Vec<(usize, Option<usize>)> {
    let shape_of = |name: &str| columns.iter().position(|other| other.name.strip_suffix(SHAPE) == Some(name));
    let is_shape = |node: &Node| {
        node.name.strip_suffix(SHAPE).is_some_and(|name| columns.iter().any(|other| other.name == name))
    };
    let kept = columns.iter().enumerate().filter(|(_, node)| !is_shape(node));
    kept.map(|(at, node)| (at, shape_of(&node.name))).collect()
}

/// The columns of a table in the order of the first one.
///
/// # Errors
/// `Corrupt` for a table that lacks a column of the first one, has others, or has one of another type.
pub(crate) fn matched(table: &Table, first: &[Node]) -> Result<Vec<(usize, Option<usize>)>> {
    let wrong = |what: String, name: &str| {
        Error::corrupt(what)
            .at(table.stored().name())
            .field(name)
            .hint("files of one data set have the same columns; name one of them, or convert them")
    };
    let number = |name: &str| table.columns().iter().position(|column| column.name == name);
    if let Some(other) =
        table.columns().iter().find(|column| first.iter().all(|known| known.name != column.name))
    {
        return Err(wrong(format!("a column {:?}, which the first file lacks", other.name), &other.name));
    }
    for known in first {
        let found = number(&known.name);
        let found = found.ok_or_else(|| {
            wrong(format!("no column {:?}, which the first file has", known.name), &known.name)
        })?;
        let column = &table.columns()[found];
        if !column.is_like(known) {
            return Err(wrong(
                format!("column {:?} is {}, in the first file {}", known.name, column.holds(), known.holds()),
                &known.name,
            ));
        }
    }
    let of_name = |name: &str| number(name).unwrap_or_default();
    Ok(visible(first)
        .into_iter()
        .map(|(at, shape)| (of_name(&first[at].name), shape.map(|shape| of_name(&first[shape].name))))
        .collect())
}

/// Rows know their columns by name: none may be there twice.
///
/// # Errors
/// `Unsupported` naming it.
pub(crate) fn refuse_twice(table: &Table) -> Result<()> {
    let mut names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::unsupported(format!("two columns that are called {:?}", pair[0]))
            .at(table.stored().name())
            .hint("write it with names of their own")),
    }
}
