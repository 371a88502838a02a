//! A sound file as blocks of samples at the rate that is wanted, or as one waveform.

use std::path::Path;
use std::sync::Arc;

use windrow_core::store::{Io, Local, Object, Store};
use windrow_core::{Error, Result};

use crate::options::Options;
use crate::packets::{Packets, RATES_HZ};
use crate::resample::{Resampler, resampled_len};
use crate::waveform::Waveform;

/// What a sound file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sound {
    /// The kind of file, by content: `wav`, `flac`, `mp3`, `m4a`, `ogg`, `aac`.
    pub container: &'static str,
    /// The codec in it: `pcm_s16le`, `flac`, `mp3`, `aac`, `vorbis`.
    pub codec: &'static str,
    /// The file's own rate.
    pub sample_rate_hz: u32,
    /// One or two.
    pub n_channels: usize,
    /// Samples of each channel at the file's own rate, where the file says so.
    pub n_samples: Option<u64>,
}

/// Reads a sound file block by block: an iterator of [`Waveform`]s, one after the other, each with at least one sample.
///
/// The blocks joined are what [`decode`] gives. Memory stays the same however long the file is: one packet, and one block of
/// the filter where the rate changes. After an error nothing comes.
pub struct Decoder {
    packets: Packets,
    resampler: Option<Resampler>,
    sample_rate_hz: u32,
    ended: bool,
}

impl Decoder {
    /// Opens the file at `path` and decodes up to its first sample.
    ///
    /// # Errors
    /// `NotFound`, `Io`; those of [`Decoder::new`].
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let path = path.as_ref();
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::unsupported("expected a file, found a folder").at(path));
        };
        let Some(name) = name.to_str() else {
            return Err(Error::config("the name of the file is not UTF-8").at(path));
        };
        // By position: a file that is cut short meanwhile is an error then, and decoding costs far more than the copy.
        Self::new(Local::new(folder).io(Io::Pread).open(name)?, options)
    }

    /// Opens an object of any store and decodes up to its first sample.
    ///
    /// # Errors
    /// `Unrecognised` when it is not a sound file; `Unsupported` for other codecs, more than two channels, strange rates;
    /// `Corrupt` for what contradicts itself, and for a file without samples; `Config` for a rate that cannot be made.
    pub fn new(object: Arc<dyn Object>, options: &Options) -> Result<Self> {
        if let Some(rate) = options.sample_rate_hz.filter(|rate| !RATES_HZ.contains(rate)) {
            let (least, most) = (RATES_HZ.start(), RATES_HZ.end());
            return Err(Error::config(format!(
                "a sample rate of {rate} Hz; {least} to {most} Hz can be made"
            )));
        }
        let packets = Packets::open(object, options.skip_corrupt)?;
        let own = packets.rate_hz;
        let sample_rate_hz = options.sample_rate_hz.unwrap_or(own);
        let resampler = (sample_rate_hz != own)
            .then(|| Resampler::new(own, sample_rate_hz, packets.n_channels, options.quality))
            .transpose()?;
        Ok(Decoder { packets, resampler, sample_rate_hz, ended: false })
    }

    /// Samples per second of what comes out.
    pub fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    /// Channels of what comes out: those of the file, one or two.
    pub fn n_channels(&self) -> usize {
        self.packets.n_channels
    }

    /// Samples of each channel that will come out, where the file says how many it holds.
    pub fn n_samples(&self) -> Option<u64> {
        Some(resampled_len(self.packets.n_promised?, self.packets.rate_hz, self.sample_rate_hz))
    }

    /// What the file says about itself.
    pub fn sound(&self) -> Sound {
        Sound {
            container: self.packets.container.name(),
            codec: self.packets.codec,
            sample_rate_hz: self.packets.rate_hz,
            n_channels: self.packets.n_channels,
            n_samples: self.packets.n_promised,
        }
    }

    /// Packets so far that could not be read and were allowed by [`Options::skip_corrupt`].
    pub fn n_corrupt(&self) -> u64 {
        self.packets.n_corrupt()
    }

    fn next_block(&mut self) -> Result<Option<Waveform>> {
        let mut out = vec![Vec::new(); self.packets.n_channels];
        while !self.ended && out[0].is_empty() {
            match (self.packets.next_block()?, &mut self.resampler) {
                (Some(block), Some(resampler)) => resampler.push(block, &mut out)?,
                (Some(block), None) => out.clone_from_slice(block),
                (None, Some(resampler)) => {
                    self.ended = true;
                    resampler.finish(&mut out)?;
                }
                (None, None) => self.ended = true,
            }
        }
        let found = !out[0].is_empty();
        Ok(found.then_some(Waveform { sample_rate_hz: self.sample_rate_hz, channels: out }))
    }
}

impl Iterator for Decoder {
    type Item = Result<Waveform>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.next_block().transpose();
        if !matches!(block, Some(Ok(_))) {
            self.ended = true;
        }
        block
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("sound", &self.sound())
            .field("sample_rate_hz", &self.sample_rate_hz)
            .finish()
    }
}

/// All samples of the sound file at `path`, at the rate that `options` ask for.
///
/// `[channels][samples]` of 32-bit floats, one or two channels as in the file; [`Waveform::stereo`] makes it two. `n` samples
/// become `ceil(n * rate / own rate)`. It takes four bytes of memory for each sample of each channel: for hours of sound,
/// take a [`Decoder`].
///
/// # Errors
/// Those of [`Decoder::open`]; `Corrupt` where the file is cut short, a packet cannot be decoded, a checksum differs, or a
/// sample is not a number.
pub fn decode(path: impl AsRef<Path>, options: &Options) -> Result<Waveform> {
    whole(Decoder::open(path, options)?)
}

/// All samples of an object of any store, at the rate that `options` ask for.
///
/// # Errors
/// Those of [`decode`].
pub fn decode_object(object: Arc<dyn Object>, options: &Options) -> Result<Waveform> {
    whole(Decoder::new(object, options)?)
}

fn whole(decoder: Decoder) -> Result<Waveform> {
    let (sample_rate_hz, n_channels) = (decoder.sample_rate_hz(), decoder.n_channels());
    let mut all = Waveform { sample_rate_hz, channels: vec![Vec::new(); n_channels] };
    for block in decoder {
        for (all, block) in all.channels.iter_mut().zip(block?.channels) {
            all.extend_from_slice(&block);
        }
    }
    Ok(all)
}
