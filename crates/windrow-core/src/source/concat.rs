//! Several sources as one: their records in order, found by a binary search.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::{
    Cells, Column, Extras, FileInfo, Kind, Location, Rows, Schema, SharedSource, Source, Stored, Track,
    word_of,
};
use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::record::{Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::Object;

/// The largest number of a part's object, and of a part, that fits the number of an object here.
const OBJECTS: u64 = u32::MAX as u64;

/// The records of several sources, source by source.
///
/// The parts that have records must agree in kind, channels and tracks. Their numbers may be stored in different types:
/// then [`Schema::element`] is float32, and the values of each record come as they are stored, in the type that
/// [`Values::element`] says.
pub struct Concat {
    format: &'static str,
    parts: Vec<SharedSource>,
    /// Number of the first record of each part, and the number of records at the end.
    first_records: Vec<u64>,
    schema: Schema,
    uniform: Option<u64>,
}

impl Concat {
    /// Joins the parts; `format` is the name of the layout that they make together.
    ///
    /// # Errors
    /// `Config` when there is none, and for metadata that two parts share though no records of one do; `Mismatch` naming two parts that cannot be joined; `Corrupt` when they hold more
    /// records than 64 bits can count.
    pub fn new(format: &'static str, parts: Vec<SharedSource>) -> Result<Concat> {
        let joined = filled(&parts);
        let first = joined.first().ok_or_else(|| Error::config("expected a source to join, found none"))?;
        let mut schema = first.schema().clone();
        for part in &joined[1..] {
            join(&mut schema, first.as_ref(), part.as_ref())?;
        }
        refuse_shared(&joined)?;
        let mut first_records = vec![0u64];
        let mut count = 0u64;
        for part in &parts {
            count = count.checked_add(part.len()).ok_or_else(|| {
                named(Error::corrupt("more records together than 64 bits can count"), part.as_ref())
            })?;
            first_records.push(count);
        }
        let mut filled = parts.iter().filter(|part| !part.is_empty()).map(|part| part.uniform());
        let uniform = filled.next().flatten();
        let uniform = uniform.filter(|length| filled.all(|other| other == Some(*length)));
        Ok(Concat { format, parts, first_records, schema, uniform })
    }

    // The part that holds a record, and the record's number in it.
    fn find(&self, record: u64) -> Result<(&SharedSource, u64)> {
        let out_of_range = || Error::out_of_range("record", record, self.len());
        let part = self.part_of(record).ok_or_else(out_of_range)?;
        Ok((&self.parts[part], record - self.first_records[part]))
    }

    // The last part that begins at or before it: an empty one begins where the next one does.
    fn part_of(&self, record: u64) -> Option<usize> {
        let at = || self.first_records[..self.parts.len()].partition_point(|first| *first <= record) - 1;
        (record < self.len()).then(at)
    }
}

// The parts with records: an empty one says nothing of them, unless all are empty.
fn filled(parts: &[SharedSource]) -> Vec<&SharedSource> {
    if parts.iter().all(|part| part.is_empty()) {
        parts.iter().collect()
    } else {
        parts.iter().filter(|part| !part.is_empty()).collect()
    }
}

// What the joined records have in common, from those so far and one more part.
fn join(schema: &mut Schema, first: &dyn Source, part: &dyn Source) -> Result<()> {
    let other = part.schema();
    let differ = |what: &str, a: String, b: String| {
        let error = Error::mismatch(format!(
            "series that cannot be one source: {what} {a} in {}, {b} here",
            first_file(first)
        ));
        Err(named(error, part).hint("open them one by one, or move one of them to another folder"))
    };
    if schema.kind != other.kind {
        return differ("records are", format!("{:?}", schema.kind), format!("{:?}", other.kind));
    }
    if schema.channels != other.channels {
        let say = |channels: Option<usize>| match channels {
            Some(channels) => format!("[T, {channels}]"),
            None => "[T]".to_string(),
        };
        return differ("records are", say(schema.channels), say(other.channels));
    }
    if schema.columns != other.columns {
        let say = |columns: &[Column]| {
            columns.iter().map(|c| format!("{} ({})", c.name, c.holds)).collect::<Vec<_>>().join(", ")
        };
        return differ("columns are", say(&schema.columns), say(&other.columns));
    }
    if schema.tracks != other.tracks {
        return differ("arrays beside the values are", listed(&schema.tracks), listed(&other.tracks));
    }
    if schema.beside != other.beside {
        schema.beside = None;
    }
    schema.unique = schema.unique.or(other.unique);
    if schema.kind == Kind::Numbers && schema.element != other.element {
        schema.element = Element::little(DType::F32);
    }
    schema.vocab_size = match (schema.vocab_size, other.vocab_size) {
        (Some(a), Some(b)) => Some(a.max(b)),
        _ => None,
    };
    Ok(())
}

// What no two records of a part share is not shared by those of two parts.
fn refuse_shared(parts: &[&SharedSource]) -> Result<()> {
    let mut seen: HashMap<String, (usize, u64)> = HashMap::new();
    for (number, part) in parts.iter().enumerate() {
        let Some(name) = part.schema().unique.filter(|_| parts.len() > 1) else { continue };
        let names = [name.to_string()];
        for record in 0..part.len() {
            let Some(found) = part.beside(record, &names)?.remove(name) else { continue };
            let shown = found.shown().to_string();
            match seen.get(&shown) {
                Some((before, first)) if *before != number => {
                    let (here, there) =
                        (place_of(part.as_ref(), record)?, place_of(parts[*before].as_ref(), *first)?);
                    return Err(Error::config(format!(
                        "{name} {shown} is in two files: it is also in {} (byte {})",
                        there.file, there.start
                    ))
                    .at(here.file)
                    .byte(here.start)
                    .hint("put the lines of a series into one file, in order; without the column of IDs each file is one series"));
                }
                _ => {
                    seen.insert(shown, (number, record));
                }
            }
        }
    }
    Ok(())
}

fn place_of(part: &dyn Source, record: u64) -> Result<Location> {
    let located = part.locate(Span { record, start: 0, len: 0 })?;
    let first = || Location { file: first_file(part), start: 0, size: 0 };
    Ok(located.into_iter().next().unwrap_or_else(first))
}

// Tracks, and the columns that they are made of.
fn listed(tracks: &[Track]) -> String {
    let one = |track: &Track| {
        if track.made_of.is_empty() {
            format!("{} ({})", track.name, track.element.dtype)
        } else {
            format!("a mask of {}", track.made_of.join(" and "))
        }
    };
    match tracks {
        [] => "none".to_string(),
        tracks => tracks.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

fn first_file(source: &dyn Source) -> String {
    source.files().into_iter().next().map_or_else(String::new, |info| info.file)
}

fn named(error: Error, part: &dyn Source) -> Error {
    error.at(first_file(part))
}

#[deny(clippy::missing_trait_methods)]
impl Lengths for Concat {
    fn len(&self) -> u64 {
        self.first_records.last().copied().unwrap_or(0)
    }

    fn length(&self, record: u64) -> Result<u64> {
        let (part, local) = self.find(record)?;
        part.length(local).map_err(|e| e.renumbered(local, record))
    }

    fn uniform(&self) -> Option<u64> {
        self.uniform
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let (record, of) = (first.saturating_add(done as u64), self.len());
            let part = self.part_of(record).ok_or_else(|| Error::out_of_range("record", record, of))?;
            let left = usize::try_from(self.first_records[part + 1] - record).unwrap_or(usize::MAX);
            let n = left.min(out.len() - done);
            let local = record - self.first_records[part];
            self.parts[part]
                .lengths(local, &mut out[done..done + n])
                .map_err(|e| e.renumbered(local, record))?;
            done += n;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[deny(clippy::missing_trait_methods)]
impl Source for Concat {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (part, local) = self.find(span.record)?;
        part.read(Span { record: local, ..span }, scratch).map_err(|e| e.renumbered(local, span.record))
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (part, local) = self.find(record)?;
        part.read_whole(local, scratch).map_err(|e| e.renumbered(local, record))
    }

    fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (part, local) = self.find(span.record)?;
        let found = part.read_track(track, Span { record: local, ..span }, scratch);
        found.map_err(|e| e.renumbered(local, span.record))
    }

    fn text<'a>(&'a self, record: u64, scratch: &'a mut String) -> Result<&'a str> {
        let (part, local) = self.find(record)?;
        part.text(local, scratch).map_err(|e| e.renumbered(local, record))
    }

    fn row(&self, record: u64) -> Result<Row> {
        let (part, local) = self.find(record)?;
        part.row(local).map_err(|e| e.renumbered(local, record))
    }

    fn value(&self, record: u64, columns: Option<&[usize]>) -> Result<Value> {
        let (part, local) = self.find(record)?;
        part.value(local, columns).map_err(|e| e.renumbered(local, record))
    }

    fn rows_from(&self, first: u64) -> Rows<'_> {
        let Some(part) = self.part_of(first) else { return Box::new(std::iter::empty()) };
        let rest = self.parts[part..].iter().zip(&self.first_records[part..]);
        Box::new(rest.flat_map(move |(part, &begin)| {
            let local = first.saturating_sub(begin);
            let rows = (local..).zip(part.rows_from(local));
            rows.map(move |(local, row)| row.map_err(|e| e.renumbered(local, begin + local)))
        }))
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        let (part, local) = self.find(record)?;
        part.extras(local).map_err(|e| e.renumbered(local, record))
    }

    fn beside(&self, record: u64, names: &[String]) -> Result<Extras> {
        let (part, local) = self.find(record)?;
        part.beside(local, names).map_err(|e| e.renumbered(local, record))
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, step) in spans {
            if let Ok((part, record)) = self.find(span.record) {
                part.prefetch(&mut std::iter::once((Span { record, ..span }, step)));
            }
        }
    }

    fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
        let mut of_parts: Vec<Vec<Span>> = vec![Vec::new(); self.parts.len()];
        for span in spans {
            if let Some(part) = self.part_of(span.record) {
                of_parts[part].push(Span { record: span.record - self.first_records[part], ..span });
            }
        }
        for (part, spans) in self.parts.iter().zip(of_parts).filter(|(_, spans)| !spans.is_empty()) {
            part.decode_ahead(&mut spans.into_iter());
        }
    }

    fn stored(&self, record: u64) -> Result<Option<Stored>> {
        let (part, local) = self.find(record)?;
        if part.schema().element != self.schema.element {
            return Ok(None);
        }
        let number = self.part_of(record).unwrap_or(0) as u64;
        let stored = part.stored(local).map_err(|e| e.renumbered(local, record))?;
        // A part's own objects have the lower half of the number.
        let stored = stored.filter(|stored| stored.object <= OBJECTS && number <= OBJECTS);
        Ok(stored.map(|stored| Stored { object: (number << 32) | stored.object, ..stored }))
    }

    fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
        let part = usize::try_from(number >> 32).ok().and_then(|part| self.parts.get(part));
        part.ok_or_else(|| Error::out_of_range("object", number, 0))?.object(number & OBJECTS)
    }

    // The parts follow each other, but not in one stream that could be asked for.
    fn joined(&self) -> Option<SharedSource> {
        None
    }

    fn treatment(&self) -> Option<String> {
        let treatments: Vec<_> = filled(&self.parts).iter().map(|part| part.treatment()).collect();
        if treatments.iter().all(|one| *one == treatments[0]) {
            treatments[0].clone()
        } else {
            Some(treatments.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join(";"))
        }
    }

    fn touch(&self, span: Span) {
        if let Ok((part, record)) = self.find(span.record) {
            part.touch(Span { record, ..span });
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (part, local) = self.find(span.record)?;
        part.locate(Span { record: local, ..span }).map_err(|e| e.renumbered(local, span.record))
    }

    fn files(&self) -> Vec<FileInfo> {
        self.parts.iter().flat_map(|part| part.files()).collect()
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(self.format.as_bytes());
        for part in &self.parts {
            hash.update(&part.len().to_le_bytes());
            hash.update(&part.fingerprint()?.to_le_bytes());
        }
        Ok(hash.digest())
    }

    fn word(&self) -> Result<String> {
        word_of(self)
    }

    fn cells(
        &self,
        name: &str,
        records: Range<u64>,
        take: &mut dyn FnMut(u64, Cells<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut record = records.start;
        while record < records.end {
            let of = self.len();
            let part = self.part_of(record).ok_or_else(|| Error::out_of_range("record", record, of))?;
            let begin = self.first_records[part];
            let end = records.end.min(self.first_records[part + 1]);
            let mut taken = |first: u64, cells: Cells<'_>| take(begin + first, cells);
            let gone = self.parts[part].cells(name, record - begin..end - begin, &mut taken);
            gone.map_err(|e| match e.place().record {
                Some(local) if local < end - begin => e.record(begin + local),
                _ => e,
            })?;
            record = end;
        }
        Ok(())
    }

    fn format(&self) -> &'static str {
        self.format
    }
}
