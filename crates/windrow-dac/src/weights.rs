//! The tensors in a file of weights, by name: shapes compared before numbers are read, weight normalisation folded.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use safetensors::{Dtype, SafeTensors};
use windrow_core::store::{Io, Local, Object, Store, at_once};
use windrow_core::{Error, Kind, Result};
use windrow_pickle::{Saved, SavedTensor};
use xxhash_rust::xxh3::Xxh3;

/// Where weights that fit are to be had.
pub const PUBLISHED: &str = "the published weights of 44 kHz and 8 kbps are `weights.pth` of release 0.0.1 at \
                         https://github.com/descriptinc/descript-audio-codec/releases";

/// A file of weights.
pub(crate) struct Weights {
    object: Arc<dyn Object>,
    tensors: HashMap<String, Tensor>,
    /// What the package saves beside the tensors.
    kwargs: Option<Saved>,
    sample_rate: Option<u64>,
    /// Bytes of numbers that may still be read: all tensors together are no larger than the file.
    left: u64,
}

enum Tensor {
    Torch(SavedTensor),
    /// Its type, shape, and bytes in the file.
    Safe(Dtype, Vec<usize>, u64, usize),
}

impl Tensor {
    fn shape(&self) -> Vec<usize> {
        match self {
            Tensor::Torch(tensor) => tensor.shape().iter().map(|size| *size as usize).collect(),
            Tensor::Safe(_, shape, ..) => shape.clone(),
        }
    }
}

impl Weights {
    /// Opens a `.pth` or `.safetensors`, recognised by its first bytes.
    pub(crate) fn open(path: &Path) -> Result<Weights> {
        let key = path.to_string_lossy();
        let object =
            Local::new("").io(Io::Pread).allow_outside(true).open(&key).map_err(|e| match e.kind() {
                Kind::NotFound => {
                    Error::not_found("expected a file of weights, found none").at(path).hint(PUBLISHED)
                }
                _ => e,
            })?;
        Weights::of(object.clone()).map_err(|e| e.or_at(object.name()))
    }

    /// Of all bytes of the file.
    pub(crate) fn hash(&self) -> Result<u64> {
        const PART: u64 = 1 << 20;
        let mut hash = Xxh3::new();
        let mut scratch = Vec::new();
        for start in (0..self.object.size()).step_by(PART as usize) {
            let size = PART.min(self.object.size() - start) as usize;
            hash.update(self.object.read(start, size, &mut scratch)?);
        }
        Ok(hash.digest())
    }

    fn of(object: Arc<dyn Object>) -> Result<Weights> {
        let mut scratch = Vec::new();
        let head = object.read(0, object.size().min(9) as usize, &mut scratch)?;
        let is_torch = head.starts_with(b"PK\x03\x04") || head.starts_with(&[0x80, 2]);
        let mut weights =
            Weights { left: object.size(), object, tensors: HashMap::new(), kwargs: None, sample_rate: None };
        if is_torch {
            weights.read_torch()?
        } else {
            weights.read_safe()?
        }
        Ok(weights)
    }

    fn read_torch(&mut self) -> Result<()> {
        let saved = Saved::read(self.object.as_ref())?;
        self.kwargs = saved.get("metadata").and_then(|metadata| metadata.get("kwargs")).cloned();
        let tensors = match saved.get("state_dict") {
            Some(tensors) => tensors.clone(),
            None => saved,
        };
        let Saved::Dict(items) = tensors else {
            return Err(Error::mismatch("expected a dict of tensors").hint(PUBLISHED));
        };
        for (name, value) in items {
            if let Saved::Tensor(tensor) = value {
                self.tensors.insert(name, Tensor::Torch(tensor));
            }
        }
        Ok(())
    }

    fn read_safe(&mut self) -> Result<()> {
        let object = self.object.clone();
        let mut scratch = Vec::new();
        // Mapped; nothing is copied.
        let bytes = object.read(0, at_once(object.size())?, &mut scratch)?;
        let damaged = |cause| {
            Error::corrupt("expected a .pth of torch or a .safetensors")
                .caused_by(cause)
                .hint("the copy looks unfinished: fetch it again")
        };
        let (header, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        self.sample_rate = metadata
            .metadata()
            .as_ref()
            .and_then(|metadata| metadata.get("sample_rate"))
            .and_then(|rate| rate.parse().ok());
        for (name, info) in metadata.tensors() {
            // The crate compared offsets, shapes and types with each other and with the file's size.
            let (start, end) = info.data_offsets;
            let start_byte = (header + 8 + start) as u64;
            let tensor = Tensor::Safe(info.dtype, info.shape.clone(), start_byte, end - start);
            self.tensors.insert(name, tensor);
        }
        Ok(())
    }

    /// What the package saved of how the model was made.
    pub(crate) fn kwargs(&self) -> Option<&Saved> {
        self.kwargs.as_ref()
    }

    /// What a `.safetensors` says of it.
    pub(crate) fn sample_rate(&self) -> Option<u64> {
        self.sample_rate
    }

    /// The name of the file.
    pub(crate) fn file(&self) -> &str {
        self.object.name()
    }

    /// The shape of a tensor that is there.
    pub(crate) fn tensor_shape(&self, name: &str) -> Option<Vec<usize>> {
        self.tensors.get(name).map(Tensor::shape)
    }

    /// Whether a convolution of this name is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.direction(name).is_some()
    }

    /// The shape of a convolution's weight, of three dimensions.
    pub(crate) fn shape_of(&self, name: &str) -> Result<[usize; 3]> {
        let expected = "[outputs, inputs, kernel]";
        let tensor =
            self.direction(name).ok_or_else(|| self.missing(&format!("{name}.weight_v"), expected))?;
        let shape = self.tensor_shape(&tensor).unwrap_or_default();
        <[usize; 3]>::try_from(shape.clone())
            .map_err(|_| self.other(&tensor, expected, &format!("{shape:?}")))
    }

    // The tensor that has a weight's shape: its direction where it is normalised.
    fn direction(&self, name: &str) -> Option<String> {
        let names =
            ["weight_v", "parametrizations.weight.original1", "weight"].map(|end| format!("{name}.{end}"));
        names.into_iter().find(|name| self.tensors.contains_key(name))
    }

    /// The error for a tensor that is not there.
    pub(crate) fn missing(&self, name: &str, expected: &str) -> Error {
        self.other(name, expected, "none")
    }

    fn other(&self, name: &str, expected: &str, found: &str) -> Error {
        Error::mismatch(format!(
            "these are not the weights of a Descript Audio Codec: expected {name} of shape {expected}, found {found}"
        ))
        .at(self.file())
        .field(name)
        .hint(PUBLISHED)
    }

    /// The numbers of a tensor, which has this shape.
    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let expected = format!("{shape:?}");
        let Some(tensor) = self.tensors.get(name) else { return Err(self.missing(name, &expected)) };
        if tensor.shape() != shape {
            return Err(self.other(name, &expected, &format!("{:?}", tensor.shape())));
        }
        let size = match tensor {
            Tensor::Torch(tensor) => tensor.len().saturating_mul(tensor.dtype().size() as u64),
            Tensor::Safe(_, _, _, size) => *size as u64,
        };
        // Tensors may share their numbers; then they would be read more often than the file is long.
        let Some(left) = self.left.checked_sub(size) else {
            return Err(Error::corrupt("the tensors together are larger than the file")
                .at(self.file())
                .field(name)
                .hint(PUBLISHED));
        };
        let values = match tensor {
            Tensor::Torch(tensor) => tensor.to_f32(self.object.as_ref()),
            Tensor::Safe(dtype, _, start, size) => safe(*dtype, *start, *size, self.object.as_ref()),
        };
        let values = values.map_err(|e| e.field(name).or_at(self.file()))?;
        if let Some(number) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::corrupt(format!("number {number} is {}", values[number]))
                .at(self.file())
                .field(name)
                .hint("weights are finite: training diverged, or the copy is damaged"));
        }
        self.left = left;
        Ok(values)
    }

    /// A convolution's weight, with its normalisation folded: `g · v / |v|`, the length taken over all but the first
    /// dimension.
    pub(crate) fn weight(&mut self, name: &str, shape: [usize; 3]) -> Result<Vec<f32>> {
        let pairs = [
            ("weight_g", "weight_v"),
            ("parametrizations.weight.original0", "parametrizations.weight.original1"),
        ];
        let normalised =
            pairs.iter().find(|(_, direction)| self.tensors.contains_key(&format!("{name}.{direction}")));
        let Some((length, direction)) = normalised else {
            let folded = format!("{name}.weight");
            let wanted = if self.tensors.contains_key(&folded) { folded } else { format!("{name}.weight_v") };
            return self.tensor(&wanted, &shape);
        };
        let mut weight = self.tensor(&format!("{name}.{direction}"), &shape)?;
        let lengths = self.tensor(&format!("{name}.{length}"), &[shape[0], 1, 1])?;
        for (part, length) in weight.chunks_exact_mut(shape[1] * shape[2]).zip(lengths) {
            let found = part.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt() as f32;
            // What has no length has no direction either.
            let by = if found == 0.0 { 0.0 } else { length / found };
            part.iter_mut().for_each(|v| *v *= by);
        }
        Ok(weight)
    }
}

fn safe(dtype: Dtype, start: u64, size: usize, object: &dyn Object) -> Result<Vec<f32>> {
    let mut scratch = Vec::new();
    let bytes = object.read(start, size, &mut scratch)?;
    let words = bytes.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word));
    match dtype {
        Dtype::F32 => Ok(bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()),
        Dtype::F64 => {
            Ok(bytes.as_chunks::<8>().0.iter().map(|word| f64::from_le_bytes(*word) as f32).collect())
        }
        Dtype::F16 => Ok(words.map(|word| half::f16::from_bits(word).to_f32()).collect()),
        Dtype::BF16 => Ok(words.map(|word| half::bf16::from_bits(word).to_f32()).collect()),
        other => Err(Error::unsupported(format!("expected floats, found {other:?}"))
            .hint("save the weights as float32")),
    }
}
