//! What stores of other machines were asked for, counted.

use std::sync::Arc;

use super::Store;

/// What stores of other machines were asked for since they were opened, in this process: the child of a fork counts from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Traffic {
    /// Requests sent, the failed ones too.
    pub requests: u64,
    /// Bytes of data received.
    pub received_bytes: u64,
    /// Bytes of data that reads gave, those from the cache too.
    pub read_bytes: u64,
    /// Reads that found all their bytes here, on disk or in memory.
    pub cache_hits: u64,
    /// Reads that waited for a store.
    pub cache_misses: u64,
    /// Seconds that those waited, those of all threads together.
    pub store_waited_secs: f64,
    /// Requests that were sent again because the first one failed.
    pub retries: u64,
    /// Requests that were sent beside a late one.
    pub hedged: u64,
}

impl Traffic {
    /// Bytes received for each byte that reads gave; 0 where they gave none.
    pub fn amplification(&self) -> f64 {
        if self.read_bytes == 0 { 0.0 } else { self.received_bytes as f64 / self.read_bytes as f64 }
    }

    fn and(self, other: Traffic) -> Traffic {
        Traffic {
            requests: self.requests + other.requests,
            received_bytes: self.received_bytes + other.received_bytes,
            read_bytes: self.read_bytes + other.read_bytes,
            cache_hits: self.cache_hits + other.cache_hits,
            cache_misses: self.cache_misses + other.cache_misses,
            store_waited_secs: self.store_waited_secs + other.store_waited_secs,
            retries: self.retries + other.retries,
            hedged: self.hedged + other.hedged,
        }
    }
}

/// The stores that data lies in, each once.
#[derive(Clone, Default)]
pub struct StoreSet(Vec<Arc<dyn Store>>);

impl StoreSet {
    /// Adds a store that counts what it is asked for, where it is not there yet; others have nothing to say.
    pub fn add(&mut self, store: &Arc<dyn Store>) {
        let store = store.wrapped().unwrap_or(store);
        let is_new = !self.0.iter().any(|known| Arc::ptr_eq(known, store));
        if is_new && store.traffic().is_some() {
            self.0.push(store.clone());
        }
    }

    /// Adds all of another.
    pub fn add_all(&mut self, others: &StoreSet) {
        others.0.iter().for_each(|store| self.add(store));
    }

    /// Bytes of announced reads that each of them holds until they are read.
    pub fn room_ahead(&self) -> Option<u64> {
        self.0.iter().filter_map(|store| store.room_ahead()).min()
    }

    /// Whether what is fetched stays here until it is read again, of data of `bytes` bytes.
    pub fn keeps(&self, bytes: u64) -> bool {
        self.0.iter().all(|store| store.keeps(bytes))
    }

    /// What all of them were asked for, together.
    pub fn traffic(&self) -> Traffic {
        self.0.iter().filter_map(|store| store.traffic()).fold(Traffic::default(), Traffic::and)
    }
}

impl From<Arc<dyn Store>> for StoreSet {
    fn from(store: Arc<dyn Store>) -> Self {
        let mut stores = StoreSet::default();
        stores.add(&store);
        stores
    }
}
