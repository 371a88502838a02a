//! The Descript Audio Codec: samples of one channel as codes `[frames, codebooks]`, and back.
//!
//! ```no_run
//! use windrow_dac::{Codec, Options};
//!
//! # fn main() -> windrow_core::Result<()> {
//! let codec = Codec::open("weights.pth", &Options::default())?;
//! let second = vec![0.0; codec.sample_rate() as usize];
//! let codes = codec.encode(&second)?;
//! assert_eq!(codes.frames(), second.len().div_ceil(codec.hop_length()));
//! let samples = codec.decode(&codes)?;
//! # Ok(())
//! # }
//! ```
//!
//! The modules, in the order in which a sample passes through them: `codec` (chunks with what they need around them) → `network`
//! (the layers, from the weights) → `layer` (one convolution) → `kernels` (its loops) → `quantizer` (codes).
//!
//! # What it computes
//!
//! What descript-audio-codec 1.0.0 computes in evaluation mode, in float32. A sum of products is taken in another order than
//! torch takes it, so two codes whose distances differ by less than that makes are a tie, and may be told apart the other
//! way; all others are equal. A code depends on the samples alone: on the same processor not on chunks or threads.
//!
//! # Weights
//!
//! `.pth` as the Python package saves it (`model.save(path, package=False)`) and as it is published, a `state_dict` alone, and
//! `.safetensors`; weight normalisation as `weight_g` and `weight_v`, as torch's newer parametrizations, or already folded.
//! Nothing in a file is run, and no claim in it is believed before it was compared with the file's size. Where no
//! description is beside the tensors, it follows from their names and shapes; the sample rate does not, and is taken
//! to be 44,100 Hz.

#[cfg(feature = "candle")]
mod candle;
mod codec;
mod codes;
mod config;
mod device;
mod kernels;
mod lanes;
mod layer;
mod network;
mod quantizer;
mod signal;
mod weights;

pub use codec::{Codec, Encoder, Options};
pub use codes::Codes;
pub use device::Device;
pub use weights::PUBLISHED as WHERE_WEIGHTS;
