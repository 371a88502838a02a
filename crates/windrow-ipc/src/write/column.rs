//! The values of a column in one batch, in the buffers that Arrow keeps them in.

use windrow_core::{Array, DType, Error, Result, Value};

use super::types::{Field, Type};

/// Whole numbers up to here are floats of 64 bits without loss.
const EXACT: u64 = 1 << 53;

/// The values of a column so far.
pub(super) struct Column {
    of: Type,
    count: u64,
    nulls: u64,
    /// A bit for each value, 0 for null; empty until the first null.
    valid: Bits,
    /// Ends of lists, texts and bytes, of 4 bytes, 0 before them; elsewhere nothing.
    offsets: Vec<u8>,
    data: Vec<u8>,
    bits: Bits,
    children: Vec<Column>,
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: u64,
}

impl Bits {
    fn push(&mut self, bit: bool, times: u64) {
        for _ in 0..times {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if bit && let Some(last) = self.bytes.last_mut() {
                *last |= 1 << (self.count % 8);
            }
            self.count += 1;
        }
    }
}

impl Column {
    /// Of no values.
    pub(super) fn new(of: &Type) -> Column {
        let children = match of {
            Type::List(inner) | Type::Fixed(_, inner) => vec![Column::new(inner)],
            Type::Struct(fields) => fields.iter().map(|field| Column::new(&field.of)).collect(),
            _ => Vec::new(),
        };
        let offsets = match of {
            Type::List(_) | Type::Text | Type::Bytes => vec![0; 4],
            _ => Vec::new(),
        };
        Column {
            of: of.clone(),
            count: 0,
            nulls: 0,
            valid: Bits::default(),
            offsets,
            data: Vec::new(),
            bits: Bits::default(),
            children,
        }
    }

    /// Appends a value.
    ///
    /// # Errors
    /// `Config` for one of another type.
    pub(super) fn push(&mut self, value: &Value) -> Result<()> {
        match (&self.of, value) {
            (_, Value::Null) => return self.push_null(),
            (Type::Bool, Value::Bool(bit)) => self.bits.push(*bit, 1),
            (Type::Number(dtype), value) => {
                if !put_number(*dtype, value, &mut self.data) {
                    return Err(self.misfit(value));
                }
            }
            (Type::Text, Value::Text(text)) => {
                self.data.extend(text.as_bytes());
                self.end(self.data.len())?;
            }
            (Type::Bytes, Value::Bytes(bytes)) => {
                self.data.extend(bytes);
                self.end(self.data.len())?;
            }
            (Type::List(_), Value::Array(array)) => {
                let [inner] = &mut self.children[..] else { return Ok(()) };
                inner.extend(array, 1).map_err(|()| self.misfit(value))?;
                self.end_list()?;
            }
            (Type::List(_), Value::List(values)) => {
                for value in values {
                    self.children[0].push(value)?;
                }
                self.end_list()?;
            }
            (Type::Fixed(count, _), Value::List(values)) if values.len() as u64 == *count => {
                for value in values {
                    self.children[0].push(value)?;
                }
            }
            (Type::Fixed(count, _), Value::Array(array)) if array.shape.first() == Some(count) => {
                let [inner] = &mut self.children[..] else { return Ok(()) };
                inner.extend(array, 1).map_err(|()| self.misfit(value))?;
            }
            (Type::Struct(fields), Value::Struct(row)) => {
                let is_known = |name: &str| fields.iter().any(|field| field.name == name);
                if let Some(other) = row.names().find(|name| !is_known(name)) {
                    return Err(unknown(&format!("a field {other:?}"), fields));
                }
                for (field, child) in fields.iter().zip(&mut self.children) {
                    child.push(row.get(&field.name).unwrap_or(&Value::Null))?;
                }
            }
            _ => return Err(self.misfit(value)),
        }
        self.added(true, 1);
        Ok(())
    }

    fn push_null(&mut self) -> Result<()> {
        match &self.of {
            Type::Null => {}
            Type::Bool => self.bits.push(false, 1),
            Type::Number(dtype) => self.data.resize(self.data.len() + dtype.size(), 0),
            Type::Text | Type::Bytes => self.end(self.data.len())?,
            Type::List(_) => self.end_list()?,
            Type::Fixed(count, _) => {
                for _ in 0..*count {
                    self.children[0].push_null()?;
                }
            }
            Type::Struct(_) => self.children.iter_mut().try_for_each(Column::push_null)?,
        }
        self.added(false, 1);
        Ok(())
    }

    // Appends the numbers of an array, whose axes from `axis` on are those of each value here.
    fn extend(&mut self, array: &Array, axis: usize) -> std::result::Result<(), ()> {
        let count: u64 = array.shape.get(..axis).ok_or(())?.iter().product();
        match (&self.of, array.shape.get(axis)) {
            (Type::Number(dtype), None) if *dtype == array.dtype => self.data.extend_from_slice(&array.bytes),
            (Type::Bool, None) if array.dtype == DType::Bool => {
                array.bytes.iter().for_each(|byte| self.bits.push(*byte != 0, 1));
            }
            (Type::Fixed(own, _), Some(length)) if own == length => {
                self.children[0].extend(array, axis + 1)?
            }
            _ => return Err(()),
        }
        self.added(true, count);
        Ok(())
    }

    fn added(&mut self, is_valid: bool, times: u64) {
        if !is_valid && self.valid.count == 0 {
            self.valid.push(true, self.count);
        }
        self.nulls += if is_valid { 0 } else { times };
        if self.nulls > 0 {
            self.valid.push(is_valid, times);
        }
        self.count += times;
    }

    fn end_list(&mut self) -> Result<()> {
        self.end(usize::try_from(self.children[0].count).unwrap_or(usize::MAX))
    }

    fn end(&mut self, end: usize) -> Result<()> {
        let end = i32::try_from(end).map_err(|_| {
            Error::config("a value of 2 GiB or more, which a column of Arrow does not hold here")
                .hint("write it in parts, or in a format of files")
        })?;
        self.offsets.extend(end.to_le_bytes());
        Ok(())
    }

    fn misfit(&self, value: &Value) -> Error {
        let error =
            Error::config(format!("{}, where the first rows hold {}", value.shown(), self.of.describe()));
        match &self.of {
            Type::Number(dtype) if dtype.is_integer() && matches!(value, Value::F64(_)) => {
                error.hint("write the whole numbers of the first rows as floats: 1.0, not 1")
            }
            Type::Null => error.hint("the first rows are null here: begin with one that has a value"),
            _ => error.hint("a column holds values of one type: leave it out, or write it as text"),
        }
    }

    /// Number of values and of nulls, of the column and what is in it.
    pub(super) fn counts(&self, out: &mut Vec<i64>) {
        let nulls = if self.of == Type::Null { self.count } else { self.nulls };
        out.extend([self.count.cast_signed(), nulls.cast_signed()]);
        self.children.iter().for_each(|child| child.counts(out));
    }

    /// The buffers of the column and what is in it.
    pub(super) fn buffers<'c>(&'c self, out: &mut Vec<&'c [u8]>) {
        if self.of != Type::Null {
            out.push(&self.valid.bytes);
        }
        match &self.of {
            Type::Null | Type::Fixed(..) | Type::Struct(_) => {}
            Type::Bool => out.push(&self.bits.bytes),
            Type::Number(_) => out.push(&self.data),
            Type::Text | Type::Bytes => out.extend([&self.offsets[..], &self.data]),
            Type::List(_) => out.push(&self.offsets),
        }
        self.children.iter().for_each(|child| child.buffers(out));
    }
}

/// The error of a column, or a field of a struct, that the first rows lack.
pub(super) fn unknown(what: &str, fields: &[Field]) -> Error {
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    Error::config(format!("{what}, which the first rows lack: they have {}", names.join(", ")))
        .hint("a row may lack columns, which are null then; begin with one that has all of them")
}

// Appends a number as this dtype, whole ones among floats where float64 holds them; whether it is one.
fn put_number(dtype: DType, value: &Value, out: &mut Vec<u8>) -> bool {
    match (dtype, value) {
        (DType::I64, Value::I64(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (DType::U64, Value::U64(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (DType::U64, Value::I64(number)) if *number >= 0 => out.extend_from_slice(&number.to_le_bytes()),
        (DType::F64, Value::F64(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (DType::F64, Value::I64(number)) if number.unsigned_abs() <= EXACT => {
            out.extend_from_slice(&(*number as f64).to_le_bytes());
        }
        (dtype, Value::Array(array)) if array.shape.is_empty() && array.dtype == dtype => {
            out.extend_from_slice(&array.bytes);
        }
        _ => return false,
    }
    true
}
