//! What records that are written say of their loss: in an array of the format's own, as metadata, or not at all, with a warning.

use windrow_core::collate::mask_columns;
use windrow_core::format::write::{MaskTrack, WriteFormat, WriteInfo};
use windrow_core::format::{learned_of, masks_beside};
use windrow_core::source::{Extras, Schema};
use windrow_core::{Array, DType, Error, Result, Values};

/// What a mask is called that had an array of its own and is metadata now: 1 = learned.
const AS_METADATA: &str = "loss_mask";
const HINT: &str = "forager and datatrove store a mask beside the tokens; shards, jsonl, arrow, parquet, mds, webdataset, tfrecord, and \
                    litdata with the option to_column, keep it as metadata";

/// The mask of records in one output.
pub(super) struct Mask {
    format: &'static str,
    /// The format's own array.
    track: Option<MaskTrack>,
    keeps_metadata: bool,
    /// What it is made of; empty where there is none.
    names: Vec<String>,
    /// It is made of metadata.
    is_beside: bool,
}

impl Mask {
    /// The mask of such records, and a warning where the format holds none.
    pub(super) fn of(schema: &Schema, format: &dyn WriteFormat) -> Mask {
        let WriteInfo { name, mask_track, keeps_metadata, .. } = format.info();
        let mut mask = Mask {
            format: name,
            track: mask_track,
            keeps_metadata,
            names: mask_columns(&schema.tracks),
            is_beside: schema.tracks.iter().any(|track| !track.made_of.is_empty()),
        };
        mask.warn(Vec::new());
        mask
    }

    /// Whether it is in the format's own array.
    pub(super) fn is_stored(&self) -> bool {
        self.track.is_some() && !self.names.is_empty()
    }

    /// Whether it has to be known of each record.
    pub(super) fn is_taken(&self) -> bool {
        self.is_stored() || (self.keeps_metadata && !self.names.is_empty() && !self.is_beside)
    }

    /// The mask of a record that its metadata says: 1 for each token that is learned.
    ///
    /// # Errors
    /// `Config` for what is no mask of the tokens, or is not beside the first record.
    pub(super) fn said(&mut self, values: &Values<'_>, extras: &Extras) -> Result<Option<Vec<u8>>> {
        let may_be_ids = values.element.dtype.is_integer() && values.channels == 1;
        match (self.is_stored(), may_be_ids && self.names.is_empty() && !self.keeps_metadata) {
            (true, _) if self.is_beside => learned_of(values, extras, &self.names).map(Some),
            (false, true) => match (masks_beside(extras), self.track) {
                (found, Some(_)) if !found.is_empty() => Err(Error::config(format!(
                    "the column {:?} is beside this record, but not beside the first one",
                    found[0]
                ))
                .field(&found[0])
                .hint("all records have the mask, or none has it: a mask of ones says that all of a record is learned")),
                (found, _) => {
                    self.warn(found);
                    Ok(None)
                }
            },
            _ => Ok(None),
        }
    }

    /// What stays beside the numbers of a record with this mask.
    pub(super) fn kept(&self, mut extras: Extras, mask: Option<&[u8]>) -> Extras {
        match (self.is_stored(), mask) {
            (true, _) => extras.retain(|name, _| !self.names.iter().any(|known| known == name)),
            (false, Some(mask)) if self.is_taken() => {
                let shape = vec![mask.len() as u64];
                extras.insert(AS_METADATA, Array { dtype: DType::U8, shape, bytes: mask.to_vec() });
            }
            (false, _) => {}
        }
        extras
    }

    /// As the format's own array has it, of `count` tokens; all of them are learned where nothing says otherwise, an EOS token too.
    pub(super) fn stored(&self, mask: Option<&[u8]>, count: usize) -> Option<Vec<u8>> {
        let track = self.track.filter(|_| self.is_stored())?;
        let said = mask.unwrap_or_default().iter().map(|is_learned| *is_learned != 0);
        let all = said.chain(std::iter::repeat(true)).take(count);
        Some(all.map(|is_learned| u8::from(is_learned != track.excludes)).collect())
    }

    fn warn(&mut self, found: Vec<String>) {
        self.names.extend(found);
        if !self.names.is_empty() && self.track.is_none() && !self.keeps_metadata {
            windrow_core::warn!(
                "{} holds no loss mask: {} beside the tokens is left out, and whoever trains on the output learns every token\n  hint: {HINT}",
                self.format,
                self.names.join(", ")
            );
        }
    }
}
