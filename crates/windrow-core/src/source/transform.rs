//! A source around a source that passes each whole record through a function of the caller's.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use xxhash_rust::xxh3::Xxh3;

use super::floats::Precision;
use super::{
    Extras, FileInfo, Kind, Location, Rows, Schema, SharedSource, Source, Stored, check_span, floats,
};
use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::record::{Decode, Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::{self, Object};

/// A whole record on its way through a function.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// Its number.
    pub record: u64,
    /// Its values: `[T]`, or `[T, C]` row by row.
    pub values: &'a [f64],
    /// What they are, and what the results are kept as: float32 where it holds every number that is stored, else float64; float64
    /// also where it was asked for.
    pub dtype: DType,
    /// `None` for `[T]`, `Some(C)` for `[T, C]`.
    pub channels: Option<usize>,
}

type Function = dyn Fn(Whole<'_>) -> Result<Vec<f64>> + Send + Sync;

/// A function from a whole record to as many values, and the name it has in a plan's identity.
///
/// It must give the same values for the same record each time: windows of one record may be cut from two calls.
///
/// ```
/// use windrow_core::source::Custom;
///
/// let halved = Custom::new("halved", |whole| Ok(whole.values.iter().map(|x| x / 2.0).collect()));
/// assert_eq!(halved.name(), "halved");
/// ```
#[derive(Clone)]
pub struct Custom {
    name: Arc<str>,
    function: Option<Arc<Function>>,
}

impl Custom {
    /// A function by name; another name is another plan.
    pub fn new(
        name: &str,
        function: impl Fn(Whole<'_>) -> Result<Vec<f64>> + Send + Sync + 'static,
    ) -> Custom {
        // An identity is one line whose parts end with a semicolon.
        let name = name.chars().map(|c| if c == ';' || c.is_control() { '_' } else { c }).collect::<String>();
        Custom { name: name.into(), function: Some(Arc::new(function)) }
    }

    /// The name of a function that is not there, as text has it.
    pub fn named(name: &str) -> Custom {
        Custom { name: name.into(), function: None }
    }

    /// Whether only the name is there.
    pub fn is_name(&self) -> bool {
        self.function.is_none()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Debug for Custom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Custom({:?})", self.name)
    }
}

/// Records as a function gives them: the same number of values as were stored, float32, or float64 where the stored numbers have more
/// digits than a float32 holds, or where it is asked for.
///
/// The function is called once per record and its result kept, as long as the results together stay below a bound; then
/// the ones not used for longest go, and would be made again.
pub struct Transformed {
    inner: SharedSource,
    custom: Custom,
    schema: Schema,
    kept: Mutex<Kept>,
}

/// Bytes of results that are kept.
const MOST_BYTES: usize = 256 << 20;

impl Transformed {
    /// Around a source of numbers. Calls nothing yet.
    ///
    /// # Errors
    /// `Config` for JSON records.
    pub fn new(inner: SharedSource, custom: Custom) -> Result<Transformed> {
        Self::keeping(inner, custom, MOST_BYTES)
    }

    /// Passes and keeps float64, whatever is stored. Before the first record.
    #[must_use]
    pub fn in_float64(mut self) -> Transformed {
        self.schema.element = Element::little(DType::F64);
        self
    }

    fn keeping(inner: SharedSource, custom: Custom, most: usize) -> Result<Transformed> {
        if inner.schema().kind == Kind::Json {
            return Err(Error::config("JSON records hold text, which cannot be scaled"));
        }
        inner.schema().need_numbers()?;
        let dtype = match inner.schema().element.dtype {
            DType::F64 | DType::I64 | DType::U64 | DType::I32 | DType::U32 => DType::F64,
            _ => DType::F32,
        };
        let element = Element::little(dtype);
        let schema = Schema { element, vocab_size: None, ..inner.schema().clone() };
        Ok(Transformed { inner, custom, schema, kept: Mutex::new(Kept { most, ..Kept::default() }) })
    }

    fn record(&self, record: u64) -> Result<Arc<[u8]>> {
        if let Some(found) = self.kept().and_then(|mut kept| kept.get(record)) {
            return Ok(found);
        }
        // Nothing is kept that was made of a torn map.
        let bytes = store::whole(|| self.make(record))?;
        if let Some(mut kept) = self.kept() {
            kept.put(record, bytes.clone());
        }
        Ok(bytes)
    }

    // A record is made of all of its values.
    fn all_of(&self, span: Span) -> Option<Span> {
        let len = self.inner.length(span.record).ok()?;
        Some(Span { record: span.record, start: 0, len })
    }

    fn make(&self, record: u64) -> Result<Arc<[u8]>> {
        let mut scratch = Vec::new();
        let stored = self.inner.read_whole(record, &mut scratch)?;
        floats::check(&stored, record)?;
        let mut values = Vec::new();
        let dtype = self.schema.element.dtype;
        let precision = if dtype == DType::F64 { Precision::Double } else { Precision::Single };
        floats::append(&stored, precision, &mut values);
        // Not under the lock: the function may take long, or take a lock of its own.
        let whole = Whole { record, values: &values, dtype, channels: self.schema.channels };
        let function = self.custom.function.as_ref().ok_or_else(|| {
            Error::config(format!("the function {:?} is not there", self.custom.name)).record(record)
        })?;
        let made = function(whole)?;
        if made.len() != values.len() {
            return Err(Error::config(format!(
                "the scaler {:?} gave {} values for a record of {}",
                self.custom.name,
                made.len(),
                values.len()
            ))
            .record(record)
            .hint("a scaler gives as many values as it gets: windows are made afterwards"));
        }
        Ok(match dtype {
            DType::F64 => made.iter().flat_map(|x| x.to_le_bytes()).collect(),
            _ => made.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect(),
        })
    }

    // A lock that another thread held while this process was forked never opens in the child; it is held for moments only.
    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        for _ in 0..100 {
            match self.kept.try_lock() {
                Ok(kept) => return Some(kept),
                Err(TryLockError::Poisoned(kept)) => return Some(kept.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }
}

/// Results by record, those used last at the end of the line.
#[derive(Default)]
struct Kept {
    found: HashMap<u64, (u64, Arc<[u8]>)>,
    line: BTreeMap<u64, u64>,
    turn: u64,
    bytes: usize,
    most: usize,
}

impl Kept {
    fn get(&mut self, record: u64) -> Option<Arc<[u8]>> {
        let (turn, bytes) = self.found.get_mut(&record)?;
        self.line.remove(turn);
        self.turn += 1;
        *turn = self.turn;
        self.line.insert(self.turn, record);
        Some(bytes.clone())
    }

    fn put(&mut self, record: u64, bytes: Arc<[u8]>) {
        if bytes.len() > self.most || self.found.contains_key(&record) {
            return;
        }
        self.bytes += bytes.len();
        self.turn += 1;
        self.line.insert(self.turn, record);
        self.found.insert(record, (self.turn, bytes));
        while self.bytes > self.most {
            let Some((_, oldest)) = self.line.pop_first() else { return };
            self.bytes -= self.found.remove(&oldest).map_or(0, |(_, bytes)| bytes.len());
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Lengths for Transformed {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.inner.length(record)
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        self.inner.lengths(first, out)
    }

    fn uniform(&self) -> Option<u64> {
        self.inner.uniform()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[deny(clippy::missing_trait_methods)]
impl Source for Transformed {
    crate::source::forward! { inner: read_track text row value rows_from extras beside locate files format word cells }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        check_span(span, self.inner.length(span.record)?)?;
        let whole = self.record(span.record)?;
        let size = self.schema.element.size() * self.schema.channels.unwrap_or(1);
        // Within the record, which is in memory.
        let start = span.start as usize * size;
        scratch.clear();
        scratch.extend_from_slice(&whole[start..start + span.len as usize * size]);
        Ok(Values {
            bytes: scratch,
            element: self.schema.element,
            channels: self.schema.channels.unwrap_or(1),
            decode: Decode::Plain,
        })
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(&self.inner.fingerprint()?.to_le_bytes());
        hash.update(self.treatment().unwrap_or_default().as_bytes());
        Ok(hash.digest())
    }

    fn treatment(&self) -> Option<String> {
        let precision = if self.schema.element.dtype == DType::F64 { "/float64" } else { "" };
        let own = format!("scaler=custom:{}{precision}", self.custom.name);
        Some(self.inner.treatment().map_or(own.clone(), |inner| format!("{inner},{own}")))
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let len = self.inner.length(record)?;
        self.read(Span { record, start: 0, len }, scratch)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        self.inner.prefetch(&mut spans.filter_map(|(span, step)| Some((self.all_of(span)?, step))));
    }

    fn touch(&self, span: Span) {
        if let Some(all) = self.all_of(span) {
            self.inner.touch(all);
        }
    }

    fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
        self.inner.decode_ahead(&mut spans.filter_map(|span| self.all_of(span)));
    }

    // What a function makes does not lie anywhere.
    fn stored(&self, _record: u64) -> Result<Option<Stored>> {
        Ok(None)
    }

    fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
        Err(Error::out_of_range("object", number, 0))
    }

    // A function is given whole records.
    fn joined(&self) -> Option<SharedSource> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_used_last_are_kept() {
        let mut kept = Kept { most: 10, ..Kept::default() };
        let bytes = |n: usize| Arc::<[u8]>::from(vec![0; n]);
        kept.put(1, bytes(4));
        kept.put(2, bytes(4));
        assert!(kept.get(1).is_some());
        kept.put(3, bytes(4));
        assert_eq!(
            (kept.get(1).is_some(), kept.get(2).is_some(), kept.get(3).is_some()),
            (true, false, true)
        );
        kept.put(4, bytes(11));
        assert_eq!((kept.found.len(), kept.bytes, kept.get(4).is_some()), (2, 8, false));
        kept.put(5, bytes(10));
        assert_eq!((kept.found.len(), kept.line.len(), kept.bytes), (1, 1, 10));
    }
}
