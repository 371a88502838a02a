//! A sound file's packets, as they are in it.

use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;

use symphonia::core::audio::layouts::{CHANNEL_LAYOUT_MONO, CHANNEL_LAYOUT_STEREO};
use symphonia::core::codecs::audio::AudioCodecParameters;
use symphonia::core::codecs::audio::well_known::CODEC_ID_MP3;
use symphonia::core::errors::Error as Refused;
use symphonia::core::formats::{FormatReader, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::packet::Packet;
use symphonia::core::units::{Duration, TimeBase, Timestamp};
use symphonia::default::formats;
use windrow_core::store::Object;
use windrow_core::{Error, Result};

use crate::container::Container;
use crate::guard::guarded;
use crate::media::Media;
use crate::mp3::Frames;
use crate::riff;

/// One track of a file.
pub(crate) struct Reader {
    kind: Kind,
    file: Arc<dyn Object>,
    /// Number of the track, where the container numbers them.
    pub(crate) track: u32,
    /// What a decoder has to know.
    pub(crate) params: AudioCodecParameters,
    /// What the times of packets are counted in, where the container says so.
    pub(crate) time_base: Option<TimeBase>,
    /// Samples that the file declares, where it does.
    pub(crate) n_promised: Option<u64>,
    n_packets: u64,
    n_corrupt: u64,
}

enum Kind {
    Codec(Box<dyn FormatReader>),
    Mp3(Box<Frames>),
}

/// A packet to be decoded.
pub(crate) struct Taken {
    pub(crate) packet: Packet,
    /// What was decoded before it has nothing to do with it.
    pub(crate) is_first: bool,
    /// The samples of it that are not padding, where the decoder does not take these out.
    pub(crate) sound: Option<Range<u64>>,
}

impl Reader {
    /// Reads the header, and finds the sound.
    ///
    /// # Errors
    /// `Unsupported` and `Corrupt`, with the file's name; what reading says.
    pub(crate) fn open(
        file: Arc<dyn Object>,
        container: Container,
        sound: Range<u64>,
        skip_corrupt: bool,
    ) -> Result<Self> {
        if container == Container::Mp3 {
            let frames = Frames::open(file.clone(), sound, skip_corrupt)?;
            let header = frames.header();
            let mut params = AudioCodecParameters::new();
            let channels = if header.n_channels == 1 { CHANNEL_LAYOUT_MONO } else { CHANNEL_LAYOUT_STEREO };
            params.for_codec(CODEC_ID_MP3).with_sample_rate(header.rate_hz).with_channels(channels);
            let n_promised = frames.n_promised();
            return Ok(Reader {
                kind: Kind::Mp3(Box::new(frames)),
                file,
                track: 0,
                params,
                time_base: None,
                n_promised,
                n_packets: 0,
                n_corrupt: 0,
            });
        }
        let mut n_corrupt = 0;
        let media = match container {
            Container::Wav => {
                let wav = riff::open(&*file, &sound, skip_corrupt)?;
                n_corrupt = u64::from(wav.is_damaged);
                Media::new(wav.header, file.clone(), wav.samples)
            }
            _ => Media::new(Vec::new(), file.clone(), sound),
        };
        let reader = guarded("reading the header", || {
            demuxer(container, MediaSourceStream::new(Box::new(media), Default::default()))
        })
        .and_then(|opened| opened.map_err(|e| explained(e, &*file, "the header")))
        .map_err(|e| e.or_at(file.name()))?;
        let Some((track, time_base, n_promised, params)) = reader
            .default_track(TrackType::Audio)
            .and_then(|t| Some((t.id, t.time_base, t.num_frames, t.codec_params.as_ref()?.audio()?.clone())))
        else {
            return Err(Error::unsupported(format!(
                "the {} file has no sound track that is read",
                container.name()
            ))
            .at(file.name())
            .hint("AAC-LC is read in m4a, Vorbis in ogg; convert it: ffmpeg -i IN OUT.flac"));
        };
        let n_tracks = reader.tracks().iter().filter(|t| t.track_type() == Some(TrackType::Audio)).count();
        if n_tracks > 1 {
            log::warn!("{}: the file holds {n_tracks} sound tracks; one is read", file.name());
        }
        // In a stream of AAC it is a guess.
        let n_promised = n_promised.filter(|_| container != Container::Aac);
        let kind = Kind::Codec(reader);
        Ok(Reader { kind, file, track, params, time_base, n_promised, n_packets: 0, n_corrupt })
    }

    /// The next packet of the track; `None` at the end.
    ///
    /// # Errors
    /// `Unsupported` and `Corrupt` naming the place; what reading says.
    pub(crate) fn next(&mut self) -> Result<Option<Taken>> {
        let taken = match &mut self.kind {
            Kind::Mp3(frames) => frames.next()?.map(|frame| {
                let len = Duration::new(frame.header.n_samples);
                let packet = Packet::new(0, Timestamp::ZERO, len, frame.bytes);
                Taken { packet, is_first: frame.is_first, sound: Some(frame.sound) }
            }),
            Kind::Codec(reader) => loop {
                match guarded("reading a packet", || reader.next_packet())? {
                    Ok(Some(packet)) if packet.track_id != self.track => {}
                    Ok(packet) => {
                        break packet.map(|packet| Taken { packet, is_first: false, sound: None });
                    }
                    Err(e) => return Err(explained(e, &*self.file, &format!("packet {}", self.n_packets))),
                }
            },
        };
        self.n_packets += 1;
        Ok(taken)
    }

    /// Places that were passed over because that is allowed.
    pub(crate) fn n_corrupt(&self) -> u64 {
        match &self.kind {
            Kind::Mp3(frames) => frames.n_corrupt,
            Kind::Codec(_) => self.n_corrupt,
        }
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

/// An error of the codecs, in windrow's words.
pub(crate) fn explained(refused: Refused, file: &dyn Object, part: &str) -> Error {
    let what = match refused {
        Refused::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => {
            return Error::corrupt(format!("the file ends in the middle of {part}"))
                .at(file.name())
                .byte(file.size())
                .hint("copy the file again, or allow what is there with skip_corrupt");
        }
        Refused::IoError(e) => {
            // An error of the store came through the codec.
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
