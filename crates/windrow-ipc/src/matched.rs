//! The columns of several tables as those of one data set: matched by name, of types that hold the values of all, and what records
//! can be made of each.

use windrow_core::format::columns::{Column, Kind as Holds};
use windrow_core::{Error, Result};

use crate::file::Table;
use crate::fitted::{exact, is_read_as};
use crate::schema::{Kind, Node};
use crate::widened::Apart;

/// What GluonTS calls the column with the shape of a flat one beside it.
pub const SHAPE: &str = "._np_shape";

/// The columns of a data set: all that its tables have, those of the first one first.
#[derive(Clone)]
pub struct Columns {
    visible: Vec<Matched>,
    /// What records can be made of each.
    columns: Vec<Column>,
}

/// A column of all tables.
#[derive(Clone)]
struct Matched {
    node: Node,
    /// Types of which none holds the values of all: each table has its own.
    is_mixed: bool,
    /// Whether a column with its shape is beside it.
    is_shaped: bool,
}

/// A column in one table.
#[derive(Clone)]
pub(crate) struct Own {
    /// Its number there.
    pub(crate) at: usize,
    /// The number of the column with its shape.
    pub(crate) shape: Option<usize>,
    /// The type that its values are made of, where that is another than the table's.
    pub(crate) to: Option<Node>,
}

impl Columns {
    /// Those of tables, of which `is_asked` are read.
    ///
    /// # Errors
    /// `Mismatch` for one that is asked for, with types of which none holds the values of all; `Unsupported` for two of one name.
    pub fn of(tables: &[Table], is_asked: &dyn Fn(&str) -> bool) -> Result<Columns> {
        // The file that a type was found in first.
        let mut known: Vec<(Matched, &str)> = Vec::new();
        for table in tables {
            refuse_twice(table)?;
            let name = table.stored().name();
            for (at, shape) in visible(table.columns()) {
                let node = &table.columns()[at];
                let is_shaped = shape.is_some();
                let Some((before, file)) = known.iter_mut().find(|(known, _)| known.node.name == node.name)
                else {
                    known.push((Matched { node: node.clone(), is_mixed: false, is_shaped }, name));
                    continue;
                };
                let is_one = match before.node.widened(node) {
                    Ok(wide) if before.is_shaped == is_shaped => {
                        if before.node.kind == Kind::Null && wide.kind != Kind::Null {
                            *file = name;
                        }
                        before.node = wide;
                        true
                    }
                    // Where nothing is known of the type, nothing is of its shape.
                    Ok(wide) if before.node.kind == Kind::Null || node.kind == Kind::Null => {
                        (before.node, before.is_shaped) = (wide, before.is_shaped || is_shaped);
                        true
                    }
                    Ok(_) if is_asked(&node.name) => {
                        let (first, other) = ("an array", "a list without a shape");
                        let words = if is_shaped { (other, first) } else { (first, other) };
                        let path = vec![node.name.clone()];
                        let apart = Apart { path, first: words.0.to_string(), other: words.1.to_string() };
                        return Err(mismatch(&apart, file, name));
                    }
                    Err(apart) if is_asked(&node.name) => return Err(mismatch(&apart, file, name)),
                    _ => false,
                };
                before.is_mixed |= !is_one;
            }
        }
        let visible: Vec<Matched> = known.into_iter().map(|(matched, _)| matched).collect();
        let columns = visible.iter().map(described).collect();
        Ok(Columns { visible, columns })
    }

    /// That each of these tables has a column of numbers, where it has rows, `rows` of each: no record is null.
    ///
    /// # Errors
    /// `Unsupported` naming the file that lacks it.
    pub fn refuse_lacking(
        &self,
        name: &str,
        tables: &[Table],
        rows: &mut dyn Iterator<Item = u64>,
    ) -> Result<()> {
        if self.columns.iter().all(|column| column.name != name) {
            return Ok(());
        }
        let is_lacking = |table: &Table| table.columns().iter().all(|column| column.name != name);
        let found = tables.iter().zip(rows).find(|(table, rows)| *rows > 0 && is_lacking(table));
        match found {
            None => Ok(()),
            Some((table, _)) => Err(lacking(name).at(table.stored().name()).field(name)),
        }
    }

    /// What records can be made of each.
    pub fn described(&self) -> &[Column] {
        &self.columns
    }

    /// The names of all, those of shapes beside them included.
    pub fn names(&self) -> Vec<String> {
        let names = self.visible.iter().flat_map(|Matched { node, is_shaped, .. }| {
            let shape = is_shaped.then(|| format!("{}{SHAPE}", node.name));
            [Some(node.name.clone()), shape]
        });
        names.flatten().collect()
    }

    /// Those of these names alone.
    #[must_use]
    pub fn only(&self, names: &[String]) -> Columns {
        let kept = self.visible.iter().zip(&self.columns).filter(|(of, _)| names.contains(&of.node.name));
        let (visible, columns) = kept.map(|(of, column)| (of.clone(), column.clone())).unzip();
        Columns { visible, columns }
    }

    /// Each in one table; `None` where it lacks the column.
    pub(crate) fn in_table(&self, table: &Table) -> Vec<Option<Own>> {
        let number = |name: &str| table.columns().iter().position(|column| column.name == name);
        let own = |Matched { node, is_mixed, is_shaped }: &Matched| {
            let at = number(&node.name)?;
            let is_same = *is_mixed || is_read_as(&table.columns()[at], node);
            let shape = is_shaped.then(|| number(&format!("{}{SHAPE}", node.name))).flatten();
            Some(Own { at, shape, to: (!is_same).then(|| node.clone()) })
        };
        self.visible.iter().map(own).collect()
    }
}

/// The error of records of numbers in a file that lacks their column.
pub(crate) fn lacking(name: &str) -> Error {
    Error::unsupported(format!("no column {name:?} in this file; a record of numbers is never null"))
        .hint("open the files that have it, or rows with @columns@, where it is null")
}

// The error of types of which none holds the values of both.
fn mismatch(apart: &Apart, before: &str, file: &str) -> Error {
    let Apart { path, first, other } = apart;
    let (column, inside) = path.split_first().map_or(("", path.as_slice()), |(of, rest)| (of.as_str(), rest));
    let of = if inside.is_empty() {
        format!("column {column:?}")
    } else {
        format!("{:?} in column {column:?}", inside.join("."))
    };
    Error::mismatch(format!("{of} is {other}, but {first} in {before}")).at(file).field(column).hint(
        "no type holds the values of both: write the files with one type, or name the columns that are read with @columns@",
    )
}

// What records can be made of a column.
fn described(of: &Matched) -> Column {
    let Matched { node, is_mixed, is_shaped } = of;
    let kind = match (node.numbers(), &node.kind) {
        _ if *is_mixed && node.is_unread() => Holds::LeftOut,
        _ if *is_mixed => Holds::Value,
        (Some((dtype, _)), _) if *is_shaped => Holds::Array(Some(dtype), None),
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
    let exact = if *is_mixed { String::new() } else { exact(node) };
    Column { name: node.name.clone(), holds: node.holds(), exact, kind }
}

// The columns of a table that are no shapes of others, with the one that is its shape.
fn visible(columns: &[Node]) -> Vec<(usize, Option<usize>)> {
    let shape_of = |name: &str| columns.iter().position(|other| other.name.strip_suffix(SHAPE) == Some(name));
    let is_shape = |node: &Node| {
        node.name.strip_suffix(SHAPE).is_some_and(|name| columns.iter().any(|other| other.name == name))
    };
    let kept = columns.iter().enumerate().filter(|(_, node)| !is_shape(node));
    kept.map(|(at, node)| (at, shape_of(&node.name))).collect()
}

// Rows know their columns by name: none may be there twice.
fn refuse_twice(table: &Table) -> Result<()> {
    let mut names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::unsupported(format!("two columns that are called {:?}", pair[0]))
            .at(table.stored().name())
            .hint("write it with names of their own")),
    }
}
