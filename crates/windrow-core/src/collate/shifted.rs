//! Every value a target, and the one before it its input: 0 where a row or a sequence begins.

use std::sync::Arc;

use memchr::memchr_iter;

use super::chosen::{chosen, described};
use super::starts::{mark_starts, runs};
use super::{Collate, Field, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::Piece;
use crate::source::Schema;
use crate::values::{copy_span, write_value};

/// Assembles `length` values per row:
///
/// * `targets` `[length]`: the values, int64 unless another dtype is asked for;
/// * `inputs` `[length]`: the value before each, 0 in the first column and where a sequence starts;
/// * `is_seq_start` `[length]` bool: where a sequence starts;
/// * `segment_ids` `[length]` int32: how many sequences have started in this row, 0 for what continues from the row before;
/// * `position_ids` `[length]` int32: 0, 1, … from the start of the row and of each sequence.
///
/// A sequence starts where the stored numbers say so by their bit 0 (flat-tokens), else with a record.
#[derive(Clone, Debug)]
pub struct Shifted {
    length: usize,
    dtype: DType,
    parts: Vec<Part>,
    fields: Arc<[Field]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Targets,
    Inputs,
    Starts,
    Segments,
    Positions,
}

const PARTS: [Part; 5] = [Part::Targets, Part::Inputs, Part::Starts, Part::Segments, Part::Positions];

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Targets => "targets",
            Part::Inputs => "inputs",
            Part::Starts => "is_seq_start",
            Part::Segments => "segment_ids",
            Part::Positions => "position_ids",
        }
    }
}

impl Shifted {
    /// For rows of `length` positions.
    ///
    /// # Errors
    /// `Config` for `[T, C]` records, fractions, a length of 0 or more than 2^31, or a dtype that cannot hold IDs.
    pub fn new(schema: &Schema, length: u64, dtype: Option<DType>) -> Result<Self> {
        let dtype = super::numbers_dtype(schema, dtype)?;
        let length = super::row_length(length, schema, dtype)?;
        if schema.channels.is_some() || !schema.element.dtype.is_integer() || !dtype.is_integer() {
            return Err(Error::config("rows with shifted inputs are made of token IDs [T]"));
        }
        if i32::try_from(length).is_err() {
            return Err(Error::config(format!(
                "a length of {length} does not fit the int32 of position_ids"
            )));
        }
        Ok(Shifted { length, dtype, parts: Vec::new(), fields: Arc::new([]) }.with(&PARTS))
    }

    /// Takes only these fields, in the order given.
    ///
    /// # Errors
    /// `Config` for a name that is not one of its fields or is there twice.
    pub fn only(self, names: &[impl AsRef<str>]) -> Result<Self> {
        Ok(self.with(&chosen(&PARTS, Part::name, names, "rows with shifted inputs")?))
    }

    // Every value of a row, where it is wanted, and whether a sequence starts with it.
    fn read(
        &self,
        sample: &Sample<'_>,
        mut targets: Option<&mut [u8]>,
        starts: &mut [u8],
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let size = self.dtype.size();
        let mut at = 0usize;
        for piece in sample.pieces {
            let len = (piece.len() as usize).min(self.length - at);
            let end = at + len;
            match piece {
                Piece::Read(span) => {
                    let values = sample.source.read(*span, scratch)?;
                    if let Some(targets) = &mut targets {
                        copy_span(span, &values, 0, &mut targets[at * size..end * size], self.dtype)?;
                    }
                    mark_starts(&values, *span, &mut starts[at..end]);
                }
                Piece::Value(value) => {
                    if let Some(targets) = &mut targets {
                        write_value(&mut targets[at * size..end * size], self.dtype, *value)?;
                    }
                    starts[at..end].fill(0);
                }
                Piece::Fill(_) => return Err(super::no_fill()),
            }
            at = end;
        }
        if let Some(targets) = targets {
            targets[at * size..].fill(0);
        }
        starts[at..].fill(0);
        Ok(())
    }

    fn with(self, parts: &[Part]) -> Self {
        let dtype_of = |part| match part {
            Part::Targets | Part::Inputs => self.dtype,
            Part::Starts => DType::Bool,
            Part::Segments | Part::Positions => DType::I32,
        };
        let fields = parts.iter().map(|part| Field::new(part.name(), dtype_of(*part), [self.length]));
        Shifted { fields: fields.collect(), parts: parts.to_vec(), ..self }
    }
}

impl Collate for Shifted {
    fn fields(&self, _samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        Ok(self.fields.clone())
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let size = self.dtype.size();
        let Scratch { bytes, more: starts, .. } = scratch;
        starts.resize(self.length, 0);
        let field_of = |part| self.parts.iter().position(|p| *p == part);
        let targets = field_of(Part::Targets);
        let values = targets.or(field_of(Part::Inputs));
        self.read(sample, values.map(|field| row.bytes(field)), starts, bytes)?;
        for (field, part) in self.parts.iter().enumerate() {
            match part {
                Part::Targets => {}
                Part::Starts => row.bytes(field).copy_from_slice(starts),
                Part::Inputs => {
                    let rest = (self.length - 1) * size;
                    match targets {
                        Some(targets) => {
                            bytes.clear();
                            bytes.extend_from_slice(&row.bytes(targets)[..rest]);
                            row.bytes(field)[size..].copy_from_slice(bytes);
                        }
                        None => row.bytes(field).copy_within(..rest, size),
                    }
                    let inputs = row.bytes(field);
                    inputs[..size].fill(0);
                    for start in memchr_iter(1, starts) {
                        inputs[start * size..][..size].fill(0);
                    }
                }
                Part::Segments => {
                    // A row begins in segment 0, unless a sequence begins with it.
                    let first = i32::from(starts.first() == Some(&1));
                    let segments = row.numbers::<i32>(field);
                    (first..).zip(runs(starts)).for_each(|(segment, run)| segments[run].fill(segment));
                }
                Part::Positions => {
                    let positions = row.numbers::<i32>(field);
                    for run in runs(starts) {
                        (0..).zip(&mut positions[run]).for_each(|(position, place)| *place = position);
                    }
                }
            }
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let fields = if self.parts[..] == PARTS { String::new() } else { described(&self.fields) };
        format!("shifted(length={},dtype={}{fields})", self.length, self.dtype)
    }
}
