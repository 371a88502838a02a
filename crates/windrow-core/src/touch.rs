//! Asking the processor for memory that is read soon.

/// Asks the processor for the beginning of bytes that are read soon. A random read waits for memory; asked for one row
/// ahead, the wait is over when the row is read.
#[cfg(target_arch = "x86_64")]
pub fn touch(bytes: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // As many lines of 64 bytes as a core waits for at a time; asked for more, it waits. The rest of a row it
    // fetches by itself once it reads on.
    const MOST: usize = 12;
    for line in bytes.chunks(64).take(MOST) {
        // SAFETY: the address is in the slice, and a prefetch reads nothing a program could see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Does nothing here: there is no stable way to ask for it.
#[cfg(not(target_arch = "x86_64"))]
pub fn touch(_bytes: &[u8]) {}
