//! Which kind of sound file it is, by its first bytes; the name is only a hint.

use std::ops::Range;
use std::path::Path;

use windrow_core::store::Object;
use windrow_core::{Error, Kind, Result};

/// The kinds that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    Wav,
    Flac,
    Mp3,
    Mp4,
    Ogg,
    Aac,
}

impl Container {
    /// What people call it.
    pub(crate) fn name(self) -> &'static str {
        self.extensions()[0]
    }

    fn extensions(self) -> &'static [&'static str] {
        match self {
            Container::Wav => &["wav", "wave", "bwf"],
            Container::Flac => &["flac"],
            Container::Mp3 => &["mp3", "mpga"],
            Container::Mp4 => &["m4a", "mp4", "m4b", "mov", "3gp"],
            Container::Ogg => &["ogg", "oga"],
            Container::Aac => &["aac", "adts"],
        }
    }

    /// By the first bytes of the sound. Warns where the name of the file says something else.
    ///
    /// # Errors
    /// `Corrupt` for an empty file, `Unsupported` for sound of another kind, `Unrecognised` for the rest.
    pub(crate) fn of(object: &dyn Object, sound: &Range<u64>) -> Result<Self> {
        let mut scratch = Vec::new();
        let size = (sound.end - sound.start).min(64);
        if size == 0 {
            return Err(Error::corrupt("the file holds no sound: it is empty but for tags").at(object.name()));
        }
        let head = object.read(sound.start, size as usize, &mut scratch)?;
        let extension = extension(object.name());
        let found = match by_content(head) {
            Some(found) => found,
            // Recorders cut streams anywhere, and some writers pad their tag: the first whole frame may come later.
            None if extension == "mp3" || sound.start > 0 => Container::Mp3,
            None => return Err(unread(head, object.name())),
        };
        if !found.extensions().contains(&extension.as_str()) && !extension.is_empty() {
            log::warn!("{}: the name ends in .{extension}, the content is {}", object.name(), found.name());
        }
        Ok(found)
    }
}

fn extension(name: &str) -> String {
    Path::new(name).extension().map_or_else(String::new, |e| e.to_string_lossy().to_ascii_lowercase())
}

fn by_content(head: &[u8]) -> Option<Container> {
    match head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some(Container::Wav),
        [b'f', b'L', b'a', b'C', ..] => Some(Container::Flac),
        [b'O', b'g', b'g', b'S', ..] if !head.get(28..).is_some_and(|h| h.starts_with(b"OpusHead")) => {
            Some(Container::Ogg)
        }
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(Container::Mp4),
        // A frame of MPEG audio: eleven bits of ones, a version, a layer, a rate of bits and one of samples.
        [0xff, second, third, ..] if second & 0xe0 == 0xe0 => match (second >> 1) & 3 {
            0 if second & 0xf0 == 0xf0 => Some(Container::Aac),
            1 if (second >> 3) & 3 != 1 && third >> 4 != 15 && (third >> 2) & 3 != 3 => Some(Container::Mp3),
            _ => None,
        },
        _ => None,
    }
}

// Sound, but of a kind that is not read.
const OTHERS: &[(usize, &[u8], &str)] = &[
    (0, b"RF64", "a wav file of more than 4 GiB (RF64)"),
    (0, b"RIFX", "a big-endian wav file (RIFX)"),
    (0, b"riff", "a Wave64 file"),
    (28, b"OpusHead", "Opus in ogg"),
    (0, b"FORM", "an AIFF file"),
    (0, b"caff", "a CAF file"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska or WebM file"),
    (0, b"\x30\x26\xb2\x75", "a WMA file"),
    (0, b"wvpk", "a WavPack file"),
    (0, b"MAC ", "a Monkey's Audio file"),
    (0, b"#!AMR", "an AMR file"),
    (0, b".snd", "an AU file"),
    (0, b"MThd", "a MIDI file"),
    (0, b"NIST_1A", "a NIST SPHERE file"),
    (0, b"DSD ", "a DSD file (DSF)"),
    (0, b"FRM8", "a DSD file (DFF)"),
    (0, b"TTA1", "a True Audio file"),
    (0, b"MPCK", "a Musepack file"),
    (0, b"\x0b\x77", "an AC-3 stream"),
];

fn unread(head: &[u8], name: &str) -> Error {
    let other = OTHERS.iter().find(|(at, mark, _)| head.get(*at..).is_some_and(|h| h.starts_with(mark)));
    let layer = matches!(head, [0xff, second, ..] if second & 0xe6 == 0xe6 || second & 0xe6 == 0xe4);
    match (other, layer) {
        (Some((_, _, what)), _) => Error::unsupported(format!("{what} is not read")),
        (None, true) => Error::unsupported("MPEG audio of layer I or II is not read"),
        (None, false) => {
            let first: Vec<String> = head.iter().take(8).map(|b| format!("{b:02x}")).collect();
            return Error::new(
                Kind::Unrecognised,
                format!("not a sound file that is read: the first bytes are {}", first.join(" ")),
            )
            .at(name)
            .hint("wav, flac, mp3, m4a and ogg are read, by content");
        }
    }
    .at(name)
    .hint("convert it: ffmpeg -i IN OUT.flac")
}
