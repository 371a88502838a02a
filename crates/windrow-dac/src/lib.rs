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
//!
//! # Modules
//!
//! * `codec`: long tracks in chunks, each with the context that its codes depend on;
//! * `network`: the layers of encoder and decoder, from the weights;
//! * `layer`: one convolution, as products on shifted views;
//! * `kernels`: the two inner loops, for the instruction set of this processor;
//! * `lanes`: a few numbers handled at once: what kernels are written in;
//! * `quantizer`: residual vector quantisation;
//! * `signal`: a signal of many channels, in blocks of time;
//! * `codes`: the codes of a waveform;
//! * `weights`: tensors of a weight file, by name;
//! * `config`: the sizes of a codec, declared or derived from its tensors;
//! * `device`: where a codec runs;
//! * `candle`: the same network on candle, for GPUs.

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
