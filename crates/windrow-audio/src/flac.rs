//! Whether a flac file is one stream: joined files are read by no decoder to their end.

use std::ops::Range;
use std::sync::Arc;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

use crate::window::Window;

/// The mark of a stream, and the head of the block that must come first in it: more blocks may follow or not.
const START_LEN: usize = 8;

fn is_start(bytes: &[u8]) -> bool {
    bytes.starts_with(b"fLaC") && bytes[4] & 0x7f == 0 && bytes[5..8] == [0, 0, 34]
}

/// Nothing where one stream goes to the end.
///
/// # Errors
/// `Unsupported` naming the byte where a second one begins; what reading says.
pub(crate) fn refuse_second(object: Arc<dyn Object>, sound: &Range<u64>) -> Result<()> {
    let mut file = Window::new(object, sound.end);
    let mut at = sound.start + START_LEN as u64;
    loop {
        let bytes = file.get(at, 1 << 15)?;
        if bytes.len() < START_LEN {
            return Ok(());
        }
        if let Some(found) = bytes.windows(START_LEN).position(is_start) {
            return Err(Error::unsupported("a second stream of flac follows the first")
                .at(file.name())
                .byte(at + found as u64)
                .hint("join the sounds themselves: sox FIRST.flac SECOND.flac OUT.flac"));
        }
        at += (bytes.len() - START_LEN + 1) as u64;
    }
}
