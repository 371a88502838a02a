//! A `.csv.gz` of documents as a table that is read by position: made once, kept in the cache.
//!
//! 24 bytes a document: its first token, the token after its last one, and where its metadata begins, u64 each; then the
//! metadata, a JSON object each; then 48 bytes: magic, documents, the last end, the largest end, size of the metadata, 0. All
//! little-endian. Only read by the version that wrote it.

use std::cell::Cell;
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use windrow_core::source::Extras;
use windrow_core::store::{Draft, Memory, Object, Store, cached, expanded_stream};
use windrow_core::{Error, Kind, Result, row};

/// Part of the cache file's name: a new number makes every table be made again.
const VERSION: &str = "documents of a csv 1";
const MAGIC: [u8; 8] = *b"wr csv 1";
const ROW: u64 = 24;
const FOOTER: usize = 48;
/// Files up to this size are read each time.
const SHORT: u64 = 256 << 10;
/// A line names a document and the file it is from.
const MOST_LINE: usize = 1 << 20;

/// The documents of a file.
pub(super) struct Table {
    key: String,
    /// What people call the `.csv.gz`.
    name: String,
    object: Arc<dyn Object>,
    count: u64,
    last_end: u64,
    largest_end: u64,
    metadata: u64,
}

impl Table {
    /// Of the `.csv.gz` at `key`: read now, or taken from the cache.
    ///
    /// # Errors
    /// `Corrupt` naming the line that does not say a document.
    pub(super) fn open(csv: Arc<dyn Object>, key: &str) -> Result<Table> {
        let name = csv.name().to_string();
        let read = |object: Arc<dyn Object>| Table::read(object, key, name.clone());
        if csv.size() > SHORT {
            let make = |draft: &mut Draft| write(csv.as_ref(), draft);
            match cached(csv.as_ref(), "documents", VERSION, make) {
                Ok(made) => return read(made),
                Err(e) if e.kind() != Kind::Io && e.kind() != Kind::Config => return Err(e),
                Err(e) => windrow_core::warn!(
                    "the documents of {name} are held in memory, as the cache cannot keep them: {e:#}"
                ),
            }
        }
        let mut bytes = Vec::new();
        write(csv.as_ref(), &mut bytes)?;
        read(Memory::new().with(&name, bytes).open(&name)?)
    }

    fn read(object: Arc<dyn Object>, key: &str, name: String) -> Result<Table> {
        let damaged = || damaged(object.as_ref());
        let footer = object.size().checked_sub(FOOTER as u64).ok_or_else(damaged)?;
        let mut scratch = Vec::new();
        let words: Vec<u64> = {
            let bytes = object.read(footer, FOOTER, &mut scratch)?;
            bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
        };
        let &[magic, count, last_end, largest_end, metadata, _] = words.as_slice() else {
            return Err(damaged());
        };
        let is_whole = magic == u64::from_le_bytes(MAGIC)
            && count.checked_mul(ROW).and_then(|rows| rows.checked_add(metadata)) == Some(footer);
        if is_whole {
            let key = key.to_string();
            Ok(Table { key, name, object: object.clone(), count, last_end, largest_end, metadata })
        } else {
            Err(damaged())
        }
    }

    /// Its key in the store.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// How many documents it names.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Where the last document ends, in tokens.
    pub(super) fn last_end(&self) -> u64 {
        self.last_end
    }

    /// Where the document ends that ends last.
    pub(super) fn largest_end(&self) -> u64 {
        self.largest_end
    }

    /// An error of the `.csv.gz`.
    pub(super) fn error(&self, what: String) -> Error {
        Error::corrupt(what)
            .at(&self.name)
            .hint("the copy looks unfinished, or the token IDs are of another @dtype@")
    }

    /// A document's first token, and the one after its last; of a document that is there.
    ///
    /// # Errors
    /// `Corrupt` when the cache was damaged.
    pub(super) fn place(&self, document: u64) -> Result<(u64, u64)> {
        let [start, end, _] = self.row(document)?;
        if start <= end && end <= self.largest_end {
            Ok((start, end))
        } else {
            Err(damaged(self.object.as_ref()))
        }
    }

    /// What is beside a document: `id`, `src` and `loc`, as far as the file has them.
    ///
    /// # Errors
    /// As [`Table::place`].
    pub(super) fn metadata(&self, document: u64) -> Result<Extras> {
        let [_, _, start] = self.row(document)?;
        let end = if document + 1 < self.count { self.row(document + 1)?[2] } else { self.metadata };
        let size = end
            .checked_sub(start)
            .filter(|_| end <= self.metadata)
            .and_then(|size| usize::try_from(size).ok());
        let Some(size) = size else { return Err(damaged(self.object.as_ref())) };
        let mut scratch = Vec::new();
        let bytes = self.object.read(self.count * ROW + start, size, &mut scratch)?;
        let fields: Vec<String> = serde_json::from_slice(bytes).map_err(|_| damaged(self.object.as_ref()))?;
        let mut extras = Extras::new();
        for (name, field) in ["id", "src", "loc"].into_iter().zip(fields) {
            // A place is a line number; anything else stays what it is.
            match field.parse::<i64>() {
                Ok(number) if name == "loc" => extras.insert(name, number),
                _ => extras.insert(name, row::Value::Text(field)),
            };
        }
        Ok(extras)
    }

    fn row(&self, document: u64) -> Result<[u64; 3]> {
        let mut scratch = Vec::new();
        let bytes = self.object.read(document * ROW, ROW as usize, &mut scratch)?;
        match bytes.as_chunks::<8>().0 {
            [start, end, metadata] => Ok([start, end, metadata].map(|word| u64::from_le_bytes(*word))),
            _ => Err(damaged(self.object.as_ref())),
        }
    }
}

fn damaged(object: &dyn Object) -> Error {
    Error::corrupt("a file of the cache is damaged").at(object.name()).hint("delete it: it is made again")
}

// The table of a `.csv.gz`, which is read twice: rows come before the metadata, and neither is held in memory.
fn write(csv: &dyn Object, out: &mut dyn Write) -> Result<()> {
    let failed = |cause: std::io::Error| match cause.downcast::<Error>() {
        Ok(error) => error,
        Err(cause) => Error::new(Kind::Io, "cannot keep the documents").caused_by(cause),
    };
    let (mut count, mut last_end, mut largest_end, mut size) = (0u64, 0u64, 0u64, 0u64);
    each(csv, &mut |start, end, fields| {
        for word in [start, end, size] {
            out.write_all(&word.to_le_bytes()).map_err(failed)?;
        }
        size += metadata(fields)?.len() as u64;
        (count, last_end, largest_end) = (count + 1, end, largest_end.max(end));
        Ok(())
    })?;
    each(csv, &mut |_, _, fields| out.write_all(&metadata(fields)?).map_err(failed))?;
    let magic = u64::from_le_bytes(MAGIC);
    for word in [magic, count, last_end, largest_end, size, 0] {
        out.write_all(&word.to_le_bytes()).map_err(failed)?;
    }
    Ok(())
}

// What is kept of `id`, `src` and `loc`.
fn metadata(fields: &[&str]) -> Result<Vec<u8>> {
    serde_json::to_vec(fields).map_err(|e| Error::corrupt("metadata that JSON does not hold").caused_by(e))
}

/// Takes a line: the first token of a document, the one after its last, and the fields behind them.
type Take<'t> = dyn FnMut(u64, u64, &[&str]) -> Result<()> + 't;

// Hands on every line.
fn each(csv: &dyn Object, take: &mut Take<'_>) -> Result<()> {
    let mut line = 0;
    let wrong = |what: String, line: u64| Error::corrupt(what).at(csv.name()).record(line);
    let damaged = |cause: std::io::Error| match cause.downcast::<Error>() {
        Ok(error) => error.at(csv.name()),
        Err(cause) => {
            Error::corrupt("the compressed stream is damaged or cut short").at(csv.name()).caused_by(cause)
        }
    };
    let read = Rc::new(Cell::new(0));
    let stream = Bounded { inner: expanded_stream(csv)?.map_err(damaged)?, read: read.clone() };
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(stream);
    let mut record = csv::StringRecord::new();
    loop {
        match reader.read_record(&mut record) {
            Ok(false) => return Ok(()),
            Ok(true) => read.set(0),
            Err(e) => {
                return Err(match e.into_kind() {
                    csv::ErrorKind::Io(cause) => damaged(cause),
                    _ => wrong("a line that is not UTF-8".to_string(), line),
                });
            }
        }
        let number = |at: usize| {
            let field = record.get(at).unwrap_or_default();
            field
                .parse::<u64>()
                .map_err(|_| wrong(format!("expected the number of a token, found {field:?}"), line))
        };
        let (start, end) = (number(0)?, number(1)?);
        if end < start {
            return Err(wrong(format!("a document from token {start} to {end}"), line));
        }
        let fields: Vec<&str> = record.iter().skip(2).take(3).collect();
        take(start, end, &fields)?;
        line += 1;
    }
}

/// Gives an error where a line has no end: its reader holds it whole.
struct Bounded<R> {
    inner: R,
    /// Bytes since the last line that was complete.
    read: Rc<Cell<usize>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.read.get() > MOST_LINE {
            let error = Error::corrupt(format!("a line of more than {MOST_LINE} bytes"));
            return Err(std::io::Error::other(error.hint("a line is start,end,id,src,loc")));
        }
        let size = self.inner.read(out)?;
        self.read.set(self.read.get() + size);
        Ok(size)
    }
}
