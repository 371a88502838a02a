//! Arrays of one file as records: all of `[T]`, one row of `[N, T]`, or `[T, C]` of `[N, T, C]`.

use std::sync::Arc;

use windrow_core::array::reserve;
use windrow_core::format::Axis;
use windrow_core::source::{FileInfo, Location, Schema, Source, check_span};
use windrow_core::store::{Object, at_once};
use windrow_core::{Decode, Element, Error, Lengths, Result, Span, Values};
use xxhash_rust::xxh3::Xxh3;

use crate::firsts::Firsts;
use crate::npy::header::Header;
use windrow_core::format::data_files::hash_ends;

/// Where the bytes of an array's object are in the file that people see.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lies {
    /// As they are, from this byte.
    From(u64),
    /// Compressed, somewhere in these bytes.
    Within {
        /// First byte.
        start: u64,
        /// Number of bytes.
        size: u64,
    },
}

/// One array, whose header was compared with the object's size.
pub(super) struct Array {
    object: Arc<dyn Object>,
    header: Header,
    lies: Lies,
    rows: u64,
    length: u64,
    channels: Option<usize>,
    /// The numbers of a row follow each other.
    contiguous: bool,
}

impl Array {
    /// The array that `object` holds.
    ///
    /// # Errors
    /// `Unsupported` when its shape is not `[T]`, `[N, T]` or `[N, T, C]`; along time, not `[T]` or `[T, C]`.
    pub(super) fn new(
        object: Arc<dyn Object>,
        header: Header,
        lies: Lies,
        axis: Option<Axis>,
    ) -> Result<Array> {
        let shape = header.shape.as_slice();
        let (rows, length, channels) = match *shape {
            [length, channels] if axis.is_some() && channels > 0 => {
                (1, length, usize::try_from(channels).ok())
            }
            _ if axis.is_some() && shape.len() != 1 => {
                return Err(Error::unsupported(format!("an array of shape {shape:?} as one series"))
                    .at(object.name())
                    .field("shape")
                    .hint("@axis=time@ reads [T, C] with at least one channel; leave it out for [N, T, C]"));
            }
            [length] => (1, length, None),
            [rows, length] => (rows, length, None),
            [rows, length, channels] if channels > 0 => (rows, length, usize::try_from(channels).ok()),
            _ => {
                return Err(Error::unsupported(format!("an array of shape {shape:?}"))
                    .at(object.name())
                    .field("shape")
                    .hint("a series is [T], one per row of [N, T], or [N, T, C] with at least one channel"));
            }
        };
        let in_order = shape.iter().filter(|n| **n > 1).count() <= 1;
        let contiguous = !header.fortran || in_order;
        Ok(Array { object, header, lies, rows, length, channels, contiguous })
    }

    /// Type and byte order, and channels: what all arrays of a source must agree in.
    pub(super) fn kind(&self) -> (Element, Option<usize>) {
        (self.header.element, self.channels)
    }

    /// What a person calls it.
    pub(super) fn name(&self) -> &str {
        self.object.name()
    }

    // Bytes of one value, all channels. Header and size were compared, so products of parts of the shape fit.
    fn width(&self) -> u64 {
        self.header.element.size() as u64 * self.channels.unwrap_or(1) as u64
    }

    // Where a span is in the object, when its values follow each other.
    fn range(&self, row: u64, span: Span) -> (u64, u64) {
        let first = row * self.length + span.start;
        (self.header.data_start + first * self.width(), span.len * self.width())
    }

    // Where each number of a span is in the object, when the first index runs fastest.
    fn places(&self, row: u64, span: Span) -> impl Iterator<Item = u64> + '_ {
        let size = self.header.element.size() as u64;
        let channels = self.channels.unwrap_or(1) as u64;
        (span.start..span.start + span.len).flat_map(move |value| {
            (0..channels).map(move |channel| {
                let number = row + self.rows * (value + self.length * channel);
                self.header.data_start + number * size
            })
        })
    }

    fn read<'a>(&'a self, row: u64, span: Span, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let (start, bytes) = self.range(row, span);
        let bytes = at_once(bytes)?;
        if self.contiguous {
            return self.object.read(start, bytes, scratch);
        }
        let size = self.header.element.size();
        scratch.clear();
        reserve(scratch, bytes)?;
        match self.object.mapped() {
            Some(map) => {
                for place in self.places(row, span) {
                    // Below the map's length, as the header was compared with it.
                    scratch.extend_from_slice(&map[place as usize..place as usize + size]);
                }
            }
            None => {
                let mut number = Vec::new();
                for place in self.places(row, span) {
                    scratch.extend_from_slice(self.object.read(place, size, &mut number)?);
                }
            }
        }
        Ok(scratch)
    }

    fn locate(&self, row: u64, span: Span, file: &str) -> Vec<Location> {
        let place = |start, size| Location { file: file.to_string(), start, size };
        let size = self.header.element.size() as u64;
        match self.lies {
            Lies::Within { start, size } => vec![place(start, size)],
            Lies::From(first) if self.contiguous => {
                let (start, bytes) = self.range(row, span);
                vec![place(first + start, bytes)]
            }
            Lies::From(first) => self.places(row, span).map(|at| place(first + at, size)).collect(),
        }
    }
}

/// The records of all arrays of one file, array by array.
pub(super) struct Arrays {
    format: &'static str,
    file: FileInfo,
    arrays: Vec<Array>,
    firsts: Firsts,
    schema: Schema,
}

impl Arrays {
    /// Joins the arrays of one file; there is at least one. `vocab_size` is the declared bound of their IDs.
    ///
    /// # Errors
    /// `Mismatch` naming two arrays that differ in dtype, byte order or channels; `Corrupt` when there is none.
    pub(super) fn new(
        format: &'static str,
        file: FileInfo,
        arrays: Vec<Array>,
        vocab_size: Option<u64>,
    ) -> Result<Arrays> {
        let Some(first) = arrays.first() else {
            return Err(Error::corrupt("expected at least one array, found none").at(&file.file));
        };
        let kind = first.kind();
        let say = |(element, channels): (Element, Option<usize>)| {
            let order = if element.big_endian { " big-endian" } else { "" };
            let channels = channels.map_or(String::new(), |n| format!(" with {n} channels"));
            format!("{}{order}{channels}", element.dtype)
        };
        if let Some(other) = arrays.iter().find(|array| array.kind() != kind) {
            return Err(Error::mismatch(format!(
                "the arrays are of different kinds: {} holds {}, {} holds {}",
                first.name(),
                say(kind),
                other.name(),
                say(other.kind())
            ))
            .at(&file.file)
            .hint("save arrays of one kind together, and the others in a file of their own"));
        }
        let mut firsts = Firsts::new();
        // Rows are backed by bytes of the file, or no more than it has bytes; the sum cannot pass 64 bits.
        arrays.iter().for_each(|array| firsts.push(array.rows));
        let mut schema = Schema::numbers(kind.0);
        schema.channels = kind.1;
        schema.vocab_size = vocab_size;
        Ok(Arrays { format, file, arrays, firsts, schema })
    }

    // The array that holds a record, and the record's row in it.
    fn find(&self, record: u64) -> Result<(&Array, u64)> {
        let (number, row) = self.firsts.find(record)?;
        Ok((&self.arrays[number], row))
    }

    fn checked(&self, span: Span) -> Result<(&Array, u64)> {
        let (array, row) = self.find(span.record)?;
        check_span(span, array.length)?;
        Ok((array, row))
    }
}

impl Lengths for Arrays {
    fn len(&self) -> u64 {
        self.firsts.count()
    }

    fn length(&self, record: u64) -> Result<u64> {
        Ok(self.find(record)?.0.length)
    }

    fn uniform(&self) -> Option<u64> {
        let mut lengths = self.arrays.iter().filter(|a| a.rows > 0).map(|a| a.length);
        let first = lengths.next()?;
        lengths.all(|length| length == first).then_some(first)
    }
}

impl Source for Arrays {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (array, row) = self.checked(span)?;
        let bytes = array.read(row, span, scratch).map_err(|e| e.record(span.record))?;
        let channels = array.channels.unwrap_or(1);
        Ok(Values { bytes, element: self.schema.element, channels, decode: Decode::Plain })
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok((array, row)) = self.checked(span)
                && array.contiguous
            {
                let (start, size) = array.range(row, span);
                array.object.prefetch(start, size);
            }
        }
    }

    fn touch(&self, span: Span) {
        if let Ok((array, row)) = self.checked(span)
            && array.contiguous
        {
            let (start, size) = array.range(row, span);
            array.object.touch(start, size);
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (array, row) = self.checked(span)?;
        Ok(array.locate(row, span, &self.file.file))
    }

    fn files(&self) -> Vec<FileInfo> {
        vec![self.file.clone()]
    }

    fn fingerprint(&self) -> Result<u64> {
        const SAMPLED: usize = 64;
        let mut hash = Xxh3::new();
        hash.update(self.format.as_bytes());
        let count = self.arrays.len();
        hash.update(&(count as u64).to_le_bytes());
        for array in &self.arrays {
            let Header { element, fortran, shape, .. } = &array.header;
            hash.update(element.dtype.name().as_bytes());
            hash.update(&[u8::from(element.big_endian), u8::from(*fortran), shape.len() as u8]);
            if shape.len() == 2 && array.channels.is_some() {
                hash.update(b"time");
            }
            shape.iter().for_each(|n| hash.update(&n.to_le_bytes()));
        }
        let sampled = count.min(SAMPLED);
        for i in 0..sampled {
            // Below the count, which is 1 or more.
            hash_ends(self.arrays[i * count / sampled].object.as_ref(), &mut hash)?;
        }
        Ok(hash.digest())
    }

    fn format(&self) -> &'static str {
        self.format
    }
}
