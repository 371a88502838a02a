//! A table of words and their ids, in which the processor finds one with one look at its memory.

/// Words and their ids. It forgets: each word has two places, the first for the one that came last.
pub(super) struct Table<const KEY: usize, const IDS: usize> {
    sets: Vec<Set<KEY, IDS>>,
    pub(super) filled: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Entry<const KEY: usize, const IDS: usize> {
    key: [u8; KEY],
    pub(super) ids: [u32; IDS],
    len: u8,
    pub(super) n_ids: u8,
}

impl<const KEY: usize, const IDS: usize> Entry<KEY, IDS> {
    // No word is empty.
    const NONE: Self = Entry { key: [0; KEY], ids: [0; IDS], len: 0, n_ids: 0 };
}

impl<const KEY: usize, const IDS: usize> Default for Entry<KEY, IDS> {
    fn default() -> Self {
        Self::NONE
    }
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set<const KEY: usize, const IDS: usize>([Entry<KEY, IDS>; 2]);

/// Sets at first, and bytes at most.
pub(super) const FEWEST: usize = 1 << 8;
const MOST: usize = 8 << 20;
/// What the processor reads at once.
const LINE: usize = 64;

impl<const KEY: usize, const IDS: usize> Table<KEY, IDS> {
    // Their number is a power of two.
    fn set(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.sets.len() - 1)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        let Set([first, second]) = &self.sets[self.set(hash)];
        prefetch(first);
        if size_of_val(first) > LINE / 2 {
            prefetch(second);
        }
    }

    #[inline(always)]
    pub(super) fn find(&self, hash: u64, key: &[u8; KEY], len: usize) -> Option<&Entry<KEY, IDS>> {
        let is_it = |entry: &Entry<KEY, IDS>| (entry.key == *key) & (usize::from(entry.len) == len);
        let set = &self.sets[self.set(hash)].0;
        // Without a branch for which of the two it is: that cannot be foretold.
        let entry = &set[usize::from(!is_it(&set[0]))];
        is_it(entry).then_some(entry)
    }

    pub(super) fn put(&mut self, hash: u64, key: [u8; KEY], len: usize, ids: &[u32]) {
        let (Ok(len), Ok(n_ids)) = (u8::try_from(len), u8::try_from(ids.len())) else { return };
        if self.filled > self.sets.len() && size_of_val(&self.sets[..]) < MOST {
            self.grow();
        }
        let mut entry = Entry { key, len, n_ids, ..Entry::NONE };
        entry.ids[..ids.len()].copy_from_slice(ids);
        self.place(hash, entry);
    }

    fn place(&mut self, hash: u64, entry: Entry<KEY, IDS>) {
        let set = self.set(hash);
        let [first, second] = &mut self.sets[set].0;
        self.filled += usize::from(second.len == 0);
        *second = std::mem::replace(first, entry);
    }

    fn grow(&mut self) {
        let more = vec![Set([Entry::NONE; 2]); self.sets.len() * 2];
        let before = std::mem::replace(self, Table { sets: more, filled: 0 });
        // The last one first again.
        let entries = before.sets.iter().flat_map(|set| set.0.iter().rev());
        entries.filter(|entry| entry.len > 0).for_each(|entry| {
            self.place(hash(&entry.key, entry.len.into()), *entry);
        });
    }
}

impl<const KEY: usize, const IDS: usize> Default for Table<KEY, IDS> {
    fn default() -> Self {
        Table { sets: vec![Set([Entry::NONE; 2]); FEWEST], filled: 0 }
    }
}

// A word and zeros behind it.
pub(super) fn key<const KEY: usize>(word: &[u8]) -> [u8; KEY] {
    let mut key = [0; KEY];
    key[..word.len()].copy_from_slice(word);
    key
}

// The same of a short word, which is not empty, in a text.
#[inline(always)]
pub(super) fn short_key(text: &[u8], start: usize, len: usize) -> [u8; 16] {
    match text[start..].first_chunk() {
        Some(bytes) => (u128::from_le_bytes(*bytes) & (u128::MAX >> (128 - 8 * len))).to_le_bytes(),
        None => key(&text[start..start + len]),
    }
}

// Of each 16 bytes of the key, the two halves multiplied.
#[inline(always)]
pub(super) fn hash<const KEY: usize>(key: &[u8; KEY], len: usize) -> u64 {
    const ODD: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];
    let mut hash = (len as u64).wrapping_mul(ODD[0]);
    for part in key.as_chunks::<16>().0 {
        let part = u128::from_le_bytes(*part);
        let product = u128::from(part as u64 ^ ODD[1]) * u128::from((part >> 64) as u64 ^ hash ^ ODD[2]);
        hash = (product as u64 ^ (product >> 64) as u64).wrapping_mul(ODD[0]);
    }
    hash
}

// Asks for the line of memory that something lies in, and does not wait for it.
#[inline(always)]
fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it reads nothing that the program sees, and the place is a reference's.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            std::ptr::from_ref(place).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_forgets_and_mixes_nothing_up() {
        let mut table = Table::<16, 3>::default();
        let word = |i: u32| (key::<16>(&i.to_le_bytes()), 4);
        let n = 3 * (MOST / size_of::<Entry<16, 3>>()) as u32;
        for i in 0..n {
            let (key, len) = word(i);
            let hash = hash(&key, len);
            assert!(table.find(hash, &key, len).is_none());
            table.put(hash, key, len, &[i, i + 1][..1 + (i % 2) as usize]);
            assert_eq!(table.find(hash, &key, len).unwrap().ids[0], i);
        }
        assert_eq!(size_of_val(&table.sets[..]), MOST);
        let known = (0..n).filter(|i| {
            let (key, len) = word(*i);
            let found = table.find(hash(&key, len), &key, len);
            assert!(
                found.is_none_or(|f| f.ids[..2] == [*i, (i + 1) * (i % 2)] && f.n_ids == 1 + (i % 2) as u8)
            );
            found.is_some()
        });
        let known = known.count();
        assert!(known > n as usize / 4 && known < n as usize / 3 + 1, "{known} of {n}");
        // Zeros behind a word are no part of it.
        let mut table = Table::<16, 3>::default();
        table.put(0, key(b"a"), 1, &[1]);
        assert!(table.find(0, &key(b"a\0"), 2).is_none() && table.find(0, &key(b"a"), 1).is_some());
    }

    #[test]
    fn short_keys_are_the_same_wherever_a_word_stands() {
        let text = "aé\0b \n0123456789abcdef";
        for start in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            for len in 1..=16.min(text.len() - start) {
                let word = &text.as_bytes()[start..start + len];
                assert_eq!(short_key(text.as_bytes(), start, len), key(word));
                assert_eq!(short_key(word, 0, len), key(word));
            }
        }
    }
}
