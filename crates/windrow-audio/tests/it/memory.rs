//! Memory: counted by the allocator, thread by thread, because tests run beside each other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use windrow_audio::{Decoder, Options};
use windrow_core::Result;
use windrow_core::store::Object;

use crate::toy::{own_rate, wav_header};

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    fn count(change: isize) {
        // A thread that ends has no counters any more; it holds nothing that a test looks at.
        let _ = HELD.try_with(|held| {
            held.set(held.get() + change);
            let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
        });
    }
}

// SAFETY: every call is the system allocator's own; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        Self::count(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that `work` held at once, beyond what was held before.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.get();
    PEAK.set(before);
    let made = work();
    ((PEAK.get() - before).max(0) as usize, made)
}

// A wav file of any length that lies nowhere: its bytes are computed where they are read.
struct Endless {
    header: Vec<u8>,
    size: u64,
}

impl Endless {
    fn new(rate_hz: u32, n_channels: u16, secs: u32) -> Self {
        let data = rate_hz * 2 * u32::from(n_channels) * secs;
        Endless { header: wav_header(rate_hz, n_channels, 1, 2, data), size: 44 + u64::from(data) }
    }
}

impl Object for Endless {
    fn size(&self) -> u64 {
        self.size
    }
    fn name(&self) -> &str {
        "long.wav"
    }
    fn modified_ns(&self) -> Option<u64> {
        None
    }
    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        scratch.clear();
        scratch.resize(size, 0x11);
        if start < 44 {
            let from = &self.header[start as usize..];
            let n = from.len().min(size);
            scratch[..n].copy_from_slice(&from[..n]);
        }
        Ok(scratch)
    }
}

fn drained(file: Endless, options: &Options) -> (usize, u64) {
    let file = Arc::new(file);
    peak_of(|| {
        let mut n_samples = 0;
        for block in Decoder::new(file, options).unwrap() {
            n_samples += block.unwrap().n_samples() as u64;
        }
        n_samples
    })
}

#[test]
fn a_long_file_takes_no_more_memory_than_a_short_one() {
    let (short, _) = drained(Endless::new(16_000, 2, 10), &Options::default());
    let (long, n_samples) = drained(Endless::new(16_000, 2, 300), &Options::default());
    assert_eq!(n_samples, 300 * 44_100);
    assert!(long < short + short / 2 && long < 2 << 20, "{short} bytes for 10 s, {long} for 300 s");
}

#[test]
fn three_hours_stream() {
    let secs = 3 * 3_600;
    let (peak, n_samples) = drained(Endless::new(8_000, 1, secs), &own_rate());
    assert_eq!(n_samples, u64::from(secs) * 8_000);
    assert!(peak < 1 << 20, "{peak} bytes");
}
