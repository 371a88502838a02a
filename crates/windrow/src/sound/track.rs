//! The codes of one sound file: made once, kept in the cache.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use windrow_audio::{Decoder, Options, Quality};
use windrow_core::store::{Io, Local, Object, Store, made_once};
use windrow_core::{Error, Kind, Result};
use windrow_dac::Codec;

/// Another layout of what is in the cache has another version, and so has what is read of a file.
const VERSION: u32 = 2;
/// Frames, codes of a frame, channels of the sound.
const HEAD: usize = 16;

/// How sound files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Of the filter where the rate of a file is not the codec's.
    pub quality: Quality,
    /// Continues where part of a file cannot be read: see [`Options::skip_corrupt`].
    pub skip_corrupt: bool,
}

/// The codes of a sound file.
#[derive(Clone)]
pub struct Track {
    object: Arc<dyn Object>,
    n_frames: u64,
    n_codes: u32,
    n_channels: u32,
}

impl Track {
    /// Frames: one for each hop of the codec, the last one filled up with silence.
    pub fn n_frames(&self) -> u64 {
        self.n_frames
    }

    /// Codes of a frame: those of the left side, then those of the right one.
    pub fn n_codes(&self) -> usize {
        self.n_codes as usize
    }

    /// Channels of the sound file: one, whose codes are used for both sides, or two.
    pub fn n_channels(&self) -> usize {
        self.n_channels as usize
    }

    /// The codes `[n_frames][n_codes]`, little-endian int16.
    ///
    /// # Errors
    /// `Io`.
    pub fn bytes<'a>(&'a self, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.object.read(HEAD as u64, self.object.size() as usize - HEAD, scratch)
    }

    fn of(object: Arc<dyn Object>) -> Result<Track> {
        let mut scratch = Vec::new();
        let head = object.read(0, HEAD, &mut scratch)?;
        let part = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let n_frames = u64::from(part(0)) | u64::from(part(4)) << 32;
        let (n_codes, n_channels) = (part(8), part(12));
        let wanted = n_frames.checked_mul(u64::from(n_codes) * 2).and_then(|n| n.checked_add(HEAD as u64));
        if wanted == Some(object.size()) {
            Ok(Track { object, n_frames, n_codes, n_channels })
        } else {
            Err(Error::corrupt("the codes in the cache are fewer or more than they say")
                .at(object.name())
                .hint("remove the file: it is made again"))
        }
    }
}

/// The codes of the sound file at `path`: from the cache, or made now and kept there.
///
/// The sound is resampled to the codec's rate and encoded channel by channel, block by block, so that hours of it take no
/// more memory than seconds; one channel is encoded once and used for both sides. `on_block` is called now and then with how
/// many samples of how many are behind it, and stops the work by saying no.
///
/// # Errors
/// What [`windrow_audio::decode`] says; `Interrupted`; `Io` where the cache cannot be written.
pub fn codes_of(
    path: &Path,
    codec: &Codec,
    reading: &Reading,
    on_block: &mut dyn FnMut(u64, Option<u64>) -> bool,
) -> Result<Track> {
    let store = Local::new(path.parent().unwrap_or(Path::new(""))).io(Io::Pread);
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Error::config("the name of the file is not UTF-8").at(path))?;
    let object = store.open(name)?;
    let Reading { quality, skip_corrupt } = *reading;
    let options = Options { sample_rate_hz: Some(codec.sample_rate()), quality, skip_corrupt };
    let what =
        format!("dac codes {VERSION} {:016x} {} {quality:?} {skip_corrupt}", codec.hash(), codec.device());
    let made = made_once(object.as_ref(), "codes", &what, |out| {
        let sound = Decoder::new(object.clone(), &options)?;
        let channels = encoded(sound, codec, on_block)?;
        write(&channels, codec.codebooks(), out)
    })?;
    Track::of(made)
}

// The codes of every channel.
fn encoded(
    mut sound: Decoder,
    codec: &Codec,
    on_block: &mut dyn FnMut(u64, Option<u64>) -> bool,
) -> Result<Vec<Vec<u16>>> {
    let (n_channels, total) = (sound.n_channels(), sound.n_samples());
    let mut encoders: Vec<_> = (0..n_channels).map(|_| codec.encoder()).collect();
    let mut codes = vec![Vec::new(); n_channels];
    let mut done = 0;
    for block in &mut sound {
        let block = block?;
        for ((encoder, samples), codes) in encoders.iter_mut().zip(&block.channels).zip(&mut codes) {
            codes.extend(encoder.push(samples)?.into_values());
        }
        done += block.n_samples() as u64;
        if !on_block(done, total) {
            return Err(Error::new(Kind::Interrupted, "stopped in the middle of a track"));
        }
    }
    for (encoder, codes) in encoders.into_iter().zip(&mut codes) {
        codes.extend(encoder.finish()?.into_values());
    }
    Ok(codes)
}

fn write(channels: &[Vec<u16>], codebooks: usize, out: &mut dyn Write) -> Result<()> {
    let (left, right) = (&channels[0], &channels[channels.len() - 1]);
    let n_frames = (left.len() / codebooks.max(1)) as u64;
    let mut bytes = Vec::with_capacity(HEAD + 4 * left.len());
    bytes.extend(n_frames.to_le_bytes());
    bytes.extend((2 * codebooks as u32).to_le_bytes());
    bytes.extend((channels.len() as u32).to_le_bytes());
    for (left, right) in left.chunks_exact(codebooks).zip(right.chunks_exact(codebooks)) {
        bytes.extend(left.iter().chain(right).flat_map(|code| code.to_le_bytes()));
    }
    out.write_all(&bytes).map_err(|e| Error::new(Kind::Io, "the codes cannot be kept").caused_by(e))
}
