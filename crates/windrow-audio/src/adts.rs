//! Whether a stream of AAC is whole: its frames join up to the end of the file.
//!
//! A reader that is made for playing looks for the next frame wherever it is, and leaves out what lies before it.

use std::ops::Range;
use std::sync::Arc;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

use crate::tags;
use crate::window::Window;

const HEADER: usize = 7;

/// Samples of a frame.
pub(crate) const FRAME_LEN: u64 = 1_024;

/// The size of the frame that begins here.
fn size_of(head: &[u8]) -> Option<u64> {
    let [0xff, second, _, fourth, fifth, sixth, _] = *head else { return None };
    let size = u64::from(fourth & 3) << 11 | u64::from(fifth) << 3 | u64::from(sixth >> 5);
    (second & 0xf6 == 0xf0 && size >= HEADER as u64).then_some(size)
}

/// How many frames there are, where each follows the one before it.
///
/// # Errors
/// `Corrupt` naming the byte where no frame begins, and frames follow, or where the file ends within one.
pub(crate) fn count(object: Arc<dyn Object>, sound: &Range<u64>) -> Result<u64> {
    let mut file = Window::new(object, sound.end);
    let wrong = |file: &Window, at: u64, what: String| {
        Error::corrupt(what)
            .at(file.name())
            .byte(at)
            .hint("copy the file again, or allow what is there with skip_corrupt")
    };
    let (mut at, mut n_frames) = (sound.start, 0_u64);
    while at < sound.end {
        if let Some(size) = size_of(file.get(at, HEADER)?) {
            if size > sound.end - at {
                return Err(wrong(
                    &file,
                    sound.end,
                    format!("the file ends in the middle of frame {n_frames}"),
                ));
            }
            (at, n_frames) = (at + size, n_frames + 1);
        } else if let Some(size) = tags::size_at(&mut file, at)? {
            at += size;
        } else {
            let behind = file.behind_zeros(at)?;
            match next_frame(&mut file, at)? {
                Some(next) => {
                    let what =
                        format!("{} bytes between frames are not AAC, behind {n_frames} frames", next - at);
                    return Err(wrong(&file, at, what));
                }
                None if behind < sound.end => log::warn!(
                    "{}: {} bytes behind the last frame, at byte {at}, are not AAC",
                    file.name(),
                    sound.end - at
                ),
                None => {}
            }
            break;
        }
    }
    Ok(n_frames)
}

// The first frame behind a place that another one follows.
fn next_frame(file: &mut Window, from: u64) -> Result<Option<u64>> {
    let mut at = from;
    loop {
        let bytes = file.block(at)?;
        let Some(sync) = bytes.iter().position(|b| *b == 0xff) else {
            if bytes.is_empty() {
                return Ok(None);
            } else {
                at += bytes.len() as u64
            }
            continue;
        };
        at += sync as u64;
        if let Some(size) = size_of(file.get(at, HEADER)?)
            && size_of(file.get(at + size, HEADER)?).is_some()
        {
            return Ok(Some(at));
        }
        at += 1;
    }
}
