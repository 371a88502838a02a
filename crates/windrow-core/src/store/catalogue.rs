//! The objects below a folder as they were listed, in little memory, and what is declared of them.

use super::Entry;
use super::declared::Declared;

/// Set in the size of a tag that is kept as the bytes of its hexadecimal digits.
const PACKED: u16 = 1 << 15;

/// Objects sorted by key: 16 bytes each, their keys, and half of what their versions are called.
#[derive(Debug, Default)]
pub struct Catalogue {
    rows: Vec<Row>,
    /// The key of each row and its tag.
    bytes: Vec<u8>,
    /// What is declared of them, where it is.
    pub declared: Option<Declared>,
}

#[derive(Debug)]
struct Row {
    size: u64,
    /// Where its key and tag end, which begin where those before it end, in 48 bits; and how long the tag is, 0 for none.
    end: u64,
}

impl Row {
    fn end(&self) -> usize {
        (self.end >> 16) as usize
    }

    fn tag_size(&self) -> u16 {
        self.end as u16
    }

    fn tag_bytes(&self) -> usize {
        usize::from(self.tag_size() & !PACKED)
    }
}

impl Catalogue {
    /// Of these objects; folders and times of changes are left out. With what is declared, the parts are in the order of the objects.
    pub fn new(mut entries: Vec<Entry>, declared: Option<Declared>) -> Catalogue {
        entries.retain(|entry| !entry.is_folder);
        let declared = match declared {
            None => {
                entries.sort_by(|a, b| a.key.cmp(&b.key));
                None
            }
            Some(mut declared) => {
                let mut order: Vec<usize> = (0..entries.len()).collect();
                order.sort_by(|a, b| entries[*a].key.cmp(&entries[*b].key));
                declared.sort(&order);
                entries.sort_by(|a, b| a.key.cmp(&b.key));
                Some(declared)
            }
        };
        let size = |entry: &Entry| entry.key.len() + entry.tag.as_ref().map_or(0, String::len);
        let mut found = Catalogue {
            rows: Vec::with_capacity(entries.len()),
            bytes: Vec::with_capacity(entries.iter().map(size).sum()),
            declared,
        };
        entries.iter().for_each(|entry| found.add(entry));
        found.bytes.shrink_to_fit();
        found
    }

    fn add(&mut self, entry: &Entry) {
        self.bytes.extend_from_slice(entry.key.as_bytes());
        // No version is called so; of one without a name it is asked again.
        let tag = entry.tag.as_deref().filter(|tag| tag.len() < usize::from(PACKED)).unwrap_or_default();
        let start = self.bytes.len();
        let is_packed = pack(tag, &mut self.bytes);
        if !is_packed {
            self.bytes.extend_from_slice(tag.as_bytes());
        }
        let tag_size = (self.bytes.len() - start) as u16 | if is_packed { PACKED } else { 0 };
        self.rows.push(Row { size: entry.size, end: (self.bytes.len() as u64) << 16 | u64::from(tag_size) });
    }

    // The bytes of its key, and those of its tag.
    fn parts(&self, number: usize) -> (&[u8], &[u8]) {
        let start = number.checked_sub(1).map_or(0, |before| self.rows[before].end());
        let row = &self.rows[number];
        self.bytes[start..row.end()].split_at(row.end() - start - row.tag_bytes())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// None at all.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The key of one, by its number.
    ///
    /// # Panics
    /// Where there is no such number.
    pub fn key(&self, number: usize) -> &str {
        // They were text.
        std::str::from_utf8(self.parts(number).0).unwrap_or_default()
    }

    /// The bytes that one has.
    ///
    /// # Panics
    /// As [`Catalogue::key`].
    pub fn size(&self, number: usize) -> u64 {
        self.rows[number].size
    }

    /// What its store calls this version of it.
    ///
    /// # Panics
    /// As [`Catalogue::key`].
    pub fn tag(&self, number: usize) -> Option<String> {
        let bytes = self.parts(number).1;
        match self.rows[number].tag_size() {
            0 => None,
            size if size & PACKED != 0 => {
                let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
                Some(format!("\"{}\"", digits.collect::<String>()))
            }
            _ => Some(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    /// All that is known of one.
    ///
    /// # Panics
    /// As [`Catalogue::key`].
    pub fn entry(&self, number: usize) -> Entry {
        Entry {
            key: self.key(number).to_string(),
            size: self.size(number),
            is_folder: false,
            modified_ns: None,
            tag: self.tag(number),
        }
    }

    /// All of them.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry> {
        (0..self.len()).map(|number| self.entry(number))
    }

    /// The number of the first one whose key does not come before this one.
    pub fn from(&self, key: &str) -> usize {
        let (mut first, mut end) = (0, self.len());
        while first < end {
            let middle = first.midpoint(end);
            match self.parts(middle).0 < key.as_bytes() {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        first
    }

    /// The number of the object with this key.
    pub fn find(&self, key: &str) -> Option<usize> {
        Some(self.from(key)).filter(|at| *at < self.len() && self.key(*at) == key)
    }
}

// A tag of small hexadecimal digits in quotes, as stores call most versions: half of its bytes.
fn pack(tag: &str, bytes: &mut Vec<u8>) -> bool {
    let digits = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or_default().as_bytes();
    let value = |digit: &u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = digits.as_chunks::<2>() else { return false };
    let packed: Option<Vec<u8>> = pairs.iter().map(|[a, b]| Some(value(a)? << 4 | value(b)?)).collect();
    match packed.filter(|packed| !packed.is_empty()) {
        Some(packed) => {
            bytes.extend(packed);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, size: u64, tag: Option<&str>) -> Entry {
        Entry {
            key: key.to_string(),
            size,
            is_folder: false,
            modified_ns: None,
            tag: tag.map(str::to_string),
        }
    }

    #[test]
    fn what_was_listed_is_found_as_it_was() {
        let hash = "\"0123456789abcdef0123456789abcdef\"";
        let tags =
            [None, Some(hash), Some("\"AB\""), Some("\"abc\""), Some("W/\"1\""), Some("\"\""), Some("é")];
        let mut all: Vec<Entry> =
            tags.iter().enumerate().map(|(i, tag)| entry(&format!("d/{}é", 9 - i), i as u64, *tag)).collect();
        let found = Catalogue::new(all.clone(), None);
        all.sort_by(|a, b| a.key.cmp(&b.key));
        assert_eq!(found.entries().collect::<Vec<_>>(), all);
        for (number, entry) in all.iter().enumerate() {
            assert_eq!(found.find(&entry.key), Some(number));
        }
        assert_eq!((found.find("d/"), found.from("d/"), found.from("e")), (None, 0, all.len()));
        assert!(Catalogue::new(vec![entry("a", 0, Some(hash))], None).bytes.len() == 17);
        let long =
            Catalogue::new(vec![entry("a", 0, Some(&"x".repeat(40_000))), entry("b", 1, Some(hash))], None);
        assert_eq!((long.tag(0), long.tag(1).as_deref(), long.key(1)), (None, Some(hash), "b"));
        assert!(Catalogue::default().is_empty());
    }
}
