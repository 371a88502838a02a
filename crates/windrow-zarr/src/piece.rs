//! A decoded part of a chunk, ready to give any of its values.

/// Numbers one after the other, or the planes of their bits, of which a few values are put together as they are asked for.
pub(crate) struct Piece {
    bytes: Vec<u8>,
    planes: Option<Planes>,
}

/// Of what planes are. A group of values has the same line of each of them, side by side: a row of values that is asked
/// for is in one place.
#[derive(Clone, Copy)]
struct Planes {
    value_size: usize,
    /// Those behind the last one with a bit in it are left out.
    used: usize,
}

/// Sizes of values whose planes are put together here.
pub(crate) const VALUE_SIZES: [usize; 4] = [1, 2, 4, MOST_VALUE_SIZE];
const MOST_VALUE_SIZE: usize = 8;
/// Values that are put together at a time: as many 64-bit words of each plane as a vector register holds.
const GROUP: usize = 64 * WORDS;
const WORDS: usize = 4;
/// Bytes of a plane in a group.
const LINE: usize = 8 * WORDS;

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
        let mut grouped = Vec::with_capacity(plane_size.div_ceil(LINE) * LINE * used);
        for start in (0..plane_size).step_by(LINE) {
            for plane in bytes.chunks(plane_size).take(used) {
                match plane[start..].first_chunk::<LINE>() {
                    Some(line) => grouped.extend_from_slice(line),
                    None => {
                        grouped.extend_from_slice(&plane[start..]);
                        grouped.resize(grouped.len().next_multiple_of(LINE), 0);
                    }
                }
            }
        }
        Piece { bytes: grouped, planes: Some(Planes { value_size, used }) }
    }

    /// How many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Numbers that lie as they are; no planes.
    pub(crate) fn as_numbers(&self) -> Option<&[u8]> {
        self.planes.is_none().then_some(&self.bytes)
    }

    /// Copies the bytes of the numbers from byte `from` on into `out`; the caller has compared both with what was decoded.
    pub(crate) fn copy_to(&self, from: usize, out: &mut [u8]) {
        let Some(planes) = self.planes else {
            out.copy_from_slice(&self.bytes[from..from + out.len()]);
            return;
        };
        let group_size = GROUP * planes.value_size;
        // Where a group begins before or ends behind what is asked for.
        let part_of = |group: usize, skipped: usize, out: &mut [u8]| {
            let mut whole = [0; GROUP * MOST_VALUE_SIZE];
            put_together(&self.bytes, planes, group, &mut whole[..group_size]);
            out.copy_from_slice(&whole[skipped..skipped + out.len()]);
        };
        let skipped = from % group_size;
        let head = if skipped == 0 { 0 } else { (group_size - skipped).min(out.len()) };
        let (head, rest) = out.split_at_mut(head);
        if !head.is_empty() {
            part_of(from / group_size, skipped, head);
        }
        let first = from.div_ceil(group_size);
        let (groups, tail) = rest.split_at_mut(rest.len() / group_size * group_size);
        put_together(&self.bytes, planes, first, groups);
        if !tail.is_empty() {
            part_of(first + groups.len() / group_size, 0, tail);
        }
    }

    /// The bytes that [`Piece::copy_to`] would read.
    pub(crate) fn behind(&self, from: usize, size: usize) -> &[u8] {
        let (start, end) = match self.planes {
            None => (from, from + size),
            Some(Planes { value_size, used }) => {
                let group_size = GROUP * value_size;
                (from / group_size * used * LINE, (from + size).div_ceil(group_size) * used * LINE)
            }
        };
        self.bytes.get(start..end).unwrap_or(&[])
    }
}

/// Values of whole groups, from group `first` on, until `out` is full.
fn put_together(bytes: &[u8], planes: Planes, first: usize, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { put_together_avx2(bytes, planes, first, out) };
    }
    by_size(bytes, planes, first, out);
}

/// Puts values together as [`put_together`] does, with wider registers.
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
    // Behind the last group where none is asked for.
    let groups = bytes.get(first * planes.used * LINE..).unwrap_or(&[]);
    match planes.value_size {
        1 => of_size::<1>(groups, planes.used, out),
        2 => of_size::<2>(groups, planes.used, out),
        4 => of_size::<4>(groups, planes.used, out),
        _ => of_size::<8>(groups, planes.used, out),
    }
}

#[inline(always)]
fn of_size<const SIZE: usize>(groups: &[u8], used: usize, out: &mut [u8]) {
    for (g, values) in out.chunks_exact_mut(GROUP * SIZE).enumerate() {
        let lines = &groups[g * used * LINE..][..used * LINE];
        let mut columns = [[0u8; GROUP]; SIZE];
        for (column, lines) in columns.iter_mut().zip(lines.chunks(8 * LINE)) {
            let mut rows = [[0u64; WORDS]; 8];
            for (row, line) in rows.iter_mut().zip(lines.as_chunks::<LINE>().0) {
                for (word, bytes) in row.iter_mut().zip(line.as_chunks::<8>().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
            }
            transpose(&mut rows);
            // Word w of row j holds a byte of each of the values 64 w + 8 j on.
            for (j, row) in rows.iter().enumerate() {
                for (w, word) in row.iter().enumerate() {
                    column[64 * w + 8 * j..][..8].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
        match &columns[..] {
            // As numbers: the compiler makes vector code of it.
            [a, b, c, d] => {
                let columns = a.iter().zip(b).zip(c).zip(d);
                for (value, (((a, b), c), d)) in values.as_chunks_mut::<4>().0.iter_mut().zip(columns) {
                    let [a, b, c, d] = [a, b, c, d].map(|byte| u32::from(*byte));
                    *value = (a | b << 8 | c << 16 | d << 24).to_le_bytes();
                }
            }
            columns => {
                for (i, value) in values.chunks_exact_mut(SIZE).enumerate() {
                    for (byte, column) in value.iter_mut().zip(columns) {
                        *byte = column[i];
                    }
                }
            }
        }
    }
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
                let mut out = vec![7; size];
                piece.copy_to(from, &mut out);
                assert_eq!(out, values[from..from + size], "{from}+{size} of {n} times {value_size}");
            }
        }
    }
}
