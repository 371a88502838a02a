//! One tensor `[T, C]` as `torch.save` writes it: an archive of a pickle and the stored numbers.

use std::io::{Cursor, Write};

use windrow_core::{DType, Error, Result};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// The bytes of a `.pt` file that holds `[frames, channels]` numbers: little-endian, frame by frame, as
/// `torch.load(path, weights_only=True)` reads them. `name` is what the archive calls itself, the file's stem.
///
/// # Errors
/// `Config` when torch has no such type, or the bytes are not as many as the shape takes.
///
/// ```
/// # use windrow_core::DType;
/// # use windrow_formats::tensor_file;
/// let codes: Vec<u8> = [1i16, 2, 3, 4, 5, 6].iter().flat_map(|code| code.to_le_bytes()).collect();
/// let file = tensor_file("song", DType::I16, [3, 2], &codes)?;
/// assert!(file.starts_with(b"PK"));
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub fn tensor_file(name: &str, dtype: DType, shape: [u64; 2], bytes: &[u8]) -> Result<Vec<u8>> {
    let [frames, channels] = shape;
    let numbers = frames.checked_mul(channels);
    let size = numbers.and_then(|numbers| numbers.checked_mul(dtype.size() as u64));
    if size != Some(bytes.len() as u64) {
        return Err(Error::config(format!(
            "a tensor [{frames}, {channels}] of {dtype} with {} bytes, which is not its size",
            bytes.len()
        )));
    }
    let pickle = pickle(dtype, frames, channels)?;
    let mut archive = ZipWriter::new(Cursor::new(Vec::with_capacity(bytes.len() + 2048)));
    let failed = |e: zip::result::ZipError| Error::config("an archive that cannot be written").caused_by(e);
    // Stored and aligned as torch does it, so that the numbers can be read where they lie.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .with_alignment(64)
        // The same bytes whenever it is written.
        .last_modified_time(DateTime::DEFAULT)
        .large_file(bytes.len() as u64 > u64::from(u32::MAX) - (1 << 20));
    let members: [(&str, &[u8]); 4] =
        [("data.pkl", &pickle), ("byteorder", b"little"), ("data/0", bytes), ("version", b"3\n")];
    for (member, content) in members {
        archive.start_file(format!("{name}/{member}"), options).map_err(failed)?;
        archive.write_all(content).map_err(|e| failed(e.into()))?;
    }
    Ok(archive.finish().map_err(failed)?.into_inner())
}

// `torch._utils._rebuild_tensor_v2(storage, 0, (frames, channels), (channels, 1), False, OrderedDict())`, in protocol 2.
fn pickle(dtype: DType, frames: u64, channels: u64) -> Result<Vec<u8>> {
    let class = match dtype {
        DType::U8 => "ByteStorage",
        DType::I8 => "CharStorage",
        DType::I16 => "ShortStorage",
        DType::I32 => "IntStorage",
        DType::I64 => "LongStorage",
        other => {
            return Err(Error::config(format!("codes are not stored as {other}"))
                .hint("choose dtype int16, int32, int64, uint8 or int8"));
        }
    };
    let mut out = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((".to_vec();
    text(&mut out, "storage");
    out.extend_from_slice(format!("ctorch\n{class}\n").as_bytes());
    text(&mut out, "0");
    text(&mut out, "cpu");
    whole(&mut out, frames * channels);
    // The tuple is the storage's persistent id; its offset follows.
    out.extend_from_slice(b"tQ");
    whole(&mut out, 0);
    for pair in [[frames, channels], [channels, 1]] {
        pair.iter().for_each(|number| whole(&mut out, *number));
        out.push(0x86);
    }
    out.extend_from_slice(b"\x89ccollections\nOrderedDict\n)RtR.");
    Ok(out)
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'X');
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn whole(out: &mut Vec<u8>, number: u64) {
    match i32::try_from(number) {
        Ok(number) => {
            out.push(b'J');
            out.extend_from_slice(&number.to_le_bytes());
        }
        // Nine bytes, so that the highest bit is not a sign.
        Err(_) => {
            out.extend_from_slice(&[0x8a, 9]);
            out.extend_from_slice(&number.to_le_bytes());
            out.push(0);
        }
    }
}
