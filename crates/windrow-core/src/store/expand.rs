//! Compressed objects: recognised by their first bytes and expanded once, into a file that can be read at any place.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::GzDecoder;

use super::cache::{BUFFER, cache_folder, cached_in};
use super::stream::Stream;
use super::{Object, Store};
use crate::error::{Error, Kind, Result};

/// How an object is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip, one member or several, with zeros behind any of them.
    Gzip,
    /// Zstandard, one frame or several.
    Zstd,
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

    /// What a compressed stream expands to; all members or frames of it.
    ///
    /// # Errors
    /// When the decoder cannot be set up.
    pub fn decoder<'a>(self, stream: impl BufRead + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
        Ok(match self {
            Compression::Gzip => Box::new(Members(Some(GzDecoder::new(stream)))),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(stream)?),
        })
    }

    /// What the name ends in, without the dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Compression::Gzip => "gz",
            Compression::Zstd => "zst",
        }
    }
}

/// A name without `.gz` or `.zst`.
pub(crate) fn plain_name(name: &str) -> &str {
    [".gz", ".zst"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// All members of a gzip stream. Zeros behind a member are left out, as gzip and Python do: tapes and block devices are
/// filled up with them.
struct Members<R: BufRead>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let size = member.read(out)?;
            if size > 0 || out.is_empty() {
                return Ok(size);
            }
            // Taken only when it is known that there is another one: an interrupted call is made again.
            let is_last = is_last(member.get_mut())?;
            self.0 = self.0.take().filter(|_| !is_last).map(|member| GzDecoder::new(member.into_inner()));
        }
        Ok(0)
    }
}

// Whether nothing but zeros follows; leaves the stream at the first byte of what does.
fn is_last(stream: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let found = stream.fill_buf()?;
        let zeros = found.iter().take_while(|byte| **byte == 0).count();
        let (is_end, is_more) = (found.is_empty(), zeros < found.len());
        stream.consume(zeros);
        if is_end || is_more {
            return Ok(is_end);
        }
    }
}

/// Opens an object; where it is compressed, expands it first into the cache (`$WINDROW_CACHE`, else
/// `$XDG_CACHE_HOME/windrow`, else `~/.cache/windrow`) or takes what an earlier run expanded.
///
/// The cache file is named by a hash of the object's path, size, time and ends, and appears by one rename. It takes at most
/// `most` bytes; 1,000 times the object and 64 MiB if not given.
///
/// # Errors
/// `Corrupt` when the stream is cut off or damaged; `Io` when the disk is full; `Config` when it expands to more, or there
/// is no place for a cache. Nothing is left behind then.
pub fn expanded(store: &Arc<dyn Store>, key: &str, most: Option<u64>) -> Result<Arc<dyn Object>> {
    let object = store.open(key)?;
    match Compression::of(object.as_ref())? {
        None => check_plain(object.as_ref()).map(|()| object),
        Some(compression) => {
            // gzip comes to 1,032 times at most; a few bytes of zstd may be made to fill any disk.
            let most = most.unwrap_or_else(|| object.size().saturating_mul(1000).saturating_add(64 << 20));
            expanded_in(&cache_folder()?, object.as_ref(), compression, most)
        }
    }
}

// A name that promises a compression which the first bytes lack: cut off, or something else altogether.
fn check_plain(object: &dyn Object) -> Result<()> {
    let promised = [Compression::Gzip, Compression::Zstd]
        .into_iter()
        .find(|c| object.name().strip_suffix(c.suffix()).is_some_and(|name| name.ends_with('.')));
    let Some(promised) = promised else { return Ok(()) };
    let mut scratch = Vec::new();
    let head = object.read(0, object.size().min(4) as usize, &mut scratch)?;
    Err(Error::corrupt(format!(
        "expected a .{} stream, found {} bytes starting {head:02x?}",
        promised.suffix(),
        object.size()
    ))
    .at(object.name())
    .byte(0)
    .hint("the copy looks unfinished; if it is plain text, name it so"))
}

fn expanded_in(
    folder: &Path,
    object: &dyn Object,
    compression: Compression,
    most: u64,
) -> Result<Arc<dyn Object>> {
    let inner = cached_in(folder, object, "", |draft| {
        log::info!("expanding {} into {}", object.name(), folder.display());
        let size = expand_within(object, compression, draft, most)?;
        log::info!("expanded {} to {size} bytes", object.name());
        Ok(())
    })?;
    Ok(Arc::new(Expanded { inner, name: object.name().to_string(), modified_ns: object.modified_ns() }))
}

/// Writes what a compressed object expands to; gives the number of bytes. Memory stays bounded by the stream's own
/// window, whatever it expands to.
///
/// # Errors
/// `Corrupt` naming the object when its stream is cut off or damaged; `Io` when reading or writing fails.
pub fn expand_to(object: &dyn Object, compression: Compression, writer: &mut dyn Write) -> Result<u64> {
    expand_within(object, compression, writer, u64::MAX)
}

fn expand_within(
    object: &dyn Object,
    compression: Compression,
    writer: &mut dyn Write,
    most: u64,
) -> Result<u64> {
    let broken = |e: io::Error, done: u64| broken_stream(object, compression, e, done);
    let input = BufReader::with_capacity(BUFFER, Stream::new(object));
    let mut stream = compression.decoder(input).map_err(|e| broken(e, 0))?;
    let mut buffer = vec![0; BUFFER];
    let mut done = 0;
    loop {
        let size = match stream.read(&mut buffer) {
            Ok(0) => return Ok(done),
            Ok(size) => size,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(broken(e, done)),
        };
        if done + size as u64 > most {
            let found = object.size();
            return Err(Error::config(format!(
                "{found} bytes that expand to more than {most} bytes of cache"
            ))
            .at(object.name())
            .field("cache_limit")
            .hint(
                "allow more with cache_limit; so little that holds so much says the same again and again",
            ));
        }
        writer.write_all(&buffer[..size]).map_err(|e| {
            Error::new(Kind::Io, format!("cannot write what it expands to, after {done} bytes"))
                .at(object.name())
                .caused_by(e)
        })?;
        done += size as u64;
    }
}

/// Whether a frame asks for more memory than the decoder gives: sound, but packed with a long window.
pub(crate) fn needs_window(cause: &io::Error) -> bool {
    cause.to_string().contains("too much memory")
}

/// The error for such a frame. A few bytes may ask for 2 GiB, so what they ask for is not given.
pub(crate) fn long_window(file: impl std::fmt::Display) -> Error {
    Error::unsupported("a .zst stream with a window of more than 128 MiB")
        .at(file.to_string())
        .hint("pack it again: zstd -d --long=31 -c OLD | zstd > NEW; where zstd cannot read it either, it is damaged")
}

fn broken_stream(object: &dyn Object, compression: Compression, cause: io::Error, done: u64) -> Error {
    // An error of the store keeps its own kind and place.
    let cause = match cause.downcast::<Error>() {
        Ok(own) => return own,
        Err(cause) => cause,
    };
    if needs_window(&cause) {
        return long_window(object.name());
    }
    let what = match cause.kind() {
        io::ErrorKind::UnexpectedEof => "the compressed stream is cut off",
        _ => "the compressed stream is damaged",
    };
    Error::corrupt(format!(
        "{what}: expected a whole .{} stream, found {} bytes that expand to {done} and no end",
        compression.suffix(),
        object.size()
    ))
    .at(object.name())
    .caused_by(cause)
    .hint("the copy looks unfinished: fetch it again")
}

/// The first bytes that an object expands to, at most `most`; of what is damaged, those before the damage.
///
/// # Errors
/// `Io`.
pub(crate) fn expanded_head(object: &dyn Object, most: usize) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    if let Some(compression) = Compression::of(object)? {
        let input = BufReader::with_capacity(BUFFER, Stream::new(object));
        if let Ok(stream) = compression.decoder(input) {
            // What comes before the damage stays in `head`; the damage is told by who reads all of it.
            let _ = stream.take(most as u64).read_to_end(&mut head);
        }
    }
    Ok(head)
}

/// The expanded bytes under the name of the compressed object.
struct Expanded {
    inner: Arc<dyn Object>,
    name: String,
    modified_ns: Option<u64>,
}

impl Object for Expanded {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn modified_ns(&self) -> Option<u64> {
        self.modified_ns
    }

    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.inner.read(start, size, scratch)
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.inner.mapped()
    }

    fn advise(&self, start: u64, size: u64) {
        self.inner.advise(start, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Memory;
    use std::fs;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn object(bytes: Vec<u8>) -> Arc<dyn Object> {
        Memory::new().with("x.gz", bytes).open("x.gz").unwrap()
    }

    fn expand(bytes: Vec<u8>) -> Result<Vec<u8>> {
        let object = object(bytes);
        let mut out = Vec::new();
        let compression = Compression::of(object.as_ref())?.unwrap();
        let size = expand_to(object.as_ref(), compression, &mut out)?;
        assert_eq!(size, out.len() as u64);
        Ok(out)
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        assert_eq!(expand([gzip(b"ab"), gzip(b""), gzip(b"c")].concat()).unwrap(), b"abc");
        let frame = |b: &[u8]| zstd::encode_all(b, 1).unwrap();
        assert_eq!(expand([frame(b"ab"), frame(b"c")].concat()).unwrap(), b"abc");
    }

    #[test]
    fn zeros_behind_a_member_are_left_out_and_nothing_else_is() {
        let zeros = vec![0; 3 * BUFFER + 1];
        for end in [1, 511, zeros.len()] {
            assert_eq!(expand([gzip(b"ab"), zeros[..end].to_vec()].concat()).unwrap(), b"ab");
            let two = [gzip(b"ab"), zeros[..end].to_vec(), gzip(b"c"), zeros[..end].to_vec()].concat();
            assert_eq!(expand(two).unwrap(), b"abc");
            let more = [gzip(b"ab"), zeros[..end].to_vec(), b"x".to_vec()].concat();
            assert_eq!(expand(more).unwrap_err().kind(), Kind::Corrupt);
        }
    }

    #[test]
    fn every_cut_of_a_stream_is_an_error_that_names_it() {
        let text = b"one line\nanother line\n".repeat(20);
        for whole in [gzip(&text), zstd::encode_all(&text[..], 3).unwrap()] {
            for end in 4..whole.len() {
                let e = expand(whole[..end].to_vec()).unwrap_err();
                assert_eq!(e.kind(), Kind::Corrupt, "cut at {end}: {e}");
                assert_eq!(e.place().file.as_deref(), Some("x.gz"));
            }
        }
    }

    #[test]
    fn the_cache_holds_whole_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let whole = gzip(b"some text");
        let cut = object(whole[..whole.len() - 1].to_vec());
        assert!(expanded_in(folder.path(), cut.as_ref(), Compression::Gzip, 100).is_err());
        assert_eq!(names(), 0);
        for _ in 0..2 {
            let whole = object(whole.clone());
            let found = expanded_in(folder.path(), whole.as_ref(), Compression::Gzip, 100).unwrap();
            assert_eq!(found.mapped(), Some(&b"some text"[..]));
            assert_eq!(found.name(), "x.gz");
            assert_eq!(names(), 1);
        }
    }

    #[test]
    fn it_takes_no_more_of_the_cache_than_it_may() {
        let folder = tempfile::tempdir().unwrap();
        let whole = object(zstd::encode_all(&[b'a'; 3_000_000][..], 3).unwrap());
        assert!(whole.size() < 1_000);
        let expand = |most| expanded_in(folder.path(), whole.as_ref(), Compression::Zstd, most);
        let e = expand(2_999_999).map(drop).unwrap_err();
        assert_eq!((e.kind(), e.place().field.as_deref()), (Kind::Config, Some("cache_limit")), "{e}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(expand(3_000_000).unwrap().size(), 3_000_000);
    }

    #[test]
    fn a_writer_that_fails_is_an_io_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let e = expand_to(object(gzip(b"a")).as_ref(), Compression::Gzip, &mut Full).unwrap_err();
        assert_eq!(e.kind(), Kind::Io);
    }
}
