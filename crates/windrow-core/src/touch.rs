//! Asking the processor for memory that is read soon, and the system for large pages of it.

use std::mem::MaybeUninit;

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

/// Asks the processor for one value that is read soon.
#[cfg(target_arch = "x86_64")]
pub(crate) fn touch_value<T>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the address is that of a value, and a prefetch reads nothing a program could see.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
}

/// Does nothing here.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn touch_value<T>(_value: &T) {}

/// Asks the system for pages of 2 MiB of memory that is touched at random: fewer of their addresses have to be looked up. It may
/// give none.
#[cfg(target_os = "linux")]
pub(crate) fn in_large_pages<T>(memory: &mut [MaybeUninit<T>]) {
    const PAGE: usize = 2 << 20;
    let range = memory.as_mut_ptr_range();
    let start = range.start.cast::<u8>();
    let skipped = start.align_offset(PAGE);
    let size = std::mem::size_of_val(memory);
    if let Some(whole) = size.checked_sub(skipped).map(|size| size / PAGE * PAGE).filter(|whole| *whole > 0) {
        // SAFETY: whole pages within the slice; the advice changes how they are mapped, not what they hold.
        let _ = unsafe { libc::madvise(start.wrapping_add(skipped).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

/// Does nothing here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn in_large_pages<T>(_memory: &mut [MaybeUninit<T>]) {}
