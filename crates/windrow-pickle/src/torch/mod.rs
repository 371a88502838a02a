//! Files of `torch.save` as data: dicts, lists, numbers, text and tensors. The pickle in them is read by the same machine
//! as every other one: nothing is called, and no claim is believed before it was compared with the file's size.

mod archive;
mod layout;

use windrow_core::number::{Number, number};
use windrow_core::store::Object;
use windrow_core::{DType, Element, Error, Result};

use self::archive::TorchArchive;
pub use self::layout::{TORCH_STREAM, TorchSave};
use crate::described::{Tensor, Tree, described_tree, streamed_tree};

/// A pickle that describes a model has some hundred bytes for each of its tensors; a training run's history may be
/// beside them.
const MOST_PICKLE: u64 = 64 << 20;

/// What a file of `torch.save` holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Saved {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// A float of 64 bits.
    Float(f64),
    /// A text.
    Text(String),
    /// A list or a tuple.
    List(Vec<Saved>),
    /// A dict by its keys that are text, in their order; other keys are left out.
    Dict(Vec<(String, Saved)>),
    /// A tensor; its numbers stay in the file.
    Tensor(SavedTensor),
}

/// A tensor in a file of `torch.save`: its numbers stay in the file until they are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTensor {
    element: Element,
    shape: Vec<u64>,
    strides: Vec<u64>,
    /// Byte of its first number in the file.
    start: u64,
}

impl Saved {
    /// Reads what a file of `torch.save` holds, in the archive's layout or the older stream. Of the tensors' numbers none
    /// is read; each tensor was compared with its storage, and the storage with the file.
    ///
    /// # Errors
    /// `Corrupt` when the file is damaged; `Unsupported` for what is more than data, naming it. Both name the file.
    pub fn read(object: &dyn Object) -> Result<Saved> {
        read(object).map_err(|e| e.or_at(object.name()))
    }

    /// The value of a dict's key; `None` when there is none, or this is not a dict.
    pub fn get(&self, key: &str) -> Option<&Saved> {
        match self {
            // The last one counts, as in Python.
            Saved::Dict(items) => items.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }
}

impl SavedTensor {
    /// Type of its numbers.
    pub fn dtype(&self) -> DType {
        self.element.dtype
    }

    /// Its shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many numbers it has: no more than the file has bytes.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether it has no numbers.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Its numbers as float32, the last dimension first. `object` is the file it was read of.
    ///
    /// # Errors
    /// `Unsupported` for a tensor of whole numbers; `Corrupt` when the file was cut short since; `Io`.
    pub fn to_f32(&self, object: &dyn Object) -> Result<Vec<f32>> {
        if !matches!(self.element.dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64) {
            return Err(Error::unsupported(format!("expected a tensor of floats, found {}", self.dtype()))
                .at(object.name()));
        }
        if self.is_empty() {
            return Ok(Vec::new());
        }
        // The reach was compared with the file when it was opened: no product or sum passes the file's size.
        let size = self.element.size() as u64;
        let steps = self.shape.iter().zip(&self.strides);
        let last: u64 = steps.map(|(count, stride)| (count - 1) * stride).sum();
        let mut scratch = Vec::new();
        let bytes = object.read(self.start, ((last + 1) * size) as usize, &mut scratch)?;
        // Nearly all tensors are float32 without gaps; one number at a time is ten times slower.
        if self.element.dtype == DType::F32 && !self.element.big_endian && self.is_contiguous() {
            return Ok(bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect());
        }
        let mut values = Vec::with_capacity(self.len() as usize);
        self.gather(bytes, 0, 0, &mut values);
        Ok(values)
    }

    fn is_contiguous(&self) -> bool {
        let mut step = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(count, stride)| {
            let follows = *count == 1 || *stride == step;
            step *= count;
            follows
        })
    }

    fn gather(&self, bytes: &[u8], dimension: usize, first: u64, values: &mut Vec<f32>) {
        let (Some(&count), Some(&stride)) = (self.shape.get(dimension), self.strides.get(dimension)) else {
            let start = (first * self.element.size() as u64) as usize;
            let found = bytes.get(start..start + self.element.size()).and_then(|b| number(b, self.element));
            values.push(match found {
                // Weights are float32; half and bfloat16 widen exactly, and float64 is rounded as torch rounds it.
                Some(Number::Float(value)) => value as f32,
                _ => f32::NAN,
            });
            return;
        };
        for i in 0..count {
            self.gather(bytes, dimension + 1, first + i * stride, values);
        }
    }
}

fn read(object: &dyn Object) -> Result<Saved> {
    let mut scratch = Vec::new();
    let mut archive = match TorchSave::open(object, &mut scratch)? {
        TorchSave::Archive(archive) => archive,
        TorchSave::Stream(bytes) => return read_stream(bytes, object),
    };
    // What is stored in the archive is no larger than the file; what expands beyond it is not a model.
    let most = object.size().min(MOST_PICKLE);
    let hint = "save the weights alone: torch.save(model.state_dict(), path)";
    let pickle = archive.pickle(most, "a model's description", hint)?;
    let tree = described_tree(&pickle).map_err(|e| e.field("data.pkl"))?;
    located(tree, object, &mut |tensor| archive.storage(tensor))
}

fn read_stream(bytes: &[u8], object: &dyn Object) -> Result<Saved> {
    let (tree, storages) = streamed_tree(bytes)?;
    located(tree, object, &mut |tensor| match storages.iter().find(|s| s.key == tensor.key) {
        Some(found) if found.held == tensor.counted => Ok(found.start),
        Some(found) => Err(Error::corrupt(format!(
            "a storage of {} numbers, where {} are described",
            found.held, tensor.counted
        ))
        .field(tensor.key.clone())),
        None => Err(Error::corrupt("expected the tensor's storage, found none").field(tensor.key.clone())),
    })
}

fn located(tree: Tree, object: &dyn Object, find: &mut dyn FnMut(&Tensor) -> Result<u64>) -> Result<Saved> {
    Ok(match tree {
        Tree::None => Saved::None,
        Tree::Bool(flag) => Saved::Bool(flag),
        Tree::Int(number) => Saved::Int(number),
        Tree::Float(number) => Saved::Float(number),
        Tree::Text(text) => Saved::Text(text),
        Tree::List(values) => {
            Saved::List(values.into_iter().map(|value| located(value, object, find)).collect::<Result<_>>()?)
        }
        Tree::Dict(items) => {
            let located = items.into_iter().map(|(key, value)| {
                let value = located(value, object, find).map_err(|e| e.or_at(object.name()))?;
                Ok((key, value))
            });
            Saved::Dict(located.collect::<Result<_>>()?)
        }
        Tree::Tensor(tensor) => {
            let storage = find(&tensor)?;
            let Tensor { element, held, offset, shape, strides, .. } = tensor;
            // An expanded tensor (stride 0) would make any number of values of a few bytes.
            let count = shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
            if count.is_none_or(|count| count > held) {
                return Err(Error::unsupported(format!(
                    "a tensor of shape {shape:?} over a storage of {held} numbers"
                ))
                .hint("save a copy of its own: tensor.clone()"));
            }
            // The tensor's reach was compared with the storage, and the storage with the file.
            let before = if count == Some(0) { 0 } else { offset.saturating_mul(element.size() as u64) };
            Saved::Tensor(SavedTensor { element, shape, strides, start: storage.saturating_add(before) })
        }
    })
}
