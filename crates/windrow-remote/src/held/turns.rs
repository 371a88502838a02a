//! Who fetches a range for the copy on disk, of all processes of the machine: the others wait for its bytes instead of asking for
//! them too. A lock of the system says so, which a process that is killed loses.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use windrow_core::PerProcess;
use windrow_core::store::RangeLocks;
use windrow_core::store::copies::{open_at, open_folder};

use super::grain::PAGE;

/// Beside the copies, of all of them: thousands of objects take one opened file.
const LOCKS: &str = "turns";
/// Pages that an object has at most, and objects that have places of their own in the file. Two of one place wait for each other.
const PAGES: u64 = 1 << 32;
const PLACES: u64 = 1 << 30;

type Opened = BTreeMap<PathBuf, Option<Arc<RangeLocks>>>;

static OPENED: PerProcess<Mutex<Opened>> = PerProcess::new(Mutex::default);

/// Whose turn it is to fetch a range.
pub(crate) enum Turn {
    /// This process's, until this is dropped.
    Own { _until_dropped: Own },
    /// Another process fetches some of it.
    Other,
    /// Nobody else would find the bytes, or the system does not tell.
    Unknown,
}

pub(crate) struct Own {
    locks: Arc<RangeLocks>,
    places: Range<u64>,
}

impl Turn {
    /// Takes the turn for a range of an object, where it is nobody's. `number` is the object's.
    pub(super) fn take(cache: &Path, number: u64, range: &Range<u64>) -> Turn {
        let Some(locks) = locks_of(cache) else { return Turn::Unknown };
        let first = number % PLACES * PAGES;
        let places = first + range.start / PAGE % PAGES..first + range.end.div_ceil(PAGE).min(PAGES);
        match places.is_empty() {
            true => Turn::Unknown,
            false => match locks.try_lock(&places) {
                Ok(true) => Turn::Own { _until_dropped: Own { locks, places } },
                Ok(false) => Turn::Other,
                Err(_) => Turn::Unknown,
            },
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.locks.unlock(&self.places);
    }
}

fn locks_of(cache: &Path) -> Option<Arc<RangeLocks>> {
    let mut opened = OPENED.get().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(locks) = opened.get(cache) {
        return locks.clone();
    }
    let open = || -> io::Result<RangeLocks> {
        let folder = open_folder(cache, None, true)?;
        Ok(RangeLocks::new(open_at(&folder, LOCKS, true)?))
    };
    // Where it cannot be made, nothing is written either.
    let locks = open().ok().map(Arc::new);
    opened.insert(cache.to_path_buf(), locks.clone());
    locks
}
