//! How stores are asked, and what is kept of what they give.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::held;

/// How a store is asked, and what is kept of what it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the store's own tools call them: `endpoint_url`, `region`, `anon`, `header.NAME` and so on; they go before the
    /// environment.
    pub store: BTreeMap<String, String>,
    /// The cache folder; `None` is the usual one.
    pub cache: Option<PathBuf>,
    /// Bytes that all of the cache folder may take; `None` is as the environment has it, 0 keeps what is fetched in memory.
    pub cache_limit: Option<u64>,
    /// Bytes that are fetched ahead and held in memory.
    pub read_ahead: u64,
    /// The longest that a read may take, all attempts together.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let (read_ahead, timeout) = (256 << 20, Duration::from_secs(300));
        Options { store: BTreeMap::new(), cache: None, cache_limit: None, read_ahead, timeout }
    }
}

impl Options {
    /// Bytes of what is fetched that this process can hold at a time: its part of the cache's limit, and memory.
    pub fn room(&self) -> u64 {
        held::room(self.cache.clone(), self.cache_limit).saturating_add(self.read_ahead)
    }

    /// An option of the store by one of its names.
    pub(crate) fn get(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.store.get(*name)).map(String::as_str)
    }

    /// Whether requests go out without a signature, where that is set.
    pub(crate) fn is_anonymous(&self) -> bool {
        let is_true = |value: &str| matches!(value, "true" | "True" | "1" | "yes");
        self.get(&["anon", "unsigned", "skip_signature", "aws_skip_signature"]).is_some_and(is_true)
    }
}
