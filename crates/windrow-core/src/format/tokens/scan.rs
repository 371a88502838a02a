//! Where one id stands in a file of ids: looked for on all cores, told in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::array::DType;
use crate::error::{Error, Result};
use crate::store::Object;

/// Ids that a thread looks at before it takes the next part: few enough to stay in the processor's cache where a file is
/// read by position.
const PART: u64 = 256 << 10;
/// Parts for each thread until what was found is told: many enough that threads cost nothing, few enough that ids that
/// are all the one that is looked for take some megabytes.
const PARTS: usize = 32;

/// One id as it is stored.
#[derive(Clone, Copy)]
pub(super) struct Id {
    dtype: DType,
    bits: u64,
}

impl Id {
    /// `id` as a number of this dtype.
    ///
    /// # Errors
    /// `Config` when it does not fit.
    pub(super) fn new(dtype: DType, id: i64) -> Result<Id> {
        match dtype.holds(id) {
            true => Ok(Id { dtype, bits: id as u64 }),
            false => Err(Error::config(format!("the end id {id} is no {dtype}"))
                .field("eos")
                .hint("is dtype= the one that the ids were written in?")),
        }
    }

    /// Appends the places of the id among little-endian ids, counted in ids.
    fn find(self, bytes: &[u8], found: &mut Vec<u32>) {
        match self.dtype {
            DType::U8 => found.extend(memchr::memchr_iter(self.bits as u8, bytes).map(|at| at as u32)),
            DType::U16 => find(bytes, self.bits as u16, u16::from_le_bytes, found),
            DType::U32 | DType::I32 => find(bytes, self.bits as u32, u32::from_le_bytes, found),
            _ => find(bytes, self.bits, u64::from_le_bytes, found),
        }
    }
}

/// Ids compared without a look at the outcome: the loop over them runs in vectors.
const BLOCK: usize = 64;

fn find<const WIDTH: usize, T: Copy + PartialEq>(
    bytes: &[u8],
    id: T,
    read: impl Fn([u8; WIDTH]) -> T,
    found: &mut Vec<u32>,
) {
    let ids = bytes.as_chunks::<WIDTH>().0;
    let (blocks, rest) = ids.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate() {
        if block.iter().fold(false, |any, stored| any | (read(*stored) == id)) {
            // A quarter at a time: where documents are short, most of a block holds no end.
            for (quarter, ids) in block.chunks(BLOCK / 4).enumerate() {
                if ids.iter().fold(false, |any, stored| any | (read(*stored) == id)) {
                    let first = number * BLOCK + quarter * (BLOCK / 4);
                    tell(ids, first, id, &read, found);
                }
            }
        }
    }
    tell(rest, blocks.len() * BLOCK, id, &read, found);
}

fn tell<const WIDTH: usize, T: PartialEq>(
    ids: &[[u8; WIDTH]],
    first: usize,
    id: T,
    read: &impl Fn([u8; WIDTH]) -> T,
    found: &mut Vec<u32>,
) {
    // A part holds fewer ids than 32 bits count.
    let places = ids.iter().enumerate().filter(|(_, stored)| read(**stored) == id);
    found.extend(places.map(|(at, _)| (first + at) as u32));
}

/// Tells `each` the places of an id in a file of whole ids, in order: a base and what to add to it for each place.
///
/// # Errors
/// What `each` says; `Io`; `Stale` when the file shrinks while it is read.
pub(super) fn scan(
    object: &dyn Object,
    id: Id,
    each: &mut dyn FnMut(u64, &[u32]) -> Result<()>,
) -> Result<()> {
    let width = id.dtype.size() as u64;
    let parts = (object.size() / width).div_ceil(PART);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = (threads * PARTS).min(usize::try_from(parts).unwrap_or(usize::MAX));
    let found: Vec<Mutex<(Vec<u32>, Result<()>)>> =
        (0..at_once).map(|_| Mutex::new((Vec::new(), Ok(())))).collect();
    for first in (0..parts).step_by(at_once.max(1)) {
        let now = at_once.min((parts - first) as usize);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut scratch = Vec::new();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = found[..now].get(i) else { return };
                let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
                let start = (first + i as u64) * PART * width;
                let size = (PART * width).min(object.size() - start) as usize;
                place.0.clear();
                place.1 = object.read(start, size, &mut scratch).map(|bytes| id.find(bytes, &mut place.0));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(now) {
                scope.spawn(work);
            }
            work();
        });
        for (i, place) in found[..now].iter().enumerate() {
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut place.1, Ok(()))?;
            each((first + i as u64) * PART, &place.0)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::store::{Memory, Store};

    fn places(dtype: DType, ids: &[i64], id: i64) -> Vec<u64> {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()[..dtype.size()].to_vec()).collect();
        let object = Memory::new().with("x", bytes).open("x").unwrap();
        let mut all = Vec::new();
        scan(object.as_ref(), Id::new(dtype, id).unwrap(), &mut |base, found| {
            all.extend(found.iter().map(|at| base + u64::from(*at)));
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn every_place_is_found_wherever_it_stands() {
        for dtype in [DType::U8, DType::U16, DType::U32, DType::I32, DType::I64] {
            for n in [0, 1, 15, 16, 63, 64, 65, 1000] {
                // Ids whose single bytes are those of the end id, too.
                let mut ids: Vec<i64> = (0..n).map(|i| [1, 0, 100][i % 3]).collect();
                for at in 0..n {
                    let before = std::mem::replace(&mut ids[at], 7);
                    assert_eq!(places(dtype, &ids, 7), [at as u64], "{dtype} {at} of {n}");
                    ids[at] = before;
                }
                let all: Vec<u64> = (0..n as u64).collect();
                assert_eq!(places(dtype, &vec![7; n], 7), all, "{dtype}");
            }
        }
    }

    #[test]
    fn bytes_of_two_ids_are_no_id() {
        assert_eq!(places(DType::U16, &[0x0700, 0x0007, 0x0107], 7), [1]);
        assert_eq!(places(DType::I32, &[-1, -2, 0xffff], -1), [0]);
        assert_eq!(places(DType::I64, &[-1, 0xffff_ffff, i64::MIN], i64::MIN), [2]);
    }

    #[test]
    fn places_in_many_parts_come_in_order() {
        let n = 40 * PART + 3;
        let step = 1013;
        let ids: Vec<i64> = (0..n).map(|i| i64::from(i % step == 0)).collect();
        let expected: Vec<u64> = (0..n).step_by(step as usize).collect();
        assert_eq!(places(DType::U8, &ids, 1), expected);
        assert_eq!(places(DType::U16, &ids, 1), expected);
    }

    #[test]
    fn an_id_of_another_dtype_is_refused() {
        for (dtype, id) in [(DType::U8, 256), (DType::U16, 1 << 16), (DType::U32, -1), (DType::I32, 1 << 31)]
        {
            assert_eq!(Id::new(dtype, id).err().unwrap().kind(), Kind::Config);
        }
        assert!(Id::new(DType::U32, 0xffff_ffff).is_ok());
    }
}
