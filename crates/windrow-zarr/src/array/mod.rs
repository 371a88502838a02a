//! A zarr array of one dimension, v2 or v3, read by position: chunks where they lie, or decoded pieces of them.

mod ahead;
mod chunks;

use std::sync::Arc;

use windrow_core::source::{FileInfo, Location};
use windrow_core::store::{self, Object, Store, at_once, read_small};
use windrow_core::{DType, Element, Error, Kind, Result, touch};
use zarrs::array::ArrayMetadata;
use zarrs::array::codec::CodecChain;
use zarrs::metadata::v3::MetadataV3;
use zarrs::metadata_ext::codec::sharding::{ShardingCodecConfiguration, ShardingIndexLocation};

use self::chunks::Chunks;
use crate::cache::{Cache, Key};
use crate::chain::Chain;
use crate::layout::METADATA_V3;
use crate::metadata::{self, MOST_METADATA};
use crate::piece::Piece;

/// Chunks of a size beyond this are no chunks.
pub(crate) const MOST_CHUNK: u64 = 1 << 31;

/// An array of one dimension.
pub(crate) struct Array {
    store: Arc<dyn Store>,
    folder: String,
    len: u64,
    element: Element,
    chunk_len: u64,
    layout: Layout,
    has_delta: bool,
    /// One value, in place of those of a chunk that is not there.
    fill: Vec<u8>,
    metadata: Arc<dyn Object>,
    chunks: Chunks,
    cache: Arc<Cache>,
    number: u8,
    /// Each read may ask another machine.
    is_far: bool,
}

/// A part of a chunk that is decoded at once, in bytes of what the chunk decodes to.
struct PiecePlace {
    key: Key,
    from: u64,
    size: u64,
}

enum Layout {
    Whole(Chain),
    Sharded(Shards),
}

/// Chunks within a chunk, and the table that says where they lie.
struct Shards {
    inner: Chain,
    inner_size: u64,
    index: Chain,
    /// Stored, with its checksum.
    index_size: u64,
    index_first: bool,
}

/// What an array is asked to be, and how its chunks are taken.
pub(crate) struct Wanted {
    pub(crate) dtype: DType,
    pub(crate) accepts_missing: bool,
    /// Tells the arrays of one cache apart.
    pub(crate) number: u8,
}

impl Array {
    /// The array in `folder`.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` for damaged metadata, a wrong dtype or shape, a missing or cut chunk; `Unsupported`
    /// for codecs that are not known.
    pub(crate) fn open(
        store: &Arc<dyn Store>,
        folder: &str,
        wanted: &Wanted,
        cache: &Arc<Cache>,
    ) -> Result<Array> {
        let metadata = metadata::open(store.as_ref(), folder)?;
        let said = |e: Error| e.or_at(metadata.name());
        let text = read_small(metadata.as_ref(), MOST_METADATA)?;
        let (described, has_delta) =
            metadata::parse(&text, metadata.name().ends_with(METADATA_V3)).map_err(said)?;
        let sharding = match &described {
            ArrayMetadata::V3(v3) => v3.codecs.iter().find(|c| c.name() == "sharding_indexed").cloned(),
            ArrayMetadata::V2(_) => None,
        };
        let (len, chunk_len) = metadata::one_dimension(&described).map_err(said)?;
        let chunk_len = chunk_len.get();
        let zarr = zarrs::array::Array::new_with_metadata(Arc::new(()), "/", described)
            .map_err(|e| said(Error::unsupported("the array cannot be read").caused_by(e)))?;
        let dtype = metadata::dtype_of(zarr.data_type());
        if dtype != Some(wanted.dtype) {
            let found = zarr.data_type();
            return Err(said(
                Error::corrupt(format!("dtype {found}, expected {}", wanted.dtype)).field("dtype"),
            ));
        }
        let width = wanted.dtype.size() as u64;
        let chunk_size =
            chunk_len.checked_mul(width).filter(|size| *size <= MOST_CHUNK).ok_or_else(|| {
                said(Error::unsupported(format!("chunks of {chunk_len} numbers")).field("chunks"))
            })?;
        let layout = match sharding {
            None => Layout::Whole(Chain::new(&zarr.codecs(), chunk_size).map_err(said)?),
            Some(sharding) => {
                if zarr.codecs().bytes_to_bytes_codecs().is_empty()
                    && zarr.codecs().array_to_array_codecs().is_empty()
                {
                    Layout::Sharded(Shards::new(&sharding, chunk_size, width).map_err(said)?)
                } else {
                    return Err(said(
                        Error::unsupported("shards that are encoded once more").field("codecs"),
                    ));
                }
            }
        };
        let big_endian = match &layout {
            Layout::Whole(chain) => chain.big_endian,
            Layout::Sharded(shards) => shards.inner.big_endian,
        };
        if has_delta && big_endian {
            return Err(said(Error::unsupported("differences of big-endian numbers").field("filters")));
        }
        let mut fill = zarr.fill_value().as_ne_bytes().to_vec();
        if big_endian != cfg!(target_endian = "big") {
            fill.reverse();
        }
        let n_chunks = len.div_ceil(chunk_len);
        let chunks = Chunks::find(store.as_ref(), folder, n_chunks, wanted.accepts_missing, |i| {
            zarr.chunk_key(&[i]).as_str().to_string()
        })?;
        let array = Array {
            store: store.clone(),
            folder: folder.to_string(),
            len,
            element: Element { dtype: wanted.dtype, big_endian },
            chunk_len,
            layout,
            has_delta,
            fill,
            metadata,
            chunks,
            cache: cache.clone(),
            number: wanted.number,
            is_far: store::is_url(store.display(folder)),
        };
        array.check_sizes()?;
        // One that is not full: appending leaves the others as they are.
        if !len.is_multiple_of(chunk_len)
            && let Some(last) = array.chunks.get(n_chunks - 1)?
        {
            last.hold(store.as_ref())?;
        }
        Ok(array)
    }

    /// Number of values.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Type and byte order of what [`Array::read`] gives.
    pub(crate) fn element(&self) -> Element {
        self.element
    }

    /// What a person calls it.
    pub(crate) fn name(&self) -> String {
        self.store.display(&self.folder)
    }

    fn width(&self) -> u64 {
        self.element.size() as u64
    }

    fn chunk_size(&self) -> u64 {
        self.chunk_len * self.width()
    }

    /// Numbers `start..start + count`: borrowed where one chunk holds them as they are, else copied into `scratch`.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` and `Io` naming the chunk.
    pub(crate) fn read<'a>(&'a self, start: u64, count: u64, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let end = start.checked_add(count).filter(|end| *end <= self.len).ok_or_else(|| {
            Error::new(Kind::OutOfRange, format!("values {start}+{count} of {}", self.len)).at(self.name())
        })?;
        if count == 0 {
            return Ok(&[]);
        }
        let chunk = start / self.chunk_len;
        if (end - 1) / self.chunk_len == chunk && self.is_plain() {
            let at = start % self.chunk_len * self.width();
            if let Some(object) = self.lasting(chunk)? {
                return object.read(at, (count * self.width()) as usize, scratch);
            }
        }
        let (start, end) = (start * self.width(), end * self.width());
        let mut at = start;
        while at < end {
            let chunk = at / self.chunk_size();
            let from = at % self.chunk_size();
            let most = (end - at).min(self.chunk_size() - from);
            at += self
                .copy(chunk, from, most, (at - start) as usize, scratch)
                .map_err(|e| self.at_chunk(e, chunk))?;
        }
        scratch.truncate((end - start) as usize);
        Ok(scratch)
    }

    /// Files that hold numbers `start..start + count`: exact bytes where they lie as they are, else the chunk.
    pub(crate) fn locate(&self, start: u64, count: u64) -> Result<Vec<Location>> {
        let mut found = Vec::new();
        let (mut at, end) = (start * self.width(), start.saturating_add(count) * self.width());
        while at < end {
            let chunk = at / self.chunk_size();
            let from = at % self.chunk_size();
            let most = (end - at).min(self.chunk_size() - from);
            let (first, size) = match &self.layout {
                Layout::Whole(chain) if chain.is_plain() => (from, most),
                Layout::Whole(_) => (0, self.chunks.get(chunk)?.map_or(0, |c| c.size)),
                Layout::Sharded(shards) => {
                    let object = self.object(chunk)?;
                    let inner = from / shards.inner_size;
                    match object.map(|o| self.inner_place(shards, chunk, inner, o.as_ref())).transpose()? {
                        Some(Some(place)) => place,
                        _ => (0, 0),
                    }
                }
            };
            let step = match &self.layout {
                Layout::Sharded(shards) => most.min(shards.inner_size - from % shards.inner_size),
                Layout::Whole(_) => most,
            };
            // The values of a chunk that is missing are in no file.
            if let Some(chunk) = self.chunks.get(chunk)? {
                found.push(Location { file: self.store.display(&chunk.key), start: first, size });
            }
            at += step;
        }
        Ok(found)
    }

    /// Its metadata and chunks.
    pub(crate) fn files(&self) -> impl Iterator<Item = FileInfo> + '_ {
        let metadata = FileInfo { file: self.metadata.name().to_string(), size: self.metadata.size() };
        let file = |key: &str, size| FileInfo { file: self.store.display(key), size };
        let chunks = self.chunks.iter().map(move |(_, chunk)| file(&chunk.key, chunk.size));
        std::iter::once(metadata).chain(chunks)
    }

    /// What decides the numbers, for a hash: metadata, sizes, and the ends of some chunks.
    pub(crate) fn fingerprint(&self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        const SAMPLED: usize = 64;
        let mut scratch = Vec::new();
        take(&read_small(self.metadata.as_ref(), MOST_METADATA)?);
        for (number, chunk) in self.chunks.iter() {
            if !self.chunks.is_complete() {
                take(&number.to_le_bytes());
            }
            take(&chunk.size.to_le_bytes());
        }
        let apart = self.chunks.len().div_ceil(SAMPLED).max(1);
        for (_, chunk) in self.chunks.iter().step_by(apart) {
            let object = chunk.open(self.store.as_ref())?;
            let part = object.size().min(4096);
            for start in [0, object.size() - part] {
                take(object.read(start, part as usize, &mut scratch)?);
            }
        }
        Ok(())
    }

    /// Tells the store that numbers come soon: where they lie as they are, and of data on another machine the whole chunk that they
    /// are decoded from.
    pub(crate) fn prefetch(&self, start: u64, count: u64) {
        if !self.is_far || self.is_plain() {
            return self.plain_part(start, count, |object, at, size| object.prefetch(at, size));
        }
        // Of a larger one parts are read, and nobody knows which before its table is here.
        const MOST: u64 = 16 << 20;
        let last = start.saturating_add(count.saturating_sub(1));
        for chunk in start / self.chunk_len..=last / self.chunk_len {
            if let Ok(Some(object)) = self.lasting(chunk)
                && object.size() <= MOST
            {
                object.prefetch(0, object.size());
            }
        }
    }

    /// Tells the processor that numbers come soon; of pieces, where they are decoded.
    pub(crate) fn touch(&self, start: u64, count: u64) {
        if self.is_plain() {
            return self.plain_part(start, count, |object, at, size| object.touch(at, size));
        }
        let (chunk, from) = (start / self.chunk_len, start % self.chunk_len * self.width());
        if let Some(size) = self.piece_size(chunk)
            && let place = self.piece(chunk, from, size)
            && let Some(piece) = self.cache.peek(place.key)
        {
            let from = from - place.from;
            let size = count.saturating_mul(self.width()).min(place.size - from);
            touch(piece.behind(from as usize, size as usize));
        }
    }

    fn plain_part(&self, start: u64, count: u64, then: impl Fn(&dyn Object, u64, u64)) {
        if self.is_plain()
            && start < self.len
            && let Ok(Some(object)) = self.lasting(start / self.chunk_len)
        {
            then(object, start % self.chunk_len * self.width(), count.saturating_mul(self.width()));
        }
    }

    // The numbers are in the chunks as they are.
    fn is_plain(&self) -> bool {
        matches!(&self.layout, Layout::Whole(chain) if chain.is_plain()) && !self.has_delta
    }

    // Copies what is in a chunk from byte `from` on, as much as one piece has of it and `most` bytes at most, to a place
    // of `out`; how many bytes that is. What was in `out` is overwritten, and it grows only by what is there.
    fn copy(&self, chunk: u64, from: u64, most: u64, place: usize, out: &mut Vec<u8>) -> Result<u64> {
        let Some(object) = self.object(chunk)? else {
            out.truncate(place);
            out.extend_from_slice(&self.fill.repeat((most / self.width()) as usize));
            return Ok(most);
        };
        let mut scratch = Vec::new();
        if self.is_plain() {
            out.truncate(place);
            out.extend_from_slice(object.read(from, most as usize, &mut scratch)?);
            return Ok(most);
        }
        let piece_size = match (&self.layout, self.piece_size(chunk)) {
            (_, Some(size)) => size,
            (Layout::Sharded(shards), None) => shards.inner_size,
            (Layout::Whole(chain), None) => {
                let size = store::whole(|| chain.piece_size(whole(object.as_ref(), &mut scratch)?))?;
                self.chunks.get(chunk)?.map_or(size, |chunk| *chunk.piece_size.get_or_init(|| size))
            }
        };
        let wanted = self.piece(chunk, from, piece_size);
        let piece = self.decoded(&wanted, object.as_ref())?;
        let from = from - wanted.from;
        let end = place + most.min(wanted.size - from) as usize;
        if out.len() < end {
            out.resize(end, 0);
        }
        // The piece is as long as was asked for: it was checked where it was decoded.
        piece.copy_to(from as usize, &mut out[place..end]);
        Ok((end - place) as u64)
    }

    fn decoded(&self, place: &PiecePlace, object: &dyn Object) -> Result<Arc<Piece>> {
        let mut scratch = Vec::new();
        self.cache.get(place.key, || match &self.layout {
            Layout::Whole(chain) => {
                let stored = whole(object, &mut scratch)?;
                if !self.has_delta {
                    return chain.piece(stored, place.from, place.size);
                }
                let mut bytes = chain.decode(stored, place.from, place.size)?;
                add_up(&mut bytes, self.element.size());
                Ok(Piece::numbers(bytes))
            }
            Layout::Sharded(shards) => self.inner(shards, place.key.1, place.key.2, object),
        })
    }

    // The piece that holds byte `from` of a chunk.
    fn piece(&self, chunk: u64, from: u64, size: u64) -> PiecePlace {
        let number = from / size;
        let from = number * size;
        PiecePlace { key: (self.number, chunk, number), from, size: size.min(self.chunk_size() - from) }
    }

    // Bytes of a chunk's pieces, never 0, where it is known without looking at the chunk.
    fn piece_size(&self, chunk: u64) -> Option<u64> {
        match &self.layout {
            // Sums need all differences before them, but none of the padding behind.
            Layout::Whole(_) if self.has_delta => {
                let values = self.len.checked_sub(chunk.checked_mul(self.chunk_len)?)?.min(self.chunk_len);
                (values > 0).then_some(values * self.width())
            }
            Layout::Whole(_) => self.chunks.get(chunk).ok()??.piece_size.get().copied(),
            Layout::Sharded(shards) => Some(shards.inner_size),
        }
    }

    fn inner(&self, shards: &Shards, chunk: u64, inner: u64, object: &dyn Object) -> Result<Piece> {
        let Some((start, size)) = self.inner_place(shards, chunk, inner, object)? else {
            // The index says that it holds nothing else: no file was lost.
            return Ok(Piece::numbers(self.fill.repeat((shards.inner_size / self.width()) as usize)));
        };
        let mut scratch = Vec::new();
        let stored = object.read(start, size as usize, &mut scratch)?;
        shards.inner.piece(stored, 0, shards.inner_size).map_err(|e| e.byte(start))
    }

    // Where an inner chunk is in its shard; `None` where it is empty.
    fn inner_place(
        &self,
        shards: &Shards,
        chunk: u64,
        inner: u64,
        object: &dyn Object,
    ) -> Result<Option<(u64, u64)>> {
        let kept = self.cache.get((self.number, chunk, u64::MAX), || {
            let start = if shards.index_first { 0 } else { object.size().saturating_sub(shards.index_size) };
            let mut scratch = Vec::new();
            let stored = object.read(start, shards.index_size as usize, &mut scratch)?;
            let size = self.chunk_size() / shards.inner_size * 16;
            let index = shards.index.decode(stored, 0, size);
            index.map(Piece::numbers).map_err(|e| e.byte(start).field("shard index"))
        })?;
        let index = kept.as_numbers().unwrap_or(&[]);
        let number = |at: u64| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&index[at as usize..at as usize + 8]);
            if shards.index.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
        };
        let (start, size) = (number(inner * 16), number(inner * 16 + 8));
        if (start, size) == (u64::MAX, u64::MAX) {
            return Ok(None);
        }
        match start.checked_add(size) {
            Some(end) if end <= object.size() => Ok(Some((start, size))),
            _ => Err(Error::corrupt(format!(
                "inner chunk {inner} is declared to be {size} bytes from byte {start} on, of {}",
                object.size()
            ))
            .field("shard index")),
        }
    }

    // The chunk, where it stays open as long as the array does.
    fn lasting(&self, chunk: u64) -> Result<Option<&dyn Object>> {
        let Some(chunk) = self.chunks.get(chunk)? else { return Ok(None) };
        Ok(chunk.lasting(self.store.as_ref())?.map(Arc::as_ref))
    }

    // The chunk, opened; `None` where a missing one is accepted.
    fn object(&self, chunk: u64) -> Result<Option<Arc<dyn Object>>> {
        self.chunks.get(chunk)?.map(|chunk| chunk.open(self.store.as_ref())).transpose()
    }

    fn at_chunk(&self, error: Error, chunk: u64) -> Error {
        match self.chunks.get(chunk) {
            Ok(Some(found)) => error.or_at(self.store.display(&found.key)),
            _ => error,
        }
    }

    // What must be there whatever the numbers are.
    fn check_sizes(&self) -> Result<()> {
        for (_, chunk) in self.chunks.iter() {
            let size = chunk.size;
            let is_right = match &self.layout {
                Layout::Whole(chain) if chain.is_plain() => size == self.chunk_size(),
                Layout::Whole(_) => size > 0,
                Layout::Sharded(shards) => size >= shards.index_size,
            };
            if !is_right {
                let least = match &self.layout {
                    Layout::Sharded(shards) => format!("at least the {} of its index", shards.index_size),
                    Layout::Whole(_) => self.chunk_size().to_string(),
                };
                return Err(Error::corrupt(format!("the chunk has {size} bytes, expected {least}"))
                    .at(self.store.display(&chunk.key))
                    .hint("the copy looks unfinished"));
            }
        }
        Ok(())
    }
}

impl Shards {
    fn new(sharding: &MetadataV3, chunk_size: u64, width: u64) -> Result<Shards> {
        let refused = |why: String| Error::unsupported(why).field("sharding_indexed");
        let ShardingCodecConfiguration::V1(said) =
            sharding.to_typed_configuration().map_err(|e| refused(e.to_string()))?
        else {
            return Err(refused("a version of shards that is not known".to_string()));
        };
        let chain = |codecs: &[MetadataV3], size| {
            let codecs = CodecChain::from_metadata(codecs).map_err(|e| refused(e.to_string()))?;
            Chain::new(&codecs, size)
        };
        let inner_size = match said.chunk_shape.first().map(|n| n.get().checked_mul(width)) {
            Some(Some(size)) if said.chunk_shape.len() == 1 && chunk_size.is_multiple_of(size) => size,
            _ => return Err(refused(format!("inner chunks of {:?}", said.chunk_shape))),
        };
        let index = chain(&said.index_codecs, chunk_size / inner_size * 16)?;
        let index_size = index
            .stored_size()
            .ok_or_else(|| refused("an index whose size depends on what it says".to_string()))?;
        Ok(Shards {
            inner: chain(&said.codecs, inner_size)?,
            inner_size,
            index,
            index_size,
            index_first: said.index_location == ShardingIndexLocation::Start,
        })
    }
}

fn whole<'a>(object: &'a dyn Object, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    object.read(0, at_once(object.size())?, scratch)
}

/// Sums in place of differences, little-endian.
fn add_up(bytes: &mut [u8], width: usize) {
    let mut sum = 0u64;
    for place in bytes.chunks_exact_mut(width) {
        let mut number = [0; 8];
        number[..width].copy_from_slice(place);
        // Differences may be negative: what does not fit the width is cut, as it was when they were taken.
        sum = sum.wrapping_add(u64::from_le_bytes(number));
        place.copy_from_slice(&sum.to_le_bytes()[..width]);
    }
}
