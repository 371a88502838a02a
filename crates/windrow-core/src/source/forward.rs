//! What a source around another one leaves to it.

/// Methods of [`Source`](super::Source) that a wrapper leaves to its field `inner`, or to what a method in brackets gives, by their names:
/// the compiler asks for each of the others.
macro_rules! forward {
    ($inner:ident: $($method:ident)*) => {
        $(crate::source::forward! { @$method ($inner) })*
    };
    ($inner:tt: $($method:ident)*) => {
        $(crate::source::forward! { @$method $inner })*
    };
    (@read_track ($($inner:tt)+)) => {
        fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
            self.$($inner)+.read_track(track, span, scratch)
        }
    };
    (@text ($($inner:tt)+)) => {
        fn text<'a>(&'a self, record: u64, scratch: &'a mut String) -> Result<&'a str> {
            self.$($inner)+.text(record, scratch)
        }
    };
    (@row ($($inner:tt)+)) => {
        fn row(&self, record: u64) -> Result<Row> {
            self.$($inner)+.row(record)
        }
    };
    (@value ($($inner:tt)+)) => {
        fn value(&self, record: u64, columns: Option<&[usize]>) -> Result<Value> {
            self.$($inner)+.value(record, columns)
        }
    };
    (@rows_from ($($inner:tt)+)) => {
        fn rows_from(&self, first: u64) -> Rows<'_> {
            self.$($inner)+.rows_from(first)
        }
    };
    (@extras ($($inner:tt)+)) => {
        fn extras(&self, record: u64) -> Result<Extras> {
            self.$($inner)+.extras(record)
        }
    };
    (@beside ($($inner:tt)+)) => {
        fn beside(&self, record: u64, names: &[String]) -> Result<Extras> {
            self.$($inner)+.beside(record, names)
        }
    };
    (@prefetch ($($inner:tt)+)) => {
        fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
            self.$($inner)+.prefetch(spans);
        }
    };
    (@touch ($($inner:tt)+)) => {
        fn touch(&self, span: Span) {
            self.$($inner)+.touch(span);
        }
    };
    (@decode_ahead ($($inner:tt)+)) => {
        fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
            self.$($inner)+.decode_ahead(spans);
        }
    };
    (@locate ($($inner:tt)+)) => {
        fn locate(&self, span: Span) -> Result<Vec<Location>> {
            self.$($inner)+.locate(span)
        }
    };
    (@files ($($inner:tt)+)) => {
        fn files(&self) -> Vec<FileInfo> {
            self.$($inner)+.files()
        }
    };
    (@format ($($inner:tt)+)) => {
        fn format(&self) -> &'static str {
            self.$($inner)+.format()
        }
    };
    (@schema ($($inner:tt)+)) => {
        fn schema(&self) -> &Schema {
            self.$($inner)+.schema()
        }
    };
    (@treatment ($($inner:tt)+)) => {
        fn treatment(&self) -> Option<String> {
            self.$($inner)+.treatment()
        }
    };
    (@object ($($inner:tt)+)) => {
        fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
            self.$($inner)+.object(number)
        }
    };
    // Around records that were chosen of others, it is one source like any other.
    (@word ($($inner:tt)+)) => {
        fn word(&self) -> Result<String> {
            crate::source::word_of(self)
        }
    };
    (@cells ($($inner:tt)+)) => {
        fn cells(
            &self,
            name: &str,
            records: std::ops::Range<u64>,
            take: &mut dyn FnMut(u64, crate::source::Cells<'_>) -> Result<()>,
        ) -> Result<()> {
            self.$($inner)+.cells(name, records, take)
        }
    };
    (@fingerprint ($($inner:tt)+)) => {
        fn fingerprint(&self) -> Result<u64> {
            self.$($inner)+.fingerprint()
        }
    };
}
pub(crate) use forward;
