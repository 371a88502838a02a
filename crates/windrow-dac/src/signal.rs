//! A signal of many channels, in blocks of time: what one thread writes lies together, and apart from the others'.

use std::sync::Mutex;

use windrow_core::threads::beside;

/// `[block][channel][width]`; columns past `len` are 0 or left over.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    pub(crate) channels: usize,
    pub(crate) len: usize,
    /// Columns of a block.
    pub(crate) width: usize,
    data: Vec<f32>,
}

impl Signal {
    /// All 0, in the memory of an older one.
    pub(crate) fn new(channels: usize, len: usize, width: usize, older: Signal) -> Self {
        let mut data = older.data;
        data.clear();
        data.resize(len.div_ceil(width) * channels * width, 0.0);
        Signal { channels, len, width, data }
    }

    /// One channel.
    pub(crate) fn mono(samples: &[f32], len: usize, older: Signal) -> Self {
        let mut signal = Signal::new(1, len, len.max(1), older);
        signal.data[..samples.len()].copy_from_slice(samples);
        signal
    }

    /// All of it in one block, `[channels][len]`.
    #[cfg(feature = "candle")]
    pub(crate) fn whole(data: Vec<f32>, channels: usize, len: usize) -> Self {
        Signal { channels, len, width: len.max(1), data }
    }

    /// A block, `[channels][width]`.
    pub(crate) fn block(&self, number: usize) -> &[f32] {
        let size = self.channels * self.width;
        &self.data[number * size..][..size]
    }

    /// Writes the columns from `first` of a channel into `out`, in parts by `write`; columns that are not there are 0.
    pub(crate) fn row(
        &self,
        channel: usize,
        first: isize,
        out: &mut [f32],
        write: impl Fn(&[f32], &mut [f32]),
    ) {
        let before = first.min(0).unsigned_abs().min(out.len());
        let (zeros, mut out) = out.split_at_mut(before);
        zeros.fill(0.0);
        let mut at = first.max(0) as usize;
        while !out.is_empty() && at < self.len {
            let (block, column) = (at / self.width, at % self.width);
            let n = (self.width - column).min(self.len - at).min(out.len());
            let (part, rest) = out.split_at_mut(n);
            let start = (block * self.channels + channel) * self.width + column;
            write(&self.data[start..start + n], part);
            at += n;
            out = rest;
        }
        out.fill(0.0);
    }

    /// Makes each block, on several threads: `make(number, first column, columns, block)`, with memory that a thread keeps.
    pub(crate) fn fill<M: Default>(
        &mut self,
        threads: usize,
        make: impl Fn(&mut M, usize, usize, usize, &mut [f32]) + Sync,
    ) {
        let (len, width) = (self.len, self.width);
        let size = (self.channels * width).max(1);
        let blocks = self.data.len() / size;
        let left = Mutex::new(self.data.chunks_exact_mut(size).enumerate());
        let work = || {
            let mut memory = M::default();
            loop {
                let next = left.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
                let Some((number, block)) = next else { return };
                let first = number * width;
                make(&mut memory, number, first, width.min(len - first), block);
            }
        };
        beside(threads.min(blocks), work, work);
    }
}
