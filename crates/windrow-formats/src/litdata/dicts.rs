//! Items that are dicts, while they are written: their leaves, which the first row decides, and later rows may add to or make
//! optional. Items that were encoded before such a change are encoded again.

use serde_json::{Map, Value as Json, json};
use windrow_core::{Error, Result, Row, Value};

use super::chunks::word;
use super::encode::{Kind, encode, misfit};
use super::leaf::Leaf;

/// The leaves of all items.
#[derive(Default)]
pub(super) struct Dicts {
    columns: Vec<Column>,
    version: usize,
    n_items: u64,
}

/// A leaf: the key of its value, and its kinds.
struct Column {
    name: String,
    /// Each with the version from which on it holds; the first may be above 0: earlier items lack the leaf.
    kinds: Vec<(usize, Kind)>,
    /// What the values are where they are not null.
    base: Option<Kind>,
    is_optional: bool,
}

impl Column {
    fn kind(&self) -> Kind {
        // There is one from the beginning.
        self.kinds.last().map_or(Kind::Json, |(_, kind)| *kind)
    }

    fn kind_at(&self, version: usize) -> Option<Kind> {
        self.kinds.iter().rev().find(|(since, _)| *since <= version).map(|(_, kind)| *kind)
    }

    // The kind for this value as well; `None` where there is none.
    fn kind_with(&self, value: &Value) -> Option<Kind> {
        let (now, of) = (self.kind(), Kind::of(value));
        match (value, self.base) {
            (Value::Null, _) => now.optional(),
            // Nothing but nulls before it.
            (_, None) => of.optional(),
            _ if now == of || matches!(now, Kind::Json | Kind::Array) => Some(now),
            (_, Some(base)) if now == Kind::Pickle => (base == of).then_some(now),
            (Value::I64(_), _) if now == Kind::Float => Some(now),
            (Value::F64(_), _) if now == Kind::Int => Some(Kind::Float),
            _ => None,
        }
    }
}

impl Dicts {
    /// Changes with the leaves: items of an earlier one are encoded again.
    pub(super) fn version(&self) -> usize {
        self.version
    }

    /// Names and kinds of the leaves.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (&str, Kind)> {
        self.columns.iter().map(|column| (column.name.as_str(), column.kind()))
    }

    /// What litdata's index says of the values by key, where some are optional.
    pub(super) fn types(&self) -> Json {
        if self.columns.iter().all(|column| !column.is_optional) {
            return Json::Null;
        }
        let of = |column: &Column| {
            let name = column.base.map_or("null", Kind::type_name);
            let of = if column.is_optional { json!({ "type": name, "optional": true }) } else { json!(name) };
            (column.name.clone(), of)
        };
        Json::Object(self.columns.iter().map(of).collect::<Map<_, _>>())
    }

    /// The bytes of an item: sizes first, then the leaves. Its keys become leaves, and those that it lacks optional.
    ///
    /// # Errors
    /// `Config` naming record and key of a value that its leaf does not hold.
    pub(super) fn encode(&mut self, number: u64, row: &Row) -> Result<Vec<u8>> {
        if row.is_empty() {
            return Err(Error::config("a row without columns").record(number));
        }
        let next = if self.n_items == 0 { 0 } else { self.version + 1 };
        for (name, value) in row.iter() {
            if self.columns.iter().all(|column| column.name != name) {
                self.add(name, value, next).map_err(|e| e.record(number).field(name))?;
            }
        }
        let mut item = vec![0; 4 * self.columns.len()];
        for (at, column) in self.columns.iter_mut().enumerate() {
            let value = row.get(&column.name).unwrap_or(&Value::Null);
            let named = |e: Error| e.record(number).field(&column.name);
            let kind = column.kind_with(value).ok_or_else(|| named(misfit(column.kind(), value)))?;
            match value {
                Value::Null => column.is_optional = true,
                _ => column.base = column.base.or(Some(Kind::of(value))),
            }
            if kind != column.kind() {
                column.kinds.push((next, kind));
                self.version = next;
            }
            let before = item.len();
            encode(kind, value, &mut item).map_err(named)?;
            let size = u32::try_from(item.len() - before).map_err(|_| too_large(number))?;
            item[4 * at..4 * at + 4].copy_from_slice(&size.to_le_bytes());
        }
        self.n_items += 1;
        Ok(item)
    }

    // A key that no row before had.
    fn add(&mut self, name: &str, value: &Value, since: usize) -> Result<()> {
        let (of, is_optional) = (Kind::of(value), self.n_items > 0);
        let kind = if is_optional { of.optional() } else { Some(of) };
        let kind = kind.ok_or_else(|| {
            Error::config("arrays of a key that earlier rows lack").hint(super::encode::NO_NULL_ARRAYS)
        })?;
        let base = (!value.is_null()).then_some(of);
        self.columns.push(Column { name: name.to_string(), kinds: vec![(since, kind)], base, is_optional });
        self.version = since;
        Ok(())
    }

    /// An item of an earlier version as one of this version.
    ///
    /// # Errors
    /// `Config` for a value that its leaf does not hold any more.
    pub(super) fn encoded_again(&self, item: &[u8], version: usize) -> Result<Vec<u8>> {
        let n_leaves = self.columns.iter().filter(|column| column.kind_at(version).is_some()).count();
        let (mut leaf, mut start) = (0, 4 * n_leaves);
        let mut again = vec![0; 4 * self.columns.len()];
        for (at, column) in self.columns.iter().enumerate() {
            let (kind, before) = (column.kind(), again.len());
            match column.kind_at(version) {
                None => encode(kind, &Value::Null, &mut again)?,
                Some(old) => {
                    // They were encoded here.
                    let end = start + word(item, 4 * leaf) as usize;
                    let bytes = &item[start..end];
                    (leaf, start) = (leaf + 1, end);
                    if old == kind {
                        again.extend_from_slice(bytes)
                    } else {
                        let value = Leaf::parse(&old.name())?.value(bytes)?;
                        encode(kind, &value, &mut again).map_err(|e| e.field(&column.name))?;
                    }
                }
            }
            let size = u32::try_from(again.len() - before)
                .map_err(|_| Error::config("an item that a chunk of 4 GiB does not hold"))?;
            again[4 * at..4 * at + 4].copy_from_slice(&size.to_le_bytes());
        }
        Ok(again)
    }
}

/// The error of an item beyond what offsets of a chunk reach.
pub(super) fn too_large(number: u64) -> Error {
    Error::config("an item that a chunk of 4 GiB does not hold").record(number)
}
