//! The text of `meta.json`: read as a stream into a few numbers per sequence, every claim checked.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use windrow_core::store::{Object, at_once};
use windrow_core::{DType, Element, Error, Result};

use super::super::json_value::error_byte;
use super::super::npy;

/// Scales between two places in the text that are kept, so that the extras of one are found again.
pub(super) const STEP: u64 = 32;

/// What `meta.json` says.
pub(super) struct Meta {
    /// Type and byte order of a number.
    pub(super) element: Element,
    /// Numbers per value, where the description says it: sequences are `[T, C]`.
    pub(super) channels: Option<u64>,
    /// Shards in the order of their numbers: name, and how many numbers it holds.
    pub(super) files: Vec<(String, u64)>,
    /// First number of each sequence in all shards joined.
    pub(super) offsets: Vec<u64>,
    /// How many numbers each sequence has.
    pub(super) lengths: Vec<u64>,
    /// `[std, mean]` of each sequence, [`PLAIN`] where it has not both; empty where none has.
    pub(super) scaling: Scaling,
    /// Some scale holds more than its numbers.
    pub(super) has_others: bool,
    /// First byte of every [`STEP`]th scale in the text, and the end of the last.
    pub(super) text: Vec<u64>,
}

/// `[std, mean]` of sequences, as wide as their numbers need it.
#[derive(Debug)]
pub(super) enum Scaling {
    /// No sequence has both.
    None,
    /// In float32.
    Single(Vec<[f32; 2]>),
    /// In float64, for numbers of that type.
    Double(Vec<[f64; 2]>),
}

impl Meta {
    /// Reads and checks it.
    ///
    /// # Errors
    /// `Corrupt` naming byte, field and sequence; `Unsupported` for a dtype that holds no numbers.
    pub(super) fn read(object: &dyn Object) -> Result<Meta> {
        let mut scratch = Vec::new();
        let size = at_once(object.size()).map_err(|e| e.at(object.name()))?;
        let text = object.read(0, size, &mut scratch)?;
        let mut told = Told { base: text.as_ptr() as usize, ..Told::default() };
        let mut parser = serde_json::Deserializer::from_slice(text);
        let parsed = TopSeed(&mut told).deserialize(&mut parser).and_then(|()| parser.end());
        if let Some(error) = told.failed.take() {
            return Err(error.or_at(object.name()));
        }
        parsed.map_err(|cause| {
            let byte = error_byte(text, &cause) as u64;
            Error::corrupt("the description of the shards cannot be understood")
                .at(object.name())
                .byte(byte)
                .caused_by(cause)
                .hint("expected {\"num_sequences\", \"dtype\", \"files\": {name: count}, \"scales\": [{\"offset\", \"length\"}]}")
        })?;
        told.check().map_err(|e| e.or_at(object.name()))
    }
}

/// What the text declared so far.
#[derive(Default)]
struct Told {
    num_sequences: Option<u64>,
    dtype: Option<String>,
    channels: Option<Option<u64>>,
    files: Option<Vec<(String, u64)>>,
    has_scales: bool,
    offsets: Vec<u64>,
    lengths: Vec<u64>,
    /// Empty until a sequence has both.
    scaling: Vec<[f64; 2]>,
    has_others: bool,
    places: Vec<u64>,
    /// Where the text begins in memory.
    base: usize,
    /// An error with its place, which the parser's own cannot hold.
    failed: Option<Error>,
}

/// The mark of a sequence that is not scaled: no finite number, which alone can be read.
const PLAIN: f64 = f64::NAN;

impl Told {
    fn add(&mut self, scale: &Scale) {
        self.offsets.push(scale.offset);
        self.lengths.push(scale.length);
        let both = scale.std.zip(scale.mean);
        if both.is_some() && self.scaling.is_empty() {
            self.scaling.resize(self.offsets.len() - 1, [PLAIN; 2]);
        }
        if both.is_some() || !self.scaling.is_empty() {
            self.scaling.push(both.map_or([PLAIN; 2], |(std, mean)| [std, mean]));
        }
        self.has_others |=
            scale.has_others || (both.is_none() && (scale.std.is_some() || scale.mean.is_some()));
    }

    fn check(mut self) -> Result<Meta> {
        let missing = |key: &str| Error::corrupt(format!("expected {key:?}, found none")).field(key);
        let dtype = self.dtype.take().ok_or_else(|| missing("dtype"))?;
        let element = element(&dtype).map_err(|e| e.field("dtype"))?;
        let files = in_order(self.files.take().ok_or_else(|| missing("files"))?)?;
        let claimed = self.num_sequences.ok_or_else(|| missing("num_sequences"))?;
        if !self.has_scales {
            return Err(missing("scales"));
        }
        let count = match usize::try_from(claimed) {
            Ok(count) if count <= self.offsets.len() => count,
            _ => {
                return Err(Error::corrupt(format!(
                    "num_sequences is {claimed}, but there are {} scales",
                    self.offsets.len()
                ))
                .field("num_sequences")
                .hint("the copy looks unfinished"));
            }
        };
        // Fewer than there are scales means the first of them.
        self.offsets.truncate(count);
        self.lengths.truncate(count);
        self.scaling.truncate(count);
        let total = files.iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n));
        let total = total.ok_or_else(|| {
            Error::corrupt("the shards hold more numbers together than 64 bits can count").field("files")
        })?;
        for (i, (offset, length)) in self.offsets.iter().zip(&self.lengths).enumerate() {
            if offset.checked_add(*length).is_none_or(|end| end > total) {
                return Err(Error::corrupt(format!(
                    "numbers {offset}..{offset}+{length} expected, the shards hold {total} together"
                ))
                .record(i as u64)
                .field(format!("scales[{i}]"))
                .hint("the copy looks unfinished, or a shard is missing in \"files\""));
            }
        }
        let channels = self.channels.flatten();
        self.check_channels(channels)?;
        let scaling = scaling(self.scaling, element.dtype)?;
        // One for each block of sequences, and where the last block ends.
        self.places.truncate(count.div_ceil(STEP as usize) + 1);
        Ok(Meta {
            element,
            channels,
            files,
            offsets: self.offsets,
            lengths: self.lengths,
            scaling,
            has_others: self.has_others,
            text: self.places,
        })
    }
}

impl Told {
    // Sequences are whole frames.
    fn check_channels(&self, channels: Option<u64>) -> Result<()> {
        const MOST: u64 = 1 << 16;
        let Some(channels) = channels else { return Ok(()) };
        if channels == 0 || channels > MOST {
            return Err(
                Error::corrupt(format!("{channels} channels, expected 1 to {MOST}")).field("channels")
            );
        }
        match self.lengths.iter().position(|length| !length.is_multiple_of(channels)) {
            None => Ok(()),
            Some(i) => Err(Error::corrupt(format!(
                "{} numbers are not whole frames of {channels} channels",
                self.lengths[i]
            ))
            .record(i as u64)
            .field(format!("scales[{i}].length"))
            .hint("offset and length count numbers, C for each frame")),
        }
    }
}

fn scaling(told: Vec<[f64; 2]>, dtype: DType) -> Result<Scaling> {
    if told.is_empty() || told.iter().all(|[std, _]| std.is_nan()) {
        return Ok(Scaling::None);
    }
    if dtype == DType::F64 {
        return Ok(Scaling::Double(told));
    }
    let mut single = Vec::with_capacity(told.len());
    for (i, pair) in told.iter().enumerate() {
        let narrow = pair.map(|number| number as f32);
        if let Some(at) = (0..2).find(|at| narrow[*at].is_infinite()) {
            return Err(Error::corrupt(format!("{} does not fit float32", pair[at]))
                .record(i as u64)
                .field(format!("scales[{i}].{}", ["std", "mean"][at])));
        }
        single.push(narrow);
    }
    Ok(Scaling::Single(single))
}

// numpy's names, those of C too, short or long, with a byte order or without; and bfloat16, which numpy lacks. A C long has
// 64 bits, as numpy has it wherever these shards are made.
fn element(name: &str) -> Result<Element> {
    let plain = name.trim_start_matches(['<', '>', '=', '|']);
    let alias = match plain {
        "half" | "e" => "float16",
        "single" | "f" => "float32",
        "double" | "float" | "float_" | "d" => "float64",
        "byte" | "b" => "int8",
        "short" | "h" => "int16",
        "intc" | "i" => "int32",
        "int" | "int_" | "intp" | "long" | "longlong" | "l" | "q" | "p" | "n" => "int64",
        "ubyte" | "B" => "uint8",
        "ushort" | "H" => "uint16",
        "uintc" | "I" => "uint32",
        "uint" | "uintp" | "ulong" | "ulonglong" | "L" | "Q" | "P" | "N" => "uint64",
        "bool_" | "?" => "bool",
        other => other,
    };
    match DType::parse(alias).ok().filter(|dtype| dtype.name() == alias) {
        Some(dtype) => Ok(Element { dtype, big_endian: name.starts_with('>') && dtype.size() > 1 }),
        None => npy::element(name),
    }
}

// By the number in the name: `data-10-of-12.bin` after `data-9-of-12.bin`.
fn in_order(files: Vec<(String, u64)>) -> Result<Vec<(String, u64)>> {
    let mut numbered = Vec::with_capacity(files.len());
    for (name, count) in files {
        let number = shard_number(&name).ok_or_else(|| {
            Error::corrupt(format!(
                "expected the name of a file in this folder that ends in -<i>-of-<n>.bin, found {name:?}"
            ))
            .field("files")
        })?;
        numbered.push((number, name, count));
    }
    numbered.sort_by(|a, b| a.0.cmp(&b.0).then(Ordering::Equal));
    if let Some(pair) = numbered.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::corrupt(format!(
            "{:?} and {:?} have one number: which comes first cannot be known",
            pair[0].1, pair[1].1
        ))
        .field("files"));
    }
    Ok(numbered.into_iter().map(|(_, name, count)| (name, count)).collect())
}

/// The number in `<prefix>-<i>-of-<n>.bin`; `None` for any other name, and for one that is not a plain file name.
pub(super) fn shard_number(name: &str) -> Option<u64> {
    if name.contains(['/', '\\', '\0']) || name.starts_with('.') {
        return None;
    }
    let (rest, n) = name.strip_suffix(".bin")?.rsplit_once("-of-")?;
    let (_, i) = rest.rsplit_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits(n) && digits(i) { i.parse().ok() } else { None }
}

/// One entry of `scales`.
struct Scale {
    offset: u64,
    length: u64,
    mean: Option<f64>,
    std: Option<f64>,
    has_others: bool,
}

impl<'de> Deserialize<'de> for Scale {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Seen;
        impl<'de> Visitor<'de> for Seen {
            type Value = Scale;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with offset and length")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Scale, A::Error> {
                let (mut offset, mut length, mut mean, mut std) = (None, None, None, None);
                let mut has_others = false;
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    match key.0.as_ref() {
                        "offset" => once(&mut offset, map.next_value()?, "offset")?,
                        "length" => once(&mut length, map.next_value()?, "length")?,
                        "mean" => once(&mut mean, map.next_value::<Option<f64>>()?, "mean")?,
                        "std" => once(&mut std, map.next_value::<Option<f64>>()?, "std")?,
                        _ => {
                            has_others = true;
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Scale {
                    offset: offset.ok_or_else(|| de::Error::missing_field("offset"))?,
                    length: length.ok_or_else(|| de::Error::missing_field("length"))?,
                    mean: mean.flatten(),
                    std: std.flatten(),
                    has_others,
                })
            }
        }
        deserializer.deserialize_map(Seen)
    }
}

/// A key, copied only where it is written with escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

fn once<T, E: de::Error>(place: &mut Option<T>, value: T, key: &'static str) -> std::result::Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(key)),
    }
}

struct TopSeed<'t>(&'t mut Told);

impl<'de> DeserializeSeed<'de> for TopSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TopSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        let told = self.0;
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match key.0.as_ref() {
                "num_sequences" => once(&mut told.num_sequences, map.next_value()?, "num_sequences")?,
                "dtype" => once(&mut told.dtype, map.next_value()?, "dtype")?,
                "channels" => once(&mut told.channels, map.next_value()?, "channels")?,
                "files" => once(&mut told.files, map.next_value::<Files>()?.0, "files")?,
                "scales" if told.has_scales => return Err(de::Error::duplicate_field("scales")),
                "scales" => {
                    told.has_scales = true;
                    map.next_value_seed(ScalesSeed(told))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Names and counts, each name once.
struct Files(Vec<(String, u64)>);

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Seen;
        impl<'de> Visitor<'de> for Seen {
            type Value = Files;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of file names and how many numbers each holds")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Files, A::Error> {
                let mut found = Vec::new();
                let mut names = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !names.insert(name.clone()) {
                        return Err(de::Error::custom(format_args!(
                            "expected each file once, found {name:?} twice"
                        )));
                    }
                    found.push((name, map.next_value()?));
                }
                Ok(Files(found))
            }
        }
        deserializer.deserialize_map(Seen)
    }
}

struct ScalesSeed<'t>(&'t mut Told);

impl<'de> DeserializeSeed<'de> for ScalesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ScalesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects with offset and length")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        let told = self.0;
        let mut end = 0;
        while let Some(raw) = list.next_element::<&RawValue>()? {
            // Borrowed from the text, so its address tells its place.
            let text = raw.get();
            let start = (text.as_ptr() as usize - told.base) as u64;
            end = start + text.len() as u64;
            let index = told.offsets.len();
            if index.is_multiple_of(STEP as usize) {
                told.places.push(start);
            }
            match serde_json::from_str::<Scale>(text) {
                Ok(scale) => told.add(&scale),
                Err(cause) => {
                    let byte = start + error_byte(text.as_bytes(), &cause) as u64;
                    let found: String = text.chars().take(80).collect();
                    told.failed = Some(
                        Error::corrupt(format!("expected an offset and a length, found {found}"))
                            .record(index as u64)
                            .byte(byte)
                            .field(format!("scales[{index}]"))
                            .caused_by(cause),
                    );
                    return Err(de::Error::custom("a scale that is not a number"));
                }
            }
        }
        told.places.push(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_numbers_are_numpys() {
        // numpy.dtype(name).str of numpy 2.4 on 64 bits, by kind and size.
        for (names, dtype) in [
            (&["long", "longlong", "int", "int_", "intp", "l", "q", "=p", "<n", "i8"][..], DType::I64),
            (&["ulong", "ulonglong", "uint", "uintp", "L", "Q", "P", "N", "u8"], DType::U64),
            (&["intc", "i", "=i4"], DType::I32),
            (&["uintc", "I"], DType::U32),
            (&["short", "h"], DType::I16),
            (&["ushort", "H"], DType::U16),
            (&["byte", "b"], DType::I8),
            (&["ubyte", "B", "|B"], DType::U8),
            (&["double", "float", "d", "<d"], DType::F64),
            (&["single", "f"], DType::F32),
            (&["half", "e"], DType::F16),
            (&["bool", "bool_", "?"], DType::Bool),
        ] {
            for name in names {
                let found = element(name).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(found, Element { dtype, big_endian: false }, "{name}");
            }
        }
        assert_eq!(element(">l").unwrap(), Element { dtype: DType::I64, big_endian: true });
        // Text, complex numbers, times and what no numpy knows.
        for name in ["S", "U", "c", "g", "F", "D", "m8", "M8", "longdouble", "Float32", ""] {
            assert!(element(name).is_err(), "{name}");
        }
    }
}
