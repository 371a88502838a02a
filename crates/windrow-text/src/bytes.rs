//! The tokenizer `bytes`: an ID is a byte's value, 256 ends a document.

use std::ops::Range;

use windrow_core::Result;

use crate::engine::{Engine, no_such_id, places};

const EOS: &str = "<|endoftext|>";
const EOS_ID: u32 = 256;

/// One id per byte of UTF-8.
pub(crate) struct Bytes;

impl Engine for Bytes {
    fn backend(&self) -> &'static str {
        "bytes"
    }

    fn vocab_size(&self) -> u64 {
        u64::from(EOS_ID) + 1
    }

    fn special(&self) -> Vec<(String, u32)> {
        vec![(EOS.to_string(), EOS_ID)]
    }

    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        out.extend(text.bytes().map(u32::from));
        Ok(())
    }

    fn encode_special(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        for (i, part) in text.split(EOS).enumerate() {
            if i > 0 {
                out.push(EOS_ID);
            }
            self.encode(part, out)?;
        }
        Ok(())
    }

    fn encode_places(&self, text: &str, out: &mut Vec<u32>, at: &mut Vec<Range<usize>>) -> Result<()> {
        let before = out.len();
        self.encode_special(text, out)?;
        places(text, out[before..].iter().map(|&id| if id == EOS_ID { EOS.len() } else { 1 }), at)
    }

    fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(ids.len());
        for &id in ids {
            match u8::try_from(id) {
                Ok(byte) => bytes.push(byte),
                Err(_) if id == EOS_ID => bytes.extend_from_slice(EOS.as_bytes()),
                Err(_) => return Err(no_such_id(id, self.vocab_size())),
            }
        }
        Ok(bytes)
    }

    fn id_of(&self, token: &str) -> Option<u32> {
        match *token.as_bytes() {
            [byte] => Some(u32::from(byte)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_byte_and_256_ends_a_document() {
        let (mut plain, mut special) = (Vec::new(), Vec::new());
        Bytes.encode("é<|endoftext|>", &mut plain).unwrap();
        assert_eq!(plain[..3], [0xc3, 0xa9, u32::from(b'<')]);
        assert_eq!(plain.len(), 15);
        Bytes.encode_special("é<|endoftext|>", &mut special).unwrap();
        assert_eq!(special, [0xc3, 0xa9, 256]);
        assert_eq!(Bytes.decode(&special).unwrap(), "é<|endoftext|>");
        assert_eq!(Bytes.decode(&[0xc3, u32::from(b'x')]).unwrap(), "\u{fffd}x");
        assert_eq!(Bytes.decode_bytes(&[0xc3, u32::from(b'x')]).unwrap(), b"\xc3x");
        assert!(Bytes.decode(&[257]).unwrap_err().to_string().contains("257"));
    }
}
