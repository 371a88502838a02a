//! The columns of a file: their types, and which nodes and buffers of a batch are theirs.

use windrow_core::{DType, Error, Result};

use crate::flat::Flat;

/// Types within types, at most.
const MOST_DEPTH: usize = 64;
/// Columns and what is in them, at most: a message names each of them.
const MOST_NODES: usize = 1 << 20;

/// A column, or what is in one.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Columns in it: of a struct each, of a list the one of its elements.
    pub children: Vec<Node>,
    /// The lengths of the axes, where it is an array of `datasets` (Array2D to Array5D).
    pub shape: Option<Vec<u64>>,
    /// Its number among the nodes of a batch.
    pub(crate) node: usize,
    /// The number of its first buffer among those of a batch, which have the same number in each; the data of views apart.
    pub(crate) slot: usize,
    /// Its number among the columns of views.
    pub(crate) view: usize,
}

/// What the values of a column are.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// None at all.
    Null,
    /// Numbers.
    Number(DType),
    /// Truth values, a bit each.
    Bool,
    /// Truth values, a byte each: Arrow's extension `arrow.bool8`.
    Bool8,
    /// Fixed-point numbers: bytes of each, digits behind the point.
    Decimal(usize, i32),
    /// Days, of 4 bytes; milliseconds, of 8.
    Date(usize),
    /// Time of a day: bytes, digits of a second.
    Time(usize, u32),
    /// Digits of a second, and whether it has a time zone.
    Timestamp(u32, bool),
    /// Lengths of time: digits of a second.
    Duration(u32),
    /// UTF-8; offsets of 4 or 8 bytes.
    Text(usize),
    /// Bytes; offsets of 4 or 8 bytes.
    Bytes(usize),
    /// Text or bytes, the short ones inside their view.
    View(bool),
    /// This number of bytes each.
    Fixed(usize),
    /// Lists; offsets of 4 or 8 bytes.
    List(usize),
    /// Lists of this number of values.
    FixedList(u64),
    /// Lists of keys and values.
    Map,
    /// Values by name.
    Struct,
    /// Numbers of values that are kept once: the number of the dictionary, the type of the numbers, its values.
    Dictionary(i64, DType, Box<Node>),
    /// What is not read: its name, and bytes of a value.
    Other(&'static str, usize),
}

impl Kind {
    /// Buffers of its own in a batch, the data of views apart.
    pub(crate) fn buffers(&self) -> usize {
        match self {
            Kind::Null => 0,
            Kind::FixedList(_) | Kind::Struct => 1,
            Kind::Text(_) | Kind::Bytes(_) => 3,
            _ => 2,
        }
    }
}

/// Numbers of nodes, buffers and views that a batch must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) nodes: usize,
    pub(crate) slots: usize,
    pub(crate) views: usize,
}

/// The columns of a schema, and what a batch of them has.
pub(crate) fn columns(schema: Flat<'_>) -> Result<(Vec<Node>, Counts)> {
    if schema.i16(0, 0)? != 0 {
        return Err(Error::unsupported("big-endian numbers")
            .hint("write it again on the machine that made it, with little-endian numbers"));
    }
    let mut columns = fields(schema, 1, 0)?;
    let mut counts = Counts::default();
    columns.iter_mut().for_each(|column| column.count(&mut counts));
    Ok((columns, counts))
}

fn fields(table: Flat<'_>, field: usize, depth: usize) -> Result<Vec<Node>> {
    let tables = table.tables(field)?;
    if depth > MOST_DEPTH || tables.len() > MOST_NODES {
        return Err(table.wrong(format!("types nested more than {MOST_DEPTH} deep")));
    }
    tables.into_iter().map(|field| node(field, depth)).collect()
}

fn node(field: Flat<'_>, depth: usize) -> Result<Node> {
    let name = field.text(0)?.to_string();
    let children = fields(field, 5, depth + 1)?;
    let (shape, is_bool8) = extension(field)?;
    let kind = match kind(field, &children)? {
        Kind::Number(DType::I8) if is_bool8 => Kind::Bool8,
        other => other,
    };
    let plain = Node { name, kind, children, shape, node: 0, slot: 0, view: 0 };
    let Some(encoding) = field.table(4)? else { return Ok(plain) };
    let index = match encoding.table(1)? {
        Some(int) => whole(int)?,
        None => DType::I32,
    };
    let mut values = plain;
    let mut counts = Counts::default();
    values.count(&mut counts);
    let name = values.name.clone();
    let kind = Kind::Dictionary(encoding.i64(0)?, index, Box::new(values));
    Ok(Node { name, kind, children: Vec::new(), shape: None, node: 0, slot: 0, view: 0 })
}

fn kind(field: Flat<'_>, children: &[Node]) -> Result<Kind> {
    let of = |expected: usize| {
        if children.len() == expected {
            Ok(())
        } else {
            Err(field.wrong(format!("a type of {} parts, expected {expected}", children.len())))
        }
    };
    let code = field.u8(2)?;
    let Some(of_type) = field.table(3)? else { return Err(field.wrong("a column without a type")) };
    let size = |n: i32| usize::try_from(n).map_err(|_| field.wrong(format!("values of {n} bytes")));
    Ok(match code {
        1 => Kind::Null,
        2 => Kind::Number(whole(of_type)?),
        3 => match of_type.i16(0, 0)? {
            0 => Kind::Number(DType::F16),
            1 => Kind::Number(DType::F32),
            2 => Kind::Number(DType::F64),
            other => return Err(field.wrong(format!("floats of an unknown precision {other}"))),
        },
        4 => Kind::Bytes(4),
        5 => Kind::Text(4),
        6 => Kind::Bool,
        7 => match of_type.i32(2, 128)? {
            bits @ (32 | 64 | 128 | 256) => Kind::Decimal(bits as usize / 8, of_type.i32(1, 0)?),
            bits => return Err(field.wrong(format!("decimals of {bits} bits"))),
        },
        8 => Kind::Date(if of_type.i16(0, 1)? == 0 { 4 } else { 8 }),
        9 => match (of_type.i32(1, 32)?, of_type.i16(0, 1)?) {
            (bits @ (32 | 64), unit @ 0..=3) => Kind::Time(bits as usize / 8, 3 * unit as u32),
            (bits, unit) => return Err(field.wrong(format!("times of {bits} bits and unit {unit}"))),
        },
        10 => match of_type.i16(0, 0)? {
            unit @ 0..=3 => Kind::Timestamp(3 * unit as u32, of_type.has(1)?),
            unit => return Err(field.wrong(format!("timestamps of unit {unit}"))),
        },
        11 => match of_type.i16(0, 0)? {
            0 => Kind::Other("interval", 4),
            1 => Kind::Other("interval", 8),
            _ => Kind::Other("interval", 16),
        },
        12 => of(1).map(|()| Kind::List(4))?,
        13 => Kind::Struct,
        15 => Kind::Fixed(size(of_type.i32(0, 0)?)?),
        16 => of(1).and_then(|()| Ok(Kind::FixedList(size(of_type.i32(0, 0)?)? as u64)))?,
        17 => match children {
            [Node { kind: Kind::Struct, children, .. }] if children.len() == 2 => Kind::Map,
            _ => return Err(field.wrong("a map that is not a list of keys and values")),
        },
        18 => match of_type.i16(0, 1)? {
            unit @ 0..=3 => Kind::Duration(3 * unit as u32),
            unit => return Err(field.wrong(format!("durations of unit {unit}"))),
        },
        19 => Kind::Bytes(8),
        20 => Kind::Text(8),
        21 => of(1).map(|()| Kind::List(8))?,
        23 => Kind::View(false),
        24 => Kind::View(true),
        other => {
            let name = match other {
                14 => "union",
                22 => "run-end encoding",
                25 | 26 => "list view",
                _ => "unknown",
            };
            return Err(Error::unsupported(format!("the type of column {:?} ({name})", field.text(0)?))
                .hint("write the file without this column"));
        }
    })
}

fn whole(int: Flat<'_>) -> Result<DType> {
    Ok(match (int.i32(0, 0)?, int.u8(1)? != 0) {
        (8, true) => DType::I8,
        (16, true) => DType::I16,
        (32, true) => DType::I32,
        (64, true) => DType::I64,
        (8, false) => DType::U8,
        (16, false) => DType::U16,
        (32, false) => DType::U32,
        (64, false) => DType::U64,
        (bits, _) => return Err(int.wrong(format!("whole numbers of {bits} bits"))),
    })
}

// The shape of an array of `datasets`: `[[2, 3], "float32"]` beside the extension's name; and whether the extension is of truth values.
fn extension(field: Flat<'_>) -> Result<(Option<Vec<u64>>, bool)> {
    let (mut is_array, mut is_bool8, mut shape) = (false, false, None);
    for pair in field.tables(6)? {
        match (pair.text(0)?, pair.text(1)?) {
            ("ARROW:extension:name", name) => {
                is_bool8 = name == "arrow.bool8";
                let name = name.rsplit('.').next().unwrap_or(name);
                is_array = name.starts_with("Array") && name.ends_with("DExtensionType");
            }
            ("ARROW:extension:metadata", text) => {
                shape = serde_json::from_str::<(Vec<Option<u64>>, String)>(text).ok().map(|found| found.0);
            }
            _ => {}
        }
    }
    // A first length of null is another one in each row.
    let shape = shape.filter(|_| is_array).and_then(|shape| shape.into_iter().collect());
    Ok((shape, is_bool8))
}

impl Node {
    // Numbers it, and what is in it, from what was counted so far.
    fn count(&mut self, counts: &mut Counts) {
        (self.node, self.slot, self.view) = (counts.nodes, counts.slots, counts.views);
        counts.nodes += 1;
        counts.slots += self.kind.buffers();
        counts.views += usize::from(matches!(self.kind, Kind::View(_)));
        for child in &mut self.children {
            child.count(counts);
        }
    }

    /// What a batch of these values alone has.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.clone().count(&mut counts);
        counts
    }

    /// The dictionaries in it, with their values.
    pub(crate) fn dictionaries<'a>(&'a self, out: &mut Vec<(i64, &'a Node)>) {
        if let Kind::Dictionary(id, _, values) = &self.kind {
            out.push((*id, values));
            values.dictionaries(out);
        }
        for child in &self.children {
            child.dictionaries(out);
        }
    }

    /// What a person would call its type.
    pub fn holds(&self) -> String {
        match &self.kind {
            Kind::Null => "null".to_string(),
            Kind::Number(dtype) => dtype.to_string(),
            Kind::Bool | Kind::Bool8 => "bool".to_string(),
            Kind::Decimal(..) => "decimal".to_string(),
            Kind::Date(_) => "date".to_string(),
            Kind::Time(..) => "time".to_string(),
            Kind::Timestamp(..) => "timestamp".to_string(),
            Kind::Duration(digits) => {
                let unit = match digits {
                    0 => "s",
                    3 => "ms",
                    6 => "us",
                    _ => "ns",
                };
                format!("duration in {unit}")
            }
            Kind::Text(_) | Kind::View(true) => "text".to_string(),
            Kind::Bytes(_) | Kind::View(false) => "bytes".to_string(),
            Kind::Fixed(size) => format!("{size} bytes"),
            Kind::List(_) => format!("list of {}", self.child()),
            Kind::FixedList(count) => format!("list of {count} {}", self.child()),
            Kind::Map => "map".to_string(),
            Kind::Struct => {
                let names: Vec<&str> = self.children.iter().map(|child| child.name.as_str()).collect();
                format!("struct of {}", names.join(", "))
            }
            Kind::Dictionary(_, _, values) => values.holds(),
            Kind::Other(name, _) => (*name).to_string(),
        }
    }

    fn child(&self) -> String {
        self.children.first().map_or_else(String::new, Node::holds)
    }

    /// Whether its values, or some in them, are not read.
    pub(crate) fn is_unread(&self) -> bool {
        match &self.kind {
            Kind::Other(..) => true,
            Kind::Dictionary(_, _, values) => values.is_unread(),
            _ => self.children.iter().any(Node::is_unread),
        }
    }
}
