//! Memory of lists with an entry per record: it is asked for as the entries come, and may be refused.

use crate::error::{Error, Result};

/// How much room there is for records that were only claimed.
const AT_ONCE: usize = 1 << 20;

/// Room for `more` entries in a list that has `n_records` in the end: exactly that many then, but a small part of them
/// before, since a file may claim records that it does not have.
///
/// # Errors
/// `Memory` when there is not so much.
#[inline]
pub(super) fn make_room<T>(list: &mut Vec<T>, more: usize, n_records: u64) -> Result<()> {
    if list.capacity() - list.len() < more { grow(list, more, n_records) } else { Ok(()) }
}

#[cold]
fn grow<T>(list: &mut Vec<T>, more: usize, n_records: u64) -> Result<()> {
    let missing = usize::try_from(n_records).unwrap_or(usize::MAX).saturating_sub(list.len());
    // Twice as much each time, while records come.
    let room = missing.min(list.len().max(AT_ONCE)).max(more);
    list.try_reserve_exact(room).map_err(|_| {
        Error::memory(format!("{} bytes for each of {n_records} records", size_of::<T>()))
            .hint("split the source")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_takes_no_memory_before_its_records_come() {
        let mut list = vec![0u64];
        make_room(&mut list, 1, u64::MAX).unwrap();
        assert_eq!(list.capacity(), 1 + AT_ONCE);
        list.resize(list.capacity(), 0);
        make_room(&mut list, 1, u64::MAX).unwrap();
        assert_eq!(list.capacity(), 2 * (1 + AT_ONCE));
    }

    #[test]
    fn there_is_never_room_for_more_than_all_records() {
        let all = 2 * AT_ONCE + 5;
        let mut list = Vec::new();
        for i in 0..all {
            make_room(&mut list, 1, all as u64).unwrap();
            list.push(i as u8);
        }
        assert_eq!(list.capacity(), all);
    }

    #[test]
    fn more_than_there_is_memory_for_is_an_error() {
        assert!(make_room(&mut Vec::<u64>::new(), usize::MAX / 8, u64::MAX).is_err());
    }
}
