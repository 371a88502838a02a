//! A folder with a byte-offset index, of arbitrary parts: valid, damaged, or anything else.

use arbitrary::Arbitrary;
use windrow_formats::{Layout, LayoutArray};

use crate::{Side, dtype};

const NAMES: [&str; 8] = ["a.bin", "b.bin", "c/d.bin", "e.jsonl", "c/f.jsonl", "../g.bin", "/h.bin", ""];

/// What lies in the folder.
#[derive(Arbitrary, Debug)]
pub struct Folder<'a> {
    /// A list as it comes, instead of the names of the data files.
    list: Option<&'a [u8]>,
    rows: Rows<'a>,
    schema: Option<Schema<'a>>,
    side: Option<Side<'a>>,
    /// Which name, and the content.
    files: Vec<(u8, &'a [u8])>,
}

/// The rows of the index.
#[derive(Arbitrary, Debug)]
pub enum Rows<'a> {
    /// Any bytes.
    Raw(&'a [u8]),
    /// Any numbers, most of them small.
    Made(Vec<(u8, u16, u16)>),
    /// The data files cut into records of this size, and one byte changed.
    Cut { size: u16, damage: Option<(u16, u8)> },
    /// The lines of the data files, and one byte changed.
    Lines { damage: Option<(u16, u8)> },
}

/// The schema of a sample.
#[derive(Arbitrary, Debug)]
pub enum Schema<'a> {
    /// Any bytes.
    Raw(&'a [u8]),
    /// Any numbers.
    Made { size: u64, arrays: Vec<(u8, u8, u64)>, total: u64 },
    /// Tokens and tracks one after the other, as they should be.
    Right { size: u8, dtypes: Vec<u8> },
}

impl Folder<'_> {
    /// Key and content of every file.
    pub fn objects(&self) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<(&str, &[u8])> = Vec::new();
        for (number, bytes) in self.files.iter().take(6) {
            let name = NAMES[usize::from(*number) % NAMES.len()];
            if !files.iter().any(|f| f.0 == name) {
                files.push((name, bytes));
            }
        }
        let names: Vec<&str> = files.iter().map(|f| f.0).collect();
        let sizes: Vec<usize> = files.iter().map(|f| f.1.len()).collect();
        let list = match self.list {
            Some(list) => list.to_vec(),
            None => names.iter().flat_map(|name| format!("{name}\n").into_bytes()).collect(),
        };
        let mut objects = vec![
            ("index/file_location.txt".to_string(), list),
            ("index/sample_locations.bin".to_string(), self.rows.bytes(&files, self.schema.as_ref())),
        ];
        objects.extend(self.schema.iter().map(|s| ("index/sample_schema.json".to_string(), s.text())));
        objects.extend(self.side.iter().map(|s| ("index/windrow.json".to_string(), s.text(&names, &sizes))));
        let safe = files.iter().filter(|f| !f.0.is_empty());
        objects.extend(safe.map(|(name, bytes)| (name.to_string(), bytes.to_vec())));
        objects
    }
}

impl Rows<'_> {
    fn bytes(&self, files: &[(&str, &[u8])], schema: Option<&Schema<'_>>) -> Vec<u8> {
        let mut rows: Vec<[u64; 3]> = Vec::new();
        let mut change = None;
        match self {
            Rows::Raw(bytes) => return bytes.to_vec(),
            Rows::Made(made) => {
                rows.extend(
                    made.iter().map(|(f, start, size)| [(*f).into(), (*start).into(), (*size).into()]),
                );
            }
            Rows::Cut { size, damage } => {
                let size = schema.and_then(Schema::total).unwrap_or(u64::from(*size)).max(1);
                for (file, (_, bytes)) in files.iter().enumerate() {
                    let count = (bytes.len() as u64 / size).min(2_000);
                    rows.extend((0..count).map(|i| [file as u64, i * size, size]));
                }
                change = *damage;
            }
            Rows::Lines { damage } => {
                for (file, (_, bytes)) in files.iter().enumerate() {
                    let mut start = 0;
                    for line in bytes.split_inclusive(|b| *b == b'\n').take(2_000) {
                        rows.push([file as u64, start, line.len() as u64]);
                        start += line.len() as u64;
                    }
                }
                change = *damage;
            }
        }
        let mut bytes: Vec<u8> = rows.iter().flatten().flat_map(|n| n.to_le_bytes()).collect();
        if let Some((at, value)) = change
            && !bytes.is_empty()
        {
            let at = usize::from(at) % bytes.len();
            bytes[at] = value;
        }
        bytes
    }
}

impl Schema<'_> {
    fn text(&self) -> Vec<u8> {
        match self {
            Schema::Raw(bytes) => bytes.to_vec(),
            Schema::Made { size, arrays, total } => {
                let name = |n: u8| ["tokens", "loss_mask", "x", "labels"][usize::from(n) % 4].to_string();
                let arrays = arrays.iter().take(8);
                text(&Layout {
                    sample_size: Some(*size),
                    arrays: arrays
                        .map(|(n, d, offset)| LayoutArray {
                            name: name(*n),
                            dtype: dtype(*d),
                            offset: *offset,
                        })
                        .collect(),
                    total_bytes_per_sample: *total,
                })
            }
            Schema::Right { .. } => text(&self.right()),
        }
    }

    fn right(&self) -> Layout {
        let Schema::Right { size, dtypes } = self else {
            return Layout { sample_size: Some(0), arrays: Vec::new(), total_bytes_per_sample: 0 };
        };
        let mut offset = 0;
        let mut arrays = Vec::new();
        for (i, number) in dtypes.iter().take(4).enumerate() {
            let name = ["tokens", "loss_mask", "x", "y"][i].to_string();
            arrays.push(LayoutArray { name, dtype: dtype(*number), offset });
            offset += u64::from(*size) * dtype(*number).size() as u64;
        }
        Layout { sample_size: Some((*size).into()), arrays, total_bytes_per_sample: offset }
    }

    fn total(&self) -> Option<u64> {
        matches!(self, Schema::Right { .. }).then(|| self.right().total_bytes_per_sample)
    }
}

fn text(layout: &Layout) -> Vec<u8> {
    serde_json::to_vec(layout).expect("a plain struct")
}
