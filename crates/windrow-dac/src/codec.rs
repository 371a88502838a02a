//! The codec: long tracks in chunks, each with what its codes depend on around it, so that no code knows of a seam.

use std::path::Path;
use std::sync::Arc;

use windrow_core::threads::cores;
use windrow_core::{Error, Result};

use crate::codes::Codes;
use crate::config::Config;
use crate::device::Device;
use crate::kernels::{self, Kernels};
use crate::layer::Layer;
use crate::network::{self, Reader};
use crate::quantizer::{self, Codebook};
use crate::signal::Signal;
use crate::weights::Weights;

/// How a codec runs; the codes do not depend on it, but for the device's rounding.
#[derive(Clone, Debug)]
pub struct Options {
    threads: usize,
    device: Device,
    chunk: usize,
}

impl Default for Options {
    fn default() -> Self {
        // About six seconds: 150 MB of the widest layer, and three of a hundred samples computed twice.
        Options { threads: 0, device: Device::Cpu, chunk: 1 << 18 }
    }
}

impl Options {
    /// Sets the threads for each call; 0, the default, is one for each core.
    #[must_use]
    pub fn num_threads(mut self, num_threads: usize) -> Self {
        self.threads = num_threads;
        self
    }

    /// Where it runs; the default is this processor.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// About how many samples go through the network at once; the default is 262,144. Memory grows with it (560 bytes for
    /// each sample in the published model); what is computed twice, at the chunks' edges, grows as it shrinks.
    #[must_use]
    pub fn chunk(mut self, samples: usize) -> Self {
        self.chunk = samples;
        self
    }
}

/// A codec with its weights. Cloning it shares them; any number of threads may use it at once.
#[derive(Clone)]
pub struct Codec {
    inner: Arc<Inner>,
    threads: usize,
}

struct Inner {
    config: Config,
    encoder: Network,
    decoder: Network,
    codebooks: Vec<Codebook>,
    kernels: &'static str,
    device: &'static str,
    /// Frames of a chunk.
    chunk: usize,
    hash: u64,
}

enum Network {
    Here(Vec<Layer>),
    #[cfg(feature = "candle")]
    Candle(crate::candle::Layers),
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inner { config, kernels, .. } = self.inner.as_ref();
        f.debug_struct("Codec")
            .field("config", config)
            .field("kernels", kernels)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Codec {
    /// Reads a codec's weights: a `.pth` or a `.safetensors`, distinguished by their first bytes.
    ///
    /// # Errors
    /// `NotFound`; `Mismatch` naming the first tensor that is missing or of another shape, where the weights are of another
    /// model; `Corrupt` for a damaged file; `Unsupported` for a pickle that is more than data, and for a device that this
    /// build or this machine does not have; `Config` for options that cannot work.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Codec> {
        let mut weights = Weights::open(path.as_ref())?;
        let file = weights.file().to_string();
        let hash = weights.hash()?;
        read(&mut weights, options, hash).map_err(|e| e.or_at(file))
    }

    /// Samples per second of what it encodes and decodes.
    pub fn sample_rate(&self) -> u32 {
        self.inner.config.sample_rate
    }

    /// Samples in one frame.
    pub fn hop_length(&self) -> usize {
        self.inner.config.hop()
    }

    /// Codes of a frame.
    pub fn codebooks(&self) -> usize {
        self.inner.codebooks.len()
    }

    /// Codes of a codebook: each is less.
    pub fn codebook_size(&self) -> usize {
        self.inner.config.codebook_size
    }

    /// XXH3-64 of the file of weights: what was made with others has another one.
    pub fn hash(&self) -> u64 {
        self.inner.hash
    }

    /// The kind of device that it runs on: `cpu`, `cuda` or `metal`; `cpu-portable` for a processor that rounds each product
    /// before it is added. Codes of two kinds may differ, as their rounding does; those of one kind do not.
    pub fn device(&self) -> &'static str {
        self.inner.device
    }

    /// Copies the codec with this number of threads for each call; 0 is one for each core.
    #[must_use]
    pub fn with_num_threads(&self, threads: usize) -> Codec {
        Codec { inner: self.inner.clone(), threads: whole(threads) }
    }

    /// The codes of one channel, sampled at [`Codec::sample_rate`]: `ceil(n / hop_length)` frames, the last one of what is
    /// there and zeros. No samples give no frames.
    ///
    /// # Errors
    /// `Corrupt` naming the first sample that is not a finite number; what a device says.
    pub fn encode(&self, samples: &[f32]) -> Result<Codes> {
        let mut encoder = self.encoder();
        let mut codes = Codes::new(Vec::new(), self.codebooks())?;
        for part in samples.chunks(self.inner.chunk * self.hop_length()) {
            codes.append(encoder.push(part)?);
        }
        codes.append(encoder.finish()?);
        Ok(codes)
    }

    /// Encodes samples as they come, in memory that does not grow with their number.
    pub fn encoder(&self) -> Encoder<'_> {
        Encoder { codec: self, held: Vec::new(), first: 0, frames: 0 }
    }

    /// Decodes codes to samples between -1 and 1: `hop_length` for each frame (one less in all for each odd rate of
    /// the decoder, as the original gives).
    ///
    /// # Errors
    /// `Mismatch` for codes of another number of codebooks; `OutOfRange` naming the first frame with a code that its
    /// codebook does not have; what a device says.
    pub fn decode(&self, codes: &Codes) -> Result<Vec<f32>> {
        let inner = &self.inner;
        let n = self.codebooks();
        if codes.codebooks() != n {
            return Err(Error::mismatch(format!(
                "expected frames of {n} codes, found {} in each",
                codes.codebooks()
            ))
            .hint("the codes were made by another codec"));
        }
        let size = self.codebook_size();
        if let Some(at) = codes.values().iter().position(|code| usize::from(*code) >= size) {
            return Err(Error::out_of_range("code", codes.values()[at], size as u64)
                .field(format!("frame {}, codebook {}", at / n, at % n))
                .hint("codes beyond the codebook mark begin, end and padding: take those frames out"));
        }
        let (frames, decoder) = (codes.frames(), &inner.decoder);
        let hop: usize = inner.config.decoder_rates.iter().product();
        let samples = decoder.len(frames);
        let mut out = Vec::with_capacity(samples);
        for first in (0..frames).step_by(inner.chunk) {
            let last = frames.min(first + inner.chunk) == frames;
            let end = if last { samples } else { (first + inner.chunk) * hop };
            let start = first * hop;
            let (low, high) = decoder.reads(start as i64, end as i64);
            let (low, high) = (low.max(0) as usize, (high.max(0) as usize).min(frames));
            let latent = quantizer::decode(
                &inner.codebooks,
                inner.config.latent_dim,
                &codes.values()[low * n..high * n],
                self.threads,
            );
            let made = decoder.run(latent, self.threads)?;
            let at = out.len();
            out.resize(at + (end - start), 0.0);
            let from = (start - low * hop) as isize;
            made.row(0, from, &mut out[at..], |from, to| to.copy_from_slice(from));
        }
        Ok(out)
    }

    // The codes of the frames `first..end`, of the samples from `low` on; past them there is silence, or what they do not
    // depend on.
    fn frames(&self, samples: &[f32], low: usize, len: usize, first: usize, end: usize) -> Result<Vec<u16>> {
        let inner = &self.inner;
        let signal = Signal::mono(samples, len, Signal::default());
        let latent = inner.encoder.run(signal, self.threads)?;
        let before = low / self.hop_length();
        Ok(quantizer::encode(&inner.codebooks, &latent, first - before..end - before, self.threads))
    }
}

/// Encodes samples as they come: what [`Codec::encode`] gives of all of them, in parts.
pub struct Encoder<'a> {
    codec: &'a Codec,
    /// Samples from number `first` on, a whole number of frames.
    held: Vec<f32>,
    first: usize,
    /// Frames that were given.
    frames: usize,
}

impl Encoder<'_> {
    /// Takes more samples, and gives the codes of the frames that no later sample can change.
    ///
    /// # Errors
    /// As [`Codec::encode`].
    pub fn push(&mut self, samples: &[f32]) -> Result<Codes> {
        if let Some(at) = samples.iter().position(|sample| !sample.is_finite()) {
            let number = self.first + self.held.len() + at;
            return Err(Error::corrupt(format!("sample {number} is {}, no finite number", samples[at]))
                .hint("the recording is damaged, or was scaled by zero"));
        }
        self.held.extend_from_slice(samples);
        let mut values = Vec::new();
        loop {
            let there = self.first + self.held.len();
            let end = self.frames + self.codec.inner.chunk;
            let (low, high) = self.reads(end);
            if high > there {
                return Codes::new(values, self.codec.codebooks());
            }
            values.extend(self.chunk(end, low, high)?);
        }
    }

    /// The codes of the frames that are left.
    ///
    /// # Errors
    /// What a device says.
    pub fn finish(mut self) -> Result<Codes> {
        let hop = self.codec.hop_length();
        let all = (self.first + self.held.len()).div_ceil(hop);
        let mut values = Vec::new();
        while self.frames < all {
            let end = all.min(self.frames + self.codec.inner.chunk);
            let (low, high) = self.reads(end);
            values.extend(self.chunk(end, low, high.min(all * hop))?);
        }
        Codes::new(values, self.codec.codebooks())
    }

    // The samples that the next frames up to `end` depend on, as whole frames.
    fn reads(&self, end: usize) -> (usize, usize) {
        let hop = self.codec.hop_length();
        let (low, high) = self.codec.inner.encoder.reads(self.frames as i64, end as i64);
        (low.max(0) as usize / hop * hop, (high.max(0) as usize).next_multiple_of(hop))
    }

    fn chunk(&mut self, end: usize, low: usize, high: usize) -> Result<Vec<u16>> {
        let from = low - self.first;
        let to = self.held.len().min(high - self.first);
        let codes = self.codec.frames(&self.held[from..to], low, high - low, self.frames, end)?;
        self.frames = end;
        // What the next frames do not depend on is let go.
        let (low, _) = self.reads(end + 1);
        self.held.drain(..(low - self.first).min(self.held.len()));
        self.first = low;
        Ok(codes)
    }
}

impl Network {
    fn run(&self, signal: Signal, threads: usize) -> Result<Signal> {
        match self {
            Network::Here(layers) => {
                let begin = (signal, Signal::default());
                Ok(layers.iter().fold(begin, |(signal, spare), layer| layer.run(signal, spare, threads)).0)
            }
            #[cfg(feature = "candle")]
            Network::Candle(layers) => layers.run(&signal),
        }
    }

    /// How many columns it makes of `columns` columns.
    fn len(&self, columns: usize) -> usize {
        match self {
            Network::Here(layers) => layers.iter().fold(columns, |len, layer| layer.len(len)),
            #[cfg(feature = "candle")]
            Network::Candle(layers) => layers.len(columns),
        }
    }

    /// The columns that columns of its result depend on, also those that are not there.
    fn reads(&self, first: i64, end: i64) -> (i64, i64) {
        match self {
            Network::Here(layers) => {
                layers.iter().rev().fold((first, end), |(first, end), layer| layer.reads(first, end))
            }
            #[cfg(feature = "candle")]
            Network::Candle(layers) => layers.reads(first, end),
        }
    }
}

fn read(weights: &mut Weights, options: &Options, hash: u64) -> Result<Codec> {
    if options.chunk == 0 {
        return Err(Error::config("chunks of 0 samples").hint("the default is 262,144 samples"));
    }
    let config = Config::of(weights)?;
    // The last of them runs everywhere; there is always one.
    let best = kernels::available().into_iter().next();
    let Some(kernels) = best else { return Err(Error::unsupported("no kernels for this processor")) };
    let (encoder, decoder) = match options.device {
        Device::Cpu => {
            (here(weights, &config, kernels, Side::Encoder)?, here(weights, &config, kernels, Side::Decoder)?)
        }
        #[cfg(feature = "candle")]
        device => {
            let device = crate::candle::device(device)?;
            let encoder = crate::candle::Layers::encoder(weights, &config, &device)?;
            let decoder = crate::candle::Layers::decoder(weights, &config, &device)?;
            (Network::Candle(encoder), Network::Candle(decoder))
        }
        #[cfg(not(feature = "candle"))]
        Device::Cuda(_) | Device::Metal(_) => {
            return Err(Error::unsupported("this build has no device but the processor")
                .hint("build it with the feature `cuda` or `metal`"));
        }
    };
    let codebooks = network::codebooks(weights, &config, kernels)?;
    let chunk = (options.chunk / config.hop()).max(1);
    let device = options.device.kind(kernels.is_fused());
    let inner = Inner { config, encoder, decoder, codebooks, kernels: kernels.name, device, chunk, hash };
    Ok(Codec { inner: Arc::new(inner), threads: whole(options.threads) })
}

fn whole(threads: usize) -> usize {
    if threads == 0 { cores() } else { threads }
}

enum Side {
    Encoder,
    Decoder,
}

fn here(weights: &mut Weights, config: &Config, kernels: Kernels, side: Side) -> Result<Network> {
    let mut reader = Reader { weights, make: &mut |part| Ok(network::here(kernels, part)) };
    let made = match side {
        Side::Encoder => reader.encoder(config)?,
        Side::Decoder => reader.decoder(config)?,
    };
    Ok(Network::Here(network::layers(made)))
}
