//! Packets of a file become samples at the file's own rate; what the file claims is compared with what comes out.

use std::io::ErrorKind;
use std::sync::Arc;

use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error as Refused;
use symphonia::core::formats::{FormatReader, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::packet::Packet;
use symphonia::default::{formats, get_codecs};
use windrow_core::store::Object;
use windrow_core::{Error, Result};

use crate::container::Container;
use crate::guard::guarded;
use crate::media::Media;
use crate::mp4::Edit;
use crate::{mp4, ogg, streamed, tags};

/// Rates that are believed: a filter between any two of them fits into some megabytes.
pub(crate) const RATES_HZ: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Samples beyond this are no sound, and sums of them in the resampler would be infinite.
const LOUDEST: f32 = 1e20;

/// The packets of one track, decoded one after the other.
pub(crate) struct Packets {
    pub(crate) container: Container,
    pub(crate) codec: &'static str,
    pub(crate) rate_hz: u32,
    pub(crate) n_channels: usize,
    /// Samples the file promises, where it does.
    pub(crate) n_promised: Option<u64>,
    /// Packets that became silence, and ends that are missing.
    pub(crate) n_corrupt: u64,
    file: Arc<dyn Object>,
    reader: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    skip_corrupt: bool,
    edit: Edit,
    // Samples of the last block, planar.
    block: Vec<Vec<f32>>,
    n_packets: u64,
    n_decoded: u64,
    n_given: u64,
    // The first block is decoded at opening, and given at the first call.
    held: bool,
    ended: bool,
}

impl Packets {
    /// Recognises the file and decodes up to its first sample.
    ///
    /// # Errors
    /// `Unrecognised`, `Unsupported` and `Corrupt`, with the file's name.
    pub(crate) fn open(file: Arc<dyn Object>, skip_corrupt: bool) -> Result<Self> {
        let sound = tags::without_tags(&*file)?;
        let container = Container::of(&*file, &sound)?;
        if container == Container::Ogg && !skip_corrupt {
            ogg::check(&*file, &sound)?;
        }
        if container == Container::Mp4 {
            mp4::check_index(&*file, &sound, skip_corrupt)?;
        }
        let patches = match container {
            Container::Wav => streamed::sizes(&*file, &sound, skip_corrupt)?,
            _ => Vec::new(),
        };
        let media = Media::new(file.clone(), sound.clone(), patches);
        let reader = guarded("reading the header", || {
            let stream = MediaSourceStream::new(Box::new(media), Default::default());
            demuxer(container, stream)
        })
        .and_then(|opened| opened.map_err(|e| explained(e, &*file, "the header")))
        .map_err(|e| e.or_at(file.name()))?;

        let Some((track, n_promised, delay, params)) = reader
            .default_track(TrackType::Audio)
            .and_then(|t| Some((t.id, t.num_frames, t.delay, t.codec_params.as_ref()?.audio()?.clone())))
        else {
            return Err(Error::unsupported(format!(
                "the {} file has no sound track that is read",
                container.name()
            ))
            .at(file.name())
            .hint("AAC-LC is read in m4a, Vorbis in ogg; convert it: ffmpeg -i IN OUT.flac"));
        };
        refuse_many_channels(&params, &*file)?;
        let options = AudioDecoderOptions::default().gapless(true).verify(container == Container::Flac);
        let decoder = guarded("starting", || get_codecs().make_audio_decoder(&params, &options))
            .and_then(|made| made.map_err(|e| explained(e, &*file, "the codec's settings")))
            .map_err(|e| e.or_at(file.name()))?;
        let codec = decoder.codec_info().short_name;
        let promised = match container {
            // A stream that was written to a pipe does not know its length.
            Container::Wav => n_promised.filter(|n| *n != u64::from(u32::MAX)),
            // Without the encoder's tag the length is a guess.
            Container::Mp3 => n_promised.filter(|_| delay.is_some()),
            Container::Aac => None,
            Container::Flac | Container::Mp4 | Container::Ogg => n_promised,
        };
        let mut packets = Packets {
            container,
            codec,
            rate_hz: 0,
            n_channels: 0,
            n_promised: promised,
            n_corrupt: 0,
            file,
            reader,
            decoder,
            track,
            skip_corrupt,
            edit: Edit::default(),
            block: Vec::new(),
            n_packets: 0,
            n_decoded: 0,
            n_given: 0,
            held: false,
            ended: false,
        };
        if container == Container::Mp4 {
            let rate_hz = packets.decoder.codec_params().sample_rate.or(params.sample_rate).unwrap_or(0);
            if RATES_HZ.contains(&rate_hz) {
                packets.edit = mp4::edit(&*packets.file, &sound, track, rate_hz, skip_corrupt)?;
                let Edit { skip, len } = packets.edit;
                packets.n_promised = len.or(packets.n_promised.map(|n| n.saturating_sub(skip)));
            }
        }
        packets.held = packets.fetch()?;
        if !packets.held {
            return Err(packets
                .corrupt("the file holds no samples")
                .hint("leave the file out, or record it again"));
        }
        Ok(packets)
    }

    /// The next samples, planar and at least one; `None` at the end.
    ///
    /// # Errors
    /// `Corrupt` naming the packet or sample; what reading says. Nothing comes after an error.
    pub(crate) fn next_block(&mut self) -> Result<Option<&[Vec<f32>]>> {
        if !std::mem::take(&mut self.held) && !self.fetch()? {
            return Ok(None);
        }
        Ok(Some(&self.block))
    }

    fn fetch(&mut self) -> Result<bool> {
        let found = self.decode_one();
        if !matches!(found, Ok(true)) {
            self.ended = true;
        }
        found.map_err(|e| e.or_at(self.file.name()))
    }

    fn decode_one(&mut self) -> Result<bool> {
        // More packets without a sample than any codec starts with.
        const MOST_BARREN: u32 = 1_000;
        let mut barren = 0;
        while !self.ended && self.edit.len.is_none_or(|len| self.n_given < len) {
            if barren > MOST_BARREN {
                return Err(self.corrupt(format!("{MOST_BARREN} packets in a row hold no samples")));
            }
            let packet = match guarded("reading a packet", || self.reader.next_packet())? {
                Ok(Some(packet)) if packet.track_id != self.track => continue,
                Ok(Some(packet)) => packet,
                Ok(None) => return self.finish(),
                Err(_) if self.skip_corrupt => {
                    self.n_corrupt += 1;
                    return Ok(false);
                }
                Err(e) => return Err(explained(e, &*self.file, &format!("packet {}", self.n_packets))),
            };
            self.n_packets += 1;
            self.decode(&packet)?;
            self.n_decoded += self.len();
            self.cut();
            if self.len() > 0 {
                self.refuse_strange_numbers()?;
                self.n_given += self.len();
                return Ok(true);
            }
            barren += 1;
        }
        Ok(false)
    }

    fn len(&self) -> u64 {
        self.block.first().map_or(0, Vec::len) as u64
    }

    // One packet into `block`.
    fn decode(&mut self, packet: &Packet) -> Result<()> {
        let block = &mut self.block;
        let decoder = &mut self.decoder;
        let decoded = guarded("decoding a packet", || {
            decoder.decode(packet).map(|samples| {
                samples.copy_to_vecs_planar(block);
                (samples.spec().rate(), samples.spec().channels().count())
            })
        })?;
        let number = self.n_packets - 1;
        match decoded {
            Ok((rate_hz, n_channels)) if self.rate_hz == 0 => self.settle(rate_hz, n_channels),
            Ok((rate_hz, n_channels)) if self.len() > 0 && (rate_hz, n_channels) != (self.rate_hz, self.n_channels) => {
                Err(Error::unsupported(format!(
                    "the sound changes from {} channels at {} Hz to {n_channels} at {rate_hz} Hz in packet {number}",
                    self.n_channels, self.rate_hz
                ))
                .hint("convert it: ffmpeg -i IN OUT.flac"))
            }
            Ok(_) => Ok(()),
            Err(Refused::DecodeError(_) | Refused::LimitError(_) | Refused::IoError(_)) if self.skip_corrupt => {
                self.n_corrupt += 1;
                // Silence of its length, so that what follows keeps its place. The largest block of any codec bounds it.
                let len = packet.dur.get().min(65_535) as usize;
                self.block.iter_mut().for_each(|channel| {
                    channel.clear();
                    channel.resize(len, 0.0);
                });
                Ok(())
            }
            Err(e) => Err(explained(e, &*self.file, &format!("packet {number}"))),
        }
    }

    // What the first decoded packet says about rate and channels holds for all.
    fn settle(&mut self, rate_hz: u32, n_channels: usize) -> Result<()> {
        if !RATES_HZ.contains(&rate_hz) {
            return Err(Error::unsupported(format!(
                "a sample rate of {rate_hz} Hz; {} to {} Hz are read",
                RATES_HZ.start(),
                RATES_HZ.end()
            ))
            .hint("the header may be damaged"));
        }
        if n_channels == 0 || n_channels > 2 {
            return Err(channels_refused(n_channels));
        }
        (self.rate_hz, self.n_channels) = (rate_hz, n_channels);
        Ok(())
    }

    // Takes out what the encoder put around the sound.
    fn cut(&mut self) {
        let len = self.len();
        let before = self.edit.skip.saturating_sub(self.n_decoded - len).min(len) as usize;
        let most = self.edit.len.map_or(u64::MAX, |most| most - self.n_given);
        for channel in &mut self.block {
            channel.drain(..before);
            channel.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
    }

    fn refuse_strange_numbers(&self) -> Result<()> {
        for (number, channel) in self.block.iter().enumerate() {
            if let Some(at) = channel.iter().position(|s| s.is_nan() || s.abs() > LOUDEST) {
                let sample = self.n_given + at as u64;
                return Err(self
                    .corrupt(format!("sample {sample} of channel {number} is {:?}", channel[at]))
                    .hint(
                        "mend the file, or leave it out: one such number spreads over all that is made of it",
                    ));
            }
        }
        Ok(())
    }

    // The reader has no more packets: is that all that was promised?
    fn finish(&mut self) -> Result<bool> {
        if self.skip_corrupt {
            return Ok(false);
        }
        let promised = match self.container {
            Container::Mp4 => self.edit.len,
            _ => self.n_promised,
        };
        let got = if self.container == Container::Mp4 { self.n_given } else { self.n_decoded };
        if let Some(promised) = promised.filter(|promised| *promised != got) {
            // Pages of ogg may begin later than 0, so only what is missing counts there.
            if self.container != Container::Ogg || got < promised {
                return Err(self
                    .corrupt(format!("the file holds {got} samples, its header promises {promised}"))
                    .byte(self.file.size())
                    .hint("copy the file again, or allow what is there with skip_corrupt"));
            }
        }
        let verified = guarded("comparing the checksum", || self.decoder.finalize())?;
        if verified.verify_ok == Some(false) {
            return Err(self
                .corrupt("the samples do not have the checksum (MD5) that the header promises")
                .hint("copy the file again, or allow what is there with skip_corrupt"));
        }
        Ok(false)
    }

    fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corrupt(what).at(self.file.name())
    }
}

fn demuxer(
    container: Container,
    stream: MediaSourceStream<'static>,
) -> std::result::Result<Box<dyn FormatReader>, Refused> {
    let options = Default::default();
    Ok(match container {
        Container::Wav => Box::new(formats::WavReader::try_new(stream, options)?),
        Container::Flac => Box::new(formats::FlacReader::try_new(stream, options)?),
        Container::Mp3 => Box::new(formats::MpaReader::try_new(stream, options)?),
        Container::Mp4 => Box::new(formats::IsoMp4Reader::try_new(stream, options)?),
        Container::Ogg => Box::new(formats::OggReader::try_new(stream, options)?),
        Container::Aac => Box::new(formats::AdtsReader::try_new(stream, options)?),
    })
}

fn refuse_many_channels(params: &AudioCodecParameters, file: &dyn Object) -> Result<()> {
    match params.channels.as_ref().map(|c| c.count()) {
        Some(n) if n > 2 => Err(channels_refused(n).at(file.name())),
        _ => Ok(()),
    }
}

fn channels_refused(n: usize) -> Error {
    Error::unsupported(format!("the sound has {n} channels; one and two are read"))
        .hint("mix it down: ffmpeg -i IN -ac 2 OUT.flac")
}

// What the codecs said, in windrow's words.
fn explained(refused: Refused, file: &dyn Object, part: &str) -> Error {
    let what = match refused {
        Refused::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => {
            return Error::corrupt(format!("the file ends in the middle of {part}"))
                .at(file.name())
                .byte(file.size())
                .hint("copy the file again, or allow what is there with skip_corrupt");
        }
        Refused::IoError(e) => {
            // What the store said went through the codec's hands.
            return match e.downcast::<Error>() {
                Ok(ours) => ours,
                Err(e) if e.raw_os_error().is_some() => Error::io("read the file", file.name(), e),
                // The codec's own words for bytes that end too early for it.
                Err(e) => Error::corrupt(format!("{part} cannot be decoded: {e}"))
                    .at(file.name())
                    .hint("copy the file again, or allow what is there with skip_corrupt"),
            };
        }
        Refused::Unsupported(what) => {
            return Error::unsupported(format!("{part} cannot be read: {what}"))
                .at(file.name())
                .hint("convert it: ffmpeg -i IN OUT.flac");
        }
        Refused::ResetRequired => {
            return Error::unsupported(format!("a second stream follows the first at {part}"))
                .at(file.name())
                .hint("convert it: ffmpeg -i IN OUT.flac");
        }
        Refused::DecodeError(what) | Refused::LimitError(what) => what.to_string(),
        other => other.to_string(),
    };
    Error::corrupt(format!("{part} cannot be decoded: {what}"))
        .at(file.name())
        .hint("copy the file again, or allow what is there with skip_corrupt")
}
