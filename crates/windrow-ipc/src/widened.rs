//! The type that holds the values of two types without loss, as pyarrow's `concat_tables(promote_options="permissive")`
//! chooses it.

use windrow_core::DType;

use crate::schema::{Kind, Node};

/// Bytes of a decimal, at most.
const MOST_DECIMAL: usize = 32;
/// Bytes of offsets and of times, at most.
const LONG: usize = 8;

/// Two types that no type holds both of.
#[derive(Debug)]
pub(crate) struct Apart {
    /// Names of the fields that lead to them, from the column's on.
    pub(crate) path: Vec<String>,
    /// What the first of both is, in words.
    pub(crate) first: String,
    /// What the other is.
    pub(crate) other: String,
}

impl Node {
    /// A column of the same name for the values of both.
    ///
    /// # Errors
    /// The types that nothing holds both of.
    pub(crate) fn widened(&self, other: &Node) -> Result<Node, Apart> {
        let apart =
            || Apart { path: vec![self.name.clone()], first: self.type_name(), other: other.type_name() };
        let inside = |mut apart: Apart| {
            apart.path.insert(0, self.name.clone());
            apart
        };
        if self.is_same(other) {
            return Ok(self.clone());
        }
        let named = |node: &Node| Node { name: self.name.clone(), ..node.clone() };
        let (kind, children) = match (&self.kind, &other.kind) {
            (Kind::Null, _) => return Ok(named(other)),
            (_, Kind::Null) => return Ok(self.clone()),
            (Kind::Dictionary(_, _, values), _) => return named(values).widened(other),
            (_, Kind::Dictionary(_, _, values)) => return self.widened(values),
            (Kind::Struct, Kind::Struct) => (Kind::Struct, fields(self, other).map_err(inside)?),
            // The names of keys and values do not count.
            (Kind::Map, Kind::Map) => {
                let (own, others) = (&self.children[0], &other.children[0]);
                let pairs = own.children.iter().zip(&others.children);
                let children = pairs.map(|(a, b)| a.widened(b)).collect::<Result<_, _>>().map_err(inside)?;
                (Kind::Map, vec![Node { children, ..own.clone() }])
            }
            (Kind::List(_) | Kind::FixedList(_), Kind::List(_) | Kind::FixedList(_)) => {
                let child = self.children[0].widened(&other.children[0]).map_err(|mut inner| {
                    // Elements have no name of their own, what is in them has.
                    inner.path[0].clone_from(&self.name);
                    if inner.path.len() == 1 { apart() } else { inner }
                })?;
                let kind = match (&self.kind, &other.kind) {
                    (Kind::FixedList(a), Kind::FixedList(b)) if a == b => Kind::FixedList(*a),
                    _ => Kind::List(LONG),
                };
                (kind, vec![child])
            }
            (a, b) => (of_values(a, b).ok_or_else(apart)?, Vec::new()),
        };
        let shape = self.shape.clone().filter(|_| self.shape == other.shape);
        Ok(Node { kind, children, shape, ..self.clone() })
    }

    /// Whether both are the same type; names of columns and their places do not count.
    pub(crate) fn is_same(&self, other: &Node) -> bool {
        let kinds = match (&self.kind, &other.kind) {
            // Where the values of each are is its own.
            (Kind::Dictionary(_, _, a), Kind::Dictionary(_, _, b)) => a.is_same(b),
            (a, b) => a == b,
        };
        let is_struct = self.kind == Kind::Struct;
        let mut pairs = self.children.iter().zip(&other.children);
        kinds
            && self.shape == other.shape
            && self.children.len() == other.children.len()
            && pairs.all(|(a, b)| a.is_same(b) && (!is_struct || a.name == b.name))
    }

    // The name of its type, with what distinguishes it from others of the same name.
    fn type_name(&self) -> String {
        match self.kind {
            Kind::Timestamp(_, true) => "timestamp with a time zone".to_string(),
            Kind::Timestamp(_, false) => "timestamp without a time zone".to_string(),
            _ => self.holds(),
        }
    }
}

// The fields of two structs: those that one lacks are null there.
fn fields(a: &Node, b: &Node) -> Result<Vec<Node>, Apart> {
    let mut fields = a.children.clone();
    for other in &b.children {
        match fields.iter_mut().find(|known| known.name == other.name) {
            Some(known) => *known = known.widened(other)?,
            None => fields.push(other.clone()),
        }
    }
    Ok(fields)
}

// Values that have none in them.
fn of_values(a: &Kind, b: &Kind) -> Option<Kind> {
    let is_text = |kind: &Kind| matches!(kind, Kind::Text(_) | Kind::View(true));
    let is_bytes = |kind: &Kind| matches!(kind, Kind::Bytes(_) | Kind::View(false) | Kind::Fixed(_));
    Some(match (a, b) {
        (a, b) if a == b => a.clone(),
        (a, b) if is_text(a) && is_text(b) => Kind::Text(LONG),
        (a, b) if (is_text(a) || is_bytes(a)) && (is_text(b) || is_bytes(b)) => Kind::Bytes(LONG),
        (Kind::Number(a), Kind::Number(b)) => Kind::Number(wider(*a, *b)),
        (Kind::Number(dtype), Kind::Decimal(_, scale)) | (Kind::Decimal(_, scale), Kind::Number(dtype)) => {
            if dtype.is_integer() {
                Kind::Decimal(MOST_DECIMAL, *scale)
            } else {
                Kind::Number(*dtype)
            }
        }
        (Kind::Decimal(_, a), Kind::Decimal(_, b)) => Kind::Decimal(MOST_DECIMAL, *a.max(b)),
        (Kind::Bool | Kind::Bool8, Kind::Bool | Kind::Bool8) => Kind::Bool,
        (Kind::Date(_), Kind::Date(_)) => Kind::Date(LONG),
        (Kind::Time(_, a), Kind::Time(_, b)) => Kind::Time(LONG, *a.max(b)),
        (Kind::Timestamp(a, own), Kind::Timestamp(b, zoned)) if own == zoned => {
            Kind::Timestamp(*a.max(b), *own)
        }
        (Kind::Duration(a), Kind::Duration(b)) => Kind::Duration(*a.max(b)),
        _ => return None,
    })
}

// The dtype for numbers of both.
fn wider(a: DType, b: DType) -> DType {
    let is_signed = |dtype: DType| matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let float = |size: usize| match size {
        0..=2 => DType::F16,
        3..=4 => DType::F32,
        _ => DType::F64,
    };
    let signed = |size: usize| match size {
        0..=2 => DType::I16,
        3..=4 => DType::I32,
        _ => DType::I64,
    };
    match (a.is_integer(), b.is_integer()) {
        (true, true) if is_signed(a) == is_signed(b) => {
            if a.size() >= b.size() {
                a
            } else {
                b
            }
        }
        (true, true) => {
            let (with, without) = if is_signed(a) { (a, b) } else { (b, a) };
            if with.size() > without.size() { with } else { signed(2 * without.size()) }
        }
        (false, false) => float(a.size().max(b.size())),
        (true, false) => float((2 * a.size()).max(b.size())),
        (false, true) => float((2 * b.size()).max(a.size())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // As pyarrow's `unify_schemas(promote_options="permissive")` has it.
    #[test]
    fn numbers_widen_as_pyarrow_widens_them() {
        use DType::{F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
        for (a, b, wide) in [
            (I8, I32, I32),
            (I8, U8, I16),
            (I16, U8, I16),
            (I32, U32, I64),
            (I64, U64, I64),
            (U8, U64, U64),
            (I8, F16, F16),
            (I16, F16, F32),
            (U16, F32, F32),
            (I32, F32, F64),
            (U64, F16, F64),
            (F16, F32, F32),
            (F32, F64, F64),
        ] {
            assert_eq!((wider(a, b), wider(b, a)), (wide, wide), "{a} {b}");
        }
    }
}
