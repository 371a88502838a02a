//! Sound files for windrow: wav, flac, mp3, m4a and ogg as a waveform at the rate a model wants.
//!
//! ```no_run
//! # fn main() -> windrow_core::Result<()> {
//! use windrow_audio::{Decoder, Options, decode};
//!
//! // All of it at once: planar, 32-bit, 44.1 kHz.
//! let sound = decode("speech.mp3", &Options::default())?;
//! println!("{} channels of {} samples", sound.n_channels(), sound.n_samples());
//!
//! // Or block by block: an hour of sound needs no more memory than a second of it.
//! for block in Decoder::open("concert.flac", &Options::default())? {
//!     let block = block?;
//!     println!("{} more samples", block.n_samples());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The codecs are symphonia's, the resampler is rubato's. What stands here is what makes them safe to feed a training run
//! with: the content decides and not the name, claims are compared with what comes out, the padding of encoders is cut, and
//! what cannot be read is an error that names the file and the place.

mod adts;
mod container;
mod decoder;
mod flac;
mod guard;
mod lost;
mod media;
mod mp3;
mod mp3_header;
mod mp3_tag;
mod mp4;
mod ogg;
mod options;
mod packets;
mod reader;
mod resample;
mod riff;
mod samples;
mod tags;
mod wav;
mod waveform;
mod window;

pub use decoder::{Decoder, Sound, decode, decode_object};
pub use options::{Options, Quality};
pub use resample::resampled_len;
pub use waveform::Waveform;
