//! A decoded part of a chunk, ready to give any of its values.

/// Numbers one after the other, or planes of their bits, of which a few values are put together as they are asked for.
pub(crate) struct Piece {
    bytes: Vec<u8>,
    planes: Option<Planes>,
}

/// Of what planes are; those behind the last one with a bit in it are left out.
#[derive(Clone, Copy)]
struct Planes {
    value_size: usize,
    plane_size: usize,
}

/// Sizes of values whose planes are put together here.
pub(crate) const VALUE_SIZES: [usize; 4] = [1, 2, 4, 8];
/// Values that are put together at a time: as many 64-bit words of each plane as a vector register holds.
const GROUP: usize = 64 * WORDS;
const WORDS: usize = 4;

impl Piece {
    /// Numbers as an array holds them.
    pub(crate) fn numbers(bytes: Vec<u8>) -> Piece {
        Piece { bytes, planes: None }
    }

    /// Bit 0 of all values, then bit 1, and so on; of a multiple of eight values, of one of the [`VALUE_SIZES`].
    pub(crate) fn planes(bytes: &[u8], value_size: usize) -> Piece {
        let plane_size = bytes.len() / (8 * value_size);
        // Without a way out in the middle of a plane: this is done with wide registers.
        let is_empty = |plane: &[u8]| plane.iter().fold(0, |any, byte| any | byte) == 0;
        let used = match plane_size {
            0 => 0,
            size => bytes.chunks(size).rposition(|plane| !is_empty(plane)).map_or(0, |last| last + 1),
        };
        let bytes = bytes[..used * plane_size].to_vec();
        Piece { bytes, planes: Some(Planes { value_size, plane_size }) }
    }

    /// How many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Numbers that lie as they are; no planes.
    pub(crate) fn as_numbers(&self) -> Option<&[u8]> {
        self.planes.is_none().then_some(&self.bytes)
    }

    /// Appends bytes `from..from + size` of the numbers; the caller has held both against what was decoded.
    pub(crate) fn append(&self, from: usize, size: usize, out: &mut Vec<u8>) {
        let Some(planes) = self.planes else {
            out.extend_from_slice(&self.bytes[from..from + size]);
            return;
        };
        let value_size = planes.value_size;
        let (first, end) = (from / value_size, (from + size).div_ceil(value_size));
        // Values are found from a multiple of eight on.
        let aligned = first / 8 * 8;
        let at = out.len();
        let skipped = from - aligned * value_size;
        let whole = (end - aligned).next_multiple_of(GROUP) * value_size;
        out.resize(at + whole, 0);
        put_together(&self.bytes, planes, aligned, &mut out[at..]);
        out.copy_within(at + skipped..at + skipped + size, at);
        out.truncate(at + size);
    }
}

/// Values from `first` on, until `out` is full or there are no more; `first` is a multiple of eight, `out` of groups.
fn put_together(bytes: &[u8], planes: Planes, first: usize, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { put_together_avx2(bytes, planes, first, out) };
    }
    by_size(bytes, planes, first, out);
}

/// The same code with wider registers.
///
/// # Safety
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn put_together_avx2(bytes: &[u8], planes: Planes, first: usize, out: &mut [u8]) {
    by_size(bytes, planes, first, out);
}

#[inline(always)]
fn by_size(bytes: &[u8], planes: Planes, first: usize, out: &mut [u8]) {
    let Planes { value_size, plane_size } = planes;
    match value_size {
        1 => of_size::<1>(bytes, plane_size, first, out),
        2 => of_size::<2>(bytes, plane_size, first, out),
        4 => of_size::<4>(bytes, plane_size, first, out),
        _ => of_size::<8>(bytes, plane_size, first, out),
    }
}

#[inline(always)]
fn of_size<const SIZE: usize>(bytes: &[u8], plane_size: usize, first: usize, out: &mut [u8]) {
    for (g, values) in out.chunks_exact_mut(GROUP * SIZE).enumerate() {
        let at = first / 8 + g * 8 * WORDS;
        let mut columns = [[0u8; GROUP]; SIZE];
        for (byte, column) in columns.iter_mut().enumerate() {
            let mut rows = [[0u64; WORDS]; 8];
            let mut any = 0;
            for (bit, row) in rows.iter_mut().enumerate() {
                let start = (byte * 8 + bit) * plane_size;
                let plane = bytes.get(start + at.min(plane_size)..start + plane_size);
                *row = words(plane.unwrap_or(&[]));
                any |= row.iter().fold(0, |any, word| any | word);
            }
            // The upper bytes of ids are mostly zero.
            if any == 0 {
                continue;
            }
            transpose(&mut rows);
            // Word w of row j holds a byte of each of the values 64 w + 8 j on.
            for (j, row) in rows.iter().enumerate() {
                for (w, word) in row.iter().enumerate() {
                    column[64 * w + 8 * j..][..8].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
        for (i, value) in values.chunks_exact_mut(SIZE).enumerate() {
            for (byte, column) in columns.iter().enumerate() {
                value[byte] = column[i];
            }
        }
    }
}

#[inline(always)]
fn words(plane: &[u8]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    match plane.first_chunk::<{ 8 * WORDS }>() {
        Some(bytes) => {
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        None => {
            let mut bytes = [0; 8 * WORDS];
            bytes[..plane.len()].copy_from_slice(plane);
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
    }
    words
}

/// From bit i of 64 values in word i to values of eight bits: bytes change places with words, then with their bits.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "two rows at once; in place this is half again as fast as by copies"
)]
fn transpose(rows: &mut [[u64; WORDS]; 8]) {
    for (distance, mask) in
        [(4, 0x0000_0000_ffff_ffff_u64), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)]
    {
        let shift = 8 * distance as u32;
        for i in (0..8).filter(|i| i & distance == 0) {
            for w in 0..WORDS {
                let (a, b) = (rows[i][w], rows[i + distance][w]);
                let changed = ((a >> shift) ^ b) & mask;
                rows[i][w] = a ^ (changed << shift);
                rows[i + distance][w] = b ^ changed;
            }
        }
    }
    for row in rows {
        for (shift, mask) in
            [(7, 0x00aa_00aa_00aa_00aa_u64), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
        {
            for word in row.iter_mut() {
                let changed = (*word ^ (*word >> shift)) & mask;
                *word ^= changed ^ (changed << shift);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(values: &[u8], value_size: usize) -> Vec<u8> {
        let n = values.len() / value_size;
        let mut planes = vec![0; values.len()];
        for (i, value) in values.chunks(value_size).enumerate() {
            for bit in 0..8 * value_size {
                planes[bit * n / 8 + i / 8] |= (value[bit / 8] >> (bit % 8) & 1) << (i % 8);
            }
        }
        planes
    }

    #[test]
    fn any_part_of_planes_is_that_of_the_numbers() {
        let mut random = fastrand::Rng::with_seed(1);
        for (n, value_size) in [(8, 4), (64, 4), (1000, 4), (1024, 8), (4096, 4), (72, 2), (256, 1)] {
            let mut values: Vec<u8> = (0..n * value_size).map(|_| random.u8(..)).collect();
            if n == 4096 {
                values.chunks_mut(4).for_each(|value| value[2..].fill(0));
            }
            let piece = Piece::planes(&shuffled(&values, value_size), value_size);
            for _ in 0..200 {
                let from = random.usize(..values.len());
                let size = random.usize(..=values.len() - from);
                let mut out = vec![7; 3];
                piece.append(from, size, &mut out);
                assert_eq!(out[3..], values[from..from + size], "{from}+{size} of {n} times {value_size}");
            }
        }
    }
}
