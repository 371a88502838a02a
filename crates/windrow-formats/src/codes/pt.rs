//! One `.pt` file of torch: where the codes of its tensor lie, every claim compared with the file's size. Nothing in the
//! file is run.

use windrow_core::source::MOST_CODEBOOKS;
use windrow_core::store::Object;
use windrow_core::{DType, Element, Error, Result};
use windrow_pickle::torch::TorchSave;
use windrow_pickle::{Tensor, described, streamed};

/// A pickle that describes one tensor has some hundred bytes.
const MOST_PICKLE: u64 = 1 << 20;

/// What to do about codes `[C, T]`.
pub(super) const TRANSPOSE: &str = "codecs give [codebooks, frames]: transpose them before they are saved, torch.save(codes.T.contiguous(), path)";

/// Codes `[T, C]` as they are in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Type of a stored code; whole or not.
    pub(super) element: Element,
    pub(super) frames: u64,
    pub(super) channels: usize,
    /// Byte of the first code.
    start: u64,
    /// Codes from one frame to the next, and from one channel to the next.
    strides: [u64; 2],
    /// Size of the file.
    pub(super) size: u64,
}

impl Grid {
    /// The grid of a file.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged, `Unsupported` when it holds more or something else than one tensor `[T, C]` of
    /// numbers; both name the file.
    pub(super) fn of(object: &dyn Object) -> Result<Grid> {
        found(object).map_err(|e| e.or_at(object.name()))
    }

    /// Whether the codes follow each other, frame by frame.
    pub(super) fn in_order(&self) -> bool {
        let channels = self.channels as u64;
        (self.channels == 1 || self.strides[1] == 1) && (self.frames <= 1 || self.strides[0] == channels)
    }

    /// The bytes of consecutive frames that follow each other: first and number.
    pub(super) fn range(&self, frame: u64, frames: u64) -> (u64, u64) {
        // Within the file, which was checked.
        let width = self.channels as u64 * self.element.size() as u64;
        (self.start + frame * width, frames * width)
    }

    /// The byte of one code.
    pub(super) fn place(&self, frame: u64, channel: usize) -> u64 {
        let number = frame * self.strides[0] + channel as u64 * self.strides[1];
        self.start + number * self.element.size() as u64
    }
}

fn found(object: &dyn Object) -> Result<Grid> {
    let mut scratch = Vec::new();
    let (tensor, start) = match TorchSave::open(object, &mut scratch)? {
        TorchSave::Stream(bytes) => streamed(bytes)?,
        TorchSave::Archive(mut archive) => {
            let hint = "save the tensor alone: torch.save(codes, path)";
            let pickle = archive.pickle(MOST_PICKLE, "one tensor", hint)?;
            let tensor = described(&pickle).map_err(|e| e.field("data.pkl"))?;
            let start = archive.storage(&tensor)?;
            (tensor, start)
        }
    };
    grid(tensor, start, object)
}

fn grid(tensor: Tensor, storage: u64, object: &dyn Object) -> Result<Grid> {
    let Tensor { element, held, offset, shape, strides, .. } = tensor;
    let refused = |what: String| {
        Error::unsupported(what).field("tensor").hint(
            "codes are one tensor [T, C], a row of C codes per frame: save codes[0].T of a codec's [1, C, T]",
        )
    };
    let (&[frames, channels], &[along_frames, along_channels]) = (shape.as_slice(), strides.as_slice())
    else {
        return Err(refused(format!("a tensor of shape {shape:?}")));
    };
    if channels == 0 {
        return Err(refused(format!("a tensor of shape {shape:?}")));
    }
    if channels > MOST_CODEBOOKS {
        return Err(refused(format!(
            "{frames} frames of {channels} codebooks, expected at most {MOST_CODEBOOKS} codebooks"
        ))
        .hint(TRANSPOSE));
    }
    if element.dtype == DType::Bool {
        return Err(refused("a tensor of bool".to_string()));
    }
    // An expanded tensor (stride 0) would make any number of codes of a few bytes.
    if frames.checked_mul(channels).is_none_or(|numbers| numbers > held) {
        return Err(refused(format!("a tensor of shape {shape:?} over a storage of {held} numbers"))
            .hint("save a copy of its own: torch.save(codes.clone(), path)"));
    }
    // The tensor's reach was compared with the storage, and the storage with the file: no sum can pass its size.
    let before = if frames == 0 { 0 } else { offset.saturating_mul(element.size() as u64) };
    let start = storage.saturating_add(before);
    Ok(Grid {
        element,
        frames,
        channels: channels as usize,
        start,
        strides: [along_frames, along_channels],
        size: object.size(),
    })
}
