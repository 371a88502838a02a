//! Packets of a file become samples at the file's own rate; what the file claims is compared with what comes out.

use std::ops::Range;
use std::sync::Arc;

use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error as Refused;
use symphonia::core::packet::Packet;
use symphonia::default::get_codecs;
use windrow_core::store::Object;
use windrow_core::{Error, Kind, Result};

use crate::container::Container;
use crate::guard::guarded;
use crate::mp4::Edit;
use crate::reader::{Reader, explained};
use crate::{adts, flac, mp4, ogg, tags};

/// Rates that are believed: a filter between any two of them fits into some megabytes.
pub(crate) const RATES_HZ: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Samples beyond this are not sound, and sums of them in the resampler would be infinite.
const LOUDEST: f32 = 1e20;

/// Packets that an encoder of ogg may put behind the end of the sound.
const MOST_BEHIND: u64 = 4;

/// The packets of one track, decoded one after the other.
pub(crate) struct Packets {
    pub(crate) container: Container,
    pub(crate) codec: &'static str,
    pub(crate) rate_hz: u32,
    pub(crate) n_channels: usize,
    /// Samples the file promises, where it does.
    pub(crate) n_promised: Option<u64>,
    file: Arc<dyn Object>,
    reader: Reader,
    decoder: Box<dyn AudioDecoder>,
    sound: Range<u64>,
    skip_corrupt: bool,
    edit: Edit,
    // Samples of the last block, planar.
    block: Vec<Vec<f32>>,
    n_packets: u64,
    n_decoded: u64,
    n_given: u64,
    // Packets that became silence, and ends that are missing.
    n_corrupt: u64,
    // Packets behind the end that their page of ogg declares.
    n_behind: u64,
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
        let counted = match container {
            Container::Aac if !skip_corrupt => Some(adts::count(file.clone(), &sound)? * adts::FRAME_LEN),
            _ => None,
        };
        if container == Container::Mp4 {
            mp4::check_index(&*file, &sound, skip_corrupt)?;
        }
        let reader = Reader::open(file.clone(), container, sound.clone(), skip_corrupt)?;
        let params = reader.params.clone();
        refuse_many_channels(&params, &*file)?;
        let options = AudioDecoderOptions::default()
            .gapless(container != Container::Mp3)
            .verify(container == Container::Flac);
        let decoder = guarded("starting", || get_codecs().make_audio_decoder(&params, &options))
            .and_then(|made| made.map_err(|e| explained(e, &*file, "the codec's settings")))
            .map_err(|e| e.or_at(file.name()))?;
        let codec = decoder.codec_info().short_name;
        let mut packets = Packets {
            container,
            codec,
            rate_hz: 0,
            n_channels: 0,
            n_promised: counted.or(reader.n_promised),
            file,
            reader,
            decoder,
            sound: sound.clone(),
            skip_corrupt,
            edit: Edit::default(),
            block: Vec::new(),
            n_packets: 0,
            n_decoded: 0,
            n_given: 0,
            n_corrupt: 0,
            n_behind: 0,
            held: false,
            ended: false,
        };
        if container == Container::Mp4 {
            let rate_hz = packets.decoder.codec_params().sample_rate.or(params.sample_rate).unwrap_or(0);
            if RATES_HZ.contains(&rate_hz) {
                let track = packets.reader.track;
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

    /// Packets that became silence, and places that were passed over because that is allowed.
    pub(crate) fn n_corrupt(&self) -> u64 {
        self.n_corrupt + self.reader.n_corrupt()
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
            let next = self.reader.next();
            if next.is_err() {
                self.refuse_second()?;
            }
            let taken = match next {
                Ok(Some(taken)) => taken,
                Ok(None) => return self.finish(),
                Err(e) if self.skip_corrupt && e.kind() == Kind::Corrupt => {
                    self.n_corrupt += 1;
                    return Ok(false);
                }
                Err(e) => return Err(e),
            };
            self.n_packets += 1;
            self.n_behind += u64::from(taken.packet.dur.get() == 0 && taken.packet.trim_end.get() > 0);
            if taken.is_first {
                guarded("starting over", || self.decoder.reset())?;
            }
            self.decode(&taken.packet)?;
            self.n_decoded += self.len();
            match taken.sound {
                Some(sound) => self.keep(sound),
                None => self.cut(),
            }
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
        let before = self.edit.skip.saturating_sub(self.n_decoded - len).min(len);
        let most = self.edit.len.map_or(u64::MAX, |most| most - self.n_given);
        self.keep(before..before.saturating_add(most));
    }

    fn keep(&mut self, sound: Range<u64>) {
        for channel in &mut self.block {
            channel.truncate(usize::try_from(sound.end).unwrap_or(usize::MAX));
            channel.drain(..channel.len().min(sound.start as usize));
        }
    }

    fn refuse_strange_numbers(&self) -> Result<()> {
        for (number, channel) in self.block.iter().enumerate() {
            if let Some(at) = channel.iter().position(|s| s.is_nan() || s.abs() > LOUDEST) {
                let sample = self.n_given + at as u64;
                return Err(self
                    .corrupt(format!("sample {sample} of channel {number} is {:?}", channel[at]))
                    .hint(
                        "fix the file, or leave it out: one such number spoils all that is computed from it",
                    ));
            }
        }
        Ok(())
    }

    // The reader has no more packets: is that all that was promised, and no more?
    fn finish(&mut self) -> Result<bool> {
        let verified = guarded("comparing the checksum", || self.decoder.finalize())?.verify_ok;
        if verified != Some(true) {
            self.refuse_second()?;
        }
        if self.skip_corrupt {
            return Ok(false);
        }
        let (promised, got) = match self.container {
            Container::Mp4 => (self.edit.len, self.n_given),
            // Their frames are counted where they are found.
            Container::Mp3 | Container::Aac => (None, 0),
            _ => (self.n_promised, self.n_decoded),
        };
        let promised = promised.filter(|promised| *promised != got);
        let is_more = promised.is_some_and(|promised| got > promised);
        if let Some(promised) = promised
            // Pages of ogg may begin later than 0; frames of flac are those that were hashed.
            && !(is_more && matches!(self.container, Container::Ogg | Container::Flac))
        {
            return Err(self
                .corrupt(format!("the file holds {got} samples, its header promises {promised}"))
                .byte(self.file.size())
                .hint("copy the file again, or allow what is there with skip_corrupt"));
        }
        if verified == Some(false) {
            return Err(self
                .corrupt("the samples do not have the checksum (MD5) that the header promises")
                .hint("copy the file again, or allow what is there with skip_corrupt"));
        }
        // An encoder leaves out the end of its last packet, and sometimes all of it.
        if self.container == Container::Ogg && self.n_behind > MOST_BEHIND {
            return Err(self
                .corrupt(format!(
                    "{} packets are past the position that their ogg page declares",
                    self.n_behind
                ))
                .hint("the position was never brought up to date: ffmpeg -i IN OUT.ogg, or leave them out with skip_corrupt"));
        }
        if is_more && self.container == Container::Flac {
            log::warn!(
                "{}: the header declares {} samples, the file holds {got}: all are read",
                self.file.name(),
                promised.unwrap_or(0)
            );
        }
        Ok(false)
    }

    // Joined files of flac are read by no decoder to their end, and each fails in its own words.
    fn refuse_second(&self) -> Result<()> {
        match self.container {
            Container::Flac => flac::refuse_second(self.file.clone(), &self.sound),
            _ => Ok(()),
        }
    }

    fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corrupt(what).at(self.file.name())
    }
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
