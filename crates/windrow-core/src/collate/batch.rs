//! A batch: named tensors in aligned memory that is used again once nobody holds it, or records as they are.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::array::{Buffer, DType};
use crate::error::{Error, Result};
use crate::row::Value;

/// One named tensor of a batch: `[rows, shape…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name: `input_ids`, `labels`, …
    pub name: Cow<'static, str>,
    /// Type of its numbers.
    pub dtype: DType,
    /// Shape of one row; empty for one number per row.
    pub shape: Vec<usize>,
}

impl Field {
    /// A field of one row's shape.
    pub fn new(name: impl Into<Cow<'static, str>>, dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        Field { name: name.into(), dtype, shape: shape.into() }
    }

    /// Numbers in one row.
    pub fn row_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of one row.
    pub fn row_size(&self) -> usize {
        self.row_len() * self.dtype.size()
    }
}

/// A column of a batch that cannot be a tensor: texts, bytes, lists.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// Its name.
    pub name: String,
    /// One value per row.
    pub values: Vec<Value>,
    /// Fields of the batch that are columns before it.
    pub n_fields_before: usize,
}

/// How the fields that a layout fills become those of a batch, where they are not the same: some are filled in the batch itself, others
/// in memory of one row, which the next row is filled in, too.
#[derive(Debug)]
pub(super) struct Staging {
    /// What the layout fills, and what is made of that.
    pub(super) filled: Arc<[Field]>,
    /// Of each of them the field of the batch that it is; `None` of those that are filled in memory of one row.
    pub(super) own: Vec<Option<usize>>,
    /// What leaves.
    pub(super) fields: Arc<[Field]>,
}

/// What leaves: named tensors `[rows, …]`, contiguous, 64-byte aligned, whose memory goes back to the pool on drop. Of a
/// view of rows instead a record for each row, or stacked their columns: tensors, and lists of what is not numbers.
pub struct Batch {
    fields: Arc<[Field]>,
    // Those of the fields, then those of one row of what is staged.
    buffers: Vec<Buffer>,
    staging: Option<Arc<Staging>>,
    rows: usize,
    pool: Option<Pool>,
    instead: Instead,
    lists: Vec<List>,
    // Counted where it is assembled, not where it is delivered.
    values_size: usize,
    // Values that fill its first tensor, and places for them; of codes their frames.
    filled: [u64; 2],
    // The same of texts beside them.
    filled_text: [u64; 2],
}

/// What a batch holds in place of tensors.
enum Instead {
    Nothing,
    Records(Vec<Value>),
    /// What a function made of its rows.
    Made(Box<dyn Any + Send + Sync>),
}

impl Batch {
    /// Memory for `rows` rows, from the pool where it has some. The content is undefined until every row is filled.
    ///
    /// # Errors
    /// `Memory` when there is not so much.
    pub fn new(fields: Arc<[Field]>, rows: usize, pool: Option<&Pool>) -> Result<Self> {
        Batch::with_staging(fields, None, rows, pool)
    }

    /// Memory for fields that are made of others; as [`Batch::new`].
    ///
    /// # Errors
    /// `Memory` when there is not so much.
    pub(super) fn staged(staging: &Arc<Staging>, rows: usize, pool: Option<&Pool>) -> Result<Self> {
        Batch::with_staging(staging.fields.clone(), Some(staging.clone()), rows, pool)
    }

    fn with_staging(
        fields: Arc<[Field]>,
        staging: Option<Arc<Staging>>,
        rows: usize,
        pool: Option<&Pool>,
    ) -> Result<Self> {
        let of_one_row = staging.iter().flat_map(|staging| staging.filled.iter().zip(&staging.own));
        let of_one_row = of_one_row.map(|(field, own)| (field, usize::from(own.is_none())));
        let sizes = || fields.iter().map(|field| (field, rows)).chain(of_one_row.clone());
        let mut buffers = pool.map(Pool::take).unwrap_or_default();
        buffers.resize_with(sizes().count(), || Buffer::zeroed(0));
        for (buffer, (field, rows)) in buffers.iter_mut().zip(sizes()) {
            let size = field.row_size().checked_mul(rows);
            if !size.is_some_and(|size| buffer.resize_within(size)) {
                *buffer = size.and_then(Buffer::try_zeroed).ok_or_else(|| {
                    let (name, row) = (&field.name, field.row_size());
                    Error::memory(format!("{rows} rows of {row} bytes of {name}"))
                        .hint("choose a smaller batch size or length")
                })?;
            }
        }
        Ok(Batch {
            fields,
            buffers,
            staging,
            rows,
            pool: pool.cloned(),
            instead: Instead::Nothing,
            lists: Vec::new(),
            values_size: 0,
            filled: [0; 2],
            filled_text: [0; 2],
        })
    }

    /// Records as they are, one for each row.
    pub fn of_records(records: Vec<Value>) -> Self {
        Batch {
            fields: Arc::new([]),
            buffers: Vec::new(),
            staging: None,
            rows: records.len(),
            pool: None,
            values_size: records.iter().map(Value::size).sum(),
            instead: Instead::Records(records),
            lists: Vec::new(),
            filled: [0; 2],
            filled_text: [0; 2],
        }
    }

    /// Adds these lists to the tensors.
    #[must_use]
    pub fn with_lists(mut self, lists: Vec<List>) -> Self {
        self.values_size = lists.iter().flat_map(|list| &list.values).map(Value::size).sum();
        self.lists = lists;
        self
    }

    /// Its counts without its contents: a batch that [`Batch::with_made`] completes.
    pub fn counted(&self) -> Batch {
        Batch {
            fields: Arc::new([]),
            buffers: Vec::new(),
            staging: None,
            rows: self.rows,
            pool: None,
            instead: Instead::Nothing,
            lists: Vec::new(),
            values_size: self.size(),
            filled: self.filled,
            filled_text: self.filled_text,
        }
    }

    /// Puts what a function made of the rows into a batch of their counts.
    #[must_use]
    pub fn with_made(mut self, made: Box<dyn Any + Send + Sync>) -> Batch {
        self.instead = Instead::Made(made);
        self
    }

    /// What a function made of its rows, to own.
    pub fn take_made(&mut self) -> Option<Box<dyn Any + Send + Sync>> {
        match std::mem::replace(&mut self.instead, Instead::Nothing) {
            Instead::Made(made) => Some(made),
            other => {
                self.instead = other;
                None
            }
        }
    }

    /// Names, dtypes and row shapes.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The records of a view of rows, one for each row; none of other views, and of stacked rows.
    pub fn records(&self) -> &[Value] {
        match &self.instead {
            Instead::Records(records) => records,
            Instead::Nothing | Instead::Made(_) => &[],
        }
    }

    /// The records, as [`Batch::records`] gives them, to own; `None` where rows are not records.
    pub fn take_records(&mut self) -> Option<Vec<Value>> {
        match std::mem::replace(&mut self.instead, Instead::Nothing) {
            Instead::Records(records) => Some(records),
            other => {
                self.instead = other;
                None
            }
        }
    }

    /// Columns of stacked rows that are not numbers.
    pub fn lists(&self) -> &[List] {
        &self.lists
    }

    /// The columns that are not numbers, to own.
    pub fn take_lists(&mut self) -> Vec<List> {
        std::mem::take(&mut self.lists)
    }

    /// The values of a column that is not numbers.
    ///
    /// # Errors
    /// `NotFound` when there is no such list.
    pub fn list(&self, name: &str) -> Result<&[Value]> {
        let found = self.lists.iter().find(|list| list.name == name);
        found.map(|list| &list.values[..]).ok_or_else(|| {
            let names: Vec<&str> = self.lists.iter().map(|list| list.name.as_str()).collect();
            Error::not_found(format!("the batch has no list {name:?}")).hint(format!("it has {names:?}"))
        })
    }

    /// Bytes of its tensors and values.
    pub fn size(&self) -> usize {
        self.fields.iter().map(|field| field.row_size() * self.rows).sum::<usize>() + self.values_size
    }

    /// Values that its first tensor holds along its rows, of codes their frames; the other positions are padding. 0 of records
    /// and columns.
    pub fn values(&self) -> u64 {
        self.filled[0]
    }

    /// Positions along the rows of its first tensor, of codes those for frames.
    pub fn positions(&self) -> u64 {
        self.filled[1]
    }

    /// Bytes of texts that lie beside codes; the other positions of texts are padding.
    pub fn text_values(&self) -> u64 {
        self.filled_text[0]
    }

    /// Positions of texts beside codes.
    pub fn text_positions(&self) -> u64 {
        self.filled_text[1]
    }

    // What a layout fills.
    fn of_layout(&self) -> &[Field] {
        self.staging.as_ref().map_or(&self.fields, |staging| &staging.filled)
    }

    // Notes the values that one of its rows is made of.
    pub(crate) fn note_values(&mut self, n_values: u64) {
        let positions =
            self.of_layout().first().and_then(|field| field.shape.first()).copied().unwrap_or(1) as u64;
        self.filled[0] += n_values.min(positions);
        self.filled[1] += positions;
    }

    /// The bytes of field number `field`.
    pub fn bytes(&self, field: usize) -> &[u8] {
        self.buffers[field].bytes()
    }

    /// The bytes of field number `field`, to write.
    pub fn bytes_mut(&mut self, field: usize) -> &mut [u8] {
        self.buffers[field].bytes_mut()
    }

    /// The numbers of a field.
    ///
    /// # Errors
    /// `NotFound` when there is no such field, `Mismatch` when `T` is not its dtype's size.
    pub fn get<T: bytemuck::Pod>(&self, name: &str) -> Result<&[T]> {
        let i = self.fields.iter().position(|f| f.name == name).ok_or_else(|| {
            Error::not_found(format!("the batch has no field {name:?}"))
                .hint(format!("it has {:?}", self.fields.iter().map(|f| &f.name).collect::<Vec<_>>()))
        })?;
        if self.fields[i].dtype.size() != size_of::<T>() {
            return Err(Error::mismatch(format!("field {name:?} holds {}", self.fields[i].dtype)));
        }
        Ok(bytemuck::cast_slice(self.bytes(i)))
    }

    /// Row `i`, to fill.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub fn row(&mut self, i: usize) -> Result<Row<'_>> {
        if i >= self.rows {
            return Err(Error::out_of_range("row", i, self.rows as u64));
        }
        Ok(Row { batch: self, row: i, is_noted: false })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give(std::mem::take(&mut self.buffers));
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch of {} rows: {:?}", self.rows, self.fields)?;
        self.lists.iter().try_for_each(|list| write!(f, ", list {:?}", list.name))
    }
}

/// One row of a batch, checked where it was born.
pub struct Row<'a> {
    batch: &'a mut Batch,
    row: usize,
    is_noted: bool,
}

impl Row<'_> {
    // The buffer that a field is filled in, and where the row is there.
    fn place(&self, field: usize) -> (usize, Range<usize>) {
        let size = self.batch.of_layout()[field].row_size();
        let own = self.batch.staging.as_ref().map_or(Some(field), |staging| staging.own[field]);
        match own {
            Some(own) => (own, self.row * size..(self.row + 1) * size),
            None => (self.batch.fields.len() + field, 0..size),
        }
    }

    /// The row's bytes of field number `field` of those that the layout fills.
    pub fn bytes(&mut self, field: usize) -> &mut [u8] {
        let (buffer, place) = self.place(field);
        &mut self.batch.buffers[buffer].bytes_mut()[place]
    }

    /// The row's numbers of field number `field`, whose dtype must have the size of `T`.
    pub fn numbers<T: bytemuck::Pod>(&mut self, field: usize) -> &mut [T] {
        bytemuck::cast_slice_mut(self.bytes(field))
    }

    /// The row's bytes of several fields, which are not the same ones.
    ///
    /// # Panics
    /// When a field is in `fields` twice, or is not a field of the batch.
    pub fn several<const N: usize>(&mut self, fields: [usize; N]) -> [&mut [u8]; N] {
        let places = fields.map(|field| self.place(field));
        self.at(places)
    }

    /// The row's bytes of a field that is staged, and of the one of the batch that is made of it.
    pub(super) fn staged(&mut self, filled: usize, field: usize) -> [&mut [u8]; 2] {
        let size = self.batch.fields[field].row_size();
        let places = [self.place(filled), (field, self.row * size..(self.row + 1) * size)];
        self.at(places)
    }

    fn at<const N: usize>(&mut self, places: [(usize, Range<usize>); N]) -> [&mut [u8]; N] {
        let buffers = places.each_ref().map(|(buffer, _)| *buffer);
        let buffers = self.batch.buffers.get_disjoint_mut(buffers).expect("fields of the batch, each once");
        let mut places = places.into_iter();
        buffers.map(|buffer| {
            let place = places.next().map_or(0..0, |(_, place)| place);
            &mut buffer.bytes_mut()[place]
        })
    }

    /// Its number in the batch.
    pub(super) fn number(&self) -> usize {
        self.row
    }

    /// dtype of field number `field`.
    pub fn dtype(&self, field: usize) -> DType {
        self.batch.of_layout()[field].dtype
    }

    /// Notes how many frames and bytes of text fill the row, and places along the fields that hold them.
    pub(super) fn note(&mut self, frames: (usize, usize), text: (usize, usize)) {
        self.is_noted = true;
        let positions = |field: usize| self.batch.of_layout()[field].shape.first().copied().unwrap_or(1);
        let [of_frames, of_text] = [frames.1, text.1].map(positions);
        for (filled, n_values, positions) in
            [(&mut self.batch.filled, frames.0, of_frames), (&mut self.batch.filled_text, text.0, of_text)]
        {
            filled[0] += n_values as u64;
            filled[1] += positions as u64;
        }
    }

    /// Notes the values that the row is made of.
    pub(super) fn note_values(&mut self, n_values: u64) {
        self.is_noted = true;
        self.batch.note_values(n_values);
    }

    /// Whether what fills the row was noted.
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted
    }
}

/// Memory of batches that were dropped, for the next ones.
#[derive(Clone)]
pub struct Pool(Arc<PoolInner>);

struct PoolInner {
    free: Mutex<Vec<Vec<Buffer>>>,
    most: usize,
    // A lock that another thread held while this process was forked never opens in the child.
    pid: u32,
}

impl Pool {
    /// A pool that keeps the memory of at most `most` batches.
    pub fn new(most: usize) -> Self {
        Pool(Arc::new(PoolInner { free: Mutex::new(Vec::new()), most, pid: std::process::id() }))
    }

    fn take(&self) -> Vec<Buffer> {
        if self.0.pid != std::process::id() {
            return Vec::new();
        }
        self.0.free.lock().ok().and_then(|mut free| free.pop()).unwrap_or_default()
    }

    fn give(&self, buffers: Vec<Buffer>) {
        if self.0.pid != std::process::id() {
            return;
        }
        if let Ok(mut free) = self.0.free.lock()
            && free.len() < self.0.most
        {
            free.push(buffers);
        }
    }
}
