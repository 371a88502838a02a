//! The messages of a stream: its schema, a batch of rows, its end.

use windrow_core::{DType, Result};

use super::column::Column;
use super::flat::{Field as Flat, Table};
use super::types::{Field, Type};
use crate::message::{BATCH, CONTINUES, SCHEMA};

/// Arrow 1.0 and later.
const VERSION: i16 = 4;
/// What buffers begin at a multiple of: numbers of any width can be used where they are.
const ALIGNMENT: usize = 8;

/// What takes the bytes of a stream.
pub(super) type Put<'p> = &'p mut dyn FnMut(&[u8]) -> Result<()>;

/// Writes what the columns are.
pub(super) fn schema(columns: &[Field], put: Put<'_>) -> Result<()> {
    let schema = Table(vec![Flat::Default, Flat::Tables(columns.iter().map(field).collect())]);
    message(SCHEMA, schema, 0, put)
}

/// Writes the rows of a batch.
pub(super) fn batch(rows: u64, columns: &[Column], put: Put<'_>) -> Result<()> {
    let (mut counts, mut buffers) = (Vec::new(), Vec::new());
    for column in columns {
        column.counts(&mut counts);
        column.buffers(&mut buffers);
    }
    let (mut places, mut end) = (Vec::with_capacity(2 * buffers.len()), 0);
    for buffer in &buffers {
        places.extend([end as i64, buffer.len() as i64]);
        end = (end + buffer.len()).next_multiple_of(ALIGNMENT);
    }
    let head = Table(vec![Flat::I64(rows.cast_signed()), Flat::Words(counts, 2), Flat::Words(places, 2)]);
    message(BATCH, head, end as i64, put)?;
    for buffer in buffers {
        put(buffer)?;
        put(&[0; ALIGNMENT][..buffer.len().next_multiple_of(ALIGNMENT) - buffer.len()])?;
    }
    Ok(())
}

/// Writes the mark of the end.
pub(super) fn end(put: Put<'_>) -> Result<()> {
    put(&CONTINUES.to_le_bytes())?;
    put(&[0; 4])
}

fn message(kind: u8, head: Table, body: i64, put: Put<'_>) -> Result<()> {
    let message = Table(vec![Flat::I16(VERSION), Flat::U8(kind), Flat::Table(head), Flat::I64(body)]);
    let bytes = message.to_bytes();
    put(&CONTINUES.to_le_bytes())?;
    put(&(bytes.len() as u32).to_le_bytes())?;
    put(&bytes)
}

fn field(Field { name, of }: &Field) -> Table {
    let (code, about) = type_of(of);
    let inner = |of: &Type| field(&Field { name: "item".to_string(), of: of.clone() });
    let children = match of {
        Type::List(child) | Type::Fixed(_, child) => vec![inner(child)],
        Type::Struct(fields) => fields.iter().map(field).collect(),
        _ => Vec::new(),
    };
    let nullable = Flat::U8(1);
    Table(vec![
        Flat::Text(name.clone()),
        nullable,
        Flat::U8(code),
        Flat::Table(about),
        Flat::Default,
        // Readers expect the list, also where it is empty.
        Flat::Tables(children),
    ])
}

// The number of a type, and its description.
fn type_of(of: &Type) -> (u8, Table) {
    let plain = || Table(Vec::new());
    match of {
        Type::Null => (1, plain()),
        Type::Number(dtype @ (DType::F16 | DType::F32 | DType::F64)) => {
            let precision = match dtype {
                DType::F16 => 0,
                DType::F32 => 1,
                _ => 2,
            };
            (3, Table(vec![Flat::I16(precision)]))
        }
        Type::Number(dtype) => {
            let is_signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
            (2, Table(vec![Flat::I32(8 * dtype.size() as i32), Flat::U8(u8::from(is_signed))]))
        }
        Type::Bytes => (4, plain()),
        Type::Text => (5, plain()),
        Type::Bool => (6, plain()),
        Type::List(_) => (12, plain()),
        Type::Struct(_) => (13, plain()),
        Type::Fixed(count, _) => (16, Table(vec![Flat::I32(i32::try_from(*count).unwrap_or(i32::MAX))])),
    }
}
