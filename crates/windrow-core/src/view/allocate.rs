//! Lists with an entry per record: their memory is asked for once, and may be refused.

use crate::error::{Error, Result};

/// An empty list that holds one entry per record without growing.
///
/// # Errors
/// `Memory` when there is not so much.
pub(super) fn list_for<T>(n_records: u64) -> Result<Vec<T>> {
    let mut list = Vec::new();
    usize::try_from(n_records).ok().and_then(|n| list.try_reserve_exact(n).ok()).ok_or_else(|| {
        Error::memory(format!("{} bytes for each of {n_records} records", size_of::<T>()))
            .hint("split the source")
    })?;
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_memory_for_is_an_error() {
        assert!(list_for::<u64>(u64::MAX).is_err());
    }
}
