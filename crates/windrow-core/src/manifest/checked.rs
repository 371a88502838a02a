//! A store that compares every block it reads with the sum that was kept when the block was written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::checksums::{BLOCK, CHECKSUMS_FILE, Checksums, sum_of};
use crate::error::{Error, Result};
use crate::store::{Entry, FolderId, Noted, Object, Store, Traffic, Version, Walked, key, open_if_there};

/// Where checksums are kept besides the usual places (`<file>.windrow.sums`, and `windrow.sums` in the folder or in one
/// above), and what may be read without.
pub trait ChecksumRules: Send + Sync {
    /// Files beside one of this name that may keep its checksums too.
    fn beside(&self, name: &str) -> Vec<String>;

    /// The file that is one data set together with the file of this name.
    fn other_half(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// The file beside one of this name that is its checksums and nothing else.
    fn bare(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Folders that may keep those of what is beside them, and below that.
    fn folders(&self) -> &[String];

    /// Whether an object that no checksums are kept of may be read without. An error where it says itself that it is damaged.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn may_lack(&self, object: &dyn Object) -> Result<bool>;
}

/// The objects of another store, checked block by block where they are read.
pub struct Checked {
    inner: Arc<dyn Store>,
    rules: Box<dyn ChecksumRules>,
    /// By the key of their file; `None` where there is none.
    found: Mutex<HashMap<String, Option<Arc<Checksums>>>>,
}

impl Checked {
    /// Around `inner`.
    pub fn new(inner: Arc<dyn Store>, rules: impl ChecksumRules + 'static) -> Checked {
        Checked { inner, rules: Box::new(rules), found: Mutex::default() }
    }

    fn sums(&self, file: String) -> Result<Option<Arc<Checksums>>> {
        let (folder, name) = (key::folder_of(&file).to_string(), key::name_of(&file).to_string());
        self.known(file, |object| {
            let sums = Checksums::open(object)?;
            Ok(match name.strip_suffix(CHECKSUMS_FILE).and_then(|name| name.strip_suffix('.')) {
                Some(name) => {
                    let other = self.rules.other_half(name);
                    sums.of_file(self.inner.as_ref(), &folder, name, other.as_deref())?
                }
                None => sums,
            })
        })
    }

    // The checksums in a file, which `open` reads the first time.
    fn known(
        &self,
        file: String,
        open: impl FnOnce(Arc<dyn Object>) -> Result<Checksums>,
    ) -> Result<Option<Arc<Checksums>>> {
        if let Some(known) = self.found.lock().unwrap_or_else(PoisonError::into_inner).get(&file) {
            return Ok(known.clone());
        }
        let object = open_if_there(self.inner.as_ref(), &file)?;
        let sums = object.map(open).transpose()?.map(Arc::new);
        self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(file, sums.clone());
        Ok(sums)
    }

    // The sums that name `of`, which has `size` bytes: in a file of its own, or in that of a folder above it.
    fn find(&self, of: &str, size: u64) -> Result<Option<(Arc<Checksums>, u64, u64)>> {
        let folder = key::folder_of(of);
        let name = key::name_of(of);
        let before_name = &of[..of.len() - name.len()];
        if let Some(bare) = self.rules.bare(name)
            && let Some(sums) =
                self.known(format!("{before_name}{bare}"), |object| Checksums::bare(object, name, size))?
            && let Some((at, size)) = sums.find(name)
        {
            return Ok(Some((sums, at, size)));
        }
        let beside = self.rules.beside(name).into_iter().map(|file| format!("{before_name}{file}"));
        let mut candidates = vec![(format!("{of}.{CHECKSUMS_FILE}"), folder)];
        candidates.extend(beside.map(|file| (file, folder)));
        let mut above = folder;
        loop {
            candidates.push((key::below(above, CHECKSUMS_FILE), above));
            for folder in self.rules.folders() {
                candidates.push((key::below(&key::below(above, folder), CHECKSUMS_FILE), above));
            }
            if above.is_empty() {
                break;
            }
            above = key::folder_of(above);
        }
        for (file, base) in candidates {
            let name = of[base.len()..].trim_start_matches('/');
            if let Some(sums) = self.sums(file)?
                && let Some((at, size)) = sums.find(name)
            {
                return Ok(Some((sums, at, size)));
            }
        }
        Ok(None)
    }

    // An object that was opened, with the checksums that were kept of it.
    fn checked(&self, key: &str, inner: Arc<dyn Object>) -> Result<Arc<dyn Object>> {
        let Some((sums, at, size)) = self.find(key, inner.size())? else {
            if self.rules.may_lack(inner.as_ref())? {
                return Ok(inner);
            }
            return Err(Error::config("@verify_checksums=true@, but no block checksums were kept of this file")
                .at(inner.name())
                .field("verify_checksums")
                .hint(
                    "what windrow wrote has them; `windrow index --checksum` keeps those of JSONL. `windrow convert` gives a \
                     copy with them",
                ));
        };
        if inner.size() != size {
            return Err(Error::corrupt(format!(
                "the file has {} bytes, its block checksums are those of {size}",
                inner.size()
            ))
            .at(inner.name())
            .hint(RESTORE));
        }
        Ok(Arc::new(CheckedObject { inner, sums, at }))
    }
}

impl Store for Checked {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.checked(key, self.inner.open(key)?)
    }

    fn open_listed(&self, entry: &Entry) -> Result<Arc<dyn Object>> {
        self.checked(&entry.key, self.inner.open_listed(entry)?)
    }

    fn checks_when_opened(&self) -> bool {
        true
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        self.inner.entry(key)
    }

    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.inner.walk(prefix)
    }

    fn walk_all(&self, prefix: &str) -> Result<Walked> {
        self.inner.walk_all(prefix)
    }

    fn walk_again(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.inner.walk_again(prefix)
    }

    fn walks_by_manifest(&self) -> bool {
        self.inner.walks_by_manifest()
    }

    fn display(&self, key: &str) -> String {
        self.inner.display(key)
    }

    fn folder_id(&self, key: &str) -> Option<FolderId> {
        self.inner.folder_id(key)
    }

    fn above(&self, key: &str) -> Option<(Arc<dyn Store>, String)> {
        self.inner.above(key)
    }

    fn traffic(&self) -> Option<Traffic> {
        self.inner.traffic()
    }

    fn encoding(&self, name: &str) -> Option<String> {
        self.inner.encoding(name)
    }

    fn room_ahead(&self) -> Option<u64> {
        self.inner.room_ahead()
    }

    fn keeps(&self, bytes: u64) -> bool {
        self.inner.keeps(bytes)
    }

    fn noted(&self) -> Option<&Noted> {
        self.inner.noted()
    }
}

const RESTORE: &str = "restore the file from where it came from; `windrow verify` lists all that is damaged";

/// An object and the sums of its blocks.
struct CheckedObject {
    inner: Arc<dyn Object>,
    sums: Arc<Checksums>,
    at: u64,
}

impl Object for CheckedObject {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn modified_ns(&self) -> Option<u64> {
        self.inner.modified_ns()
    }

    fn changed_ns(&self) -> Option<u64> {
        self.inner.changed_ns()
    }

    fn version(&self) -> Option<Version> {
        self.inner.version()
    }

    fn tag(&self) -> Option<&str> {
        self.inner.tag()
    }

    fn is_compared(&self) -> bool {
        true
    }

    fn cache_limit(&self) -> Option<u64> {
        self.inner.cache_limit()
    }

    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        if size == 0 {
            return self.inner.read(start, size, scratch);
        }
        // Whole blocks, from the one that `start` is in; what lies outside of the file is the inner one's to refuse.
        let end = start.saturating_add(size as u64);
        if end > self.size() {
            return self.inner.read(start, size, scratch);
        }
        let first = start / BLOCK;
        let from = first * BLOCK;
        let to = end.next_multiple_of(BLOCK).min(self.size());
        let blocks = (to - from).div_ceil(BLOCK) as usize;
        let mut of_sums = Vec::new();
        let sums = self.sums.read(self.at, first, blocks, &mut of_sums)?;
        let bytes = self.inner.read(from, (to - from) as usize, scratch)?;
        for ((block, sum), number) in bytes.chunks(BLOCK as usize).zip(sums).zip(first..) {
            let found = sum_of(block);
            if found != sum {
                let at = number * BLOCK;
                return Err(Error::corrupt(format!(
                    "bytes {at} to {} are not those that were written: their sum is {found:08x}, expected {sum:08x}",
                    at + block.len() as u64
                ))
                .at(self.name())
                .byte(at)
                .hint(RESTORE));
            }
        }
        let skip = (start - from) as usize;
        Ok(&bytes[skip..skip + size])
    }

    // What is handed out whole could not be checked; `mapped` stays what it is.
    fn may_stay_open(&self) -> bool {
        self.inner.may_stay_open()
    }

    fn touch(&self, start: u64, size: u64) {
        self.inner.touch(start, size);
    }

    fn prefetch(&self, start: u64, size: u64) {
        self.inner.prefetch(start, size);
    }

    fn bring_near(&self) -> Result<()> {
        self.inner.bring_near()
    }
}
