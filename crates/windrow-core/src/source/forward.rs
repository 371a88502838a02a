//! What a source around another one leaves to it.

/// Methods of [`Source`](super::Source) that a wrapper leaves to its field `inner`, which it wraps, by their names: the compiler asks
/// for each of the others.
macro_rules! forward {
    ($inner:ident: $($method:ident)*) => {
        $(crate::source::forward! { @$method $inner })*
    };
    (@read_track $inner:ident) => {
        fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
            self.$inner.read_track(track, span, scratch)
        }
    };
    (@text $inner:ident) => {
        fn text<'a>(&'a self, record: u64, scratch: &'a mut String) -> Result<&'a str> {
            self.$inner.text(record, scratch)
        }
    };
    (@row $inner:ident) => {
        fn row(&self, record: u64) -> Result<Row> {
            self.$inner.row(record)
        }
    };
    (@value $inner:ident) => {
        fn value(&self, record: u64, columns: Option<&[usize]>) -> Result<Value> {
            self.$inner.value(record, columns)
        }
    };
    (@rows_from $inner:ident) => {
        fn rows_from(&self, first: u64) -> Rows<'_> {
            self.$inner.rows_from(first)
        }
    };
    (@extras $inner:ident) => {
        fn extras(&self, record: u64) -> Result<Extras> {
            self.$inner.extras(record)
        }
    };
    (@beside $inner:ident) => {
        fn beside(&self, record: u64, names: &[String]) -> Result<Extras> {
            self.$inner.beside(record, names)
        }
    };
    (@prefetch $inner:ident) => {
        fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
            self.$inner.prefetch(spans);
        }
    };
    (@touch $inner:ident) => {
        fn touch(&self, span: Span) {
            self.$inner.touch(span);
        }
    };
    (@decode_ahead $inner:ident) => {
        fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
            self.$inner.decode_ahead(spans);
        }
    };
    (@locate $inner:ident) => {
        fn locate(&self, span: Span) -> Result<Vec<Location>> {
            self.$inner.locate(span)
        }
    };
    (@files $inner:ident) => {
        fn files(&self) -> Vec<FileInfo> {
            self.$inner.files()
        }
    };
    (@format $inner:ident) => {
        fn format(&self) -> &'static str {
            self.$inner.format()
        }
    };
    (@schema $inner:ident) => {
        fn schema(&self) -> &Schema {
            self.$inner.schema()
        }
    };
    (@treatment $inner:ident) => {
        fn treatment(&self) -> Option<String> {
            self.$inner.treatment()
        }
    };
    (@object $inner:ident) => {
        fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
            self.$inner.object(number)
        }
    };
    // Around records that were chosen of others, it is one source like any other.
    (@word $inner:ident) => {
        fn word(&self) -> Result<String> {
            crate::source::word_of(self)
        }
    };
    (@cells $inner:ident) => {
        fn cells(
            &self,
            name: &str,
            records: std::ops::Range<u64>,
            take: &mut dyn FnMut(u64, crate::source::Cells<'_>) -> Result<()>,
        ) -> Result<()> {
            self.$inner.cells(name, records, take)
        }
    };
    (@fingerprint $inner:ident) => {
        fn fingerprint(&self) -> Result<u64> {
            self.$inner.fingerprint()
        }
    };
}
pub(crate) use forward;
