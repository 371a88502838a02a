//! What other programs write, and this build does not read or does not read so, as the formats of a table list it: so that errors can
//! say what was found, and so that nothing of it is taken for text.

use std::cell::RefCell;

use super::Format;
use crate::error::{Error, Result};
use crate::store::Object;

/// How to come to what is read.
#[derive(Clone, Copy, Debug)]
pub struct Hint {
    /// What an error says.
    pub text: &'static str,
    /// Whether it is read under another name, or with what belongs to it.
    pub is_read: bool,
}

impl Hint {
    /// Of what is read under another name, or with what belongs to it.
    pub const fn read(text: &'static str) -> Hint {
        Hint { text, is_read: true }
    }

    /// Of what is not read where no name of the file would change that.
    pub const fn unread(text: &'static str) -> Hint {
        Hint { text, is_read: false }
    }
}

/// One kind of file.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// What it is called in a sentence.
    pub name: &'static str,
    /// How to come to what is read.
    pub hint: Hint,
    /// What names of such files end in, in small letters.
    pub suffixes: &'static [&'static str],
    /// Whether the bytes are such a file's. A magic number of a few bytes is never enough, as raw IDs may begin with any: what follows
    /// it, or is at the end, has to agree.
    pub fits: fn(&Seen<'_>) -> bool,
}

impl Foreign {
    /// That it is this, and is not read where no name of the file would change that.
    pub fn described(&self) -> String {
        if self.hint.is_read {
            format!("it is {}", self.name)
        } else {
            format!("it is {}, which this build does not read", self.name)
        }
    }

    /// The error that a file is this one instead of what was `expected`.
    pub fn instead_of(&self, expected: &str, object: &dyn Object) -> Error {
        Error::unsupported(format!("expected {expected}, found {}", self.name))
            .at(object.name())
            .hint(self.hint.text)
    }
}

/// What the formats of a table list.
pub fn listed(table: &[&dyn Format]) -> &'static [Foreign] {
    table.iter().map(|format| format.info().foreign).find(|kinds| !kinds.is_empty()).unwrap_or_default()
}

/// What an object is, by its bytes; `None` for what may be raw numbers or text.
///
/// # Errors
/// `Io`.
pub fn of(kinds: &'static [Foreign], object: &dyn Object) -> Result<Option<&'static Foreign>> {
    let (size, mut head) = (object.size(), Vec::new());
    let head = object.read(0, size.min(HEAD) as usize, &mut head)?;
    let seen = Seen { head, size, object, failed: RefCell::default() };
    let found = kinds.iter().find(|kind| (kind.fits)(&seen));
    seen.failed.into_inner().map_or(Ok(found), Err)
}

/// What a file is by its name alone.
pub fn named(kinds: &'static [Foreign], name: &str) -> Option<&'static Foreign> {
    let name = name.to_ascii_lowercase();
    // Shards may have their numbers behind it.
    let shard = |c: char| c.is_ascii_digit() || c == '-';
    let name =
        name.trim_end_matches(shard).strip_suffix("-of").map_or(name.as_str(), |n| n.trim_end_matches(shard));
    kinds.iter().find(|kind| kind.suffixes.iter().any(|suffix| name.ends_with(suffix)))
}

/// The first of these names that says such a kind of data.
pub fn among<'n>(
    kinds: &'static [Foreign],
    mut names: impl Iterator<Item = &'n str>,
) -> Option<(&'n str, &'static Foreign)> {
    names.find_map(|name| Some((name, named(kinds, name)?)))
}

/// A name without the suffix of a compression that is not read, and which one that is.
pub fn compressed<'n>(kinds: &'static [Foreign], name: &'n str) -> Option<(&'n str, &'static Foreign)> {
    let kind = named(kinds, name).filter(|kind| [".bz2", ".xz", ".lz4"].contains(&kind.suffixes[0]))?;
    let (plain, _) = name.rsplit_once('.')?;
    Some((plain, kind))
}

/// How text is encoded that is not UTF-8, as far as its beginning tells.
pub fn encoding(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        // Without a mark: JSON begins with two characters of ASCII.
        [b' '..=b'~', 0, b'\n'..=b'~', 0, ..] | [0, b' '..=b'~', 0, b'\n'..=b'~', ..] => Some("UTF-16"),
        _ => None,
    }
}

/// Refuses an object that cannot be text.
///
/// # Errors
/// `Unsupported` for another kind of file; `Corrupt` for UTF-16 and UTF-32; `Io`.
pub fn refuse_as_text(kinds: &'static [Foreign], object: &dyn Object) -> Result<()> {
    if let Some(kind) = of(kinds, object)? {
        return Err(kind.instead_of("text", object));
    }
    let mut scratch = Vec::new();
    match encoding(object.read(0, object.size().min(4) as usize, &mut scratch)?) {
        None => Ok(()),
        Some(found) => Err(Error::corrupt(format!("expected UTF-8, found {found}"))
            .at(object.name())
            .byte(0)
            .hint(format!("convert it: iconv -f {found} -t UTF-8 OLD > NEW"))),
    }
}

const HEAD: u64 = 2048;

/// What is looked at: the first bytes, and where these leave it open the others. Each look at a store is a request.
pub struct Seen<'a> {
    /// Up to 2,048 bytes from the start.
    pub head: &'a [u8],
    /// Bytes of the whole.
    pub size: u64,
    object: &'a dyn Object,
    /// The first read that failed.
    failed: RefCell<Option<Error>>,
}

impl Seen<'_> {
    /// Whether it begins with these bytes.
    pub fn begins(&self, magic: &[u8]) -> bool {
        self.head.starts_with(magic)
    }

    /// The byte at a place of the head.
    pub fn byte(&self, at: usize) -> Option<u8> {
        self.head.get(at).copied()
    }

    /// The little-endian number at a place of the head.
    pub fn u16(&self, at: usize) -> Option<u64> {
        Some(u16::from_le_bytes(self.head.get(at..at + 2)?.try_into().ok()?).into())
    }

    /// The little-endian number at a place of the head.
    pub fn u32(&self, at: usize) -> Option<u64> {
        Some(u32::from_le_bytes(self.head.get(at..at + 4)?.try_into().ok()?).into())
    }

    /// The little-endian number at a place of the head.
    pub fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.head.get(at..at + 8)?.try_into().ok()?))
    }

    /// Bytes anywhere in the file.
    pub fn far(&self, at: u64, size: usize) -> Option<Vec<u8>> {
        let end = at.checked_add(size as u64).filter(|end| *end <= self.size)?;
        if end <= self.head.len() as u64 {
            return Some(self.head[at as usize..end as usize].to_vec());
        }
        let mut scratch = Vec::new();
        match self.object.read(at, size, &mut scratch) {
            Ok(bytes) => Some(bytes.to_vec()),
            Err(e) => {
                self.failed.borrow_mut().get_or_insert(e);
                None
            }
        }
    }

    /// Whether it ends with these bytes.
    pub fn ends(&self, magic: &[u8]) -> bool {
        let at = self.size.checked_sub(magic.len() as u64);
        at.and_then(|at| self.far(at, magic.len())).is_some_and(|end| end == magic)
    }

    /// The little-endian number anywhere in the file.
    pub fn far_u32(&self, at: u64) -> Option<u64> {
        Some(u32::from_le_bytes(self.far(at, 4)?.try_into().ok()?).into())
    }

    /// Whether it begins with a magic number and a version, both of four bytes.
    pub fn versioned(&self, magic: u64, most: u64) -> bool {
        self.u32(0) == Some(magic) && self.u32(4).is_some_and(|version| (1..=most).contains(&version))
    }
}
