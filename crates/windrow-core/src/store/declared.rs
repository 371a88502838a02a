//! What was found in objects when they were listed, so that whoever opens them need not ask for it again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a format found in the objects below a folder. It holds for the versions that were listed: reading another one is an error.
#[derive(Debug, Default)]
pub struct Declared {
    /// Name of the format that opened them.
    format: String,
    found: Mutex<Found>,
    /// The objects that are joined, in order.
    parts: Parts,
    kinds: Vec<Value>,
    options: String,
    /// What is found now is noted, and not believed.
    is_noting: bool,
}

#[derive(Debug, Default)]
struct Found {
    /// By a hash of what decides them besides the bytes.
    fingerprints: BTreeMap<u64, u64>,
    noted: DeclaredText,
}

/// What was found in one object, which is opened by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredPart {
    /// The number of the object in its catalogue.
    pub object: u32,
    /// What it has in common with others, by number.
    pub kind: u32,
    /// Number of its records.
    pub records: u64,
    /// The length of each, where all are equal.
    pub length: Option<u64>,
    /// The fingerprint of its records.
    pub fingerprint: u64,
}

/// What was found in each of many objects, 32 bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts(Vec<Packed>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Packed {
    records: u64,
    /// The largest number where they differ.
    length: u64,
    fingerprint: u64,
    object: u32,
    kind: u32,
}

impl Parts {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was found in one, by its place.
    pub fn get(&self, at: usize) -> Option<DeclaredPart> {
        let Packed { records, length, fingerprint, object, kind } = *self.0.get(at)?;
        Some(DeclaredPart {
            object,
            kind,
            records,
            length: (length < u64::MAX).then_some(length),
            fingerprint,
        })
    }

    /// What was found in each.
    pub fn iter(&self) -> impl Iterator<Item = DeclaredPart> {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

impl FromIterator<DeclaredPart> for Parts {
    fn from_iter<I: IntoIterator<Item = DeclaredPart>>(parts: I) -> Parts {
        let packed = |part: DeclaredPart| {
            let DeclaredPart { object, kind, records, length, fingerprint } = part;
            Packed { records, length: length.unwrap_or(u64::MAX), fingerprint, object, kind }
        };
        let mut packed: Vec<Packed> = parts.into_iter().map(packed).collect();
        packed.shrink_to_fit();
        Parts(packed)
    }
}

/// What of it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredText {
    /// Hashes of the data by a hash of what decides them besides its bytes; 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fingerprints: BTreeMap<String, String>,
    /// A hash of the options with which the parts were opened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub options: String,
    /// What records of parts have in common.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Value>,
    /// Files that are joined, in order: the number of the file in the listing, of its kind, of its records, their length or `-` where it
    /// differs, the fingerprint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
}

impl Declared {
    /// Nothing yet: what is found now is noted.
    pub fn to_note() -> Declared {
        Declared { is_noting: true, ..Declared::default() }
    }

    /// What was written of objects that a format opened; what cannot be understood is left out.
    pub fn of(format: &str, text: DeclaredText) -> Declared {
        let pair = |(decides, found): (&String, &String)| Some((number(decides)?, number(found)?));
        let fingerprints = text.fingerprints.iter().filter_map(pair).collect();
        let parts: Option<Parts> = text.parts.iter().map(|row| part(row)).collect();
        let kinds = text.kinds.len();
        let are_known = |parts: &Parts| parts.iter().all(|part| (part.kind as usize) < kinds);
        Declared {
            format: format.to_string(),
            found: Mutex::new(Found { fingerprints, ..Found::default() }),
            parts: parts.filter(are_known).unwrap_or_default(),
            kinds: text.kinds,
            options: text.options,
            is_noting: false,
        }
    }

    /// What is written of it.
    pub fn text(&self) -> DeclaredText {
        let digits = |(decides, found): (&u64, &u64)| (format!("{decides:016x}"), format!("{found:016x}"));
        let found = self.found();
        DeclaredText { fingerprints: found.fingerprints.iter().map(digits).collect(), ..found.noted.clone() }
    }

    /// Name of the format that opened the objects when they were listed; `None` while they are opened to note it.
    pub fn opened_by(&self) -> Option<&str> {
        (!self.is_noting).then_some(&self.format)
    }

    /// Whether what is found now is noted.
    pub fn is_noting(&self) -> bool {
        self.is_noting
    }

    /// A hash of the data that was found, by a hash of what decides it besides its bytes.
    pub fn fingerprint(&self, decides: u64) -> Option<u64> {
        self.found().fingerprints.get(&decides).copied().filter(|_| !self.is_noting)
    }

    /// Notes a hash of the data.
    pub fn note_fingerprint(&self, decides: u64, found: u64) {
        if self.is_noting {
            self.found().fingerprints.insert(decides, found);
        }
    }

    /// The objects that are joined, in order, where they were opened with options of this hash; and what they have in common.
    pub fn parts(&self, options: u64) -> Option<(&Parts, &[Value])> {
        let is_so = !self.parts.is_empty() && number(&self.options) == Some(options);
        is_so.then_some((&self.parts, &self.kinds))
    }

    /// All objects that are joined, with whatever options.
    pub fn all_parts(&self) -> &Parts {
        &self.parts
    }

    /// Notes what is in objects that are joined.
    pub fn note_parts(&self, options: u64, kinds: Vec<Value>, parts: &[DeclaredPart]) {
        let row = |part: &DeclaredPart| {
            let length = part.length.map_or("-".to_string(), |length| length.to_string());
            let DeclaredPart { object, kind, records, fingerprint, .. } = part;
            format!("{object} {kind} {records} {length} {fingerprint:016x}")
        };
        if self.is_noting {
            let noted = &mut self.found().noted;
            (noted.options, noted.kinds) = (format!("{options:016x}"), kinds);
            noted.parts = parts.iter().map(row).collect();
        }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The objects are in another order now: object `order[i]` is number i.
    pub(super) fn sort(&mut self, order: &[usize]) {
        let mut now = vec![0; order.len()];
        order.iter().enumerate().for_each(|(number, before)| now[*before] = number as u32);
        let moved = |part: DeclaredPart| {
            now.get(part.object as usize).map(|object| DeclaredPart { object: *object, ..part })
        };
        self.parts = self.parts.iter().map(moved).collect::<Option<_>>().unwrap_or_default();
    }
}

fn number(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

fn part(row: &str) -> Option<DeclaredPart> {
    let words: Vec<&str> = row.split(' ').collect();
    let &[object, kind, records, length, fingerprint] = words.as_slice() else { return None };
    Some(DeclaredPart {
        object: object.parse().ok()?,
        kind: kind.parse().ok()?,
        records: records.parse().ok()?,
        length: if length == "-" { None } else { Some(length.parse().ok()?) },
        fingerprint: u64::from_str_radix(fingerprint, 16).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Catalogue, Entry};

    fn of(text: DeclaredText) -> Declared {
        let entry = |key: &str| Entry {
            key: key.to_string(),
            size: 1,
            is_folder: false,
            modified_ns: None,
            tag: None,
        };
        let entries = ["d/10", "d/9", "d/b"].map(entry).into();
        Catalogue::new(entries, Some(Declared::of("toy", text))).declared.unwrap()
    }

    #[test]
    fn what_is_noted_is_declared_later_in_the_order_in_which_it_is_joined() {
        let noting = Declared::to_note();
        let part =
            |object, length| DeclaredPart { object, kind: 0, records: 3, length, fingerprint: u64::MAX };
        let parts = [part(1, Some(7)), part(0, None)];
        noting.note_parts(5, vec!["kind".into()], &parts);
        noting.note_fingerprint(1, 2);
        assert_eq!((noting.fingerprint(1), noting.parts(5), noting.opened_by()), (None, None, None));
        let text = noting.text();
        let written: DeclaredText = serde_json::from_str(&serde_json::to_string(&text).unwrap()).unwrap();
        assert_eq!(written, text);
        let read = of(written);
        assert_eq!(read.parts(5), Some((&parts.into_iter().collect(), &["kind".into()][..])));
        assert_eq!((read.fingerprint(1), read.parts(6), read.opened_by()), (Some(2), None, Some("toy")));
    }

    #[test]
    fn rows_that_cannot_be_of_these_objects_are_as_none() {
        for row in ["", "0 0 3 7", "0 0 3 7 x", "0 1 3 7 0", "3 0 3 7 0", "-1 0 3 7 0", "0 0 3 7 0 0"] {
            let text = DeclaredText {
                options: "5".to_string(),
                kinds: vec!["kind".into()],
                parts: vec!["1 0 3 7 0".to_string(), row.to_string()],
                ..DeclaredText::default()
            };
            assert_eq!(of(text).parts(5), None, "{row:?}");
        }
    }
}
