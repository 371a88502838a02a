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
//! The codecs are symphonia's, the resampler is rubato's. What is here makes them safe to feed a training run
//! with: the content decides and not the name, claims are compared with what comes out, the padding of encoders is cut, and
//! what cannot be read is an error that names the file and the place.
//!
//! # Modules
//!
//! * `decoder`: a file as blocks of samples, or as one waveform;
//! * `options`: what a caller chooses: sample rate, resampling quality, whether damaged parts are skipped;
//! * `waveform`: samples, channel by channel;
//! * `resample`: another sample rate, block by block;
//! * `container`: the kind of file, by its first bytes;
//! * `reader`: the packets of a file;
//! * `packets`: packets to samples; declared values are compared with what comes out;
//! * `guard`: turns a panic of a codec into an error;
//! * `media`: a part of an object as the stream that codecs read;
//! * `window`: an object read in small blocks;
//! * `tags`: skips the tags before and behind the sound;
//! * `riff`: wav: where the samples are;
//! * `samples`: wav: what one sample is;
//! * `wav`: writes a waveform as 16-bit wav;
//! * `flac`: whether a flac file is one stream;
//! * `lost`: samples that a flac reader skipped;
//! * `mp3`: the frames of an mp3 file, and which samples are padding;
//! * `mp3_header`: the first four bytes of an mp3 frame;
//! * `mp3_tag`: the frame in which an encoder says how many frames and how much padding there are;
//! * `mp4`: the edit list: which decoded samples are the sound;
//! * `adts`: whether an AAC stream is complete;
//! * `ogg`: whether an ogg file is complete.

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
