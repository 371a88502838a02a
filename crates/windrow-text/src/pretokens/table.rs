//! A table of words and their IDs, in which the processor finds one with one look at its memory.

/// A word, zeros behind it, and its length in the last byte.
pub(super) type Key<const WORDS: usize> = [u64; WORDS];

/// Words and their IDs. It forgets: each word has two places, the first for the one that came last.
pub(super) struct Table<const KEY: usize, const IDS: usize> {
    sets: Vec<Set<KEY, IDS>>,
    pub(super) filled: usize,
}

#[derive(Clone, Copy)]
struct Entry<const KEY: usize, const IDS: usize> {
    key: Key<KEY>,
    ids: Ids<IDS>,
}

/// The first `n` are.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Ids<const IDS: usize> {
    pub(super) ids: [u32; IDS],
    pub(super) n: u32,
}

impl<const IDS: usize> Ids<IDS> {
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids[..self.n as usize]
    }
}

impl<const IDS: usize> Default for Ids<IDS> {
    fn default() -> Self {
        Ids { ids: [0; IDS], n: 0 }
    }
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set<const KEY: usize, const IDS: usize>([Entry<KEY, IDS>; 2]);

impl<const KEY: usize, const IDS: usize> Set<KEY, IDS> {
    // No word is empty.
    const EMPTY: Self = Set([Entry { key: [0; KEY], ids: Ids { ids: [0; IDS], n: 0 } }; 2]);
}

/// Bytes at first, how many times more whenever half of the first places may be taken, and at most.
const LEAST: usize = 16 << 10;
const MORE: usize = 8;
const MOST: usize = 8 << 20;
/// What the processor reads at once.
const LINE: usize = 64;

impl<const KEY: usize, const IDS: usize> Table<KEY, IDS> {
    // Their number is a power of two.
    #[inline(always)]
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
    pub(super) fn find(&self, hash: u64, key: &Key<KEY>) -> Option<&Ids<IDS>> {
        let is_it = |entry: &Entry<KEY, IDS>| entry.key.iter().zip(key).fold(0, |a, (b, c)| a | (b ^ c)) == 0;
        let set = &self.sets[self.set(hash)].0;
        // Without a branch for which of the two it is: that cannot be foretold.
        let entry = &set[usize::from(!is_it(&set[0]))];
        is_it(entry).then_some(&entry.ids)
    }

    pub(super) fn put(&mut self, key: Key<KEY>, ids: &[u32]) {
        if 2 * self.filled > self.sets.len() && size_of_val(&self.sets[..]) < MOST {
            self.grow();
        }
        let mut entry = Entry { key, ids: Ids { n: ids.len() as u32, ..Ids::default() } };
        entry.ids.ids[..ids.len()].copy_from_slice(ids);
        self.place(entry);
    }

    fn place(&mut self, entry: Entry<KEY, IDS>) {
        let set = self.set(hash(&entry.key));
        let [first, second] = &mut self.sets[set].0;
        self.filled += usize::from(second.ids.n == 0);
        *second = std::mem::replace(first, entry);
    }

    fn of(bytes: usize) -> Self {
        Table { sets: vec![Set::EMPTY; bytes / size_of::<Set<KEY, IDS>>()], filled: 0 }
    }

    fn grow(&mut self) {
        let before = std::mem::replace(self, Self::of(MORE * size_of_val(&self.sets[..])));
        // The last one first again.
        let entries = before.sets.iter().flat_map(|set| set.0.iter().rev());
        entries.filter(|entry| entry.ids.n > 0).for_each(|entry| self.place(*entry));
    }
}

impl<const KEY: usize, const IDS: usize> Default for Table<KEY, IDS> {
    fn default() -> Self {
        Self::of(LEAST)
    }
}

/// Where the length is in the last part of a key.
const LEN: u32 = 56;

/// The key of a word that is shorter than the key.
pub(super) fn key<const WORDS: usize>(word: &[u8]) -> Key<WORDS> {
    let mut key = [0; WORDS];
    let (parts, rest) = word.as_chunks();
    key.iter_mut().zip(parts).for_each(|(part, bytes)| *part = u64::from_le_bytes(*bytes));
    if !rest.is_empty() {
        key[parts.len()] = match word.last_chunk() {
            // Without those that are in the part before.
            Some(bytes) => u64::from_le_bytes(*bytes) >> (8 * (8 - rest.len())),
            None => rest.iter().rev().fold(0, |part, byte| part << 8 | u64::from(*byte)),
        };
    }
    key[WORDS - 1] |= (word.len() as u64) << LEN;
    key
}

/// The key of a word in a text, which has at most 15 bytes.
#[inline(always)]
pub(super) fn short_key(text: &[u8], start: usize, len: usize) -> Key<2> {
    const KEPT: [[u64; 2]; 16] = {
        let mut kept = [[0; 2]; 16];
        let mut len = 1;
        while len < 16 {
            let mask = u128::MAX >> (128 - 8 * len);
            kept[len] = [mask as u64, (mask >> 64) as u64];
            len += 1;
        }
        kept
    };
    match text[start..].first_chunk::<16>() {
        Some(bytes) => {
            let bytes = u128::from_le_bytes(*bytes);
            let [first, second] = KEPT[len % 16];
            [bytes as u64 & first, (bytes >> 64) as u64 & second | (len as u64) << LEN]
        }
        None => key(&text[start..start + len]),
    }
}

/// The longer key of a word with a short one.
pub(super) fn lengthened([first, second]: &Key<2>) -> Key<4> {
    let len = second >> LEN << LEN;
    [*first, second ^ len, 0, len]
}

// Of each 16 bytes of the key, the two halves multiplied.
#[inline(always)]
pub(super) fn hash<const WORDS: usize>(key: &Key<WORDS>) -> u64 {
    const ODD: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];
    key.as_chunks::<2>().0.iter().fold(0, |hash, part| {
        let product = u128::from(part[0] ^ ODD[0]) * u128::from(part[1] ^ hash ^ ODD[1]);
        product as u64 ^ (product >> 64) as u64
    })
}

// Asks for the line of memory that something is in, and does not wait for it.
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
        let mut table = Table::<2, 3>::default();
        let find = |table: &Table<2, 3>, word: &[u8]| {
            let key = key(word);
            table.find(hash(&key), &key).map(|found| found.ids().to_vec())
        };
        let ids = |i: u32| [i, i + 1][..1 + (i % 2) as usize].to_vec();
        let n = 3 * (MOST / size_of::<Entry<2, 3>>()) as u32;
        for i in 0..n {
            let word = i.to_le_bytes();
            assert_eq!(find(&table, &word), None);
            table.put(key(&word), &ids(i));
            assert_eq!(find(&table, &word), Some(ids(i)));
        }
        assert_eq!(size_of_val(&table.sets[..]), MOST);
        let known = (0..n).filter(|i| {
            let found = find(&table, &i.to_le_bytes());
            assert!(found.is_none() || found == Some(ids(*i)));
            found.is_some()
        });
        let known = known.count();
        assert!(known > n as usize / 4 && known < n as usize / 3 + 1, "{known} of {n}");
        // Zeros behind a word are not part of it.
        let mut table = Table::default();
        table.put(key(b"a"), &[1]);
        assert_eq!(
            [b"a".as_slice(), b"a\0", b"\0"].map(|word| find(&table, word)),
            [Some(vec![1]), None, None]
        );
    }

    #[test]
    fn it_grows_before_it_forgets() {
        let mut table = Table::<4, 7>::default();
        let key = |i: u32| key(&i.to_le_bytes().repeat(6));
        // Of 3,000 words, a third place in a set is rare.
        (0..3000).for_each(|i| table.put(key(i), &[i; 7]));
        let known =
            (0..3000).filter(|i| table.find(hash(&key(*i)), &key(*i)).is_some_and(|f| f.ids() == [*i; 7]));
        assert!(known.count() > 2900 && size_of_val(&table.sets[..]) == LEAST * MORE * MORE);
    }

    #[test]
    fn keys_are_the_same_wherever_a_word_stands_and_in_a_longer_key() {
        let text = "aé\0b \n0123456789abcdef";
        for start in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            for len in 1..=15.min(text.len() - start) {
                let word = &text.as_bytes()[start..start + len];
                assert_eq!(short_key(text.as_bytes(), start, len), key(word));
                assert_eq!(short_key(word, 0, len), key(word));
                assert_eq!(lengthened(&key(word)), key(word));
            }
        }
    }
}
