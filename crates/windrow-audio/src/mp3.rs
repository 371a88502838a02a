//! The frames of an mp3 file, one after the other to its end, and which of their samples are the sound.
//!
//! An encoder's tag says how many frames there are and which samples are padding. It is a declared value: joined files have
//! several tags, streams one that was never filled in, and files that were edited an old one. So every frame that is there is
//! read, and padding is cut only where the tag's count is that of the frames.

use std::ops::Range;
use std::sync::Arc;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

use crate::mp3_header::{HEADER, Header};
use crate::mp3_tag::Tag;
use crate::tags;
use crate::window::Window;

/// A frame of sound.
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) header: Header,
    /// The samples of it that are not padding.
    pub(crate) sound: Range<u64>,
    /// The first one behind an encoder's tag: what was decoded before has nothing to do with it.
    pub(crate) is_first: bool,
}

/// The frames behind one encoder's tag.
#[derive(Default)]
struct Part {
    tag: Option<(u64, Tag)>,
    n_frames: u64,
    /// Whether the padding is where the tag says; not known before it comes near.
    ends_as_told: Option<bool>,
}

/// Reads the frames of an object, by position.
pub(crate) struct Frames {
    file: Window,
    at: u64,
    /// What all frames are like.
    first: Header,
    part: Part,
    n_frames: u64,
    skip_corrupt: bool,
    /// Places that were passed over because that is allowed.
    pub(crate) n_corrupt: u64,
}

/// What is at a place.
enum Found {
    Frame(Header),
    /// A tag of a player, with its size in bytes.
    Tag(u64),
    /// Neither.
    Other,
}

impl Frames {
    /// At the first frame of `sound`.
    ///
    /// # Errors
    /// `Corrupt` where no frame is found; what reading says.
    pub(crate) fn open(object: Arc<dyn Object>, sound: Range<u64>, skip_corrupt: bool) -> Result<Self> {
        let mut file = Window::new(object, sound.end);
        let Some((at, first)) = next_frame(&mut file, sound.start, None)? else {
            return Err(Error::corrupt("no frame of MP3 is found in the file")
                .at(file.name())
                .hint("it may be another kind of file, or of free bit rate, which is not read: ffmpeg -i IN OUT.flac"));
        };
        // Recorders cut streams anywhere, and a tag that declares more than its own size takes frames with it.
        let front = file.behind_zeros(sound.start)?.min(at);
        if front < at {
            log::warn!(
                "{}: {} bytes before the first frame, at byte {front}, are not MP3",
                file.name(),
                at - front
            );
        }
        let (part, n_frames, n_corrupt) = (Part::default(), 0, 0);
        let mut frames = Frames { file, at, first, part, n_frames, skip_corrupt, n_corrupt };
        frames.take_tag(first)?;
        Ok(frames)
    }

    /// What the first frame says of all.
    pub(crate) fn header(&self) -> Header {
        self.first
    }

    /// Samples of sound, where a tag says how many and the file is as long as it says.
    pub(crate) fn n_promised(&self) -> Option<u64> {
        let (at, tag) = self.part.tag.as_ref()?;
        // The last frame may be counted or not.
        let is_as_long = tag.n_bytes?.abs_diff(self.file.end() - at) <= 2 * self.first.size;
        let n_samples = tag.n_frames.filter(|n| *n > 0 && is_as_long)?.checked_mul(self.first.n_samples)?;
        n_samples.checked_sub(tag.delay + tag.padding)
    }

    /// The next frame of sound, `None` at the end.
    ///
    /// # Errors
    /// `Corrupt` where frames are missing, the last one is cut, or bytes between frames are none; `Unsupported` where the
    /// sound changes its rate or channels. What `skip_corrupt` allows is not an error. As reading.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>> {
        while self.at < self.file.end() {
            match self.found(self.at)? {
                Found::Tag(size) => self.at += size,
                Found::Other => match self.pass_over()? {
                    Some(at) => self.at = at,
                    None => break,
                },
                Found::Frame(header) if !header.is_like(&self.first) => {
                    return Err(Error::unsupported(format!(
                        "the sound changes from {} channels at {} Hz to {} at {} Hz",
                        self.first.n_channels, self.first.rate_hz, header.n_channels, header.rate_hz
                    ))
                    .at(self.file.name())
                    .byte(self.at)
                    .hint("convert it: ffmpeg -i IN OUT.flac"));
                }
                Found::Frame(header) if header.size > self.file.end() - self.at => {
                    let end = self.file.end();
                    self.allow(format!("the file ends in the middle of frame {}", self.n_frames), end)?;
                    break;
                }
                Found::Frame(header) => {
                    if !self.take_tag(header)? {
                        return self.take(header).map(Some);
                    }
                }
            }
        }
        self.at = self.file.end();
        self.end_part()?;
        Ok(None)
    }

    // A frame of sound that lies here.
    fn take(&mut self, header: Header) -> Result<Frame> {
        let bytes = self.file.get(self.at, header.size as usize)?.to_vec();
        self.at += header.size;
        let from = self.part.n_frames * header.n_samples;
        self.part.n_frames += 1;
        self.n_frames += 1;
        let mut sound = 0..header.n_samples;
        if let Some((_, tag)) = &self.part.tag {
            sound.start = tag.delay.saturating_sub(from).min(sound.end);
            let n_frames = tag.n_frames.unwrap_or(0);
            let end = n_frames.saturating_mul(header.n_samples).saturating_sub(tag.padding);
            if tag.padding > 0 && end < from + header.n_samples && self.part.n_frames <= n_frames {
                let left = n_frames - self.part.n_frames;
                let ends_as_told = match self.part.ends_as_told {
                    Some(known) => known,
                    None => self.ends_behind(left)?,
                };
                self.part.ends_as_told = Some(ends_as_told);
                if ends_as_told {
                    sound.end = end.saturating_sub(from).max(sound.start);
                }
            }
        }
        let is_first = self.part.n_frames == 1 && self.n_frames > 1;
        Ok(Frame { bytes, header, sound, is_first })
    }

    // Whether the part has `n_frames` frames more, and no others.
    fn ends_behind(&mut self, n_frames: u64) -> Result<bool> {
        let (mut at, mut left) = (self.at, n_frames);
        loop {
            match self.found(at)? {
                Found::Tag(size) => at += size,
                Found::Frame(header)
                    if header.is_like(&self.first) && header.size <= self.file.end() - at =>
                {
                    match Tag::of(self.file.get(at, header.size as usize)?, &header) {
                        None if left == 0 => return Ok(false),
                        None => (at, left) = (at + header.size, left - 1),
                        Some(_) => return Ok(left == 0),
                    }
                }
                Found::Frame(_) => return Ok(false),
                Found::Other => match self.behind_filling(at)? {
                    Some(behind) => at = behind,
                    None => return Ok(left == 0 && self.next_frame(at)?.is_none()),
                },
            }
        }
    }

    // Whether the frame that lies here is an encoder's tag: then the part before it is complete.
    fn take_tag(&mut self, header: Header) -> Result<bool> {
        let Some(tag) = Tag::of(self.file.get(self.at, header.size as usize)?, &header) else {
            return Ok(false);
        };
        self.end_part()?;
        if tag.is_damaged {
            log::warn!(
                "{}: the encoder's tag at byte {} does not have its checksum: its padding stays in the sound",
                self.file.name(),
                self.at
            );
        }
        self.part = Part { tag: Some((self.at, tag)), ..Part::default() };
        self.at += header.size;
        Ok(true)
    }

    // Are these all frames that its tag counts?
    fn end_part(&mut self) -> Result<()> {
        let n_frames = self.part.n_frames;
        let Some((at, tag)) = self.part.tag.take() else { return Ok(()) };
        let Some(declared) = tag.n_frames.filter(|declared| *declared != n_frames) else { return Ok(()) };
        // Some encoders count the tag itself; and some numbers were changed, while the bytes are all there.
        let has_its_bytes = tag.n_bytes.is_some_and(|n_bytes| n_bytes <= self.at - at);
        if n_frames < declared && (tag.is_exact || (n_frames + 1 < declared && !has_its_bytes)) {
            return self
                .allow(format!("the encoder's tag declares {declared} frames, {n_frames} follow it"), at);
        }
        if n_frames + 1 != declared {
            log::warn!(
                "{}: the encoder's tag at byte {at} declares {declared} frames, {n_frames} follow it: all are read",
                self.file.name()
            );
        }
        Ok(())
    }

    // Continues where that is allowed.
    fn allow(&mut self, what: String, at: u64) -> Result<()> {
        if !self.skip_corrupt {
            return Err(Error::corrupt(what)
                .at(self.file.name())
                .byte(at)
                .hint("copy the file again, or allow what is there with skip_corrupt"));
        }
        self.n_corrupt += 1;
        Ok(())
    }

    // Where the next frame or tag is, behind bytes that are neither; `None` where there is none to the end.
    fn pass_over(&mut self) -> Result<Option<u64>> {
        if let Some(behind) = self.behind_filling(self.at)? {
            return Ok(Some(behind).filter(|behind| *behind < self.file.end()));
        }
        let n_frames = self.n_frames;
        let Some((next, _)) = self.next_frame(self.at)? else {
            let (n, at) = (self.file.end() - self.at, self.at);
            log::warn!("{}: {n} bytes behind the last frame, at byte {at}, are not MP3", self.file.name());
            return Ok(None);
        };
        let n = next - self.at;
        self.allow(format!("{n} bytes between frames are not MP3, behind {n_frames} frames"), self.at)?;
        Ok(Some(next))
    }

    // Behind zeros that only fill a file up: to its end, or to where another one was joined to it.
    fn behind_filling(&mut self, at: u64) -> Result<Option<u64>> {
        let behind = self.file.behind_zeros(at)?;
        if behind == at {
            return Ok(None);
        }
        let is_between = match self.found(behind)? {
            Found::Frame(header) => Tag::of(self.file.get(behind, header.size as usize)?, &header).is_some(),
            Found::Tag(_) => true,
            Found::Other => behind == self.file.end(),
        };
        Ok(is_between.then_some(behind))
    }

    fn next_frame(&mut self, from: u64) -> Result<Option<(u64, Header)>> {
        next_frame(&mut self.file, from, Some(self.first))
    }

    fn found(&mut self, at: u64) -> Result<Found> {
        if let Some(header) = Header::of(self.file.get(at, HEADER)?) {
            // Behind a whole frame the next one is believed; another kind only where more of it follow.
            if header.is_like(&self.first) || follows(&mut self.file, at, &header)? {
                return Ok(Found::Frame(header));
            }
        }
        Ok(match tags::size_at(&mut self.file, at)? {
            Some(size) => Found::Tag(size),
            None => Found::Other,
        })
    }
}

// The first frame at or behind a place that another one follows; like `like`, where that is known.
fn next_frame(file: &mut Window, from: u64, like: Option<Header>) -> Result<Option<(u64, Header)>> {
    let mut at = from;
    loop {
        let bytes = file.block(at)?;
        let Some(sync) = bytes.iter().position(|b| *b == 0xff) else {
            if bytes.is_empty() {
                return Ok(None);
            } else {
                at += bytes.len() as u64
            }
            continue;
        };
        at += sync as u64;
        if let Some(header) = Header::of(file.get(at, HEADER)?)
            && like.is_none_or(|like| header.is_like(&like))
            && follows(file, at, &header)?
        {
            return Ok(Some((at, header)));
        }
        at += 1;
    }
}

// Whether a frame like it, a tag, or the end follows a frame.
fn follows(file: &mut Window, at: u64, header: &Header) -> Result<bool> {
    let behind = at + header.size;
    if behind >= file.end() {
        return Ok(behind == file.end());
    }
    match Header::of(file.get(behind, HEADER)?) {
        Some(next) => Ok(next.is_like(header)),
        None => Ok(tags::size_at(file, behind)?.is_some()),
    }
}
