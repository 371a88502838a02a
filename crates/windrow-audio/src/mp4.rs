//! The edit list of an MP4 track: which of the decoded samples are the sound, and which the encoder put around it.
//!
//! An AAC encoder starts with a block or two of its own making. Where the sound begins is in the track's edit list
//! (`edts/elst`) and, in Apple's files, also in a text of the metadata (`iTunSMPB`), which knows the end to the sample.

use std::ops::Range;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

/// What a track says about its own length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Samples to leave out at the beginning.
    pub(crate) skip: u64,
    /// Samples of sound after these, where that is known.
    pub(crate) len: Option<u64>,
}

/// The edit of the sound track `id`, in samples of `rate_hz`.
///
/// # Errors
/// `Unsupported` where a track is put together from several parts; `Corrupt` where boxes contradict each other, and where
/// one reaches beyond its end unless that `may_be_cut`.
pub(crate) fn edit(
    object: &dyn Object,
    sound: &Range<u64>,
    id: u32,
    rate_hz: u32,
    may_be_cut: bool,
) -> Result<Edit> {
    let file = Boxes { object, may_be_cut };
    let Some(moov) = file.find(sound, b"moov")? else { return Ok(Edit::default()) };
    let Some(track) = file.track(&moov, id)? else { return Ok(Edit::default()) };
    let media = match file.path(&track, &[b"mdia", b"mdhd"])? {
        Some(mdhd) => {
            let (per_second, declared) = file.timescale(&mdhd, "mdhd")?;
            // What the table of packets adds up to; a header's number is only declared.
            let (n_packets, held) = file.packets_by_time(&track)?;
            file.check_packets(&track, n_packets)?;
            Some((per_second, if held > 0 { held } else { declared }))
        }
        None => None,
    };
    let samples = |n: u64, per_second: u32| {
        u64::try_from(u128::from(n) * u128::from(rate_hz) / u128::from(per_second)).unwrap_or(u64::MAX)
    };
    let in_media = media.map_or(0, |(per_second, len)| samples(len, per_second));
    if let Some(edit) = file.itunes(&moov)? {
        warn_of_more(object, edit, in_media, "iTunSMPB");
        return Ok(edit);
    }
    let Some((media_hz, _)) = media else { return Ok(Edit::default()) };
    let Some(elst) = file.path(&track, &[b"edts", b"elst"])? else { return Ok(Edit::default()) };
    let Some((start, movie_len)) = file.edit_list(&elst)? else { return Ok(Edit::default()) };
    let Some(mvhd) = file.find(&moov, b"mvhd")? else { return Ok(Edit::default()) };
    let (movie_hz, _) = file.timescale(&mvhd, "mvhd")?;

    let skip = samples(start, media_hz);
    let behind_skip = in_media.saturating_sub(skip);
    let in_movie = samples(movie_len, movie_hz);
    // The movie counts in units of a millisecond or so: where both agree to one of them, the media knows the sample.
    let unit = u64::from(rate_hz.div_ceil(movie_hz));
    let len = match (behind_skip, in_movie) {
        (0, 0) => None,
        (0, n) | (n, 0) => Some(n),
        (media, movie) if media.abs_diff(movie) <= unit => Some(media),
        (media, movie) => Some(media.min(movie)),
    };
    let edit = Edit { skip, len };
    warn_of_more(object, edit, in_media, "the edit list");
    Ok(edit)
}

// An encoder puts a packet or two around the sound. Who cuts more away meant to, or never filled the number in.
fn warn_of_more(object: &dyn Object, edit: Edit, in_media: u64, who: &str) {
    const MOST_PADDING: u64 = 1 << 13;
    let played = edit.skip.saturating_add(edit.len.unwrap_or(u64::MAX));
    if in_media.saturating_sub(played) > MOST_PADDING || edit.skip > MOST_PADDING {
        log::warn!(
            "{}: {who} plays {} samples from {}; the file holds {in_media}: the others are left out",
            object.name(),
            edit.len.unwrap_or(in_media.saturating_sub(edit.skip)),
            edit.skip
        );
    }
}

/// That the file has its index: it is at the end of most, so a file that was cut short has none.
///
/// # Errors
/// `Corrupt` without one, and where a box reaches beyond its end unless that `may_be_cut`.
pub(crate) fn check_index(object: &dyn Object, sound: &Range<u64>, may_be_cut: bool) -> Result<()> {
    match (Boxes { object, may_be_cut }).find(sound, b"moov")? {
        Some(_) => Ok(()),
        None => Err(Error::corrupt("the file has no index (no box \"moov\"): nothing in it can be found")
            .at(object.name())
            .byte(sound.end)
            .hint("copy the file again; a recording that was not finished cannot be read")),
    }
}

struct Boxes<'a> {
    object: &'a dyn Object,
    may_be_cut: bool,
}

impl Boxes<'_> {
    fn bytes(&self, at: u64, size: usize) -> Result<Vec<u8>> {
        let mut scratch = Vec::new();
        Ok(self.object.read(at, size, &mut scratch)?.to_vec())
    }

    fn wrong(&self, at: u64, what: String) -> Error {
        Error::corrupt(what).at(self.object.name()).byte(at)
    }

    // The boxes that lie directly in `within`: name and content.
    fn list(&self, within: &Range<u64>) -> Result<Vec<([u8; 4], Range<u64>)>> {
        // More than any writer makes; a file of empty boxes must not become a list of millions.
        const MOST: usize = 10_000;
        let mut found = Vec::new();
        let mut at = within.start;
        while found.len() < MOST && within.end.saturating_sub(at) >= 8 {
            let head = self.bytes(at, 8)?;
            let (head_size, size) = match u64::from(be_u32(&head, 0)) {
                0 => (8, within.end - at),
                1 if within.end - at >= 16 => (16, be_u64(&self.bytes(at + 8, 8)?, 0)),
                size => (8, size),
            };
            if size < head_size || size > within.end - at {
                if self.may_be_cut {
                    break;
                }
                let name = String::from_utf8_lossy(&head[4..8]);
                let left = within.end - at;
                return Err(self
                    .wrong(at, format!("the box {name:?} declares {size} bytes, {left} are left"))
                    .hint("copy the file again, or allow what is there with skip_corrupt"));
            }
            found.push(([head[4], head[5], head[6], head[7]], at + head_size..at + size));
            at += size;
        }
        Ok(found)
    }

    fn find(&self, within: &Range<u64>, name: &[u8; 4]) -> Result<Option<Range<u64>>> {
        Ok(self.list(within)?.into_iter().find(|(n, _)| n == name).map(|(_, body)| body))
    }

    fn path(&self, within: &Range<u64>, names: &[&[u8; 4]]) -> Result<Option<Range<u64>>> {
        let mut at = within.clone();
        for name in names {
            match self.find(&at, name)? {
                Some(body) => at = body,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    fn track(&self, moov: &Range<u64>, id: u32) -> Result<Option<Range<u64>>> {
        for (name, trak) in self.list(moov)? {
            if &name != b"trak" {
                continue;
            }
            if let Some(tkhd) = self.find(&trak, b"tkhd")? {
                let head = self.start_of(&tkhd, 24)?;
                let at = if head.first() == Some(&1) { 20 } else { 12 };
                if head.len() >= at + 4 && be_u32(&head, at) == id {
                    return Ok(Some(trak));
                }
            }
        }
        Ok(None)
    }

    // At most `most` bytes of a box.
    fn start_of(&self, body: &Range<u64>, most: u64) -> Result<Vec<u8>> {
        self.bytes(body.start, (body.end - body.start).min(most) as usize)
    }

    // Units per second and length of a movie or media header.
    fn timescale(&self, body: &Range<u64>, what: &str) -> Result<(u32, u64)> {
        let head = self.start_of(body, 32)?;
        let (scale, len) = match head.first() {
            Some(1) if head.len() >= 32 => (be_u32(&head, 20), be_u64(&head, 24)),
            Some(0) if head.len() >= 20 => (be_u32(&head, 12), u64::from(be_u32(&head, 16))),
            _ => return Err(self.wrong(body.start, format!("the box {what} is too short"))),
        };
        if scale == 0 {
            return Err(self.wrong(body.start, format!("the box {what} counts in units of 1/0 second")));
        }
        // All ones: not known.
        let known = len != u64::from(u32::MAX) && len != u64::MAX;
        Ok((scale, if known { len } else { 0 }))
    }

    // How many packets the index knows by their time, and what they last in units of the media; none where they are in
    // fragments.
    fn packets_by_time(&self, track: &Range<u64>) -> Result<(u64, u64)> {
        const BLOCK: u64 = 1 << 12;
        let Some(stts) = self.path(track, &[b"mdia", b"minf", b"stbl", b"stts"])? else { return Ok((0, 0)) };
        let head = self.start_of(&stts, 8)?;
        if head.len() < 8 {
            return Ok((0, 0));
        }
        let claimed = u64::from(be_u32(&head, 4)) * 8;
        let (mut at, mut n, mut sum) = (stts.start + 8, 0_u64, 0_u64);
        let end = stts.end.min(at + claimed);
        while at < end {
            let bytes = self.bytes(at, (end - at).min(BLOCK) as usize)?;
            for entry in bytes.chunks_exact(8) {
                let (count, each) = (u64::from(be_u32(entry, 0)), u64::from(be_u32(entry, 4)));
                n = n.saturating_add(count);
                sum = sum.saturating_add(count * each);
            }
            at += BLOCK;
        }
        Ok((n, sum))
    }

    // That as many packets have a size as have a time: a reader stops at the fewer.
    fn check_packets(&self, track: &Range<u64>, by_time: u64) -> Result<()> {
        for name in [b"stsz", b"stz2"] {
            let Some(sizes) = self.path(track, &[b"mdia", b"minf", b"stbl", name])? else { continue };
            let head = self.start_of(&sizes, 12)?;
            if head.len() == 12 && u64::from(be_u32(&head, 8)) != by_time && !self.may_be_cut {
                let by_size = be_u32(&head, 8);
                return Err(self
                    .wrong(
                        sizes.start,
                        format!("the index has sizes of {by_size} packets, and times of {by_time}"),
                    )
                    .hint("copy the file again, or allow what is there with skip_corrupt"));
            }
        }
        Ok(())
    }

    // Where the one part that is played begins in the media, and how long it is in the movie.
    fn edit_list(&self, body: &Range<u64>) -> Result<Option<(u64, u64)>> {
        let head = self.start_of(body, 8 + 20 * 16)?;
        if head.len() < 8 {
            return Err(self.wrong(body.start, "the edit list is too short".to_string()));
        }
        let (long, claimed) = (head[0] == 1, be_u32(&head, 4) as usize);
        let size = if long { 20 } else { 12 };
        let mut played = Vec::new();
        for entry in head[8..].chunks_exact(size).take(claimed) {
            let (len, start) = if long {
                (be_u64(entry, 0), be_u64(entry, 8) as i64)
            } else {
                (u64::from(be_u32(entry, 0)), i64::from(be_u32(entry, 4) as i32))
            };
            // A negative start is a pause before the sound; a sound of its own has nothing to wait for.
            if let Ok(start) = u64::try_from(start) {
                played.push((start, len));
            }
        }
        match played.as_slice() {
            [] if claimed > 16 => Err(self.several(body.start, claimed)),
            [] => Ok(None),
            [only] if claimed <= 16 => Ok(Some(*only)),
            _ => Err(self.several(body.start, claimed)),
        }
    }

    fn several(&self, at: u64, parts: usize) -> Error {
        Error::unsupported(format!(
            "the edit list puts the sound together from {parts} parts, one can be read"
        ))
        .at(self.object.name())
        .byte(at)
        .hint("convert it: ffmpeg -i IN OUT.flac")
    }

    // "iTunSMPB": numbers in hexadecimal; the second is the delay, the third the padding, the fourth the length.
    fn itunes(&self, moov: &Range<u64>) -> Result<Option<Edit>> {
        let Some(meta) = self.path(moov, &[b"udta", b"meta"])? else { return Ok(None) };
        // A full box: four bytes of version and flags come first.
        let Some(ilst) = self.find(&((meta.start + 4).min(meta.end)..meta.end), b"ilst")? else {
            return Ok(None);
        };
        for (name, item) in self.list(&ilst)? {
            if &name != b"----" {
                continue;
            }
            let (Some(key), Some(data)) = (self.find(&item, b"name")?, self.find(&item, b"data")?) else {
                continue;
            };
            if self.start_of(&key, 64)?.get(4..) != Some(b"iTunSMPB") {
                continue;
            }
            let text = self.start_of(&data, 512)?;
            let text = String::from_utf8_lossy(text.get(8..).unwrap_or_default()).into_owned();
            let numbers: Vec<u64> =
                text.split_ascii_whitespace().map_while(|n| u64::from_str_radix(n, 16).ok()).collect();
            if let [_, skip, _, len, ..] = numbers[..] {
                return Ok((len > 0).then_some(Edit { skip, len: Some(len) }));
            }
        }
        Ok(None)
    }
}

fn be_u32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |n, b| n << 8 | u32::from(*b))
}

fn be_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be_u32(bytes, at)) << 32 | u64::from(be_u32(bytes, at + 4))
}
