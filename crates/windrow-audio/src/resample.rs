//! Another rate, block by block: what comes out does not depend on how the samples came in.

use rubato::audioadapter_buffers::direct::SequentialSliceOfVecs;
use rubato::{Fft, FixedSync, Indexing, Resampler as _, WindowFunction};
use windrow_core::{Error, Result};

use crate::options::Quality;

/// How many samples `len` of them become from one rate to another: `ceil(len * to / from)`, as torchaudio counts.
pub fn resampled_len(len: u64, from_hz: u32, to_hz: u32) -> u64 {
    let exact = (u128::from(len) * u128::from(to_hz)).div_ceil(u128::from(from_hz.max(1)));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// Takes samples of one rate, gives those of another.
pub(crate) struct Resampler {
    fft: Fft<f32>,
    from_hz: u32,
    to_hz: u32,
    // Samples that wait until a block is full.
    waiting: Vec<Vec<f32>>,
    // One block out of the transform.
    made: Vec<Vec<f32>>,
    // The filter's delay, not yet cut off.
    delay: usize,
    n_taken: u64,
    n_given: u64,
}

impl Resampler {
    /// # Errors
    /// `Config` for rates that the filter cannot be made for.
    pub(crate) fn new(from_hz: u32, to_hz: u32, n_channels: usize, quality: Quality) -> Result<Self> {
        let divisor = gcd(from_hz, to_hz);
        let (from, to) = ((from_hz / divisor) as usize, (to_hz / divisor) as usize);
        // An even number of the smallest blocks: only then the filter's middle falls on a sample, in and out.
        let blocks = quality.filter_len().div_ceil(from.min(to)).next_multiple_of(2);
        let fft = Fft::new_custom(
            from_hz as usize,
            to_hz as usize,
            blocks * from,
            1,
            n_channels,
            WindowFunction::BlackmanHarris2,
            FixedSync::Both,
        )
        .map_err(|e| Error::config(format!("cannot resample {from_hz} Hz to {to_hz} Hz")).caused_by(e))?;
        let delay = fft.output_delay();
        let made = vec![vec![0.0; fft.output_frames_max()]; n_channels];
        Ok(Resampler {
            fft,
            from_hz,
            to_hz,
            waiting: vec![Vec::new(); n_channels],
            made,
            delay,
            n_taken: 0,
            n_given: 0,
        })
    }

    /// Takes `block`, appends what is ready to `out`.
    ///
    /// # Errors
    /// None that a sound file can cause.
    pub(crate) fn push(&mut self, block: &[Vec<f32>], out: &mut [Vec<f32>]) -> Result<()> {
        self.n_taken += block[0].len() as u64;
        for (waiting, samples) in self.waiting.iter_mut().zip(block) {
            waiting.extend_from_slice(samples);
        }
        self.run(out, u64::MAX)
    }

    /// The rest, once nothing more comes.
    ///
    /// # Errors
    /// None that a sound file can cause.
    pub(crate) fn finish(&mut self, out: &mut [Vec<f32>]) -> Result<()> {
        let all = resampled_len(self.n_taken, self.from_hz, self.to_hz);
        while self.n_given < all {
            let full = self.fft.input_frames_next();
            self.waiting.iter_mut().for_each(|w| w.resize(w.len().next_multiple_of(full).max(full), 0.0));
            self.run(out, all)?;
        }
        Ok(())
    }

    // All full blocks; gives at most `all` samples in total.
    fn run(&mut self, out: &mut [Vec<f32>], all: u64) -> Result<()> {
        let n_channels = self.waiting.len();
        let full = self.fft.input_frames_next();
        let mut done = 0;
        while self.waiting[0].len() - done >= full {
            let place = Indexing { input_offset: done, ..Indexing::default() };
            let len = self.waiting[0].len();
            let room = self.made[0].len();
            let (_, n_made) = SequentialSliceOfVecs::new(&self.waiting, n_channels, len)
                .and_then(|from| {
                    SequentialSliceOfVecs::new_mut(&mut self.made, n_channels, room).map(|to| (from, to))
                })
                .map_err(|e| Error::config("the resampler's buffers do not fit").caused_by(e))
                .and_then(|(from, mut to)| {
                    self.fft
                        .process_into_buffer(&from, &mut to, Some(&place))
                        .map_err(|e| Error::config("the resampler refused a block").caused_by(e))
                })?;
            done += full;
            let skip = self.delay.min(n_made);
            self.delay -= skip;
            let take = ((n_made - skip) as u64).min(all - self.n_given) as usize;
            for (out, made) in out.iter_mut().zip(&self.made) {
                out.extend_from_slice(&made[skip..skip + take]);
            }
            self.n_given += take as u64;
        }
        self.waiting.iter_mut().for_each(|w| drop(w.drain(..done)));
        Ok(())
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
