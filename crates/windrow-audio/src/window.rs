//! A look at an object, a block at a time, for those who go through it in small steps.

use std::sync::Arc;

use windrow_core::Result;
use windrow_core::store::Object;

/// More than twice the largest frame of any codec, so that looking ahead rarely reads twice.
const BLOCK: u64 = 1 << 15;

/// Bytes of an object, up to an end.
pub(crate) struct Window {
    object: Arc<dyn Object>,
    end: u64,
    // What was read last, and where it begins.
    bytes: Vec<u8>,
    start: u64,
}

impl Window {
    pub(crate) fn new(object: Arc<dyn Object>, end: u64) -> Self {
        Window { object, end, bytes: Vec::new(), start: 0 }
    }

    pub(crate) fn name(&self) -> &str {
        self.object.name()
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// `size` bytes from `at`; fewer where the end comes before.
    ///
    /// # Errors
    /// As reading.
    pub(crate) fn get(&mut self, at: u64, size: usize) -> Result<&[u8]> {
        let size = (size as u64).min(self.end.saturating_sub(at));
        let held = self.start..self.start + self.bytes.len() as u64;
        if size > 0 && (at < held.start || at + size > held.end) {
            self.read(at, size.max(BLOCK))?;
        }
        let from = at.saturating_sub(self.start).min(self.bytes.len() as u64) as usize;
        Ok(&self.bytes[from..from + size as usize])
    }

    /// What there is from `at`, at most a block; nothing at the end.
    ///
    /// # Errors
    /// As reading.
    pub(crate) fn block(&mut self, at: u64) -> Result<&[u8]> {
        let held = self.start..self.start + self.bytes.len() as u64;
        if !held.contains(&at) {
            self.read(at, BLOCK)?;
        }
        let from = at.saturating_sub(self.start).min(self.bytes.len() as u64) as usize;
        Ok(&self.bytes[from..])
    }

    /// Where the first byte is, at or behind a place, that is not zero; the end where there is none.
    ///
    /// # Errors
    /// As reading.
    pub(crate) fn behind_zeros(&mut self, from: u64) -> Result<u64> {
        let mut at = from;
        loop {
            let bytes = self.block(at)?;
            match bytes.iter().position(|b| *b != 0) {
                Some(n) => return Ok(at + n as u64),
                None if bytes.is_empty() => return Ok(at),
                None => at += bytes.len() as u64,
            }
        }
    }

    fn read(&mut self, at: u64, size: u64) -> Result<()> {
        let size = size.min(self.end.saturating_sub(at)) as usize;
        self.bytes.resize(size, 0);
        self.start = at;
        if size > 0 {
            let read = self.object.read_into(at, &mut self.bytes);
            if read.is_err() {
                self.bytes.clear();
            }
            read?;
        }
        Ok(())
    }
}
