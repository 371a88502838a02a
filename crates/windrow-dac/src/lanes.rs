//! A few numbers that a processor handles at once: what the kernels are written in, once for all instruction sets.

/// Numbers side by side. What happens to one depends on no other.
///
/// # Safety
/// Every method asks that the processor has the instruction set of the type, and pointers that [`Lanes::N`] numbers may
/// be read from or written to.
#[allow(clippy::missing_safety_doc, reason = "said once, above")]
pub(crate) trait Lanes: Copy {
    /// How many.
    const N: usize;
    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self * by + to`, rounded once where the instruction set does that.
    unsafe fn mul_add(self, by: Self, to: Self) -> Self;
    /// Whether all lie within `-limit..=limit`: false where one is not a number.
    unsafe fn all_within(self, limit: f32) -> bool;
}

/// Any processor: the compiler makes of it what it can.
#[derive(Clone, Copy)]
pub(crate) struct Four([f32; 4]);

/// Whether `f32::mul_add` is an instruction; elsewhere it would be a call for each number.
pub(crate) const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

impl Four {
    #[inline(always)]
    fn each(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let ([a, b, c, d], [e, g, h, i]) = (self.0, other.0);
        Four([f(a, e), f(b, g), f(c, h), f(d, i)])
    }
}

impl Lanes for Four {
    const N: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Four([value; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller gives a pointer to four numbers.
        unsafe { Four(from.cast::<[f32; 4]>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller gives a pointer to four numbers.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.each(other, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.each(other, |a, b| a - b)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.each(other, |a, b| a * b)
    }

    #[inline(always)]
    unsafe fn mul_add(self, by: Self, to: Self) -> Self {
        let fused = |a: f32, b: f32, c: f32| if FUSED { a.mul_add(b, c) } else { a * b + c };
        let ([a, b, c, d], [e, f, g, h], [i, j, k, l]) = (self.0, by.0, to.0);
        Four([fused(a, e, i), fused(b, f, j), fused(c, g, k), fused(d, h, l)])
    }

    #[inline(always)]
    unsafe fn all_within(self, limit: f32) -> bool {
        let [a, b, c, d] = self.0;
        a.abs() <= limit && b.abs() <= limit && c.abs() <= limit && d.abs() <= limit
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Lanes;

    // SAFETY of all blocks below: the caller has the instruction set and gives pointers to as many numbers.

    impl Lanes for __m256 {
        const N: usize = 8;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: above.
            unsafe { _mm256_set1_ps(value) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: above.
            unsafe { _mm256_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: above.
            unsafe { _mm256_storeu_ps(to, self) }
        }

        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: above.
            unsafe { _mm256_add_ps(self, other) }
        }

        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: above.
            unsafe { _mm256_sub_ps(self, other) }
        }

        #[inline(always)]
        unsafe fn mul(self, other: Self) -> Self {
            // SAFETY: above.
            unsafe { _mm256_mul_ps(self, other) }
        }

        #[inline(always)]
        unsafe fn mul_add(self, by: Self, to: Self) -> Self {
            // SAFETY: above.
            unsafe { _mm256_fmadd_ps(self, by, to) }
        }

        #[inline(always)]
        unsafe fn all_within(self, limit: f32) -> bool {
            // SAFETY: above.
            unsafe {
                let size = _mm256_andnot_ps(_mm256_set1_ps(-0.0), self);
                _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(size, _mm256_set1_ps(limit))) == 0xff
            }
        }
    }

    impl Lanes for __m512 {
        const N: usize = 16;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: above.
            unsafe { _mm512_set1_ps(value) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: above.
            unsafe { _mm512_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: above.
            unsafe { _mm512_storeu_ps(to, self) }
        }

        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: above.
            unsafe { _mm512_add_ps(self, other) }
        }

        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: above.
            unsafe { _mm512_sub_ps(self, other) }
        }

        #[inline(always)]
        unsafe fn mul(self, other: Self) -> Self {
            // SAFETY: above.
            unsafe { _mm512_mul_ps(self, other) }
        }

        #[inline(always)]
        unsafe fn mul_add(self, by: Self, to: Self) -> Self {
            // SAFETY: above.
            unsafe { _mm512_fmadd_ps(self, by, to) }
        }

        #[inline(always)]
        unsafe fn all_within(self, limit: f32) -> bool {
            // SAFETY: above.
            unsafe { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(_mm512_abs_ps(self), _mm512_set1_ps(limit)) == 0xffff }
        }
    }
}
