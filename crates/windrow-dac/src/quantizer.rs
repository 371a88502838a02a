//! Residual vector quantisation: code for code, as the original computes it in float32.

use crate::kernels::{BLOCK, Kernels};
use crate::layer::Product;
use crate::signal::Signal;

/// One codebook with its projections.
#[derive(Debug)]
pub(crate) struct Codebook {
    /// `[size][dim]`, as stored.
    entries: Vec<f32>,
    dim: usize,
    into: Product,
    out_of: Product,
    /// Products with twice the entries of length 1.
    twice: Product,
    /// The squared lengths of those: 1, but for rounding.
    squares: Vec<f32>,
}

/// A projection with kernel 1: its weight `[outputs][inputs]` and bias.
pub(crate) type Projection = (Vec<f32>, Vec<f32>);

impl Codebook {
    pub(crate) fn new(
        kernels: Kernels,
        latent: usize,
        (size, dim): (usize, usize),
        into: Projection,
        out_of: Projection,
        entries: Vec<f32>,
    ) -> Self {
        let project = |(weight, bias): Projection, outputs: usize, inputs: usize| {
            Product::new(kernels, (outputs, inputs), (1, 1), bias, |o, i, _| weight[o * inputs + i])
        };
        let mut unit = entries.clone();
        unit.chunks_exact_mut(dim).for_each(to_length_one);
        let squares = unit.chunks_exact(dim).map(|entry| entry.iter().map(|v| v * v).sum()).collect();
        let twice = Product::new(kernels, (size, dim), (1, 1), Vec::new(), |o, i, _| 2.0 * unit[o * dim + i]);
        Codebook {
            dim,
            into: project(into, dim, latent),
            out_of: project(out_of, latent, dim),
            twice,
            squares,
            entries,
        }
    }
}

// As torch's normalize: no length is below 1e-12.
fn to_length_one(vector: &mut [f32]) {
    let length = vector.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-12);
    vector.iter_mut().for_each(|v| *v /= length);
}

#[derive(Default)]
struct Memory {
    rest: Vec<f32>,
    projected: Vec<f32>,
    unit: Vec<f32>,
    products: Vec<f32>,
    quantised: Vec<f32>,
    best: Vec<(f32, u16)>,
    column: Vec<f32>,
}

/// The codes of the frames `range` of a latent signal, `[frame][codebook]`.
pub(crate) fn encode(
    codebooks: &[Codebook],
    latent: &Signal,
    frames: std::ops::Range<usize>,
    threads: usize,
) -> Vec<u16> {
    // Codes fit f32 exactly; the blocks of a signal are what threads share out.
    let mut codes = Signal::new(codebooks.len(), frames.len(), BLOCK, Signal::default());
    codes.fill(threads, |memory: &mut Memory, _, first, columns, block| {
        memory.rest.resize(latent.channels * BLOCK, 0.0);
        for (channel, row) in memory.rest.chunks_exact_mut(BLOCK).enumerate() {
            let from = (frames.start + first) as isize;
            latent.row(channel, from, &mut row[..columns], |from, to| to.copy_from_slice(from));
        }
        for (book, out) in codebooks.iter().zip(block.chunks_exact_mut(BLOCK)) {
            book.quantise(memory, columns);
            for (out, (_, code)) in out.iter_mut().zip(&memory.best) {
                *out = f32::from(*code);
            }
        }
    });
    in_frames(&codes)
}

fn in_frames(codes: &Signal) -> Vec<u16> {
    let mut out = Vec::with_capacity(codes.len * codes.channels);
    for first in (0..codes.len).step_by(codes.width) {
        let block = codes.block(first / codes.width);
        for t in 0..codes.width.min(codes.len - first) {
            out.extend(block.chunks_exact(codes.width).map(|row| row[t] as u16));
        }
    }
    out
}

impl Codebook {
    // Writes the codes of what is left into `best`, and subtracts what they decode to.
    fn quantise(&self, memory: &mut Memory, columns: usize) {
        let Memory { rest, projected, unit, products, quantised, best, column } = memory;
        self.into.run(rest, BLOCK, projected, BLOCK);
        unit.resize(self.dim * BLOCK, 0.0);
        column.resize(self.dim, 0.0);
        best.clear();
        let mut squares = [0.0f32; BLOCK];
        for t in 0..columns {
            column.iter_mut().enumerate().for_each(|(d, v)| *v = projected[d * BLOCK + t]);
            to_length_one(column);
            squares[t] = column.iter().map(|v| v * v).sum();
            column.iter().enumerate().for_each(|(d, v)| unit[d * BLOCK + t] = *v);
            best.push((f32::INFINITY, 0));
        }
        self.twice.run(unit, BLOCK, products, BLOCK);
        // |e|² − 2 e·c + |c|², the first of the smallest.
        for (code, (row, square)) in products.chunks_exact(BLOCK).zip(&self.squares).enumerate() {
            for ((best, product), of_unit) in best.iter_mut().zip(row).zip(&squares) {
                let distance = of_unit - product + square;
                if distance < best.0 {
                    *best = (distance, code as u16);
                }
            }
        }
        quantised.resize(self.dim * BLOCK, 0.0);
        for (t, (_, code)) in best.iter().enumerate() {
            let entry = &self.entries[usize::from(*code) * self.dim..][..self.dim];
            for (d, value) in entry.iter().enumerate() {
                // The straight-through form, which is not the entry to the last bit.
                let from = projected[d * BLOCK + t];
                quantised[d * BLOCK + t] = from + (value - from);
            }
        }
        self.out_of.run(quantised, BLOCK, products, BLOCK);
        for (rest, out) in rest.iter_mut().zip(products.iter()) {
            *rest -= out;
        }
    }
}

/// The latent signal of codes `[frame][codebook]`. Every code is one of its codebook's.
pub(crate) fn decode(codebooks: &[Codebook], latent: usize, codes: &[u16], threads: usize) -> Signal {
    let frames = codes.len() / codebooks.len().max(1);
    let mut signal = Signal::new(latent, frames, BLOCK, Signal::default());
    signal.fill(threads, |memory: &mut Memory, _, first, columns, block| {
        for (number, book) in codebooks.iter().enumerate() {
            memory.quantised.resize(book.dim * BLOCK, 0.0);
            for t in 0..columns {
                let code = usize::from(codes[(first + t) * codebooks.len() + number]);
                for (d, value) in book.entries[code * book.dim..][..book.dim].iter().enumerate() {
                    memory.quantised[d * BLOCK + t] = *value;
                }
            }
            book.out_of.run(&memory.quantised, BLOCK, &mut memory.products, BLOCK);
            block.iter_mut().zip(&memory.products).for_each(|(sum, out)| *sum += out);
        }
    });
    signal
}
