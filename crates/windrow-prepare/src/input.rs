//! One input file, plain or compressed, read as a stream of bytes from any place; of a pipe once.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_core::format::{Table, foreign};
use windrow_core::manifest::FileRow;
use windrow_core::output::hex;
use windrow_core::store::{
    Compression, Memory, Object, Pipe, Store, is_read_once, is_url, long_window, needs_window, plain_name,
};
use windrow_core::{Error, Kind, Result};

use super::places::Places;

/// An input as it was found when the task began.
#[derive(Clone)]
pub(super) struct Input {
    /// The formats, which say what is no text.
    table: Table,
    /// Where it lies.
    pub(super) file: PathBuf,
    /// The store whose root it is; `None` of a pipe.
    store: Option<Arc<dyn Store>>,
    /// Its relative name, size and time.
    pub(super) row: FileRow,
    compression: Option<Compression>,
    /// Bytes of a plain file that are read; `None` for all of it.
    end: Option<u64>,
    /// Bytes that came, of a pipe.
    came: Arc<AtomicU64>,
}

impl Input {
    /// Looks at the file; compression is recognised by its first bytes.
    ///
    /// # Errors
    /// `NotFound`, `Unsupported` when it is not a file, `Corrupt` when its name promises a compression that its bytes lack.
    pub(super) fn of(table: Table, places: Places<'_>, file: &Path, name: &str) -> Result<Self> {
        let store = places.root_by_position(file)?;
        let object = store.open("")?;
        let compression = Compression::of(object.as_ref())?;
        if compression.is_none() && plain_name(name) != name {
            let mut scratch = Vec::new();
            let head = object.read(0, object.size().min(4) as usize, &mut scratch)?;
            return Err(Error::corrupt(format!(
                "the name promises a compressed file, the first bytes are {head:02x?}"
            ))
            .at(file)
            .byte(0));
        }
        // What the stream holds is looked at line by line.
        if compression.is_none() {
            foreign::refuse_as_text(foreign::listed(table), object.as_ref())?;
        }
        let row = FileRow {
            name: name.to_string(),
            size: object.size(),
            modified_ns: object.modified_ns(),
            etag: object.tag().map(str::to_string),
            ..FileRow::default()
        };
        Ok(Input {
            table,
            file: file.to_path_buf(),
            store: Some(store),
            row,
            compression,
            end: None,
            came: Arc::default(),
        })
    }

    /// Looks at what may be a pipe, of which nothing is read yet: each time it is another input.
    ///
    /// # Errors
    /// As [`Input::of`].
    pub(super) fn of_any(table: Table, places: Places<'_>, file: &Path, name: &str) -> Result<Self> {
        if is_url(file) || !is_read_once(file) {
            return Input::of(table, places, file, name);
        }
        let random = RandomState::new().build_hasher().finish();
        let etag = Some(format!("pipe {}", hex(random)));
        let row = FileRow { name: name.to_string(), etag, ..FileRow::default() };
        Ok(Input {
            table,
            file: file.to_path_buf(),
            store: None,
            row,
            compression: None,
            end: None,
            came: Arc::default(),
        })
    }

    /// A pipe, whose bytes come once: what stopped cannot be continued.
    pub(super) fn is_pipe(&self) -> bool {
        self.store.is_none()
    }

    /// Has to be expanded before it can be read by position.
    pub(super) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// The checksum in its stream, which is compared when all of it was expanded; zstd need not have one.
    pub(super) fn checksum(&self) -> Option<&'static str> {
        (self.compression == Some(Compression::Gzip)).then_some("CRC-32 of gzip")
    }

    /// Whether it holds no byte, expanded.
    ///
    /// # Errors
    /// As [`Input::stream`].
    pub(super) fn is_empty(&self) -> Result<bool> {
        Ok(self.row.size == 0 || (self.is_compressed() && self.stream(0)?.next(1)?.is_empty()))
    }

    /// Ends it at byte `end`; not where it is compressed.
    pub(super) fn up_to(self, end: u64) -> Self {
        Input { end: Some(end), ..self }
    }

    /// Its bytes, expanded, from byte `from` on.
    ///
    /// # Errors
    /// `Stale` when it is not the file it was; `Corrupt`, `Io`.
    pub(super) fn stream(&self, from: u64) -> Result<Stream> {
        let Some(store) = &self.store else { return self.piped() };
        let object = store.open("")?;
        self.check(object.as_ref())?;
        let stored = Arc::new(AtomicU64::new(0));
        let reader = ObjectReader { object: object.clone(), at: 0, stored: stored.clone() };
        let bytes = match self.compression {
            None => Bytes::Plain(object),
            Some(compression) => {
                let stream = io::BufReader::with_capacity(PART, reader);
                let name = self.file.display().to_string();
                Bytes::Read(compression.decoder(stream, Some(&name)).map_err(|e| self.damaged(e, 0))?)
            }
        };
        let mut stream = Stream { input: self.clone(), bytes, at: 0, stored, scratch: Vec::new() };
        match stream.bytes {
            Bytes::Plain(_) => stream.at = from,
            Bytes::Read(_) => {
                while stream.at < from {
                    let most = usize::try_from(from - stream.at).unwrap_or(PART).min(PART);
                    if stream.next(most)?.is_empty() {
                        return Err(self.changed("it became shorter"));
                    }
                }
            }
        }
        Ok(stream)
    }

    /// What is known of it, and of a pipe how many bytes came so far.
    pub(super) fn found(&self) -> FileRow {
        if self.is_pipe() {
            FileRow { size: self.came.load(Ordering::Relaxed), ..self.row.clone() }
        } else {
            self.row.clone()
        }
    }

    // Its bytes, expanded where its first ones say so.
    fn piped(&self) -> Result<Stream> {
        let stored = self.came.clone();
        let mut pipe = Counted { inner: Pipe::open(&self.file)?, stored: stored.clone() };
        let mut head = Vec::new();
        pipe.by_ref().take(LOOKED_AT).read_to_end(&mut head).map_err(|e| self.damaged(e, 0))?;
        let compression = Compression::of_head(&head);
        let name = self.file.display().to_string();
        if compression.is_none() {
            let object = Memory::new().with(&name, &head[..]).open(&name)?;
            foreign::refuse_as_text(foreign::listed(self.table), object.as_ref())?;
        }
        let whole = io::Cursor::new(head).chain(pipe);
        let reader: Box<dyn Read + Send> = match compression {
            None => Box::new(whole),
            Some(compression) => {
                let whole = io::BufReader::with_capacity(PART, whole);
                compression.decoder(whole, Some(&name)).map_err(|e| self.damaged(e, 0))?
            }
        };
        let (input, bytes) = (self.clone(), Bytes::Read(reader));
        Ok(Stream { input, bytes, at: 0, stored, scratch: Vec::new() })
    }

    fn check(&self, now: &dyn Object) -> Result<()> {
        if now.size() != self.row.size {
            return Err(self.changed(&format!("{} bytes, found {}", self.row.size, now.size())));
        }
        match (now.modified_ns() == self.row.modified_ns, now.tag() == self.row.etag.as_deref()) {
            (true, true) => Ok(()),
            (false, _) => Err(self.changed("its time of change is another one")),
            (true, false) => Err(self.changed("its version is another one")),
        }
    }

    fn changed(&self, how: &str) -> Error {
        Error::new(Kind::Stale, format!("the input changed while it was read: {how}"))
            .at(&self.file)
            .hint("run it again when nothing writes to the input")
    }

    fn damaged(&self, cause: io::Error, at: u64) -> Error {
        match cause.downcast::<Error>() {
            Ok(error) => error,
            Err(cause) if needs_window(&cause) => long_window(self.file.display()),
            Err(cause) => Error::corrupt(format!(
                "the compressed stream is damaged or cut short after {at} expanded bytes"
            ))
            .at(&self.file)
            .caused_by(cause)
            .hint("the copy may be unfinished: fetch the file again"),
        }
    }
}

/// What is looked at of a pipe before it is read.
const LOOKED_AT: u64 = 4096;

/// Read at once: large enough that calls cost nothing, small enough to stay in the processor's cache.
pub(super) const PART: usize = 256 << 10;

/// An input's bytes in order.
pub(super) struct Stream {
    input: Input,
    bytes: Bytes,
    at: u64,
    stored: Arc<AtomicU64>,
    scratch: Vec<u8>,
}

enum Bytes {
    Plain(Arc<dyn Object>),
    /// Expanded, or of a pipe.
    Read(Box<dyn Read + Send>),
}

impl Stream {
    /// The next bytes, at most `most`; none at the end.
    ///
    /// # Errors
    /// As [`Stream::fill`].
    pub(super) fn next(&mut self, most: usize) -> Result<&[u8]> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(scratch.len().max(most), 0);
        let filled = self.fill(&mut scratch[..most]);
        self.scratch = scratch;
        Ok(&self.scratch[..filled?])
    }

    /// Puts the next bytes at the beginning of `out`; how many there were: fewer than it holds only at the end.
    ///
    /// # Errors
    /// `Corrupt` when a compressed stream is damaged; `Stale` when the file changed; `Io`.
    pub(super) fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        let filled = match &mut self.bytes {
            Bytes::Plain(object) => {
                let end = self.input.end.map_or(object.size(), |end| end.min(object.size()));
                let left = end.saturating_sub(self.at);
                let size = usize::try_from(left).unwrap_or(out.len()).min(out.len());
                object.read_into(self.at, &mut out[..size])?;
                self.stored.store(self.at + size as u64, Ordering::Relaxed);
                size
            }
            Bytes::Read(reader) => {
                let mut filled = 0;
                while filled < out.len() {
                    match reader.read(&mut out[filled..]) {
                        Ok(0) => break,
                        Ok(n) => filled += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(self.input.damaged(e, self.at + filled as u64)),
                    }
                }
                filled
            }
        };
        self.at += filled as u64;
        Ok(filled)
    }

    /// The file itself, where it is not compressed.
    pub(super) fn plain(&self) -> Option<&dyn Object> {
        match &self.bytes {
            Bytes::Plain(object) => Some(object.as_ref()),
            Bytes::Read(_) => None,
        }
    }

    /// Bytes behind it, as they are stored.
    pub(super) fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// At the end: the file is still the one it was at the beginning.
    pub(super) fn finish(&self) -> Result<()> {
        match &self.input.store {
            Some(store) => self.input.check(store.open("")?.as_ref()),
            None => Ok(()),
        }
    }
}

struct ObjectReader {
    object: Arc<dyn Object>,
    at: u64,
    stored: Arc<AtomicU64>,
}

impl Read for ObjectReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.object.size().saturating_sub(self.at);
        let size = usize::try_from(left).unwrap_or(out.len()).min(out.len());
        self.object.read_into(self.at, &mut out[..size]).map_err(io::Error::other)?;
        self.at += size as u64;
        self.stored.store(self.at, Ordering::Relaxed);
        Ok(size)
    }
}

/// Counts what was read.
struct Counted<R> {
    inner: R,
    stored: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = self.inner.read(out)?;
        self.stored.fetch_add(size as u64, Ordering::Relaxed);
        Ok(size)
    }
}
