//! The array beside the values that says which of them are learned.

use crate::array::DType;
use crate::error::Result;
use crate::record::Span;
use crate::source::{Source, Track};
use crate::values::copy_values;

/// An array of this name excludes values from the loss: 1 = excluded.
pub const LOSS_MASK_TRACK: &str = "loss_mask";
/// An array of this name chooses values for the loss: 1 = learned.
pub const LOSS_TRACK: &str = "loss";

/// The columns, or the array that a format stores, that say which values of these records are learned.
pub fn mask_columns(tracks: &[Track]) -> Vec<String> {
    let track = Learned::of(tracks).map(|learned| &tracks[learned.track]);
    track.map_or(Vec::new(), |track| {
        if track.made_of.is_empty() { vec![track.name.clone()] } else { track.made_of.clone() }
    })
}

/// Whether an array of this name says which values are learned.
pub fn is_mask(name: &str) -> bool {
    [LOSS_MASK_TRACK, LOSS_TRACK].contains(&name)
}

/// For each value of a span whether it is learned, 1 or 0; `None` where nothing beside the values says it.
///
/// # Errors
/// What reading the array says.
pub fn learned(source: &dyn Source, span: Span) -> Result<Option<Vec<u8>>> {
    let Some(learned) = Learned::of(&source.schema().tracks) else { return Ok(None) };
    let mut out = vec![0; span.len as usize];
    learned.fill(source, span, 0, &mut out, &mut Vec::new())?;
    Ok(Some(out.into_iter().map(|mask| mask as u8).collect()))
}

/// Which array that is, and what its numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Learned {
    track: usize,
    /// Whether a number other than 0 excludes its value.
    excludes: bool,
}

impl Learned {
    /// The array among those of a source, where one is.
    pub(super) fn of(tracks: &[Track]) -> Option<Learned> {
        let named = |name: &str| tracks.iter().position(|track| track.name == name);
        let excludes = named(LOSS_MASK_TRACK).map(|track| Learned { track, excludes: true });
        excludes.or_else(|| named(LOSS_TRACK).map(|track| Learned { track, excludes: false }))
    }

    /// Writes 1 for each value of the span that is learned and 0 for the others, from value `skip` on.
    pub(super) fn fill(
        self,
        source: &dyn Source,
        span: Span,
        skip: usize,
        out: &mut [i32],
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let found = source.read_track(self.track, span, scratch)?;
        copy_values(&found, skip, bytemuck::cast_slice_mut(out), DType::I32)?;
        let excludes = self.excludes;
        out.iter_mut().for_each(|mask| *mask = i32::from((*mask == 0) == excludes));
        Ok(())
    }
}
