//! The IDs that an encoder gives.

/// Token IDs: 32 bits each as long as all of them fit, and 64 from the first one on that does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    // One of the two is empty.
    small: Vec<u32>,
    large: Vec<i64>,
}

/// Ids as they are kept.
pub(super) enum Kept<'a> {
    Small(&'a [u32]),
    Large(&'a [i64]),
}

impl Ids {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.small.len() + self.large.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.small.clear();
        self.large.clear();
    }

    /// Adds one.
    pub fn push(&mut self, id: i64) {
        match u32::try_from(id) {
            Ok(id) if self.large.is_empty() => self.small.push(id),
            _ => {
                self.large.extend(self.small.drain(..).map(i64::from));
                self.large.push(id);
            }
        }
    }

    /// Adds what `add` appends to the vector that it is given, which may hold others before.
    pub fn append<T>(&mut self, add: impl FnOnce(&mut Vec<u32>) -> T) -> T {
        let done = add(&mut self.small);
        if !self.large.is_empty() {
            self.large.extend(self.small.drain(..).map(i64::from));
        }
        done
    }

    /// Them, in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> {
        self.small.iter().map(|id| i64::from(*id)).chain(self.large.iter().copied())
    }

    pub(super) fn kept(&self) -> Kept<'_> {
        if self.large.is_empty() { Kept::Small(&self.small) } else { Kept::Large(&self.large) }
    }
}

impl Kept<'_> {
    /// Appends the low `width` bytes of each to `out`, little-endian; gives the largest ID, by which the caller knows
    /// whether all of them are whole.
    pub(super) fn write(&self, width: usize, out: &mut Vec<u8>) -> Option<i64> {
        match self {
            Kept::Small([]) | Kept::Large([]) => None,
            Kept::Small(ids) => Some(match width {
                1 => write_ids::<1>(ids, out),
                2 => write_ids::<2>(ids, out),
                4 => write_ids::<4>(ids, out),
                _ => write_ids::<8>(ids, out),
            }),
            Kept::Large(ids) => {
                ids.iter().for_each(|id| out.extend_from_slice(&id.to_le_bytes()[..width]));
                ids.iter().copied().max()
            }
        }
    }
}

fn write_ids<const N: usize>(ids: &[u32], out: &mut Vec<u8>) -> i64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide<const N: usize>(ids: &[u32], out: &mut Vec<u8>) -> u32 {
            write_here::<N>(ids, out)
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide::<N>(ids, out) }.into();
    }
    write_here::<N>(ids, out).into()
}

// One look at each ID, and no byte is written twice. Compiled twice: for any processor, and for those with wider
// registers, where it takes half as long.
#[inline(always)]
fn write_here<const N: usize>(ids: &[u32], out: &mut Vec<u8>) -> u32 {
    const BLOCK: usize = 64;
    out.reserve(ids.len() * N);
    let mut most = 0;
    let mut block_bytes = [[0; N]; BLOCK];
    let mut write = |ids: &[u32]| {
        for (place, id) in block_bytes.iter_mut().zip(ids) {
            most = most.max(*id);
            place.copy_from_slice(&u64::from(*id).to_le_bytes()[..N]);
        }
        out.extend_from_slice(block_bytes[..ids.len()].as_flattened());
    };
    let (blocks, rest) = ids.as_chunks::<BLOCK>();
    blocks.iter().for_each(|block| write(block));
    write(rest);
    most
}

impl Extend<i64> for Ids {
    fn extend<I: IntoIterator<Item = i64>>(&mut self, ids: I) {
        ids.into_iter().for_each(|id| self.push(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_as_their_low_bytes_and_the_largest_is_returned() {
        for n in [0, 1, 63, 64, 65, 200] {
            let small: Vec<u32> = (0..n).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
            let large: Vec<i64> = small.iter().map(|id| i64::from(*id) << 20).collect();
            for width in [1, 2, 4, 8] {
                let mut out = vec![7];
                assert_eq!(
                    Kept::Small(&small).write(width, &mut out),
                    small.iter().map(|id| i64::from(*id)).max()
                );
                assert_eq!(Kept::Large(&large).write(width, &mut out), large.iter().copied().max());
                let all = small.iter().map(|id| i64::from(*id)).chain(large.iter().copied());
                let want: Vec<u8> = all.flat_map(|id| id.to_le_bytes()[..width].to_vec()).collect();
                assert!(out[0] == 7 && out[1..] == want, "{n} {width}");
            }
        }
    }

    #[test]
    fn all_of_them_in_their_order() {
        let most = i64::from(u32::MAX);
        for cut in [0, 1, 2, 3, 4] {
            let mut ids = Ids::default();
            let given = [0, most, most + 1, -1, 5];
            ids.extend(given[..cut].iter().copied());
            assert!(ids.append(|small| {
                small.push(7);
                true
            }));
            ids.extend(given[cut..].iter().copied());
            let mut want = given.to_vec();
            want.insert(cut, 7);
            assert!(matches!(ids.kept(), Kept::Large(found) if found == want));
            assert_eq!(ids.len(), 6);
            ids.clear();
            assert!(ids.is_empty());
        }
        let mut ids = Ids::default();
        ids.extend([1, most]);
        assert!(matches!(ids.kept(), Kept::Small([1, u32::MAX])));
    }
}
