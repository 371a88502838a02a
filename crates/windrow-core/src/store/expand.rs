//! Compressed objects, expanded once into a file that can be read at any place.

use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;

use super::cache::{BUFFER, Cache, Draft};
use super::compression::Compression;
use super::stream::Stream;
use super::version::Version;
use super::{Object, Store, key};
use crate::error::{Error, Kind, Result};

/// Opens an object; where it is compressed, expands it first into the cache (`$WINDROW_CACHE`, else
/// `$XDG_CACHE_HOME/windrow`, else `~/.cache/windrow`) or takes what an earlier run expanded.
///
/// The cache file is found by the version of the object and appears by one rename. It takes at most `most` bytes; 1,000 times
/// the object and 64 MiB if not given.
///
/// # Errors
/// `Corrupt` when the stream is cut off or damaged; `Io` when the disk is full; `Config` when it expands to more, or there
/// is no place for a cache. Nothing is left behind then.
pub fn expanded(store: &Arc<dyn Store>, key: &str, most: Option<u64>) -> Result<Arc<dyn Object>> {
    let object = store.open(key)?;
    let compression = Compression::of(object.as_ref())?;
    expanded_as(object, compression, most)
}

/// Expands an object that is known to be compressed so, or not at all.
///
/// # Errors
/// As [`expanded`].
pub fn expanded_as(
    object: Arc<dyn Object>,
    compression: Option<Compression>,
    most: Option<u64>,
) -> Result<Arc<dyn Object>> {
    match compression {
        None => check_plain(object.as_ref()).map(|()| object),
        Some(compression) => {
            // gzip comes to 1,032 times at most; a few bytes of zstd may be made to fill any disk.
            let most = most.unwrap_or_else(|| object.size().saturating_mul(1000).saturating_add(64 << 20));
            let cache = Cache::new(None, object.cache_limit())?;
            expanded_in(&cache, object.as_ref(), |draft| {
                expand_within(object.as_ref(), compression, draft, most)
            })
        }
    }
}

/// Expands an object that must be compressed, to at most the `most` bytes that an index declares; `check` is asked before it is
/// expanded, and not where it was before.
///
/// # Errors
/// As [`expanded`]; `Corrupt` for an object that is not compressed, or expands to more; what `check` says.
pub fn expanded_checked(
    object: &dyn Object,
    most: u64,
    check: &dyn Fn() -> Result<()>,
) -> Result<Arc<dyn Object>> {
    match Compression::of(object)? {
        Some(compression) => expanded_in(&Cache::new(None, object.cache_limit())?, object, |draft| {
            check()?;
            expand_within(object, compression, draft, most).map_err(|e| match e.place().field.as_deref() {
                Some("cache_limit") => {
                    Error::corrupt(format!("more than the {most} bytes that the index says"))
                        .at(object.name())
                        .caused_by(e)
                }
                _ => e,
            })
        }),
        None => {
            // What it should be may say what is wrong with it.
            check()?;
            Err(Error::corrupt("expected a .gz or .zst stream, found something else").at(object.name()))
        }
    }
}

/// Expands an object by a decoder of the caller's, which writes what the object expands to and gives the number of bytes.
///
/// # Errors
/// What `check` and the decoder say.
pub fn expanded_with(
    object: &dyn Object,
    check: &dyn Fn() -> Result<()>,
    expand: &dyn Fn(&mut dyn Write) -> Result<u64>,
) -> Result<Arc<dyn Object>> {
    expanded_in(&Cache::new(None, object.cache_limit())?, object, |draft| {
        check().and_then(|()| expand(draft))
    })
}

// A name that promises a compression which the first bytes lack: cut off, or something else altogether.
fn check_plain(object: &dyn Object) -> Result<()> {
    let promised = [Compression::Gzip, Compression::Zstd]
        .into_iter()
        .find(|c| key::has_suffix(object.name(), &format!(".{}", c.suffix())));
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
    cache: &Cache,
    object: &dyn Object,
    expand: impl FnOnce(&mut Draft) -> Result<u64>,
) -> Result<Arc<dyn Object>> {
    let inner = cache.made(object, "expanded", "", |draft| {
        log::info!("expanding {} into {}", object.name(), cache.folder().display());
        let size = expand(draft)?;
        log::info!("expanded {} to {size} bytes", object.name());
        Ok(())
    })?;
    Ok(Arc::new(Expanded {
        inner,
        name: object.name().to_string(),
        modified_ns: object.modified_ns(),
        changed_ns: object.changed_ns(),
        version: object.version().map(|version| Version { is_expanded: true, ..version }),
        tag: object.tag().map(|tag| format!("{tag}, expanded")),
        is_compared: object.is_compared(),
        cache_limit: object.cache_limit(),
    }))
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
    let mut stream = compression.decoder(input, Some(object.name())).map_err(|e| broken(e, 0))?;
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
                "allow more with @cache_limit@, which bounds all of the cache; so little that holds so much says the same \
                 again and again",
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
pub fn needs_window(cause: &io::Error) -> bool {
    cause.to_string().contains("too much memory")
}

/// The error for such a frame. A few bytes may ask for 2 GiB, so what they ask for is not given.
pub fn long_window(file: impl std::fmt::Display) -> Error {
    Error::unsupported("a .zst stream with a window of more than 128 MiB")
        .at(file.to_string())
        .hint("pack it again: `zstd -d --long=31 -c OLD | zstd > NEW`; where zstd cannot read it either, it is damaged")
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

/// What an object holds from its beginning, expanded where it is compressed; nothing is kept. An error of reading is that
/// the stream is damaged.
///
/// # Errors
/// `Io`; the inner one where the decoder cannot be set up.
pub fn expanded_stream(object: &dyn Object) -> Result<io::Result<Box<dyn Read + Send + '_>>> {
    Ok(stream_of(object, Compression::of(object)?))
}

fn stream_of(object: &dyn Object, compression: Option<Compression>) -> io::Result<Box<dyn Read + Send + '_>> {
    let input = BufReader::with_capacity(BUFFER, Stream::new(object));
    match compression {
        Some(compression) => compression.decoder(input, None),
        None => Ok(Box::new(input)),
    }
}

/// The first bytes of that, at most `most`; of what is damaged, those before the damage.
///
/// # Errors
/// `Io`.
pub fn expanded_head(object: &dyn Object, most: usize) -> Result<Vec<u8>> {
    head_as(object, Compression::of(object)?, most)
}

/// The first bytes of an object that is known to be compressed so, or not at all.
///
/// # Errors
/// `Io`.
pub fn head_as(object: &dyn Object, compression: Option<Compression>, most: usize) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    if let Ok(stream) = stream_of(object, compression) {
        // What comes before the damage stays in `head`; the damage is reported by whoever reads all of it.
        let read = stream.take(most as u64).read_to_end(&mut head);
        if let Some(error) = read.err().and_then(unless_damaged) {
            return Err(error);
        }
    }
    Ok(head)
}

/// Whether the beginning of a compressed stream can be expanded: bytes that begin like one by chance cannot.
///
/// # Errors
/// `Io`.
pub fn begins_to_expand(object: &dyn Object) -> Result<bool> {
    const LOOKED_AT: u64 = 64 << 10;
    let Ok(stream) = expanded_stream(object)? else { return Ok(false) };
    match io::copy(&mut stream.take(LOOKED_AT), &mut io::sink()) {
        Ok(_) => Ok(true),
        Err(e) => unless_damaged(e).map_or(Ok(false), Err),
    }
}

/// What a stream of an object says where it is not the bytes that are wrong: that they could not be had.
pub fn unless_damaged(error: io::Error) -> Option<Error> {
    error.downcast::<Error>().ok().filter(Error::is_of_the_run)
}

/// The expanded bytes under the name of the compressed object.
struct Expanded {
    inner: Arc<dyn Object>,
    name: String,
    modified_ns: Option<u64>,
    changed_ns: Option<u64>,
    version: Option<Version>,
    tag: Option<String>,
    is_compared: bool,
    cache_limit: Option<u64>,
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

    fn changed_ns(&self) -> Option<u64> {
        self.changed_ns
    }

    fn version(&self) -> Option<Version> {
        self.version
    }

    fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    fn is_compared(&self) -> bool {
        self.is_compared
    }

    fn cache_limit(&self) -> Option<u64> {
        self.cache_limit
    }

    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.inner.read(start, size, scratch)
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.inner.mapped()
    }

    fn prefetch(&self, start: u64, size: u64) {
        self.inner.prefetch(start, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Memory;
    use std::fs;
    use std::path::Path;

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

    fn expand_in(
        cache: &Path,
        object: &dyn Object,
        compression: Compression,
        most: u64,
    ) -> Result<Arc<dyn Object>> {
        expanded_in(&Cache::at(cache), object, |draft| expand_within(object, compression, draft, most))
    }

    #[test]
    fn the_cache_holds_whole_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let whole = gzip(b"some text");
        let cut = object(whole[..whole.len() - 1].to_vec());
        assert!(expand_in(folder.path(), cut.as_ref(), Compression::Gzip, 100).is_err());
        assert_eq!(names(), 0);
        for _ in 0..2 {
            let whole = object(whole.clone());
            let found = expand_in(folder.path(), whole.as_ref(), Compression::Gzip, 100).unwrap();
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
        let expand = |most| expand_in(folder.path(), whole.as_ref(), Compression::Zstd, most);
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
