//! Memory to numpy: arrays over a batch's own memory, and arrays of a record's values.

use std::ffi::{c_int, c_void};
use std::ptr;

use numpy::PyArrayDescr;
use numpy::npyffi::{
    NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, PyArrayObject,
    get_type_object, npy_intp,
};
use pyo3::prelude::*;
use windrow::dev::collate::{Batch, Field};
use windrow::dev::values::copy_values;
use windrow::{Array, DType, Error};
use windrow_core::{Result, Values};

use crate::python::dtype::descr;
use crate::python::error::{OrRaise, raise};

/// A batch that Python's arrays look into; its memory goes back to the pool when the last of them dies.
#[pyclass(frozen, module = "windrow._native")]
pub(crate) struct Memory {
    batch: Batch,
    // Where each field starts. Only the arrays handed out read or write there: Rust takes no reference to it again.
    starts: Vec<Start>,
}

struct Start(*mut c_void);

// SAFETY: the pointers lead into the batch beside them, which may move between threads; what is there is read and
// written by numpy alone, under its own rules.
unsafe impl Send for Start {}
// SAFETY: as above; this type gives out no reference to what it points at.
unsafe impl Sync for Start {}

impl Memory {
    /// Takes a batch for arrays to look into.
    pub(crate) fn new(py: Python<'_>, mut batch: Batch) -> PyResult<Bound<'_, Memory>> {
        let n_fields = batch.fields().len();
        let starts = (0..n_fields).map(|i| Start(batch.bytes_mut(i).as_mut_ptr().cast())).collect();
        Bound::new(py, Memory { batch, starts })
    }

    /// Names, dtypes and row shapes.
    pub(crate) fn fields(&self) -> &[Field] {
        self.batch.fields()
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.batch.rows()
    }
}

/// A whole field as a writable array `[rows, …]`, without a copy. `as_type` shows the bits as another dtype of that size.
pub(crate) fn field_array<'py>(
    memory: &Bound<'py, Memory>,
    field: usize,
    as_type: Option<DType>,
) -> PyResult<Bound<'py, PyAny>> {
    let inner = memory.get();
    let layout = &inner.fields()[field];
    let mut dims = Vec::with_capacity(1 + layout.shape.len());
    dims.push(inner.rows() as npy_intp);
    dims.extend(layout.shape.iter().map(|&n| n as npy_intp));
    let dtype = descr(memory.py(), as_type.unwrap_or(layout.dtype))?;
    // SAFETY: the field has `rows × row shape` numbers of its dtype, aligned to 64 bytes, and `memory` keeps them.
    unsafe { array_over(memory.as_any(), dtype, &mut dims, inner.starts[field].0, true) }
}

/// One row of a field as a writable array of the row's shape, without a copy.
pub(crate) fn row_array<'py>(
    memory: &Bound<'py, Memory>,
    field: usize,
    row: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let inner = memory.get();
    let layout = &inner.fields()[field];
    assert!(row < inner.rows(), "rows come from the batch itself");
    let mut dims: Vec<_> = layout.shape.iter().map(|&n| n as npy_intp).collect();
    // SAFETY: `row < rows`, so the row lies within the field's memory.
    let start = unsafe { inner.starts[field].0.byte_add(row * layout.row_size()) };
    // SAFETY: as for the whole field; a row starts at a whole number.
    unsafe { array_over(memory.as_any(), descr(memory.py(), layout.dtype)?, &mut dims, start, true) }
}

/// Bytes that an array looks into.
#[pyclass(frozen, module = "windrow._native")]
struct Owned {
    // Only the array reads or writes there.
    _bytes: Vec<u8>,
}

/// Below this a copy costs less than an owner.
const MOST_COPIED: usize = 1024;

/// Little-endian numbers as an array of their own; large ones keep the memory that they are in.
pub(crate) fn owned_array<'py>(
    py: Python<'py>,
    numbers: Array,
    is_writable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let Array { dtype, shape, mut bytes } = numbers;
    let mut dims: Vec<_> = shape.iter().map(|&n| n as npy_intp).collect();
    let start = bytes.as_mut_ptr();
    let is_whole = shape.iter().try_fold(dtype.size() as u64, |size, n| size.checked_mul(*n));
    if is_whole != Some(bytes.len() as u64) {
        let error = Error::corrupt(format!("{} bytes of {dtype} {shape:?}", bytes.len()));
        return Err(raise(py, &error));
    }
    if bytes.len() > MOST_COPIED && start.align_offset(dtype.size()) == 0 {
        let owner = Bound::new(py, Owned { _bytes: bytes })?;
        // SAFETY: the bytes stay where they are while they move into their owner; their number and place were checked.
        return unsafe {
            array_over(owner.as_any(), descr(py, dtype)?, &mut dims, start.cast(), is_writable)
        };
    }
    let (array, start) = new_array(py, dtype, &mut dims)?;
    // SAFETY: the array is new and has as many bytes; nobody else knows it yet.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast::<u8>(), bytes.len()) };
    if !is_writable {
        make_read_only(&array);
    }
    Ok(array)
}

// An array with memory of numpy's, and where that is.
fn new_array<'py>(
    py: Python<'py>,
    dtype: DType,
    dims: &mut [npy_intp],
) -> PyResult<(Bound<'py, PyAny>, *mut std::ffi::c_char)> {
    let descr = descr(py, dtype)?;
    // SAFETY: numpy takes the reference to the dtype and allocates the same number of numbers as the dims say.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            descr.into_ptr().cast(),
            dims.len() as c_int,
            dims.as_mut_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let start = (*array.as_ptr().cast::<PyArrayObject>()).fields.data;
        Ok((array, start))
    }
}

// Of an array that nobody else knows yet.
fn make_read_only(array: &Bound<'_, PyAny>) {
    // SAFETY: it is an array of numpy's.
    unsafe { (*array.as_ptr().cast::<PyArrayObject>()).fields.flags &= !NPY_ARRAY_WRITEABLE };
}

/// # Safety
/// `start` leads to as many numbers of the dtype as `dims` say, aligned for it, in memory that `owner` keeps.
unsafe fn array_over<'py>(
    owner: &Bound<'py, PyAny>,
    dtype: Bound<'py, PyArrayDescr>,
    dims: &mut [npy_intp],
    start: *mut c_void,
    is_writable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let writable = if is_writable { NPY_ARRAY_WRITEABLE } else { 0 };
    let flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | writable;
    // SAFETY: numpy takes the reference to the dtype; dims hold nd numbers; the caller vouches for the memory.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            dtype.into_ptr().cast(),
            dims.len() as c_int,
            dims.as_mut_ptr(),
            ptr::null_mut(),
            start,
            flags,
            ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        // SetBaseObject takes the reference, also when it fails.
        let based = PY_ARRAY_API.PyArray_SetBaseObject(
            py,
            array.as_ptr().cast::<PyArrayObject>(),
            owner.clone().into_ptr(),
        );
        if based < 0 { Err(PyErr::fetch(py)) } else { Ok(array) }
    }
}

/// Values as a read-only array `[T]` or `[T, C]` of `dtype`, in the machine's byte order.
pub(crate) fn value_array<'py>(
    py: Python<'py>,
    values: &Values<'_>,
    dtype: DType,
    has_channels: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let n_numbers = values.bytes.len() / values.element.size();
    let mut dims = vec![(n_numbers / values.channels.max(1)) as npy_intp];
    if has_channels {
        dims.push(values.channels as npy_intp);
    }
    let (array, start) = new_array(py, dtype, &mut dims)?;
    let size = n_numbers / values.channels.max(1) * values.channels * dtype.size();
    // SAFETY: the array is new and has that many bytes; nobody else knows it yet.
    let out = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), size) };
    py.detach(|| -> Result<()> { copy_values(values, 0, out, dtype) }).or_raise(py)?;
    make_read_only(&array);
    Ok(array)
}

/// What numpy makes of it; of a tensor of bfloat16, which numpy does not have, float32, which loses nothing.
pub(crate) fn as_array<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = given.py().import("numpy")?;
    let is_tensor = given.get_type().module()?.to_string_lossy().split('.').next() == Some("torch");
    let is_bfloat16 = is_tensor
        && given.hasattr("dtype")?
        && given.getattr("dtype")?.str()?.to_string_lossy() == "torch.bfloat16";
    if is_bfloat16 {
        let wide = given.call_method0("detach")?.call_method0("float")?.call_method0("cpu")?;
        numpy.call_method1("asarray", (wide,))
    } else {
        numpy.call_method1("asarray", (given,))
    }
}
