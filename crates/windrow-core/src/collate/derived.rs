//! Fields that are made of others in the batch, as trainers want them.

use super::{Field, Row};
use crate::array::DType;
use crate::values::{fill_value, holds};

/// A field that is made of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Derived {
    /// `loss_masks` `[T]`: 1 where the label is learned.
    Masks,
    /// `segments` `[T]`: `segment_ids` from 1 on, 0 in padding.
    Segments,
    /// `seq_lens`: the lengths of documents, then zeros.
    Lengths,
}

impl Derived {
    /// All of them.
    pub(super) const ALL: [Derived; 3] = [Derived::Masks, Derived::Segments, Derived::Lengths];

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Derived::Masks => "loss_masks",
            Derived::Segments => "segments",
            Derived::Lengths => "seq_lens",
        }
    }

    /// The field that it is made of.
    pub(super) fn source(self) -> &'static str {
        match self {
            Derived::Masks => "labels",
            Derived::Segments => "segment_ids",
            Derived::Lengths => "cu_seqlens",
        }
    }

    /// The field, where this is what it is made of.
    pub(super) fn field(self, source: &Field) -> Field {
        let positions = source.shape.first().copied().unwrap_or(0);
        let positions = if self == Derived::Lengths { positions.saturating_sub(1) } else { positions };
        Field::new(self.name(), DType::I32, [positions])
    }

    /// Writes a row of it. `ignored` is the label of what is not learned.
    pub(super) fn fill(self, row: &mut Row<'_>, [source, field]: [usize; 2], ignored: Option<i64>) {
        let dtype = row.dtype(source);
        let [source, out] = row.several([source, field]);
        let out: &mut [i32] = bytemuck::cast_slice_mut(out);
        match self {
            Derived::Masks => match ignored.filter(|label| dtype.is_integer() && holds(dtype, *label)) {
                None => out.fill(1),
                Some(label) => mark(source, dtype, label, out),
            },
            Derived::Segments => {
                let segments = bytemuck::cast_slice::<u8, i32>(source);
                out.iter_mut().zip(segments).for_each(|(place, segment)| *place = segment + 1);
            }
            Derived::Lengths => {
                let ends = bytemuck::cast_slice::<u8, i32>(source).windows(2);
                out.iter_mut().zip(ends).for_each(|(place, ends)| *place = ends[1] - ends[0]);
            }
        }
    }
}

// Writes 1 where a label, in any channel, is not this one.
fn mark(labels: &[u8], dtype: DType, ignored: i64, out: &mut [i32]) {
    fn each<T: bytemuck::Pod + PartialEq>(labels: &[u8], ignored: &[u8], out: &mut [i32]) {
        let (labels, ignored) =
            (bytemuck::cast_slice::<u8, T>(labels), bytemuck::pod_read_unaligned(ignored));
        let channels = labels.len() / out.len().max(1);
        if channels == 1 {
            out.iter_mut().zip(labels).for_each(|(place, label)| *place = i32::from(*label != ignored));
            return;
        }
        for (place, labels) in out.iter_mut().zip(labels.chunks_exact(channels.max(1))) {
            *place = i32::from(labels.iter().any(|label| *label != ignored));
        }
    }
    let mut number = [0; 8];
    let number = &mut number[..dtype.size()];
    fill_value(number, dtype, ignored);
    match dtype.size() {
        1 => each::<u8>(labels, number, out),
        2 => each::<u16>(labels, number, out),
        4 => each::<u32>(labels, number, out),
        _ => each::<u64>(labels, number, out),
    }
}
