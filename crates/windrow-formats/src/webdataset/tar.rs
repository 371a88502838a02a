//! Members of a tar archive: headers of 512 bytes, each in front of its data; PAX records and the long names of GNU tar.

use std::ops::Range;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

/// Bytes of a header; data is filled up to a multiple of it.
pub(super) const BLOCK: u64 = 512;
/// Longer names are refused.
pub(super) const MOST_NAME: u64 = 64 << 10;
/// PAX records of a member beyond this are refused.
const MOST_RECORDS: u64 = 1 << 20;
/// Where the checksum is in a header.
const CHECKSUM: Range<usize> = 148..156;

/// A regular file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Where the first of its headers begins: one with its long name may come before its own.
    pub(super) first: u64,
    /// Its name.
    pub(super) name: Vec<u8>,
    /// Its bytes in the archive.
    pub(super) data: Range<u64>,
}

impl Member {
    /// Where the next header begins.
    pub(super) fn end(&self) -> u64 {
        // Within the file, whose size is far below 64 bits.
        self.data.end.next_multiple_of(BLOCK)
    }
}

/// Goes from header to header.
pub(super) struct Walk<'a> {
    object: &'a dyn Object,
    at: u64,
    /// Where it stops; where that is not known, at the end mark.
    end: Option<u64>,
}

impl<'a> Walk<'a> {
    /// Through the whole archive.
    pub(super) fn whole(object: &'a dyn Object) -> Walk<'a> {
        Walk { object, at: 0, end: None }
    }

    /// From one header to another.
    pub(super) fn within(object: &'a dyn Object, range: Range<u64>) -> Walk<'a> {
        Walk { object, at: range.start, end: Some(range.end) }
    }

    /// The next regular file; `None` at the end.
    ///
    /// # Errors
    /// `Corrupt` naming the byte of a header that is wrong, or of an archive that is cut short; `Unsupported` for a sparse
    /// file; `Io`.
    pub(super) fn member(&mut self) -> Result<Option<Member>> {
        let (mut scratch, mut first, mut records) = (Vec::new(), None, Records::default());
        loop {
            let at = self.at;
            if self.end.is_some_and(|end| at >= end) {
                return Ok(None);
            }
            if self.object.size().saturating_sub(at) < BLOCK {
                return Err(self
                    .wrong("the archive ends without its end mark, a block of zeros".to_string(), at)
                    .hint("the copy looks unfinished"));
            }
            let block = self.object.read(at, BLOCK as usize, &mut scratch)?;
            if block.iter().all(|byte| *byte == 0) {
                return match first {
                    None => Ok(None),
                    Some(first) => Err(self.wrong("a header without the file it is for".to_string(), first)),
                };
            }
            let header = Header::of(block).map_err(|what| self.wrong(what, at))?;
            let begin = *first.get_or_insert(at);
            let data = match header.kind {
                b'x' | b'X' => {
                    let (data, text) = self.small(at, header.size, MOST_RECORDS, "PAX records")?;
                    records.read(&text).map_err(|what| self.wrong(what, at + BLOCK))?;
                    data
                }
                b'L' => {
                    let (data, name) = self.small(at, header.size, MOST_NAME + 1, "a name")?;
                    records.name = Some(until_zero(&name).to_vec());
                    data
                }
                // Of all members that follow, and of the target of a link.
                b'g' | b'K' => self.data(at, header.size)?,
                kind => {
                    let said = std::mem::take(&mut records);
                    if kind == b'S' || said.is_sparse {
                        return Err(self.sparse(at));
                    }
                    first = None;
                    // Links, devices and folders have no data, whatever their size says.
                    let size = if matches!(kind, b'1'..=b'6') { 0 } else { said.size.unwrap_or(header.size) };
                    let data = self.data(at, size)?;
                    let name = said.path.or(said.name).unwrap_or(header.name);
                    if name.len() as u64 > MOST_NAME {
                        let size = name.len();
                        return Err(
                            self.wrong(format!("a name of {size} bytes; expected at most {MOST_NAME}"), at)
                        );
                    }
                    if matches!(kind, b'0' | 0 | b'7') && !name.ends_with(b"/") {
                        let member = Member { first: begin, name, data };
                        self.at = member.end();
                        return Ok(Some(member));
                    }
                    data
                }
            };
            self.at = data.end.next_multiple_of(BLOCK);
        }
    }

    // The place of data of this size behind the header at `at`.
    fn data(&self, at: u64, size: u64) -> Result<Range<u64>> {
        let start = at + BLOCK;
        match start.checked_add(size).filter(|end| *end <= self.object.size()) {
            Some(end) => Ok(start..end),
            None => Err(self
                .wrong(
                    format!("a member of {size} bytes, of which {} are there", self.object.size() - start),
                    at,
                )
                .hint("the copy looks unfinished")),
        }
    }

    // That data, where it is part of the headers.
    fn small(&self, at: u64, size: u64, most: u64, what: &str) -> Result<(Range<u64>, Vec<u8>)> {
        if size > most {
            return Err(self.wrong(format!("{what} of {size} bytes; expected at most {most}"), at));
        }
        let place = self.data(at, size)?;
        let mut scratch = Vec::new();
        let bytes = self.object.read(place.start, size as usize, &mut scratch)?.to_vec();
        Ok((place, bytes))
    }

    fn wrong(&self, what: String, byte: u64) -> Error {
        Error::corrupt(what).at(self.object.name()).byte(byte)
    }

    fn sparse(&self, at: u64) -> Error {
        Error::unsupported("a sparse file")
            .at(self.object.name())
            .byte(at)
            .hint("write the archive without `--sparse`")
    }
}

/// What a header says.
struct Header {
    name: Vec<u8>,
    size: u64,
    kind: u8,
}

impl Header {
    // The header in a block, its checksum compared; else what is wrong with it.
    fn of(block: &[u8]) -> std::result::Result<Header, String> {
        let field = |range: Range<usize>| block.get(range).unwrap_or_default();
        // With blanks where the checksum is.
        let sum_of = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        let sum = sum_of(block) - sum_of(field(CHECKSUM)) + 8 * u32::from(b' ');
        let said = number(field(CHECKSUM));
        if said != Some(sum.into()) && said != signed_sum(block) {
            return Err("expected a tar header, found a block with another checksum".to_string());
        }
        let size = number(field(124..136)).ok_or("the size of a member is not a number")?;
        let mut name = until_zero(field(0..100)).to_vec();
        let prefix = until_zero(field(345..500));
        // GNU tar keeps times there.
        if field(257..263) == b"ustar\0" && !prefix.is_empty() {
            name = [prefix, b"/", &name].concat();
        }
        Ok(Header { name, size, kind: block.get(156).copied().unwrap_or(0) })
    }
}

// Some old programs added signed bytes.
fn signed_sum(block: &[u8]) -> Option<u64> {
    let sum: i64 = block.iter().map(|byte| i64::from(byte.cast_signed())).sum();
    let own: i64 = block.get(CHECKSUM)?.iter().map(|byte| 32 - i64::from(byte.cast_signed())).sum();
    u64::try_from(sum + own).ok()
}

// Octal digits, or with the highest bit set the bytes themselves, the most significant first.
fn number(field: &[u8]) -> Option<u64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        let start = u64::from(first & 0x7f);
        return rest.iter().try_fold(start, |all, byte| all.checked_mul(256)?.checked_add(u64::from(*byte)));
    }
    let digits = until_zero(field).trim_ascii();
    digits.iter().try_fold(0u64, |all, digit| match digit {
        b'0'..=b'7' => all.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

fn until_zero(field: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, field).unwrap_or(field.len());
    &field[..end]
}

/// What was declared of the next member before its own header.
#[derive(Default)]
struct Records {
    /// By a PAX record.
    path: Option<Vec<u8>>,
    size: Option<u64>,
    is_sparse: bool,
    /// By GNU tar.
    name: Option<Vec<u8>>,
}

impl Records {
    // `N key=value\n`, where N counts the bytes of all that.
    fn read(&mut self, data: &[u8]) -> std::result::Result<(), String> {
        let wrong = || "a PAX record whose length does not end at a line end".to_string();
        let mut rest = data;
        // Some programs fill up with zeros.
        while rest.first().is_some_and(|byte| *byte != 0) {
            let blank = memchr::memchr(b' ', rest).ok_or_else(wrong)?;
            let digits = std::str::from_utf8(&rest[..blank]).map_err(|_| wrong())?;
            let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            let length = digits.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
            let (record, after) = rest.split_at_checked(length).ok_or_else(wrong)?;
            rest = after;
            let text = record.get(blank + 1..).and_then(|text| text.strip_suffix(b"\n")).ok_or_else(wrong)?;
            let equals = memchr::memchr(b'=', text).ok_or_else(wrong)?;
            let (key, value) = (&text[..equals], &text[equals + 1..]);
            match key {
                b"path" => {
                    let end = value.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
                    self.path = Some(value[..end].to_vec());
                }
                b"size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                    self.size = Some(size.ok_or("a PAX size that is not a number")?);
                }
                key if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::store::{Memory, Store};

    use super::*;

    fn header(name: &str, size: &[u8], kind: u8) -> Vec<u8> {
        let mut block = vec![0; BLOCK as usize];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..124 + size.len()].copy_from_slice(size);
        block[156] = kind;
        block[257..263].copy_from_slice(b"ustar\0");
        block[CHECKSUM].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block
    }

    fn names(bytes: Vec<u8>) -> Result<Vec<(String, u64)>> {
        let object = Memory::new().with("a.tar", bytes).open("a.tar")?;
        let mut walk = Walk::whole(object.as_ref());
        let mut found = Vec::new();
        while let Some(member) = walk.member()? {
            let size = member.data.end - member.data.start;
            found.push((String::from_utf8_lossy(&member.name).into_owned(), size));
        }
        Ok(found)
    }

    const END: [u8; 512] = [0; 512];

    // One member with this declared before it.
    fn with_records(records: &[u8]) -> Result<Vec<(String, u64)>> {
        let size = format!("{:o}", records.len());
        let mut bytes = header("x", size.as_bytes(), b'x');
        bytes.extend(records);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        names([bytes, header("a.txt", b"1", b'0'), vec![7; 512], END.to_vec()].concat())
    }

    #[test]
    fn sizes_are_octal_or_binary() {
        let binary = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
        for (size, found) in [(&b"00000000003\0"[..], 3), (b" 3 ", 3), (&binary, 3), (b"", 0)] {
            let data = if found == 0 { vec![] } else { vec![7; 512] };
            let bytes = [header("a.txt", size, b'0'), data, END.to_vec()].concat();
            assert_eq!(names(bytes).unwrap(), [("a.txt".to_string(), found)]);
        }
        for size in [&[0xff; 12][..], b"9", b"77777777777"] {
            assert!(names([header("a.txt", size, b'0'), END.to_vec()].concat()).is_err(), "{size:?}");
        }
    }

    #[test]
    fn records_of_pax_end_at_their_line_ends() {
        let long = "d/".repeat(200) + "a.txt";
        let record = format!("{} path={long}\n", long.len() + 10);
        assert_eq!(with_records(record.as_bytes()).unwrap(), [(long, 1)]);
        assert_eq!(with_records(b"9 size=7\n").unwrap(), [("a.txt".to_string(), 7)]);
        for bad in ["8 size=7\n", "99 size=7\n", "+9 size=7\n", "x", "6 abc\n", "0 size=7\n", "9 size=x\n"] {
            assert!(with_records(bad.as_bytes()).is_err(), "{bad}");
        }
        let error = with_records(b"22 GNU.sparse.major=1\n").unwrap_err();
        assert_eq!(error.kind(), windrow_core::Kind::Unsupported);
    }

    #[test]
    fn folders_and_links_are_no_members_and_every_cut_is_an_error() {
        let link = header("l.txt", b"777", b'2');
        let parts = [header("d/", b"", b'5'), link, header("a.txt", b"1", b'0'), vec![7; 512], END.to_vec()];
        let whole = parts.concat();
        assert_eq!(names(whole.clone()).unwrap(), [("a.txt".to_string(), 1)]);
        for end in (0..whole.len()).step_by(13) {
            assert!(names(whole[..end].to_vec()).is_err(), "cut at {end}");
        }
        // What follows the checksum's zero says nothing.
        for at in (0..512).filter(|at| *at != 155) {
            let mut turned = whole.clone();
            turned[at] ^= 1;
            assert!(names(turned).is_err(), "byte {at}");
        }
    }
}
