//! What compressed streams are: known by their first bytes, read part by part, and what comes after their end.

use std::io::{self, BufRead, Read};

use flate2::bufread::{GzDecoder, ZlibDecoder};

use super::{Object, Store, key};
use crate::error::{Error, Kind, Result};

/// How an object is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip, one member or several, with zeros behind any of them.
    Gzip,
    /// Zstandard, one frame or several.
    Zstd,
    /// zlib, one stream. Its first bytes are too little to tell it by.
    Zlib,
}

impl Compression {
    /// What the first bytes say; `None` when they are not those of a compressed stream.
    ///
    /// # Errors
    /// `Io`.
    pub fn of(object: &dyn Object) -> Result<Option<Compression>> {
        let mut scratch = Vec::new();
        let head = object.read(0, object.size().min(4) as usize, &mut scratch)?;
        Ok(Compression::of_head(head))
    }

    /// What these first bytes of an object say.
    pub fn of_head(head: &[u8]) -> Option<Compression> {
        match head {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            // A frame, or one that is to be skipped: parallel writers begin with those.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// What a compressed stream expands to: all members or frames of it. Bytes behind the last one that are not part of it
    /// are left out; with `name`, of the file, a warning says so.
    ///
    /// # Errors
    /// When the decoder cannot be set up.
    pub fn decoder<'a>(
        self,
        stream: impl BufRead + Send + 'a,
        name: Option<&str>,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        let part = Part::new(self, Peeked { stream, ahead: Vec::new(), at: 0 })?;
        Ok(Box::new(Parts { compression: self, part: Some(part), name: name.map(str::to_string) }))
    }

    /// What the name ends in, without the dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Compression::Gzip => "gz",
            Compression::Zstd => "zst",
            Compression::Zlib => "zlib",
        }
    }

    /// Whether these first bytes may be those of zlib, for who knows what is within.
    pub fn may_be_zlib(head: &[u8]) -> bool {
        matches!(head, [0x78, flags, ..] if (0x7800 + u16::from(*flags)).is_multiple_of(31))
    }

    // What a part begins with.
    fn magic(self) -> &'static [u8] {
        match self {
            Compression::Gzip => &[0x1f, 0x8b, 8],
            Compression::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
            Compression::Zlib => &[0x78, 0x9c],
        }
    }
}

/// The error of an object that looks damaged, where it is a compressed stream: for formats whose files are never compressed as a
/// whole.
#[must_use]
pub fn or_compressed(error: Error, object: &dyn Object) -> Error {
    let found = (error.kind() == Kind::Corrupt).then(|| Compression::of(object).ok().flatten()).flatten();
    let Some(compression) = found else { return error };
    let name = match compression {
        Compression::Gzip => "gzip",
        Compression::Zstd => "Zstandard",
        Compression::Zlib => "zlib",
    };
    Error::unsupported(format!("found a {name} stream; files of this format are not compressed as a whole"))
        .at(object.name())
        .hint(
            "expand the file. A store that keeps or sends it with Content-Encoding gives it compressed: put it there as it is, or \
             download and expand it",
        )
}

/// An error about bytes, where their store packs them: they are those of a compressed file. Formats that expand such a file have read
/// through it.
#[must_use]
pub fn or_encoded(error: Error, store: &dyn Store) -> Error {
    let is_of_bytes = matches!(error.kind(), Kind::Corrupt | Kind::Unrecognised | Kind::Unsupported);
    let encoding =
        error.place().file.as_deref().filter(|_| is_of_bytes).and_then(|file| store.encoding(file));
    let Some(encoding) = encoding else { return error };
    error.hint(format!(
        "its store keeps or sends it with Content-Encoding: {encoding}, so these are the bytes of a compressed file: put it there without \
         that, or download and expand it"
    ))
}

/// A name without `.gz` or `.zst`, also in capitals.
pub fn plain_name(name: &str) -> &str {
    [".gz", ".zst"].iter().find_map(|suffix| key::without_suffix(name, suffix)).unwrap_or(name)
}

/// All members of a gzip stream, or all frames of a Zstandard one.
struct Parts<R: BufRead> {
    compression: Compression,
    part: Option<Part<R>>,
    name: Option<String>,
}

enum Part<R: BufRead> {
    Gzip(Box<GzDecoder<Peeked<R>>>),
    Zstd(zstd::stream::read::Decoder<'static, Peeked<R>>),
    Zlib(Box<ZlibDecoder<Peeked<R>>>),
}

impl<R: BufRead> Part<R> {
    fn new(compression: Compression, stream: Peeked<R>) -> io::Result<Self> {
        Ok(match compression {
            Compression::Gzip => Part::Gzip(Box::new(GzDecoder::new(stream))),
            Compression::Zstd => Part::Zstd(zstd::stream::read::Decoder::with_buffer(stream)?.single_frame()),
            Compression::Zlib => Part::Zlib(Box::new(ZlibDecoder::new(stream))),
        })
    }

    fn stream(&mut self) -> &mut Peeked<R> {
        match self {
            Part::Gzip(part) => part.get_mut(),
            Part::Zstd(part) => part.get_mut(),
            Part::Zlib(part) => part.get_mut(),
        }
    }

    fn into_stream(self) -> Peeked<R> {
        match self {
            Part::Gzip(part) => part.into_inner(),
            Part::Zstd(part) => part.finish(),
            Part::Zlib(part) => part.into_inner(),
        }
    }
}

impl<R: BufRead> Read for Parts<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(part) = &mut self.part {
            let size = match part {
                Part::Gzip(part) => part.read(out)?,
                Part::Zstd(part) => part.read(out)?,
                Part::Zlib(part) => part.read(out)?,
            };
            if size > 0 || out.is_empty() {
                return Ok(size);
            }
            // Taken only when it is known that there is another one: an interrupted call is made again.
            let is_more = is_more(part.stream(), self.compression, self.name.as_deref())?;
            let part = self.part.take().filter(|_| is_more);
            self.part = part.map(|part| Part::new(self.compression, part.into_stream())).transpose()?;
        }
        Ok(0)
    }
}

// Whether another part follows; the stream is left at its first byte. What is not part is left out where it cannot be one
// that was damaged: nothing of the content is lost then.
fn is_more(
    stream: &mut Peeked<impl BufRead>,
    compression: Compression,
    name: Option<&str>,
) -> io::Result<bool> {
    // gzip and Python leave out zeros, too: tapes and block devices are filled up with them.
    if compression == Compression::Gzip {
        stream.skip_zeros()?;
    }
    let head = stream.peek()?;
    let magic = compression.magic();
    let is_cut = head.len() < magic.len() && magic.starts_with(head);
    if head.is_empty() || Compression::of_head(head) == Some(compression) || is_cut {
        return Ok(!head.is_empty());
    }
    let alike = head.iter().zip(magic).filter(|(found, wanted)| found == wanted).count();
    let (trailing, has_more) = stream.rest(magic)?;
    if alike + 1 >= magic.len() || has_more {
        let what =
            format!("{trailing} bytes behind a part of the stream are damaged: another part is among them");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    if let Some(name) = name {
        crate::warn!(
            "{name}: {trailing} trailing bytes behind the end of the .{} stream are not part of it and are left out",
            compression.suffix()
        );
    }
    Ok(false)
}

/// A stream of which some bytes can be looked at before they are read.
struct Peeked<R> {
    stream: R,
    ahead: Vec<u8>,
    at: usize,
}

impl<R: BufRead> Peeked<R> {
    /// The next four bytes; fewer at the end.
    fn peek(&mut self) -> io::Result<&[u8]> {
        const MOST: usize = 4;
        self.ahead.drain(..std::mem::take(&mut self.at));
        while self.ahead.len() < MOST {
            let found = self.stream.fill_buf()?;
            let size = found.len().min(MOST - self.ahead.len());
            if size == 0 {
                break;
            }
            self.ahead.extend_from_slice(&found[..size]);
            self.stream.consume(size);
        }
        Ok(&self.ahead)
    }

    fn skip_zeros(&mut self) -> io::Result<()> {
        loop {
            let found = self.fill_buf()?;
            let zeros = found.iter().take_while(|byte| **byte == 0).count();
            let is_all = zeros == found.len();
            let is_end = found.is_empty();
            self.consume(zeros);
            if is_end || !is_all {
                return Ok(());
            }
        }
    }

    /// How many bytes are left, and whether `magic` is among them.
    fn rest(&mut self, magic: &[u8]) -> io::Result<(u64, bool)> {
        let (mut count, mut has_magic) = (0, false);
        let mut window: Vec<u8> = Vec::new();
        loop {
            let found = match self.fill_buf() {
                Ok(found) => found,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if found.is_empty() {
                return Ok((count, has_magic));
            }
            // It may be across two buffers.
            window.extend_from_slice(found);
            has_magic |= memchr::memmem::find(&window, magic).is_some();
            window.drain(..window.len().saturating_sub(magic.len() - 1));
            let size = found.len();
            count += size as u64;
            self.consume(size);
        }
    }
}

impl<R: BufRead> Read for Peeked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let found = self.fill_buf()?;
        let size = found.len().min(out.len());
        out[..size].copy_from_slice(&found[..size]);
        self.consume(size);
        Ok(size)
    }
}

impl<R: BufRead> BufRead for Peeked<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.ahead.get(self.at..) {
            Some(ahead) if !ahead.is_empty() => Ok(ahead),
            _ => self.stream.fill_buf(),
        }
    }

    fn consume(&mut self, size: usize) {
        if self.at < self.ahead.len() { self.at += size } else { self.stream.consume(size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Write};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    // The same however the stream is cut into buffers.
    #[track_caller]
    fn expand(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let found: Vec<_> = [1, 3, 4, 5, 1 << 16]
            .map(|size| {
                let compression = Compression::of_head(bytes).unwrap();
                let mut out = Vec::new();
                compression.decoder(BufReader::with_capacity(size, bytes), None)?.read_to_end(&mut out)?;
                io::Result::Ok(out)
            })
            .into();
        assert!(found.iter().all(|f| f.as_ref().ok() == found[0].as_ref().ok()), "{found:?}");
        found.into_iter().next().unwrap()
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        for (parts, zeros) in [
            ([gzip(b"ab"), gzip(b""), gzip(b"c")], vec![0; 700]),
            ([zstd(b"ab"), skipped, zstd(b"c")], vec![]),
        ] {
            assert_eq!(expand(&parts.concat()).unwrap(), b"abc");
            assert_eq!(expand(&parts.map(|part| [part, zeros.clone()].concat()).concat()).unwrap(), b"abc");
        }
    }

    #[test]
    fn what_stands_behind_the_end_is_left_out() {
        for whole in
            [gzip(b"ab"), [gzip(b"a"), gzip(b"b")].concat(), zstd(b"ab"), [zstd(b"a"), zstd(b"b")].concat()]
        {
            for behind in
                [&b"x"[..], b"\n", b"garbage", b"\0\0x", &[7; 100_000], b"\x1f\x8c", b"{\"text\": 1}\n"]
            {
                assert_eq!(expand(&[&whole, behind].concat()).unwrap(), b"ab", "{behind:?}");
            }
        }
    }

    #[test]
    fn a_part_behind_the_end_that_is_damaged_is_never_left_out() {
        for part in [gzip(b"cd"), zstd(b"cd")] {
            let size = Compression::of_head(&part).unwrap().magic().len();
            let whole = [part.clone(), part.clone()].concat();
            for bit in 0..size * 8 {
                let mut turned = whole.clone();
                turned[part.len() + bit / 8] ^= 1 << (bit % 8);
                let found = expand(&turned);
                assert!(found.is_err(), "bit {bit}: {found:?}");
            }
            for end in 1..part.len() {
                assert!(expand(&whole[..part.len() + end]).is_err(), "{end}");
            }
            assert!(expand(&[&part, &b"xy"[..], &part].concat()).is_err());
        }
    }
}
