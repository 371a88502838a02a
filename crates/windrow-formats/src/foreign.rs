//! What other programs write, and windrow does not read or does not read so, by its first bytes or by its name: so that errors
//! can say what was found, and so that nothing of it is taken for IDs or for text.

use windrow_core::format::foreign::{self, Foreign, Hint, Seen};
use windrow_core::store::{Compression, Object, begins_to_expand};
use windrow_core::{Error, Result};
use windrow_pickle::TORCH_STREAM;

/// Refuses an object that cannot be text.
///
/// # Errors
/// As [`foreign::refuse_as_text`].
pub(crate) fn refuse_as_text(object: &dyn Object) -> Result<()> {
    foreign::refuse_as_text(FOREIGN, object)
}

/// Refuses an object that cannot be headerless token IDs: those may begin with any bytes, but a header and what belongs to it are
/// not IDs.
///
/// # Errors
/// `Unsupported` for another kind of file, and for a compressed one; `Io`.
pub(crate) fn refuse_as_ids(object: &dyn Object) -> Result<()> {
    const ALL_THE_SAME: &str = "@trust=true@ reads all of it as token IDs";
    if let Some(kind) = foreign::of(FOREIGN, object)? {
        return Err(kind
            .instead_of("raw token IDs", object)
            .hint(format!("{}; {ALL_THE_SAME}", kind.hint.text)));
    }
    match Compression::of(object)? {
        Some(compression) if begins_to_expand(object)? => {
            let suffix = compression.suffix();
            Err(Error::unsupported(format!("expected raw token IDs, found a .{suffix} stream"))
                .at(object.name())
                .hint(format!(
                    "expand it first, or name it .bin.{suffix}, which is read as it is; {ALL_THE_SAME}"
                )))
        }
        _ => Ok(()),
    }
}

const EXPAND: Hint = Hint::unread("expand it first; .gz and .zst are read as they are");
const IDS_AFTER_HEADER: Hint = Hint::read("leave @format@ out: the header is read");
const AS_IT_IS: Hint = Hint::read(
    "it is read as it is, by `windrow tokenize` too: leave @format@ out, and let its name end as such names do",
);
const WITH_ITS_LIBRARY: Hint =
    Hint::unread("read it with the library that wrote it, and write JSON Lines or token IDs (@write@)");
const WITH_ITS_INDEX: Hint =
    Hint::read("open the folder with its index.json, which says what is in it: alone it is not read");
const WEIGHTS: Hint = Hint::unread("these are weights of a model, not data: name the file with the data");

pub(crate) static FOREIGN: &[Foreign] = &[
    Foreign {
        name: "a token file of llm.c, with a header before the token IDs",
        hint: IDS_AFTER_HEADER,
        suffixes: &[],
        fits: |seen| {
            let versioned = seen.versioned(20_240_520, 16) || seen.versioned(20_240_801, 16);
            // The header is 256 numbers, zeros behind the third; or the count fits the size.
            let rest = seen.head.get(12..1024.min(seen.head.len())).unwrap_or_default();
            let count = seen.u32(8).unwrap_or(0);
            versioned
                && (rest.iter().all(|byte| *byte == 0)
                    || [2, 4].iter().any(|w| 1024 + count * w == seen.size))
        },
    },
    Foreign {
        name: "an evaluation file of llm.c, with a header",
        hint: Hint::read("its questions are not one stream of token IDs: leave it out of the folder"),
        suffixes: &[],
        fits: |seen| seen.versioned(20_240_522, 16),
    },
    Foreign {
        name: "a file of llm.c that holds no token IDs (a model, its state, or a tokenizer)",
        hint: WEIGHTS,
        suffixes: &[],
        fits: |seen| {
            [20_240_326, 20_240_327, 20_240_328, 20_240_527].iter().any(|magic| seen.versioned(*magic, 16))
        },
    },
    Foreign {
        name: "a plan of a loader, as `recipe()` gives it",
        hint: Hint::read(
            "it says which data is read and in which order, and holds none: `windrow trace`, `coverage` and `diff` take it, and the \
               paths in it open",
        ),
        suffixes: &[],
        fits: |seen| {
            let has = |key: &[u8]| memchr::memmem::find(seen.head, key).is_some();
            let keys: [&[u8]; 4] = [b"\"version\"", b"\"parts\"", b"\"shuffle\"", b"\"seed\""];
            seen.begins(b"{") && keys.into_iter().all(has)
        },
    },
    Foreign {
        name: "a Git LFS pointer",
        hint: Hint::read("the data was not fetched: git lfs pull, or `windrow download`"),
        suffixes: &[],
        fits: |seen| seen.begins(b"version https://git-lfs.github.com/spec/"),
    },
    Foreign {
        name: "an HTML page",
        hint: Hint::read("a download gave an error page instead of the data: fetch it again"),
        suffixes: &[],
        fits: |seen| {
            let start = seen.head.get(..14).unwrap_or_default().to_ascii_lowercase();
            start.starts_with(b"<!doctype html") || start.starts_with(b"<html")
        },
    },
    Foreign {
        name: "a .bz2 stream (bzip2)",
        hint: EXPAND,
        suffixes: &[".bz2"],
        fits: |seen| {
            seen.begins(b"BZh")
                && seen.byte(3).is_some_and(|level| (b'1'..=b'9').contains(&level))
                && [&b"\x31\x41\x59\x26\x53\x59"[..], b"\x17\x72\x45\x38\x50\x90"]
                    .iter()
                    .any(|block| seen.head.get(4..10) == Some(block))
        },
    },
    Foreign {
        name: "an .xz stream",
        hint: EXPAND,
        suffixes: &[".xz", ".lzma"],
        fits: |seen| seen.begins(b"\xfd7zXZ\0\0"),
    },
    Foreign {
        name: "an .lz4 stream",
        hint: EXPAND,
        suffixes: &[".lz4"],
        fits: |seen| {
            seen.begins(b"\x04\x22\x4d\x18")
                && seen.byte(4).is_some_and(|flags| flags >> 6 == 1 && flags & 2 == 0)
                && seen.byte(5).is_some_and(|size| size & 0x8f == 0 && size >> 4 >= 4)
        },
    },
    Foreign {
        name: "a 7z archive",
        hint: EXPAND,
        suffixes: &[".7z"],
        fits: |seen| seen.begins(b"7z\xbc\xaf\x27\x1c"),
    },
    Foreign {
        name: "a RAR archive",
        hint: EXPAND,
        suffixes: &[".rar"],
        fits: |seen| seen.begins(b"Rar!\x1a\x07"),
    },
    Foreign {
        name: "Parquet",
        hint: AS_IT_IS,
        suffixes: &[".parquet"],
        fits: |seen| {
            seen.begins(b"PAR1")
                && seen.size >= 12
                && [b"PAR1", b"PARE"].iter().any(|end| seen.ends(end.as_slice()))
        },
    },
    Foreign {
        name: "an Arrow file",
        hint: AS_IT_IS,
        suffixes: &[],
        fits: |seen| {
            seen.begins(b"ARROW1\0\0")
                || seen.begins(b"FEA1") && seen.size >= 12 && seen.ends(b"FEA1")
                || seen.begins(&[0xff; 4]) && arrow_message(seen) == Some(ARROW_SCHEMA)
        },
    },
    Foreign {
        name: "HDF5",
        hint: WITH_ITS_LIBRARY,
        suffixes: &[".h5", ".hdf5"],
        fits: |seen| seen.begins(b"\x89HDF\r\n\x1a\n"),
    },
    Foreign {
        name: "an Avro file",
        hint: WITH_ITS_LIBRARY,
        suffixes: &[".avro"],
        fits: |seen| seen.begins(b"Obj\x01") && memchr::memmem::find(seen.head, b"avro.").is_some(),
    },
    Foreign {
        name: "ORC",
        hint: WITH_ITS_LIBRARY,
        suffixes: &[".orc"],
        fits: |seen| seen.begins(b"ORC") && seen.ends(b"ORC\x17"),
    },
    Foreign {
        name: "safetensors",
        hint: WEIGHTS,
        suffixes: &[".safetensors"],
        fits: |seen| {
            // The size of a JSON text, and the text.
            let is_json = |size: u64| {
                let end = size.checked_add(7).filter(|end| *end < seen.size)?;
                Some(size >= 2 && matches!(seen.far(end, 1)?[0], b'}' | b' '))
            };
            seen.head.get(8..10) == Some(b"{\"") && seen.u64(0).and_then(is_json) == Some(true)
        },
    },
    Foreign {
        name: "GGUF",
        hint: WEIGHTS,
        suffixes: &[".gguf"],
        fits: |seen| seen.begins(b"GGUF") && seen.u32(4).is_some_and(|version| (1..=16).contains(&version)),
    },
    Foreign {
        name: "GGML",
        hint: WEIGHTS,
        suffixes: &[],
        fits: |seen| {
            [&b"lmgg"[..], b"fmgg", b"tjgg"].iter().any(|magic| seen.begins(magic))
                && seen.u32(4).is_some_and(|next| (1..=1_000_000).contains(&next))
        },
    },
    Foreign {
        name: "a fastText model",
        hint: WEIGHTS,
        suffixes: &[],
        fits: |seen| seen.versioned(793_712_314, 16),
    },
    Foreign {
        name: "a zip archive, as torch.save and numpy.savez write",
        hint: Hint::read(
            "open it under a name that ends in .pt or .npz, if it holds data; a pytorch_model.bin holds weights",
        ),
        suffixes: &[".zip"],
        fits: |seen| {
            // A member's version, method and name.
            let name = seen.u16(26).and_then(|size| seen.head.get(30..30 + size as usize));
            seen.begins(b"PK\x03\x04")
                && seen.u16(4).is_some_and(|version| version & 0xff <= 63)
                && seen.u16(8).is_some_and(|method| [0, 8, 9, 12, 14, 93, 95, 99].contains(&method))
                && name.is_some_and(|name| !name.is_empty() && name.iter().all(|b| (b' '..=b'~').contains(b)))
        },
    },
    Foreign {
        name: "a Python pickle",
        hint: Hint::read("open it under a name that ends in .pkl, if it holds series"),
        suffixes: &[],
        fits: |seen| {
            // Of protocol 4 and 5 the first frame, whose size the file holds; before them, what programs write first.
            let framed = matches!(seen.head, [0x80, 4 | 5, 0x95, ..])
                && seen.head.get(3..11).is_some_and(|size| {
                    let size = u64::from_le_bytes(size.try_into().unwrap_or_default());
                    size > 0 && size.checked_add(11).is_some_and(|end| end <= seen.size)
                });
            let plain = matches!(seen.head, [0x80, 2 | 3, b']' | b'}', b'q', 0, ..])
                || seen.begins(b"\x80\x02cnumpy")
                || seen.begins(b"\x80\x03cnumpy");
            (framed || plain) && seen.ends(b".") || seen.begins(TORCH_STREAM)
        },
    },
    Foreign {
        name: "a numpy array with its header",
        hint: Hint::read("open it under a name that ends in .npy"),
        suffixes: &[],
        fits: |seen| {
            seen.begins(b"\x93NUMPY") && seen.byte(6).is_some_and(|version| (1..=3).contains(&version))
        },
    },
    Foreign {
        name: "the index of a Megatron pair",
        hint: Hint::read("give it the name of its .bin with .idx at the end, and open either"),
        suffixes: &[],
        fits: |seen| seen.begins(b"MMIDIDX\0\0"),
    },
    Foreign {
        name: "a chunk of LitData",
        hint: WITH_ITS_INDEX,
        suffixes: &[],
        fits: |seen| {
            // The places of rows are all alike.
            seen.begins(b"LDFZ01\0\0")
                || Places::of(seen).is_some_and(|places| {
                    places.first == places.table && places.last(seen) == Some(seen.size)
                        || places.are_alike(seen) && seen.ends(b"LDARW01\0")
                })
        },
    },
    Foreign {
        name: "a shard of MosaicML Streaming (MDS)",
        hint: WITH_ITS_INDEX,
        suffixes: &[".mds", ".mds.zstd"],
        fits: |seen| {
            Places::of(seen).is_some_and(|places| {
                places.table < places.first
                    && seen.far(places.table, 1).is_some_and(|byte| byte == b"{")
                    && places.last(seen) == Some(seen.size)
            })
        },
    },
    Foreign {
        name: "ArrayRecord",
        hint: Hint::read("open it under a name that ends in .array_record"),
        suffixes: &[],
        fits: |seen| seen.begins(b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0"),
    },
    Foreign {
        name: "TFRecord",
        hint: Hint::read("open it under a name that ends in .tfrecord"),
        suffixes: &[],
        fits: |seen| {
            let fits = |size: u64| size.checked_add(16).is_some_and(|end| end <= seen.size);
            // A record's size and its checksum.
            seen.u64(0).is_some_and(fits)
                && seen.u32(8) == seen.head.get(..8).map(|size| masked_crc(size).into())
        },
    },
    Foreign {
        name: "a tar archive, as WebDataset writes",
        hint: Hint::read("open it under a name that ends in .tar"),
        suffixes: &[],
        fits: |seen| {
            let size = seen.head.get(124..135).unwrap_or_default();
            seen.head.get(257..262) == Some(b"ustar")
                && !size.is_empty()
                && (size[0] & 0x80 != 0 || size.iter().all(|b| matches!(b, b'0'..=b'7' | b' ' | 0)))
        },
    },
    Foreign {
        name: "an SQLite database",
        hint: WITH_ITS_LIBRARY,
        suffixes: &[".sqlite", ".db"],
        fits: |seen| seen.begins(b"SQLite format 3\0"),
    },
    Foreign {
        name: "a sound file",
        hint: Hint::read("`windrow encode` makes codes of sound; @read_audio@ reads it"),
        suffixes: &[],
        fits: |seen| {
            seen.begins(b"RIFF") && seen.head.get(8..12) == Some(b"WAVE")
                || seen.begins(b"fLaC") && seen.head.get(5..8) == Some(&[0, 0, 34])
                || seen.begins(b"OggS\0\x02\0\0\0\0\0\0\0\0")
        },
    },
    Foreign {
        name: "Bagz",
        hint: Hint::read("open it by itself, or the folder that it is in"),
        suffixes: &[".bagz", ".bag"],
        fits: |_| false,
    },
    Foreign { name: "Lance", hint: WITH_ITS_LIBRARY, suffixes: &[".lance"], fits: |_| false },
];

const ARROW_SCHEMA: u8 = 1;

// The kind of the message that a stream of Arrow would begin with: a mark, the size of a flatbuffer, and the flatbuffer.
fn arrow_message(seen: &Seen<'_>) -> Option<u8> {
    let end = 8 + seen.u32(4).filter(|size| *size > 0 && size.is_multiple_of(8))?;
    let half = |at: u64| Some(u16::from_le_bytes(seen.far(at, 2)?.try_into().ok()?));
    let table = 8 + seen.u32(8)?;
    let back = i32::from_le_bytes(seen.far(table, 4)?.try_into().ok()?);
    // The size of the fields' places and of the table; then where the version is, the kind of the message and the message.
    let fields = table.checked_add_signed(-i64::from(back))?;
    let places = u64::from(half(fields)?);
    let kind = u64::from(half(fields + 6)?);
    let fits = end <= seen.size
        && (10..=32).contains(&places)
        && places.is_multiple_of(2)
        && fields + places <= end
        && (4..u64::from(half(fields + 2)?)).contains(&kind)
        && table + kind < end;
    seen.far(table + kind, 1).filter(|_| fits).map(|byte| byte[0])
}

/// A table of a count n and n + 1 places, of which none comes before the one in front of it.
struct Places {
    /// Where it ends.
    table: u64,
    first: u64,
}

impl Places {
    // As far as the first bytes tell.
    fn of(seen: &Seen<'_>) -> Option<Places> {
        let table = 8 + 4 * seen.u32(0).filter(|count| *count > 0)?;
        let places = Places { table, first: seen.u32(4)? };
        let mut last = 0;
        let ascend = places.in_head(seen).all(|place| std::mem::replace(&mut last, place) <= place);
        (table <= seen.size && ascend && last <= seen.size).then_some(places)
    }

    fn in_head(&self, seen: &Seen<'_>) -> impl Iterator<Item = u64> {
        (4..self.table as usize).step_by(4).map_while(|at| seen.u32(at))
    }

    fn are_alike(&self, seen: &Seen<'_>) -> bool {
        self.in_head(seen).all(|place| place == self.first)
    }

    fn last(&self, seen: &Seen<'_>) -> Option<u64> {
        seen.far_u32(self.table - 4)
    }
}

// The checksum of TFRecord: CRC-32C, turned and shifted.
fn masked_crc(bytes: &[u8]) -> u32 {
    let crc = !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    });
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}
