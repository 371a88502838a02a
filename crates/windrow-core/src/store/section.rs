//! A part of an object as an object: a member of an archive, read where it lies.

use std::sync::Arc;

use super::Object;
use crate::error::{Error, Result};

/// Bytes `start..start + size` of an object, under a name of their own.
pub struct Section {
    inner: Arc<dyn Object>,
    start: u64,
    size: u64,
    name: String,
}

impl Section {
    /// The section; `None` when it does not lie within the object.
    pub fn new(inner: Arc<dyn Object>, start: u64, size: u64, name: String) -> Option<Section> {
        let end = start.checked_add(size)?;
        (end <= inner.size()).then_some(Section { inner, start, size, name })
    }
}

impl Object for Section {
    fn size(&self) -> u64 {
        self.size
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn modified_ns(&self) -> Option<u64> {
        self.inner.modified_ns()
    }

    fn changed_ns(&self) -> Option<u64> {
        self.inner.changed_ns()
    }

    fn tag(&self) -> Option<&str> {
        self.inner.tag()
    }

    fn is_compared(&self) -> bool {
        self.inner.is_compared()
    }

    fn cache_limit(&self) -> Option<u64> {
        self.inner.cache_limit()
    }

    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        if start.checked_add(size as u64).is_none_or(|end| end > self.size) {
            return Err(Error::corrupt(format!(
                "{size} bytes wanted at byte {start}, but it ends at byte {}",
                self.size
            ))
            .at(&self.name)
            .byte(start));
        }
        self.inner.read(self.start + start, size, scratch)
    }

    fn mapped(&self) -> Option<&[u8]> {
        let start = usize::try_from(self.start).ok()?;
        self.inner.mapped()?.get(start..start.checked_add(usize::try_from(self.size).ok()?)?)
    }

    fn touch(&self, start: u64, size: u64) {
        if let Some(start) = self.start.checked_add(start) {
            self.inner.touch(start, size);
        }
    }

    fn prefetch(&self, start: u64, size: u64) {
        if let Some(start) = self.start.checked_add(start) {
            self.inner.prefetch(start, size);
        }
    }
}
