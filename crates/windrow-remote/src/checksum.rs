//! The checksum that a store keeps of an object, compared with the bytes that came.
//!
//! Each of them is of all bytes of an object, also where an answer has a part of them: it says nothing about a range.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm::{Crc32Iscsi, Crc32IsoHdlc, Crc64Nvme};
use md5::{Digest, Md5};
use reqwest::header::HeaderMap;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use crate::trouble::{Trouble, What};

/// What all bytes of an object have, as its store says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    algorithm: Algorithm,
    /// In base64, as headers have it.
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Crc64Nvme,
    Crc32c,
    Crc32,
    Sha256,
    Sha1,
    Md5,
}

/// In which header of S3 each is, the cheapest first.
const OF_S3: [(&str, Algorithm); 5] = [
    ("x-amz-checksum-crc64nvme", Algorithm::Crc64Nvme),
    ("x-amz-checksum-crc32c", Algorithm::Crc32c),
    ("x-amz-checksum-crc32", Algorithm::Crc32),
    ("x-amz-checksum-sha256", Algorithm::Sha256),
    ("x-amz-checksum-sha1", Algorithm::Sha1),
];

impl Checksum {
    /// Of the headers of an answer to a GET; `None` where they have none of all bytes.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Checksum> {
        let header = |name: &str| headers.get(name)?.to_str().ok();
        let found = |algorithm, value: &str| Some(Checksum { algorithm, value: value.trim().to_string() });
        // Of an object that came in parts it may be the checksum of those of the parts.
        let is_of_parts = header("x-amz-checksum-type").is_some_and(|kind| kind == "COMPOSITE");
        for (name, algorithm) in OF_S3 {
            if let Some(value) = header(name).filter(|value| !is_of_parts && !value.contains('-')) {
                return found(algorithm, value);
            }
        }
        // Google Cloud Storage unpacks for whoever does not ask it to leave that.
        let is_as_stored = header("x-goog-stored-content-encoding").is_none_or(|kept| kept == "identity");
        let mut of_google = headers.get_all("x-goog-hash").iter().filter_map(|value| value.to_str().ok());
        if let Some(value) =
            of_google.find_map(|said| said.split(',').find_map(|one| one.trim().strip_prefix("crc32c=")))
        {
            return if is_as_stored { found(Algorithm::Crc32c, value) } else { None };
        }
        // Azure's, of a range, and of all.
        let of_azure = header("x-ms-blob-content-md5").or_else(|| header("content-md5"));
        of_azure.and_then(|value| found(Algorithm::Md5, value))
    }

    /// Whether these are the bytes.
    ///
    /// # Errors
    /// That they are not, with both checksums.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<(), Trouble> {
        let mut sum = Sum::new(self);
        sum.update(bytes);
        sum.check(self)
    }
}

/// The checksum of bytes as they come.
pub(crate) enum Sum {
    Crc64(crc_fast::Digest),
    Crc32(crc_fast::Digest),
    Sha(Context),
    Md5(Md5),
}

impl Sum {
    /// Of no bytes yet, to be compared with this one.
    pub(crate) fn new(with: &Checksum) -> Sum {
        match with.algorithm {
            Algorithm::Crc64Nvme => Sum::Crc64(crc_fast::Digest::new(Crc64Nvme)),
            Algorithm::Crc32c => Sum::Crc32(crc_fast::Digest::new(Crc32Iscsi)),
            Algorithm::Crc32 => Sum::Crc32(crc_fast::Digest::new(Crc32IsoHdlc)),
            Algorithm::Sha256 => Sum::Sha(Context::new(&SHA256)),
            Algorithm::Sha1 => Sum::Sha(Context::new(&SHA1_FOR_LEGACY_USE_ONLY)),
            Algorithm::Md5 => Sum::Md5(Md5::new()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Sum::Crc64(crc) | Sum::Crc32(crc) => crc.update(bytes),
            Sum::Sha(sha) => sha.update(bytes),
            Sum::Md5(md5) => md5.update(bytes),
        }
    }

    /// Whether all bytes were those of the object.
    ///
    /// # Errors
    /// As [`Checksum::check`].
    pub(crate) fn check(self, with: &Checksum) -> Result<(), Trouble> {
        let found = match self {
            Sum::Crc64(crc) => STANDARD.encode(crc.finalize().to_be_bytes()),
            Sum::Crc32(crc) => STANDARD.encode((crc.finalize() as u32).to_be_bytes()),
            Sum::Sha(sha) => STANDARD.encode(sha.finish()),
            Sum::Md5(md5) => STANDARD.encode(md5.finalize()),
        };
        if found == with.value {
            return Ok(());
        }
        let said = format!("expected {:?} {}, found {found}", with.algorithm, with.value);
        Err(Trouble::new(What::Damaged, said))
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn of(headers: &[(&'static str, &'static str)]) -> Option<Checksum> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        Checksum::of(&map)
    }

    // Of "123456789": the check values that the catalogue of CRCs gives, and what coreutils print.
    #[test]
    fn each_algorithm_is_that_of_its_header() {
        for (name, value) in [
            ("x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
            ("x-amz-checksum-crc32c", "4waSgw=="),
            ("x-amz-checksum-crc32", "y/Q5Jg=="),
            ("x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
            ("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
            ("x-goog-hash", "crc32c=4waSgw==,md5=JfnnlDI7RTiF9RgfG2JNCw=="),
            ("content-md5", "JfnnlDI7RTiF9RgfG2JNCw=="),
            ("x-ms-blob-content-md5", "JfnnlDI7RTiF9RgfG2JNCw=="),
        ] {
            let checksum = of(&[(name, value)]).unwrap();
            checksum.check(b"123456789").unwrap();
            let trouble = checksum.check(b"123456788").unwrap_err();
            assert!(trouble.what == What::Damaged && trouble.said.contains("found"), "{trouble:?}");
        }
        assert!(of(&[("x-goog-hash", "crc32c=4waSgw=="), ("x-goog-hash", "md5=x")]).is_some());
    }

    #[test]
    fn what_is_not_of_all_bytes_is_not_compared() {
        assert_eq!(of(&[("etag", "\"x\"")]), None);
        assert_eq!(of(&[("x-amz-checksum-crc32c", "4waSgw==-3")]), None);
        assert_eq!(of(&[("x-amz-checksum-crc32", "4waSgw=="), ("x-amz-checksum-type", "COMPOSITE")]), None);
        assert!(
            of(&[("x-amz-checksum-crc32", "4waSgw=="), ("x-amz-checksum-type", "FULL_OBJECT")]).is_some()
        );
        assert_eq!(
            of(&[("x-goog-hash", "crc32c=4waSgw=="), ("x-goog-stored-content-encoding", "gzip")]),
            None
        );
    }
}
