//! The two loops that all time is spent in, for the instruction set that this processor has: a sum over taps of products
//! of matrices, and the snake `x + sin²(αx) / α`.
//!
//! Every number is made by the same operations in the same order, wherever it is in a row and however the row is cut:
//! that is why chunks have no seams.

use crate::lanes::{Four, Lanes};

/// The kernels of an instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Rows and columns of the tile that stays in registers.
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    tiles: unsafe fn(&Tiles),
    snake: unsafe fn(*const f32, *mut f32, usize, f32, f32),
}

/// What one pass over tiles works on: `out[r][t] += Σ_j Σ_k weights[j][k][r] · input[j][t + k · step]`.
pub(crate) struct Tiles {
    /// `[inputs][taps][rows]`.
    weights: *const f32,
    input: *const f32,
    /// Numbers from one row of the input to the next.
    input_width: usize,
    inputs: usize,
    taps: usize,
    step: usize,
    out: *mut f32,
    out_width: usize,
    /// Tiles side by side.
    tiles: usize,
}

const PORTABLE: &str = "portable";

/// The kernels of each instruction set that this processor has, the best first.
pub(crate) fn available() -> Vec<Kernels> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            found.push(Kernels {
                name: "AVX-512",
                rows: 8,
                columns: 48,
                tiles: x86::tiles_512,
                snake: x86::snake_512,
            });
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            found.push(Kernels {
                name: "AVX2",
                rows: 6,
                columns: 16,
                tiles: x86::tiles_256,
                snake: x86::snake_256,
            });
        }
    }
    found.push(Kernels {
        name: PORTABLE,
        rows: 4,
        columns: 8,
        tiles: tiles::<Four, 4, 2>,
        snake: snake::<Four>,
    });
    found
}

/// All tiles' columns divide it.
pub(crate) const BLOCK: usize = 192;

impl Kernels {
    /// Whether a product is added before it is rounded. The kernels that do give the same numbers, bit for bit.
    pub(crate) fn is_fused(&self) -> bool {
        self.name != PORTABLE || crate::lanes::FUSED
    }

    /// Columns that are worked on where `columns` are wanted: whole tiles.
    pub(crate) fn whole(&self, columns: usize) -> usize {
        columns.next_multiple_of(self.columns)
    }

    /// Adds to `self.rows` rows of `out` the product of packed weights `[inputs][taps][rows]` with the rows of `input`,
    /// tap k shifted by `k * step`.
    ///
    /// `columns` is a whole number of tiles. A row of `input` and of `out` begins `input_width` and `out_width` after the
    /// one before it.
    pub(crate) fn accumulate(
        &self,
        weights: &[f32],
        (inputs, taps, step): (usize, usize, usize),
        (input, input_width): (&[f32], usize),
        (out, out_width): (&mut [f32], usize),
        columns: usize,
    ) {
        if inputs == 0 || columns == 0 {
            return;
        }
        assert!(columns.is_multiple_of(self.columns) && taps > 0);
        assert!(weights.len() >= inputs * taps * self.rows);
        assert!(input.len() >= (inputs - 1) * input_width + (taps - 1) * step + columns);
        assert!(out.len() >= (self.rows - 1) * out_width + columns && out_width >= columns);
        let tiles = Tiles {
            weights: weights.as_ptr(),
            input: input.as_ptr(),
            input_width,
            inputs,
            taps,
            step,
            out: out.as_mut_ptr(),
            out_width,
            tiles: columns / self.columns,
        };
        // SAFETY: what is read and written lies within the slices, as was just compared; the processor has the
        // instruction set, or `available` had not given these kernels.
        unsafe { (self.tiles)(&tiles) }
    }

    /// `out = x + sin²(αx) / α` for a row.
    pub(crate) fn snake(&self, x: &[f32], out: &mut [f32], snake: Snake) {
        assert!(x.len() == out.len());
        // SAFETY: both are as long as said; the processor has the instruction set.
        unsafe { (self.snake)(x.as_ptr(), out.as_mut_ptr(), x.len(), snake.alpha, snake.inverse) }
    }

    /// As [`Kernels::snake`], of a row onto itself.
    pub(crate) fn snake_in_place(&self, row: &mut [f32], snake: Snake) {
        let pointer = row.as_mut_ptr();
        // SAFETY: as above; each number is read before it is written.
        unsafe { (self.snake)(pointer, pointer, row.len(), snake.alpha, snake.inverse) }
    }
}

/// The α of a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Snake {
    alpha: f32,
    inverse: f32,
}

impl Snake {
    /// As the original has it: `1 / (α + 1e-9)`, so that 0 gives no infinity.
    pub(crate) fn new(alpha: f32) -> Self {
        Snake { alpha, inverse: 1.0 / (alpha + 1e-9) }
    }
}

// Twelve sums and what they are made of fit the sixteen registers of AVX2 as six rows of two vectors; as four of three, one sum
// goes through memory each time, at half the speed.
#[inline(always)]
unsafe fn tiles<L: Lanes, const ROWS: usize, const VECTORS: usize>(given: &Tiles) {
    for tile in 0..given.tiles {
        let column = tile * L::N * VECTORS;
        // SAFETY: `accumulate` compared the reach of all tiles with the slices.
        unsafe {
            let mut sums = [[L::splat(0.0); VECTORS]; ROWS];
            for (r, sums) in sums.iter_mut().enumerate() {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = L::load(given.out.add(r * given.out_width + column + v * L::N));
                }
            }
            let mut weights = given.weights;
            let mut row = given.input.add(column);
            for _ in 0..given.inputs {
                let mut at = row;
                for _ in 0..given.taps {
                    let mut x = [L::splat(0.0); VECTORS];
                    for (v, x) in x.iter_mut().enumerate() {
                        *x = L::load(at.wrapping_add(v * L::N));
                    }
                    for (r, sums) in sums.iter_mut().enumerate() {
                        let weight = L::splat(*weights.add(r));
                        for (x, sum) in x.iter().zip(sums.iter_mut()) {
                            *sum = weight.mul_add(*x, *sum);
                        }
                    }
                    weights = weights.wrapping_add(ROWS);
                    at = at.wrapping_add(given.step);
                }
                row = row.wrapping_add(given.input_width);
            }
            for (r, sums) in sums.iter().enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    sum.store(given.out.add(r * given.out_width + column + v * L::N));
                }
            }
        }
    }
}

/// π in parts of few bits, so that their products with small whole numbers are exact (Cody and Waite).
const PI: [f32; 3] = [3.140625, 9.675_026e-4, 1.509_958e-7];
/// Beyond it a multiple of π has more bits than those products keep.
const LARGEST: f32 = 8192.0;
/// Added and taken away again, it rounds to a whole number.
const ROUND: f32 = 12_582_912.0;
/// `sin r = r + r³ · (…)` for `|r| ≤ π/2`: the polynomial in r² whose largest error is smallest, below 3e-11.
const SINE: [f32; 5] = [-0.166_666_67, 0.008_333_331, -0.000_198_408_67, 2.752_532e-6, -2.388_774_2e-8];

#[inline(always)]
unsafe fn snake<L: Lanes>(x: *const f32, out: *mut f32, n: usize, alpha: f32, inverse: f32) {
    // SAFETY: the caller gives pointers to `n` numbers each; what is left over goes through memory of a whole vector.
    unsafe {
        let whole = n - n % L::N;
        let mut at = 0;
        while at < whole {
            snake_of::<L>(x.add(at), out.add(at), alpha, inverse);
            at += L::N;
        }
        if at < n {
            let mut rest = [0.0f32; 16];
            std::ptr::copy_nonoverlapping(x.add(at), rest.as_mut_ptr(), n - at);
            snake_of::<L>(rest.as_ptr(), rest.as_mut_ptr(), alpha, inverse);
            std::ptr::copy_nonoverlapping(rest.as_ptr(), out.add(at), n - at);
        }
    }
}

#[inline(always)]
unsafe fn snake_of<L: Lanes>(x: *const f32, out: *mut f32, alpha: f32, inverse: f32) {
    // SAFETY: the caller gives pointers to `L::N` numbers each.
    unsafe {
        let x = L::load(x);
        let angle = x.mul(L::splat(alpha));
        let squared = if angle.all_within(LARGEST) {
            // sin² has the period π.
            let round = L::splat(ROUND);
            let turns = angle.mul_add(L::splat(std::f32::consts::FRAC_1_PI), round).sub(round);
            let mut r = angle;
            for part in PI {
                r = turns.mul_add(L::splat(-part), r);
            }
            let r2 = r.mul(r);
            let mut sum = L::splat(SINE[4]);
            for i in [3, 2, 1, 0] {
                sum = sum.mul_add(r2, L::splat(SINE[i]));
            }
            let sine = sum.mul_add(r.mul(r2), r);
            sine.mul(sine)
        } else {
            let mut each = [0.0f32; 16];
            angle.store(each.as_mut_ptr());
            for angle in each.iter_mut().take(L::N) {
                let sine = f64::from(*angle).sin() as f32;
                *angle = sine * sine;
            }
            L::load(each.as_ptr())
        };
        x.add(squared.mul(L::splat(inverse))).store(out);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256, __m512};

    use super::Tiles;

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn tiles_256(given: &Tiles) {
        // SAFETY: the caller's.
        unsafe { super::tiles::<__m256, 6, 2>(given) }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn tiles_512(given: &Tiles) {
        // SAFETY: the caller's.
        unsafe { super::tiles::<__m512, 8, 3>(given) }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn snake_256(x: *const f32, out: *mut f32, n: usize, alpha: f32, inverse: f32) {
        // SAFETY: the caller's.
        unsafe { super::snake::<__m256>(x, out, n, alpha, inverse) }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn snake_512(x: *const f32, out: *mut f32, n: usize, alpha: f32, inverse: f32) {
        // SAFETY: the caller's.
        unsafe { super::snake::<__m512>(x, out, n, alpha, inverse) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Every angle that sin² is asked for, to about the last bit of what the original adds to x.
    #[test]
    fn the_snake_is_that_of_double_precision() {
        for kernels in available() {
            for alpha in [1e-3, 0.5, 1.0, 17.3, -2.5] {
                let x: Vec<f32> =
                    (-40_000..40_000).map(|i| i as f32 * 3.7e-3).chain([1e4, -3e5, 1e9]).collect();
                let mut out = vec![0.0; x.len()];
                kernels.snake(&x, &mut out, Snake::new(alpha));
                for (x, out) in x.iter().zip(out) {
                    let angle = f64::from(x * alpha);
                    let expected = f64::from(*x) + angle.sin().powi(2) / (f64::from(alpha) + 1e-9);
                    let unit = f64::from(f32::EPSILON) * (expected.abs() + 1.0 / f64::from(alpha.abs()));
                    let wrong = (f64::from(out) - expected).abs() / unit;
                    assert!(
                        wrong < 1.5,
                        "{}: α {alpha}, x {x}: {out}, not {expected}: {wrong}",
                        kernels.name
                    );
                }
            }
        }
    }

    #[test]
    fn a_number_does_not_depend_on_where_it_stands() {
        for kernels in available() {
            let x: Vec<f32> = (0..101).map(|i| (i as f32 * 0.37).sin() * 9.0).collect();
            let mut whole = vec![0.0; x.len()];
            kernels.snake(&x, &mut whole, Snake::new(1.7));
            for cut in 0..x.len() {
                let mut parts = x.clone();
                let (left, right) = parts.split_at_mut(cut);
                kernels.snake_in_place(left, Snake::new(1.7));
                kernels.snake_in_place(right, Snake::new(1.7));
                assert_eq!(parts, whole, "{}: cut at {cut}", kernels.name);
            }
        }
    }

    #[test]
    fn tiles_are_the_sum_over_taps() {
        for kernels in available() {
            let (inputs, taps, step, columns) = (5, 3, 9, 2 * kernels.columns);
            let width = columns + (taps - 1) * step;
            let number = |i: usize| ((i * 7919) % 1000) as f32 / 500.0 - 1.0;
            let input: Vec<f32> = (0..inputs * width).map(number).collect();
            let weights: Vec<f32> = (0..inputs * taps * kernels.rows).map(|i| number(i + 3)).collect();
            let mut out = vec![0.25; kernels.rows * columns];
            kernels.accumulate(&weights, (inputs, taps, step), (&input, width), (&mut out, columns), columns);
            for r in 0..kernels.rows {
                for t in 0..columns {
                    let (mut expected, mut fused) = (0.25, 0.25f32);
                    for j in 0..inputs {
                        for k in 0..taps {
                            let weight = f64::from(weights[(j * taps + k) * kernels.rows + r]);
                            let x = input[j * width + t + k * step];
                            expected += weight * f64::from(x);
                            fused = (weight as f32).mul_add(x, fused);
                        }
                    }
                    let found = out[r * columns + t];
                    assert!(!kernels.is_fused() || found == fused, "{}: {found}, not {fused}", kernels.name);
                    let found = f64::from(found);
                    assert!(
                        (found - expected).abs() < 1e-5,
                        "{}: {r}, {t}: {found}, not {expected}",
                        kernels.name
                    );
                }
            }
        }
    }
}
