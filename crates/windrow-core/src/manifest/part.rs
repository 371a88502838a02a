//! A data set in parts, each made by a task of its own: what a task says of its part, and what is kept of all of them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::FileRow;
use crate::array::DType;
use crate::error::{Error, Result};
use crate::store::{Object, read_small};

/// The format that the manifest of a data set in parts names. Its [`parts`](super::Manifest::parts) say what lies below its folder,
/// which is not listed then.
pub const PARTS: &str = "parts";
/// The manifest of a longer one is not read.
const MOST_BYTES: u64 = 16 << 20;

/// What a task says of the part that it made, in a file that becomes visible after those that it names. It holds no time, no
/// machine and no attempt: two runs of a task write the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Version of this layout: 1.
    pub version: u32,
    /// The hash of the job.
    pub job: String,
    /// Number of the task in it.
    pub task: u64,
    /// Name of the input that it read.
    pub input: String,
    /// What it read of it: bytes from one line's begin to another one's, or numbers of records; `from` and behind the last.
    pub lines: [u64; 2],
    /// Records in it.
    pub records: u64,
    /// Values in it, of all records.
    pub values: u64,
    /// dtype of a stored value; of an index, whose rows are numbers of 8 bytes, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Numbers per value, of records `[T, C]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u64>,
    /// The largest token ID in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_id: Option<i64>,
    /// Its files.
    pub files: Vec<FileRow>,
    /// Further findings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub statistics: Map<String, Value>,
}

impl Part {
    /// Reads one.
    ///
    /// # Errors
    /// `Corrupt` when it is not one; what reading the object says.
    pub fn read(object: &dyn Object) -> Result<Part> {
        let text = read_small(object, MOST_BYTES)?;
        let part: Part = serde_json::from_slice(&text).map_err(|e| {
            Error::corrupt("the manifest of a part cannot be understood")
                .at(object.name())
                .caused_by(e)
                .hint("remove it and run the task again")
        })?;
        match part.version {
            1 => Ok(part),
            version => Err(Error::unsupported(format!(
                "the manifest of a part of version {version}; this windrow reads version 1"
            ))
            .at(object.name())
            .field("version")),
        }
    }

    /// The text to write.
    pub fn to_text(&self) -> String {
        // Serialising plain structs and string-keyed maps cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// What is kept of a part in the manifest of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRow {
    /// Records in it.
    pub records: u64,
    /// Values in it.
    pub values: u64,
    /// Bytes of its values.
    pub bytes: u64,
    /// XXH3-64 of them, 16 hexadecimal digits as text.
    #[serde(with = "as_hex")]
    pub xxh3: u64,
    /// XXH3-64 of its lengths.
    #[serde(with = "as_hex")]
    pub lengths_xxh3: u64,
}

impl PartRow {
    /// Bytes of a row where rows are kept as numbers: the fields above, each little-endian of 8 bytes.
    pub const SIZE: usize = 40;

    /// The row as numbers.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let fields = [self.records, self.values, self.bytes, self.xxh3, self.lengths_xxh3];
        for (place, field) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(fields) {
            *place = field.to_le_bytes();
        }
        bytes
    }

    /// A row of numbers.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> PartRow {
        let field = |i: usize| u64::from_le_bytes(bytes.as_chunks::<8>().0[i]);
        PartRow {
            records: field(0),
            values: field(1),
            bytes: field(2),
            xxh3: field(3),
            lengths_xxh3: field(4),
        }
    }
}

mod as_hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(hash: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{hash:016x}"))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(|_| D::Error::custom("expected 16 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_same_as_text_and_as_numbers() {
        let row = PartRow { records: 3, values: 70_000, bytes: 140_000, xxh3: 0xab, lengths_xxh3: u64::MAX };
        assert_eq!(PartRow::from_bytes(&row.to_bytes()), row);
        let text = serde_json::to_string(&row).unwrap();
        assert!(text.contains(r#""xxh3":"00000000000000ab""#), "{text}");
        assert_eq!(serde_json::from_str::<PartRow>(&text).unwrap(), row);
    }
}
