//! Timestamps of 96 bits, as Spark and Impala write them: in microseconds, as Spark counts.
//!
//! In nanoseconds, as they are stored, 64 bits end in the year 2262, and the crate would wrap: Spark's files often hold the year 9999.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type;
use parquet::errors::Result;

/// What a file of Arrow's keeps of its own schema, which says the unit.
const OF_ARROW: &str = "ARROW:schema";

/// Opens a file with these timestamps in microseconds, where it declares no unit itself.
///
/// # Errors
/// What the crate says of such a schema.
pub(crate) fn in_microseconds(
    meta: ArrowReaderMetadata,
    options: ArrowReaderOptions,
) -> Result<ArrowReaderMetadata> {
    let columns = meta.parquet_schema().columns();
    let are: Vec<bool> = columns.iter().map(|column| column.physical_type() == Type::INT96).collect();
    let said = meta.metadata().file_metadata().key_value_metadata();
    let is_of_arrow = said.is_some_and(|said| said.iter().any(|pair| pair.key == OF_ARROW));
    if is_of_arrow || !are.contains(&true) {
        return Ok(meta);
    }
    let mut leaves = are.into_iter();
    let fields: Vec<FieldRef> =
        meta.schema().fields().iter().map(|field| mapped(field, &mut leaves)).collect();
    let schema = Schema::new_with_metadata(fields, meta.schema().metadata().clone());
    ArrowReaderMetadata::try_new(meta.metadata().clone(), options.with_schema(Arc::new(schema)))
}

// A field, whose leaves are the next of the file's columns.
fn mapped(field: &FieldRef, leaves: &mut impl Iterator<Item = bool>) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| mapped(field, leaves)).collect())
        }
        DataType::List(item) => DataType::List(mapped(item, leaves)),
        DataType::LargeList(item) => DataType::LargeList(mapped(item, leaves)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(mapped(item, leaves), *size),
        DataType::Map(entries, sorted) => DataType::Map(mapped(entries, leaves), *sorted),
        other => match (leaves.next(), other) {
            (Some(true), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            _ => other.clone(),
        },
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}
