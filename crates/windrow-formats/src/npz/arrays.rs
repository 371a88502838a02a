//! Named arrays as one `.npz`, in memory: what `numpy.load` reads of a batch.

use std::borrow::Cow;
use std::io::{self, Cursor, Write};

use windrow_core::number::{Number, number};
use windrow_core::{DType, Element, Error, Result};
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use crate::npy::{descr, header};

/// An array with a name.
#[derive(Clone, Debug)]
pub struct NamedArray<'a> {
    /// What `numpy.load` calls it.
    pub name: &'a str,
    /// Type of its numbers.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its numbers in C order, little-endian.
    pub bytes: &'a [u8],
}

/// The bytes of an archive of these arrays, not compressed. numpy has no bfloat16, which becomes float32.
///
/// # Errors
/// `Io` when names occur twice or cannot be names in an archive.
pub fn npz_of(arrays: &[NamedArray<'_>]) -> Result<Vec<u8>> {
    let written = || -> Result<Vec<u8>, zip::result::ZipError> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for array in arrays {
            let (dtype, bytes) = widened(array);
            let descr = descr(dtype).map_err(|e| io::Error::other(e.to_string()))?;
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .last_modified_time(DateTime::DEFAULT)
                .large_file(bytes.len() > u32::MAX as usize / 2);
            archive.start_file(format!("{}.npy", array.name), options)?;
            archive.write_all(&header(descr, array.shape.iter().copied()))?;
            archive.write_all(&bytes)?;
        }
        Ok(archive.finish()?.into_inner())
    };
    written().map_err(|e| Error::io("write the arrays", "memory", io::Error::from(e)))
}

fn widened<'a>(array: &NamedArray<'a>) -> (DType, Cow<'a, [u8]>) {
    if array.dtype != DType::Bf16 {
        return (array.dtype, Cow::Borrowed(array.bytes));
    }
    let mut wide = Vec::with_capacity(array.bytes.len() * 2);
    for bytes in array.bytes.chunks_exact(2) {
        number(bytes, Element::little(DType::Bf16))
            .unwrap_or(Number::Float(0.0))
            .write(DType::F32, &mut wide);
    }
    (DType::F32, Cow::Owned(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_holds_each_array_under_its_name() {
        let half = [0x80, 0x3f, 0x20, 0xc0];
        let arrays = [
            NamedArray { name: "a", dtype: DType::U8, shape: vec![2, 3], bytes: &[1, 2, 3, 4, 5, 6] },
            NamedArray { name: "b", dtype: DType::Bf16, shape: vec![2], bytes: &half },
        ];
        let bytes = npz_of(&arrays).unwrap();
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut member = |name: &str| {
            let mut content = Vec::new();
            io::copy(&mut archive.by_name(name).unwrap(), &mut content).unwrap();
            content
        };
        let a = member("a.npy");
        assert!(
            String::from_utf8_lossy(&a[..128])
                .contains("'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)")
        );
        assert_eq!(a[128..], [1, 2, 3, 4, 5, 6]);
        let b = member("b.npy");
        assert!(String::from_utf8_lossy(&b[..128]).contains("'<f4'"));
        let floats: Vec<f32> =
            b[128..].chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
        assert_eq!(floats, [1.0, -2.5]);
    }
}
