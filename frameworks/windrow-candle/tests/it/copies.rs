//! One copy for each tensor, counted where memory is handed out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::sync::Arc;

use candle_core::Device;
use windrow::dev::collate::{Batch, Field, Pool};
use windrow::{Buffer, DType};
use windrow_candle::ToCandle;

/// Blocks below this are names, shapes and handles.
const LARGE: usize = 4096;

thread_local! {
    /// Sizes of the large blocks that this thread took.
    static TAKEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

struct Counting;

fn count(size: usize) {
    if size >= LARGE {
        // Where the vector itself grows, or the thread ends, nothing is counted.
        let _ = TAKEN.try_with(|taken| taken.try_borrow_mut().map(|mut taken| taken.push(size)));
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `System`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the block came from `System`.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn taken<T>(work: impl FnOnce() -> T) -> (T, Vec<usize>) {
    TAKEN.with_borrow_mut(Vec::clear);
    let done = work();
    (done, TAKEN.with_borrow_mut(std::mem::take))
}

fn fields() -> Arc<[Field]> {
    Arc::new([Field::new("input_ids", DType::I64, [512]), Field::new("loss_masks", DType::I32, [512])])
}

#[test]
fn a_tensor_takes_one_block_of_its_own_size() {
    let (_, seen) = taken(|| Buffer::zeroed(LARGE));
    assert_eq!(seen, [LARGE], "the counter does not count");
    let batch = Batch::new(fields(), 8, None).unwrap();
    let (ids, seen) = taken(|| batch.tensor("input_ids", &Device::Cpu).unwrap());
    assert_eq!(seen, [8 * 512 * 8]);
    let (masks, seen) = taken(|| batch.tensor("loss_masks", &Device::Cpu).unwrap());
    assert_eq!(seen, [8 * 512 * 4]);
    drop((ids, masks));
}

#[test]
fn a_tensor_outlives_its_batch_whose_memory_is_used_again() {
    let pool = Pool::new(1);
    let mut batch = Batch::new(fields(), 8, Some(&pool)).unwrap();
    batch.bytes_mut(0).fill(1);
    let memory = batch.bytes(0).as_ptr();
    let ids = batch.tensor("input_ids", &Device::Cpu).unwrap();
    drop(batch);

    let (mut later, seen) = taken(|| Batch::new(fields(), 8, Some(&pool)).unwrap());
    assert!(seen.is_empty(), "{seen:?}");
    assert_eq!(later.bytes(0).as_ptr(), memory);
    later.bytes_mut(0).fill(2);
    let values = ids.flatten_all().unwrap().to_vec1::<i64>().unwrap();
    assert!(values.iter().all(|value| *value == i64::from_le_bytes([1; 8])));
}
