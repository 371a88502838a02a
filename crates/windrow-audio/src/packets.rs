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
use crate::lost::Lost;
use crate::mp4::Edit;
use crate::reader::{Reader, Taken, explained};
use crate::{adts, flac, mp4, ogg, tags};

/// Rates that are believed: a filter between any two of them fits into some megabytes.
pub(crate) const RATES_HZ: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Samples beyond this are not sound, and sums of them in the resampler would be infinite.
const LOUDEST: f32 = 1e20;

/// Packets that an encoder of ogg may put behind the end of the sound.
const MOST_BEHIND: u64 = 4;

/// Samples of the largest block of any codec.
const LARGEST_BLOCK: u64 = 65_535;

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
    // Silence that comes next, in place of what could not be decoded, and the block behind it.
    silence: u64,
    waiting: Vec<Vec<f32>>,
    // What a reader of flac left out, where that is allowed.
    lost: Option<Lost>,
    // What the first packets could not be decoded for, as long as no packet could be.
    undecoded: Option<Error>,
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
        let decoder = decoder(container, &params, &*file)?;
        let codec = decoder.codec_info().short_name;
        let lost = match container {
            Container::Flac if skip_corrupt => Some(Lost::of(file.clone(), &sound)?),
            _ => None,
        };
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
            silence: 0,
            waiting: Vec::new(),
            lost,
            undecoded: None,
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
            return Err(packets.undecoded.take().unwrap_or_else(|| {
                packets.corrupt("the file holds no samples").hint("leave the file out, or record it again")
            }));
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
            (self.ended, self.silence) = (true, 0);
        }
        found.map_err(|e| e.or_at(self.file.name()))
    }

    fn decode_one(&mut self) -> Result<bool> {
        // More packets without a sample than any codec starts with.
        const MOST_BARREN: u32 = 1_000;
        let mut barren = 0;
        while self.is_more() && self.edit.len.is_none_or(|len| self.n_given < len) {
            if barren > MOST_BARREN {
                let what = format!("{MOST_BARREN} packets in a row hold no samples");
                return Err(self.undecoded.take().unwrap_or_else(|| self.corrupt(what)));
            }
            if self.is_silent() {
                self.write_silence();
            } else if !self.waiting.is_empty() {
                self.block = std::mem::take(&mut self.waiting);
            } else if !self.take_one()? {
                self.ended = true;
                continue;
            }
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

    fn is_more(&self) -> bool {
        !self.ended || self.is_silent()
    }

    // Rate and channels of silence are those of the first packet that can be decoded: without one there is no sound.
    fn is_silent(&self) -> bool {
        self.silence > 0 && self.rate_hz > 0
    }

    fn write_silence(&mut self) {
        let len = self.silence.min(LARGEST_BLOCK);
        self.silence -= len;
        self.block.resize_with(self.n_channels, Vec::new);
        self.block.iter_mut().for_each(|channel| {
            channel.clear();
            channel.resize(len as usize, 0.0);
        });
    }

    // The next packet into `block`, or into `waiting` where silence comes before it; false at the end.
    fn take_one(&mut self) -> Result<bool> {
        let next = self.reader.next();
        if next.is_err() {
            self.refuse_second()?;
        }
        let taken = match next {
            Ok(Some(taken)) => taken,
            Ok(None) => {
                self.finish()?;
                return Ok(false);
            }
            // The reader of a stream of AAC continues at the next frame.
            Err(e)
                if self.skip_corrupt
                    && self.container == Container::Aac
                    && matches!(e.kind(), Kind::Corrupt | Kind::Unsupported) =>
            {
                self.n_corrupt += 1;
                self.block.iter_mut().for_each(Vec::clear);
                return Ok(true);
            }
            Err(e) if self.skip_corrupt && e.kind() == Kind::Corrupt => {
                self.n_corrupt += 1;
                self.silence = self.n_lost_at_end();
                return Ok(false);
            }
            Err(e) => return Err(e),
        };
        self.n_packets += 1;
        self.n_behind += u64::from(taken.packet.dur.get() == 0 && taken.packet.trim_end.get() > 0);
        if taken.is_first {
            guarded("starting over", || self.decoder.reset())?;
        }
        if let Some(lost) = &mut self.lost
            && let Some(n_lost) = lost.before(&taken.packet)?
        {
            self.n_corrupt += 1;
            self.silence += n_lost;
        }
        self.decode(&taken)?;
        if self.is_silent() {
            self.waiting = std::mem::take(&mut self.block);
        }
        Ok(true)
    }

    fn n_lost_at_end(&self) -> u64 {
        let n_missing = self.n_promised.unwrap_or(0).saturating_sub(self.n_decoded);
        self.lost.as_ref().map_or(0, |lost| lost.at_end(n_missing))
    }

    fn len(&self) -> u64 {
        self.block.first().map_or(0, Vec::len) as u64
    }

    // One packet into `block`.
    fn decode(&mut self, taken: &Taken) -> Result<()> {
        let block = &mut self.block;
        let decoder = &mut self.decoder;
        let decoded = guarded("decoding a packet", || {
            decoder.decode(&taken.packet).map(|samples| {
                samples.copy_to_vecs_planar(block);
                (samples.spec().rate(), samples.spec().channels().count())
            })
        });
        let number = self.n_packets - 1;
        match decoded {
            Ok(Ok((rate_hz, n_channels))) if self.rate_hz == 0 => self.settle(rate_hz, n_channels)?,
            Ok(Ok((rate_hz, n_channels)))
                if self.len() > 0 && (rate_hz, n_channels) != (self.rate_hz, self.n_channels) =>
            {
                return Err(Error::unsupported(format!(
                    "the sound changes from {} channels at {} Hz to {n_channels} at {rate_hz} Hz in packet {number}",
                    self.n_channels, self.rate_hz
                ))
                .hint("convert it: ffmpeg -i IN OUT.flac"));
            }
            Ok(Ok(_)) => {}
            Ok(Err(e)) => {
                let is_allowed = self.skip_corrupt && is_damage(&e);
                let error = explained(e, &*self.file, &format!("packet {number}"));
                return if is_allowed { self.replace(taken, error, self.codec == "aac") } else { Err(error) };
            }
            Err(panic) => {
                return if self.skip_corrupt { self.replace(taken, panic, true) } else { Err(panic) };
            }
        }
        if self.skip_corrupt && self.codec == "alac" {
            self.lengthen(&taken.packet);
        }
        if let Some(sound) = &taken.sound {
            self.keep(sound.clone());
        }
        Ok(())
    }

    // Silence of its length for a packet that cannot be decoded, so that what follows keeps its place. A decoder that gave
    // up must not be used again; that of AAC remembers the channels that a damaged packet said it has.
    fn replace(&mut self, taken: &Taken, error: Error, is_decoder_spoilt: bool) -> Result<()> {
        self.n_corrupt += 1;
        self.block.iter_mut().for_each(Vec::clear);
        let len = self.len_of(&taken.packet);
        self.silence +=
            taken.sound.as_ref().map_or(len, |sound| sound.end.min(len).saturating_sub(sound.start));
        if self.rate_hz == 0 {
            self.undecoded.get_or_insert(error.or_at(self.file.name()));
        }
        if is_decoder_spoilt {
            self.decoder = decoder(self.container, &self.reader.params, &*self.file)?;
        }
        Ok(())
    }

    // A damaged packet of ALAC can say that it ends before its time. Times that are rounded do not tell.
    fn lengthen(&mut self, packet: &Packet) {
        let len = packet.dur.get();
        if self.len() < len && self.len_of(packet) == len {
            self.n_corrupt += 1;
            self.block.iter_mut().for_each(|channel| channel.resize(len as usize, 0.0));
        }
    }

    // Samples of a packet, as its container says. The largest block of any codec bounds them.
    fn len_of(&self, packet: &Packet) -> u64 {
        if self.codec == "aac" {
            return adts::FRAME_LEN;
        }
        let (ticks, rate_hz) = (u128::from(packet.dur.get()), self.decoder.codec_params().sample_rate);
        let len = match (self.reader.time_base, rate_hz) {
            (Some(base), Some(rate_hz)) => {
                let (numer, denom) = (u128::from(base.numer.get()), u128::from(base.denom.get()));
                (ticks * numer * u128::from(rate_hz) + denom / 2) / denom
            }
            _ => ticks,
        };
        u64::try_from(len).unwrap_or(LARGEST_BLOCK).min(LARGEST_BLOCK)
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
        self.undecoded = None;
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
    fn finish(&mut self) -> Result<()> {
        let verified = guarded("comparing the checksum", || self.decoder.finalize())?.verify_ok;
        if verified != Some(true) {
            self.refuse_second()?;
        }
        if self.skip_corrupt {
            self.silence = self.n_lost_at_end();
            self.n_corrupt += u64::from(self.silence > 0);
            return Ok(());
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
        Ok(())
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

// Where the codec's settings were accepted, what a packet asks for beyond them is damage as well.
fn is_damage(refused: &Refused) -> bool {
    use Refused::{DecodeError, IoError, LimitError, Unsupported};
    matches!(refused, DecodeError(_) | LimitError(_) | IoError(_) | Unsupported(_))
}

fn decoder(
    container: Container,
    params: &AudioCodecParameters,
    file: &dyn Object,
) -> Result<Box<dyn AudioDecoder>> {
    let options = AudioDecoderOptions::default()
        .gapless(container != Container::Mp3)
        .verify(container == Container::Flac);
    guarded("starting", || get_codecs().make_audio_decoder(params, &options))
        .and_then(|made| made.map_err(|e| explained(e, file, "the codec's settings")))
        .map_err(|e| e.or_at(file.name()))
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
