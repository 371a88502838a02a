//! A store in memory: tests, and arrays that a program already holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Entry, Object, Store, Walked};
use crate::error::{Error, Result};

/// Objects in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    objects: BTreeMap<String, Arc<[u8]>>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object.
    #[must_use]
    pub fn with(mut self, key: &str, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.objects.insert(key.to_string(), bytes.into());
        self
    }
}

impl Store for Memory {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        let Some(bytes) = self.objects.get(key) else {
            return Err(if self.entry(key)?.is_folder {
                Error::unsupported("expected a file, found a folder").at(key)
            } else {
                Error::not_found("no such object").at(key)
            });
        };
        Ok(Arc::new(Held { name: key.to_string(), bytes: bytes.clone() }))
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        if let Some(bytes) = self.objects.get(key) {
            return Ok(found(key, bytes));
        }
        let folder = if key.is_empty() { String::new() } else { format!("{key}/") };
        let first = self.objects.range(folder.clone()..).next();
        if first.is_some_and(|(k, _)| k.starts_with(&folder)) {
            Ok(Entry { key: key.to_string(), size: 0, is_folder: true, modified_ns: None, tag: None })
        } else {
            Err(Error::not_found("no such object").at(key))
        }
    }

    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        Ok(self.walk_all(prefix)?.entries)
    }

    fn walk_all(&self, prefix: &str) -> Result<Walked> {
        let folder = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        if !prefix.is_empty() {
            self.entry(prefix)?;
        }
        let listed = self.objects.iter().filter(|(k, _)| k.starts_with(&folder)).map(|(k, v)| found(k, v));
        Ok(Walked::of(prefix, listed))
    }

    fn display(&self, key: &str) -> String {
        format!("memory:{key}")
    }
}

fn found(key: &str, bytes: &[u8]) -> Entry {
    Entry { key: key.to_string(), size: bytes.len() as u64, is_folder: false, modified_ns: None, tag: None }
}

struct Held {
    name: String,
    bytes: Arc<[u8]>,
}

impl Object for Held {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn modified_ns(&self) -> Option<u64> {
        None
    }

    fn read<'a>(&'a self, start: u64, size: usize, _scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        super::file::slice(&self.bytes, start, size, &self.name)
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }
}
