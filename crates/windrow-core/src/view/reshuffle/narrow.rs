//! The lengths of all records in two or four bytes each: a look-up asks for a dozen of them, at random.

use std::sync::Arc;

use crate::error::Result;
use crate::record::Lengths;
use crate::touch::{in_large_pages, touch_value};
use crate::view::allocate::make_room;
use crate::view::lengths::check_record;

/// Lengths as few bytes as the longest of them lets.
pub(super) enum Narrow {
    Short(Vec<u16>),
    Long(Vec<u32>),
    /// Not kept: some need eight bytes, or all are the same.
    Asked(Arc<dyn Lengths>),
}

impl Narrow {
    /// Those of no record yet, of `n` in the end.
    pub(super) fn new() -> Narrow {
        Narrow::Short(Vec::new())
    }

    /// The next few of `n` lengths, which are those of `all`.
    ///
    /// # Errors
    /// `Memory`.
    pub(super) fn extend(&mut self, some: &[u64], all: &Arc<dyn Lengths>) -> Result<()> {
        let n = all.len();
        let longest = some.iter().fold(0, |longest, length| longest.max(*length));
        match self {
            Narrow::Short(lengths) if longest > u64::from(u16::MAX) => {
                let mut wide = Vec::new();
                make_room(&mut wide, lengths.len(), n)?;
                wide.extend(lengths.iter().map(|length| u32::from(*length)));
                *self = Narrow::Long(wide);
                self.extend(some, all)?;
            }
            Narrow::Long(_) if longest > u64::from(u32::MAX) => *self = Narrow::Asked(all.clone()),
            Narrow::Short(lengths) => add(lengths, some, n, |length| length as u16)?,
            Narrow::Long(lengths) => add(lengths, some, n, |length| length as u32)?,
            Narrow::Asked(_) => {}
        }
        Ok(())
    }

    /// Asks the processor for the length of a record that is there.
    pub(super) fn touch(&self, record: u64) {
        match self {
            Narrow::Short(lengths) => lengths.get(record as usize).into_iter().for_each(touch_value),
            Narrow::Long(lengths) => lengths.get(record as usize).into_iter().for_each(touch_value),
            Narrow::Asked(_) => {}
        }
    }
}

fn add<T>(lengths: &mut Vec<T>, some: &[u64], n: u64, narrow: impl Fn(u64) -> T) -> Result<()> {
    let before = lengths.capacity();
    make_room(lengths, some.len(), n)?;
    if lengths.capacity() > before {
        in_large_pages(lengths.spare_capacity_mut());
    }
    lengths.extend(some.iter().map(|length| narrow(*length)));
    Ok(())
}

impl Lengths for Narrow {
    fn len(&self) -> u64 {
        match self {
            Narrow::Short(lengths) => lengths.len() as u64,
            Narrow::Long(lengths) => lengths.len() as u64,
            Narrow::Asked(lengths) => lengths.len(),
        }
    }

    #[inline]
    fn length(&self, record: u64) -> Result<u64> {
        let kept = match self {
            Narrow::Short(lengths) => lengths.get(record as usize).map(|length| u64::from(*length)),
            Narrow::Long(lengths) => lengths.get(record as usize).map(|length| u64::from(*length)),
            Narrow::Asked(lengths) => return lengths.length(record),
        };
        kept.map_or_else(|| check_record(record, self.len()).map(|()| 0), Ok)
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let kept = |n: usize| (first as usize)..(first as usize).saturating_add(n).min(self.len() as usize);
        match self {
            Narrow::Asked(lengths) => return lengths.lengths(first, out),
            _ if first.saturating_add(out.len() as u64) > self.len() => {
                check_record(first.max(self.len()), self.len())?;
            }
            Narrow::Short(lengths) => {
                let some = &lengths[kept(out.len())];
                out.iter_mut().zip(some).for_each(|(out, length)| *out = (*length).into());
            }
            Narrow::Long(lengths) => {
                let some = &lengths[kept(out.len())];
                out.iter_mut().zip(some).for_each(|(out, length)| *out = (*length).into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(all: Vec<u64>, at_once: usize) -> Narrow {
        let lengths: Arc<dyn Lengths> = Arc::new(all.clone());
        let mut narrow = Narrow::new();
        all.chunks(at_once).for_each(|some| narrow.extend(some, &lengths).unwrap());
        narrow
    }

    #[test]
    fn lengths_of_any_size_stay_what_they_are() {
        for longest in [0, 5, 65_535, 65_536, u64::from(u32::MAX), 1 << 32, 1 << 50] {
            for at_once in [1, 3, 100] {
                let all: Vec<u64> = (0..50).map(|i| if i == 33 { longest } else { i * 7 }).collect();
                let narrow = kept(all.clone(), at_once);
                assert_eq!(narrow.len(), 50);
                assert_eq!((0..50).map(|i| narrow.length(i).unwrap()).collect::<Vec<_>>(), all);
                let mut some = [0; 20];
                narrow.lengths(25, &mut some).unwrap();
                assert_eq!(some, all[25..45]);
                assert!(narrow.length(50).is_err() && narrow.lengths(31, &mut some).is_err());
                (0..50).for_each(|i| narrow.touch(i));
            }
        }
    }

    #[test]
    fn they_take_as_few_bytes_as_the_longest_lets() {
        assert!(matches!(kept(vec![1, 65_535], 1), Narrow::Short(_)));
        assert!(matches!(kept(vec![65_536, 1], 1), Narrow::Long(_)));
        assert!(matches!(kept(vec![1, 65_536, 2], 1), Narrow::Long(_)));
        assert!(matches!(kept(vec![1, 1 << 32, 2], 2), Narrow::Asked(_)));
    }
}
