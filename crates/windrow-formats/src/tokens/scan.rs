//! Where one id is in a file of IDs: looked for on all cores, told in order.

use std::ops::{BitOr, Not};
use std::sync::mpsc::sync_channel;
use std::thread::Builder;

use windrow_core::store::Object;
use windrow_core::threads::cores;
use windrow_core::{DType, Error, Kind, Result};

/// Ids that a thread looks at before it hands on what it found. Where all of them are the one that is looked for, that
/// is 2 MiB of places.
const PART: u64 = 512 << 10;
/// Parts that wait for each thread until they are passed on: few, as that is faster than finding them.
const WAITING: usize = 2;

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
        if dtype.holds(id) {
            Ok(Id { dtype, bits: id as u64 })
        } else {
            Err(Error::config(format!("the EOS token {id} does not fit {dtype}"))
                .field("document_eos")
                .hint("is @dtype@ the one that the token IDs were written in?"))
        }
    }

    /// Appends the places of the ID among little-endian IDs, counted in IDs.
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

fn find<const WIDTH: usize, T: Copy + PartialEq + Default + BitOr<Output = T> + Not<Output = T>>(
    bytes: &[u8],
    id: T,
    read: impl Fn([u8; WIDTH]) -> T,
    found: &mut Vec<u32>,
) {
    let none = T::default();
    // All bits or none, in the width of an ID: what a comparison of vectors gives.
    let among = |ids: &[[u8; WIDTH]]| {
        let any = |any, stored: &[u8; WIDTH]| any | if read(*stored) == id { !none } else { none };
        ids.iter().fold(none, any) != none
    };
    let (blocks, rest) = bytes.as_chunks::<WIDTH>().0.as_chunks::<BLOCK>();
    // A part holds fewer IDs than 32 bits count.
    let mut tell = |ids: &[[u8; WIDTH]], first: usize| {
        let places = ids.iter().enumerate().filter(|(_, stored)| read(**stored) == id);
        found.extend(places.map(|(at, _)| (first + at) as u32));
    };
    for (number, block) in blocks.iter().enumerate() {
        if among(block) {
            // A quarter at a time: where documents are short, most of a block holds no end.
            for (quarter, ids) in block.chunks(BLOCK / 4).enumerate().filter(|(_, ids)| among(ids)) {
                tell(ids, number * BLOCK + quarter * (BLOCK / 4));
            }
        }
    }
    tell(rest, blocks.len() * BLOCK);
}

/// Tells `each` the places of an ID in a file of whole IDs, in order: a base and what to add to it for each place.
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
    let places = |part: u64, scratch: &mut Vec<u8>| {
        let start = part * PART * width;
        let size = (PART * width).min(object.size() - start) as usize;
        let mut found = Vec::new();
        id.find(object.read(start, size, scratch)?, &mut found);
        Ok(found)
    };
    if parts <= 1 {
        return (0..parts).try_for_each(|part| each(part * PART, &places(part, &mut Vec::new())?));
    }
    let threads = (cores() as u64).min(parts);
    std::thread::scope(|scope| {
        // Each thread takes every `threads`-th part and tells them in order, so all of them are in order in turns.
        let told: Vec<_> = (0..threads)
            .map(|thread| {
                let (tell, told) = sync_channel(WAITING);
                let tell_all = move || {
                    let mut scratch = Vec::new();
                    let mut parts = (thread..parts).step_by(threads as usize);
                    // Nobody listens after an error.
                    while parts.next().is_some_and(|part| tell.send(places(part, &mut scratch)).is_ok()) {}
                };
                Builder::new().name("windrow-scan".to_string()).spawn_scoped(scope, tell_all).map(|_| told)
            })
            .collect();
        let mut scratch = Vec::new();
        for (part, told) in (0..parts).zip(told.iter().cycle()) {
            let found = match told {
                Ok(told) => told
                    .recv()
                    .unwrap_or_else(|gone| Err(Error::new(Kind::Io, "a thread ended early").caused_by(gone))),
                // A thread that was refused: its parts are looked at here.
                Err(_) => places(part, &mut scratch),
            };
            each(part * PART, &found?)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::Kind;
    use windrow_core::store::{Memory, Store};

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
                // Ids whose single bytes are those of the EOS token, too.
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
        let n = 9 * PART + 3;
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
