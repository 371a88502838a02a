//! A file as a source of which it is declared what it holds: opened when a record of it is first read, and compared with that.

use std::sync::{Arc, OnceLock};

use super::{Extras, FileInfo, Location, Rows, Schema, SharedSource, Source, Stored, forward};
use crate::error::{Error, Kind, Result};
use crate::record::{Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::Object;

/// What several files have in common that are opened later, and how one of them is.
pub struct Later {
    /// Name of their format.
    pub format: &'static str,
    /// What their records have in common.
    pub schema: Schema,
    /// The files.
    pub files: Arc<dyn LaterFiles>,
}

/// Files by number that are opened when they are first read.
pub trait LaterFiles: Send + Sync {
    /// What is declared of one.
    fn promise(&self, file: u32) -> Promise;

    /// Opens one.
    ///
    /// # Errors
    /// As [`Format::open`](crate::format::Format::open).
    fn open(&self, file: u32) -> Result<SharedSource>;

    /// Asks for what opening one reads first, and does not wait for it.
    fn ask(&self, file: u32);

    /// Its name and size.
    fn info(&self, file: u32) -> FileInfo;
}

/// What is declared of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Number of its records.
    pub records: u64,
    /// The length of each, where all are equal.
    pub length: Option<u64>,
    /// Its fingerprint.
    pub fingerprint: u64,
}

/// One of these files.
pub struct Deferred {
    of: Arc<Later>,
    /// In a box: of many files, few are open.
    opened: OnceLock<Box<SharedSource>>,
    file: u32,
}

impl Deferred {
    /// File `file` of these.
    pub fn new(of: Arc<Later>, file: u32) -> Deferred {
        Deferred { of, opened: OnceLock::new(), file }
    }

    fn promise(&self) -> Promise {
        self.of.files.promise(self.file)
    }

    fn opened(&self) -> Result<&SharedSource> {
        match self.opened.get() {
            Some(source) => Ok(source),
            None => self.open(),
        }
    }

    #[cold]
    fn open(&self) -> Result<&SharedSource> {
        let source = self.of.files.open(self.file)?;
        let (promise, Later { format, schema, .. }) = (self.promise(), self.of.as_ref());
        let differ = |what: &str, said: String, found: String| {
            Err(Error::new(Kind::Stale, format!("the manifest says {what} {said}, found {found}"))
                .at(self.of.files.info(self.file).file)
                .hint("`windrow manifest` lists the folder again"))
        };
        if (source.format(), source.schema()) != (*format, schema) {
            let (said, found) =
                (format!("{format}, {schema:?}"), format!("{}, {:?}", source.format(), source.schema()));
            return differ("the file is", said, found);
        }
        if source.len() != promise.records {
            return differ("records:", promise.records.to_string(), source.len().to_string());
        }
        if source.uniform() != promise.length {
            return differ("lengths:", format!("{:?}", promise.length), format!("{:?}", source.uniform()));
        }
        Ok(self.opened.get_or_init(|| Box::new(source)))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Lengths for Deferred {
    fn len(&self) -> u64 {
        self.promise().records
    }

    fn length(&self, record: u64) -> Result<u64> {
        match self.promise() {
            Promise { records, length: Some(length), .. } if record < records => Ok(length),
            _ => self.opened()?.length(record),
        }
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        match self.promise() {
            Promise { records, length: Some(length), .. }
                if first.checked_add(out.len() as u64).is_some_and(|end| end <= records) =>
            {
                out.fill(length);
                Ok(())
            }
            _ => self.opened()?.lengths(first, out),
        }
    }

    fn uniform(&self) -> Option<u64> {
        self.promise().length
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[deny(clippy::missing_trait_methods)]
impl Source for Deferred {
    forward! { (opened()?): read_track text row value extras beside locate object word cells }

    fn schema(&self) -> &Schema {
        &self.of.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.opened()?.read(span, scratch)
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.opened()?.read_whole(record, scratch)
    }

    fn rows_from(&self, first: u64) -> Rows<'_> {
        match self.opened() {
            Ok(source) => source.rows_from(first),
            Err(e) => Box::new(std::iter::once(Err(e))),
        }
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        match self.opened.get() {
            Some(source) => source.prefetch(spans),
            None if spans.next().is_some() => self.of.files.ask(self.file),
            None => {}
        }
    }

    fn touch(&self, span: Span) {
        if let Some(source) = self.opened.get() {
            source.touch(span);
        }
    }

    fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
        // What cannot be opened is the error of whoever reads it.
        if let Ok(source) = self.opened() {
            source.decode_ahead(spans);
        }
    }

    fn stored(&self, record: u64) -> Result<Option<Stored>> {
        self.opened()?.stored(record)
    }

    // To know it, it would be opened; what joins several does not ask.
    fn joined(&self) -> Option<SharedSource> {
        None
    }

    fn treatment(&self) -> Option<String> {
        None
    }

    fn files(&self) -> Vec<FileInfo> {
        vec![self.of.files.info(self.file)]
    }

    fn fingerprint(&self) -> Result<u64> {
        Ok(self.promise().fingerprint)
    }

    fn format(&self) -> &'static str {
        self.of.format
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::array::{DType, Element};
    use crate::source::InMemory;

    /// Files of two records, 1 2 and 3, of which something is declared.
    struct Files(Promise, AtomicUsize);

    impl LaterFiles for Files {
        fn promise(&self, _: u32) -> Promise {
            self.0
        }

        fn open(&self, _: u32) -> Result<SharedSource> {
            self.1.fetch_add(1, Relaxed);
            let record = |bytes: &'static [u8]| (Arc::new(bytes) as _, Extras::new());
            let records = vec![record(&[1, 2]), record(&[3])];
            Ok(Arc::new(InMemory::new("toy", Element::little(DType::U8), None, records)?))
        }

        fn ask(&self, _: u32) {}

        fn info(&self, file: u32) -> FileInfo {
            FileInfo { file: format!("{file}.toy"), size: 3 }
        }
    }

    fn deferred(promise: Promise) -> (Arc<Files>, Deferred) {
        let files = Arc::new(Files(promise, AtomicUsize::new(0)));
        let schema = files.open(0).unwrap().schema().clone();
        files.1.store(0, Relaxed);
        let of = Arc::new(Later { format: "toy", schema, files: files.clone() });
        (files, Deferred::new(of, 7))
    }

    #[test]
    fn a_file_is_opened_once_when_its_first_record_is_read() {
        let promise = Promise { records: 2, length: None, fingerprint: 5 };
        let (files, source) = deferred(promise);
        assert_eq!((source.len(), source.fingerprint().unwrap(), source.format()), (2, 5, "toy"));
        assert_eq!(source.files(), [FileInfo { file: "7.toy".to_string(), size: 3 }]);
        assert_eq!(files.1.load(Relaxed), 0);
        let mut scratch = Vec::new();
        assert_eq!(source.read_whole(0, &mut scratch).unwrap().bytes, [1, 2]);
        assert_eq!((source.length(1).unwrap(), files.1.load(Relaxed)), (1, 1));
    }

    #[test]
    fn what_is_declared_and_not_found_is_an_error_of_the_first_read() {
        let right = Promise { records: 2, length: None, fingerprint: 5 };
        for wrong in [Promise { records: 3, ..right }, Promise { length: Some(2), ..right }] {
            let (_, source) = deferred(wrong);
            assert_eq!(source.len(), wrong.records);
            let error = source.read_whole(0, &mut Vec::new()).unwrap_err();
            assert_eq!((error.kind(), error.place().file.as_deref()), (Kind::Stale, Some("7.toy")));
        }
    }
}
