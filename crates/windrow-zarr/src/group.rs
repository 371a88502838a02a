//! A group of flat-tokens that was opened: its arrays and its attribute, compared with each other, read by position.

use std::sync::Arc;

use serde_json::Value;
use windrow_core::format::{Options, Probe};
use windrow_core::source::FileInfo;
use windrow_core::store::{Object, Store, key, open_if_there, read_small};
use windrow_core::{DType, Element, Error, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::array::{Array, Wanted};
use crate::cache::Cache;
use crate::layout::{self, LARGEST_ID, MAX_ID, METADATA_V3, NAME, STARTS, TOKENS};

/// Attributes of a group take less.
const MOST_ATTRIBUTES: u64 = 4 << 20;
/// How many sequences a group may have whose starts are all checked when it is opened.
const MOST_CHECKED: u64 = 1 << 22;
/// Starts that are read at a time.
pub(crate) const PART: u64 = 1 << 16;

/// A group that was opened.
pub(crate) struct Group {
    pub(crate) tokens: Array,
    pub(crate) tokens_name: &'static str,
    pub(crate) starts: Array,
    pub(crate) attributes: Arc<dyn Object>,
    pub(crate) max_id: u64,
}

impl Group {
    /// The group that `probe` sees, its declared values checked.
    pub(crate) fn open(probe: &Probe, options: &Options) -> Result<Group> {
        let store = &probe.store;
        let Some(tokens) = layout::tokens_name(store.as_ref(), &probe.key) else {
            let error =
                Error::not_found(format!("expected an array {TOKENS}, found none")).at(probe.display());
            return Err(match layout::parts(probe).first() {
                None => error,
                Some(part) => error.hint(format!(
                    "this holds splits: open one with @split=train@, or {}",
                    store.display(part)
                )),
            });
        };
        refuse(options, probe)?;
        if tokens != TOKENS {
            windrow_core::warn!(
                "{}: tokens are in {tokens:?}, which should be called {TOKENS:?}",
                probe.display()
            );
        }
        let (attributes, max_id) = max_token_id(store.as_ref(), &probe.key)?;
        if let Some(vocab_size) = options.vocab_size.filter(|size| *size <= max_id) {
            return Err(Error::corrupt(format!("IDs go up to {max_id}, the vocabulary has {vocab_size}"))
                .at(attributes.name())
                .field(MAX_ID));
        }
        let cache = Arc::new(Cache::new(options.memory_limit));
        let array = |name: &str, dtype, number| {
            let wanted = Wanted { dtype, accepts_missing: options.fill_missing, number };
            Array::open(store, &key::below(&probe.key, name), &wanted, &cache)
        };
        let group = Group {
            tokens: array(tokens, DType::U32, 0)?,
            tokens_name: tokens,
            starts: array(STARTS, DType::U64, 1)?,
            attributes,
            max_id,
        };
        group.check_starts()?;
        Ok(group)
    }

    pub(crate) fn sequences(&self) -> u64 {
        self.starts.len() - 1
    }

    /// Starts `first..first + out.len()`.
    pub(crate) fn starts(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let mut scratch = Vec::new();
        let bytes = self.starts.read(first, out.len() as u64, &mut scratch)?;
        for (start, stored) in out.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut number = [0; 8];
            number.copy_from_slice(stored);
            *start = if self.starts.element().big_endian {
                u64::from_be_bytes(number)
            } else {
                u64::from_le_bytes(number)
            };
        }
        Ok(())
    }

    /// Tokens of the stored dtype, in this machine's byte order.
    pub(crate) fn tokens_as_here(&self, start: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        let mut scratch = Vec::new();
        let element = self.tokens.element();
        out.extend(numbers(self.read(start, count, &mut scratch)?, element).flat_map(u32::to_ne_bytes));
        Ok(())
    }

    /// Starts of the stored dtype, in this machine's byte order.
    pub(crate) fn starts_as_here(&self, start: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        let mut starts = vec![0; count as usize];
        self.starts(start, &mut starts)?;
        out.extend(starts.into_iter().flat_map(u64::to_ne_bytes));
        Ok(())
    }

    /// # Errors
    /// `Corrupt` when the starts do not run from 0 to the number of tokens, upwards.
    pub(crate) fn check_starts(&self) -> Result<()> {
        let wrong = |what: String| Error::corrupt(what).at(self.starts.name());
        if self.starts.len() == 0 {
            return Err(wrong("no starts, expected at least the end of the last sequence".to_string()));
        }
        let mut ends = [[0], [0]];
        self.starts(0, &mut ends[0])?;
        self.starts(self.sequences(), &mut ends[1])?;
        let [[first], [last]] = ends;
        if (first, last) != (0, self.tokens.len()) {
            return Err(wrong(format!(
                "it runs from {first} to {last}, expected from 0 to the {} tokens there are",
                self.tokens.len()
            ))
            .hint("the copy, or the run that wrote it, looks unfinished"));
        }
        if self.sequences() <= MOST_CHECKED {
            let mut some = vec![0; PART.min(self.sequences()) as usize];
            let mut at = 0;
            while at < self.sequences() {
                let n = PART.min(self.sequences() - at);
                self.lengths(at, &mut some[..n as usize])?;
                at += n;
            }
        }
        Ok(())
    }

    pub(crate) fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let end = first.checked_add(out.len() as u64).filter(|end| *end <= self.sequences());
        if end.is_none() {
            return Err(Error::out_of_range("record", first.max(self.sequences()), self.sequences()));
        }
        let mut starts = vec![0; out.len() + 1];
        self.starts(first, &mut starts)?;
        for (i, (length, pair)) in out.iter_mut().zip(starts.windows(2)).enumerate() {
            *length = self.length_of([pair[0], pair[1]], first + i as u64)?;
        }
        Ok(())
    }

    fn length_of(&self, [start, end]: [u64; 2], record: u64) -> Result<u64> {
        match end.checked_sub(start) {
            Some(length) if end <= self.tokens.len() => Ok(length),
            Some(_) => {
                Err(Error::corrupt(format!("it goes to {end}, and there are {} tokens", self.tokens.len()))
                    .at(self.starts.name())
                    .record(record))
            }
            None => Err(Error::corrupt(format!("it falls from {start} to {end}"))
                .at(self.starts.name())
                .record(record)),
        }
    }

    /// Where a sequence begins, and its length.
    pub(crate) fn place(&self, record: u64) -> Result<(u64, u64)> {
        if record >= self.sequences() {
            return Err(Error::out_of_range("record", record, self.sequences()));
        }
        let mut pair = [0; 2];
        self.starts(record, &mut pair)?;
        Ok((pair[0], self.length_of(pair, record)?))
    }

    /// Tokens as they are stored, every ID within the largest one.
    pub(crate) fn read<'a>(&'a self, start: u64, count: u64, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let element = self.tokens.element();
        let bytes = self.tokens.read(start, count, scratch)?;
        // Ids are stored in 31 bits, so this fits.
        let most = (self.max_id * 2 + 1) as u32;
        if any_above(bytes, element, most) {
            let (at, number) =
                (0u64..).zip(numbers(bytes, element)).find(|(_, number)| *number > most).unwrap_or((0, most));
            return Err(self.at_token(
                Error::corrupt(format!(
                    "token {} is the ID {}, {MAX_ID} is {}",
                    start + at,
                    number >> 1,
                    self.max_id
                )),
                start + at,
            ));
        }
        Ok(bytes)
    }

    /// Whether the chunk of a token is missing and read as zeros.
    pub(crate) fn is_made_up(&self, token: u64) -> bool {
        self.tokens.locate(token, 1).is_ok_and(|places| places.is_empty())
    }

    pub(crate) fn at_token(&self, error: Error, token: u64) -> Error {
        let place = self.tokens.locate(token, 1).ok().and_then(|places| places.into_iter().next());
        match place {
            // One token is 4 bytes where it lies as it is.
            Some(place) if place.size == 4 => error.at(place.file).byte(place.start),
            Some(place) => error.at(place.file),
            None => error.at(self.tokens.name()),
        }
    }

    pub(crate) fn files(&self) -> Vec<FileInfo> {
        let attributes = FileInfo { file: self.attributes.name().to_string(), size: self.attributes.size() };
        [attributes].into_iter().chain(self.tokens.files()).chain(self.starts.files()).collect()
    }

    pub(crate) fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(NAME.as_bytes());
        hash.update(&self.max_id.to_le_bytes());
        for array in [&self.tokens, &self.starts] {
            array.fingerprint(&mut |bytes| hash.update(bytes))?;
        }
        Ok(hash.digest())
    }
}

fn refuse(options: &Options, probe: &Probe) -> Result<()> {
    if let Some(dtype) = options.dtype.filter(|dtype| *dtype != DType::U32) {
        return Err(Error::mismatch(format!("dtype {dtype} was asked for, flat-tokens are uint32"))
            .at(probe.display())
            .field("dtype")
            .hint("leave @dtype@ out"));
    }
    let lock = probe.manifest.as_ref().filter(|manifest| manifest.format == NAME);
    let lock = lock.and_then(|manifest| manifest.tokenizer.as_ref());
    if let Some((asked, lock)) = options.tokenizer.as_ref().zip(lock) {
        return if *asked == lock.hash {
            Ok(())
        } else {
            Err(Error::mismatch(format!(
                "a tokenizer with hash {asked} was asked for, but the tokens were made by {} ({})",
                lock.name, lock.hash
            ))
            .at(probe.display())
            .hint("tokenise the text again with the tokenizer you train with, or leave @tokenizer@ out"))
        };
    }
    if options.tokenizer.is_some() {
        return Err(Error::config("a tokenizer was given, but flat-tokens do not say which one made them")
            .at(probe.display())
            .field("tokenizer")
            .hint("check @vocab_size@ instead"));
    }
    Ok(())
}

/// The largest ID that the group's attributes declare, and where they are.
fn max_token_id(store: &dyn Store, folder: &str) -> Result<(Arc<dyn Object>, u64)> {
    let (object, is_v3) = match store.open(&key::below(folder, METADATA_V3)) {
        Ok(object) => (object, true),
        Err(e) if e.is_absent() => match store.open(&key::below(folder, ".zattrs")) {
            Err(e) if e.is_absent() => {
                return Err(Error::corrupt(format!("the group has no attribute {MAX_ID}"))
                    .at(store.display(folder))
                    .field(MAX_ID));
            }
            found => (found?, false),
        },
        Err(e) => return Err(e),
    };
    let text = read_small(object.as_ref(), MOST_ATTRIBUTES)?;
    let said = |e: Error| e.at(object.name()).field(MAX_ID);
    let all: Value = serde_json::from_slice(&text)
        .map_err(|e| Error::corrupt("no metadata of a zarr group").caused_by(e).at(object.name()))?;
    let is_known = if is_v3 {
        all["zarr_format"] == 3 && all["node_type"] == "group"
    } else {
        says_version_2(store, folder)?
    };
    if !is_known {
        return Err(Error::unsupported("no group of zarr version 2 or 3")
            .at(object.name())
            .field("zarr_format"));
    }
    let attributes = if is_v3 { &all["attributes"] } else { &all };
    match attributes.get(MAX_ID) {
        None => Err(said(Error::corrupt(format!("the group has no attribute {MAX_ID}")))),
        Some(found) => match found.as_u64().filter(|id| *id <= LARGEST_ID) {
            Some(id) => Ok((object.clone(), id)),
            None => Err(said(Error::corrupt(format!("{found}, expected a whole number in 0..=2147483647")))),
        },
    }
}

// Attributes may be there without `.zgroup`; where there is one, it says the version.
fn says_version_2(store: &dyn Store, folder: &str) -> Result<bool> {
    let Some(object) = open_if_there(store, &key::below(folder, ".zgroup"))? else { return Ok(true) };
    let text = read_small(object.as_ref(), MOST_ATTRIBUTES)?;
    Ok(serde_json::from_slice::<Value>(&text).is_ok_and(|group| group["zarr_format"] == 2))
}

/// Numbers that are stored in this byte order.
pub(crate) fn numbers(bytes: &[u8], element: Element) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(move |stored| {
        let mut number = [0; 4];
        number.copy_from_slice(stored);
        if element.big_endian { u32::from_be_bytes(number) } else { u32::from_le_bytes(number) }
    })
}

/// Whether a number is larger than `most`.
fn any_above(bytes: &[u8], element: Element, most: u32) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        /// Compares with wider registers: rows that are in memory as they are wait for nothing else.
        #[target_feature(enable = "avx2")]
        fn wide(bytes: &[u8], element: Element, most: u32) -> bool {
            any_above_here(bytes, element, most)
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide(bytes, element, most) };
    }
    any_above_here(bytes, element, most)
}

// A loop for each byte order, and without a way out in the middle: it would be no vector loop.
#[inline(always)]
fn any_above_here(bytes: &[u8], element: Element, most: u32) -> bool {
    let numbers = bytes.as_chunks::<4>().0.iter();
    if element.big_endian {
        numbers.fold(false, |any, stored| any | (u32::from_be_bytes(*stored) > most))
    } else {
        numbers.fold(false, |any, stored| any | (u32::from_le_bytes(*stored) > most))
    }
}
