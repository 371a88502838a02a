//! Convolutions as sums over taps of products of matrices, on shifted views of one buffer; with the snake before them and
//! the addition after them in the same pass, while the numbers are near.

use crate::kernels::{BLOCK, Kernels, Snake};
use crate::signal::Signal;

/// Inputs whose weights and rows stay in the nearest cache together.
const INPUTS_AT_ONCE: usize = 64;

/// Weights in the order they are read: `[part of inputs][tile of outputs][input][tap][row of the tile]`.
#[derive(Debug)]
pub(crate) struct Product {
    kernels: Kernels,
    inputs: usize,
    pub(crate) outputs: usize,
    taps: usize,
    step: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Product {
    /// A product with `weight(output, input, tap)`.
    pub(crate) fn new(
        kernels: Kernels,
        (outputs, inputs): (usize, usize),
        (taps, step): (usize, usize),
        bias: Vec<f32>,
        weight: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let tiles = outputs.div_ceil(kernels.rows);
        let mut weights = Vec::with_capacity(tiles * kernels.rows * inputs * taps);
        for first in (0..inputs).step_by(INPUTS_AT_ONCE) {
            let part = first..inputs.min(first + INPUTS_AT_ONCE);
            for tile in 0..tiles {
                for input in part.clone() {
                    for tap in 0..taps {
                        let rows = tile * kernels.rows..(tile + 1) * kernels.rows;
                        weights.extend(rows.map(|o| if o < outputs { weight(o, input, tap) } else { 0.0 }));
                    }
                }
            }
        }
        Product { kernels, inputs, outputs, taps, step, weights, bias }
    }

    /// Columns of the input beyond those of the output.
    fn reach(&self) -> usize {
        (self.taps - 1) * self.step
    }

    /// The product with `input`, whose rows are `input_width` long; `out` gets rows of `columns`, a whole number of tiles.
    pub(crate) fn run(&self, input: &[f32], input_width: usize, out: &mut Vec<f32>, columns: usize) {
        let rows = self.kernels.rows;
        out.resize(self.outputs.next_multiple_of(rows) * columns, 0.0);
        for (r, row) in out.chunks_exact_mut(columns).enumerate() {
            row.fill(self.bias.get(r).copied().unwrap_or(0.0));
        }
        let mut weights = self.weights.as_slice();
        for first in (0..self.inputs).step_by(INPUTS_AT_ONCE) {
            let inputs = INPUTS_AT_ONCE.min(self.inputs - first);
            let input = &input[first * input_width..];
            for out in out.chunks_exact_mut(rows * columns) {
                let (tile, rest) = weights.split_at(inputs * self.taps * rows);
                let shape = (inputs, self.taps, self.step);
                self.kernels.accumulate(tile, shape, (input, input_width), (&mut *out, columns), columns);
                weights = rest;
            }
        }
    }
}

/// How a convolution goes along time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// Column for column; a dilation may be between the taps.
    Plain { dilation: usize },
    /// Every `stride`-th column.
    Down { stride: usize },
    /// `stride` columns for each.
    Up { stride: usize },
}

/// A convolution, as it is described.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) kernel: usize,
    pub(crate) pad: usize,
    pub(crate) along: Along,
}

/// How many columns a convolution makes of `columns` columns.
pub(crate) fn len(shape: &Shape, columns: usize) -> usize {
    let Shape { kernel, pad, along, .. } = *shape;
    let padded = columns + 2 * pad;
    match along {
        Along::Plain { dilation } => padded.saturating_sub((kernel - 1) * dilation),
        Along::Down { stride } => padded.checked_sub(kernel).map_or(0, |rest| rest / stride + 1),
        Along::Up { stride } => match columns {
            0 => 0,
            _ => ((columns - 1) * stride + kernel).saturating_sub(2 * pad),
        },
    }
}

/// The columns that its columns `first..end` are made of, also those that are not there.
pub(crate) fn reads(shape: &Shape, first: i64, end: i64) -> (i64, i64) {
    let Shape { kernel, pad, along, .. } = *shape;
    let (kernel, pad) = (kernel as i64, pad as i64);
    match along {
        Along::Plain { dilation } => (first - pad, end - pad + (kernel - 1) * dilation as i64),
        Along::Down { stride } => {
            let stride = stride as i64;
            (first * stride - pad, (end - 1) * stride - pad + kernel)
        }
        Along::Up { stride } => {
            let stride = stride as i64;
            let taps = (kernel + stride - 1) / stride;
            ((first + pad).div_euclid(stride) - (taps - 1), (end - 1 + pad).div_euclid(stride) + 1)
        }
    }
}

/// A convolution with the snake before it, if there is one.
#[derive(Debug)]
pub(crate) struct Convolution {
    pub(crate) shape: Shape,
    snakes: Option<Vec<Snake>>,
    product: Product,
    /// After it: `tanh`.
    pub(crate) is_last: bool,
}

/// Memory that a thread keeps while it works on one layer.
#[derive(Default)]
struct Memory {
    row: Vec<f32>,
    input: Vec<f32>,
    out: Vec<f32>,
    second: Vec<f32>,
}

impl Convolution {
    /// `weight` as torch stores it: `[outputs][inputs][kernel]`, and `[inputs][outputs][kernel]` for one that goes up.
    pub(crate) fn new(
        kernels: Kernels,
        shape: Shape,
        alpha: Option<Vec<f32>>,
        weight: &[f32],
        bias: Vec<f32>,
    ) -> Self {
        let Shape { inputs, outputs, kernel, along, .. } = shape;
        let snakes = alpha.map(|alpha| alpha.into_iter().map(Snake::new).collect());
        let product = match along {
            Along::Plain { dilation } => {
                Product::new(kernels, (outputs, inputs), (kernel, dilation), bias, |o, i, k| {
                    weight[(o * inputs + i) * kernel + k]
                })
            }
            // A row of every phase of each input: tap k reads phase k mod stride.
            Along::Down { stride } => {
                let taps = kernel.div_ceil(stride);
                Product::new(kernels, (outputs, inputs * stride), (taps, 1), bias, |o, row, tap| {
                    let (i, k) = (row / stride, tap * stride + row % stride);
                    if k < kernel { weight[(o * inputs + i) * kernel + k] } else { 0.0 }
                })
            }
            // A row of every phase of each output; the taps are read backwards.
            Along::Up { stride } => {
                let taps = kernel.div_ceil(stride);
                let bias = bias.iter().flat_map(|b| std::iter::repeat_n(*b, stride)).collect();
                Product::new(kernels, (outputs * stride, inputs), (taps, 1), bias, |row, i, tap| {
                    let (o, k) = (row / stride, (taps - 1 - tap) * stride + row % stride);
                    if k < kernel { weight[(i * outputs + o) * kernel + k] } else { 0.0 }
                })
            }
        };
        Convolution { shape, snakes, product, is_last: false }
    }

    fn run(&self, signal: Signal, spare: Signal, threads: usize) -> (Signal, Signal) {
        let width = match self.shape.along {
            Along::Up { stride } => BLOCK * stride,
            _ => BLOCK,
        };
        let mut out = Signal::new(self.shape.outputs, len(&self.shape, signal.len), width, spare);
        out.fill(threads, |memory: &mut Memory, _, first, columns, block| {
            let made = self.columns(&signal, first, columns, memory);
            let rows = block.chunks_exact_mut(width);
            match self.shape.along {
                Along::Up { stride } => {
                    let phase = (first + self.shape.pad) % stride;
                    for (o, row) in rows.enumerate() {
                        for (t, value) in row[..columns].iter_mut().enumerate() {
                            let at = t + phase;
                            *value = memory.out[(o * stride + at % stride) * made + at / stride];
                        }
                    }
                }
                _ => {
                    for (row, found) in rows.zip(memory.out.chunks_exact(made)) {
                        row[..columns].copy_from_slice(&found[..columns]);
                    }
                }
            }
            if self.is_last {
                block.iter_mut().for_each(|value| *value = value.tanh());
            }
        });
        (out, signal)
    }

    /// Writes the product for the columns `first..first + columns` into `memory.out`, and gives the length of its rows.
    fn columns(&self, signal: &Signal, first: usize, columns: usize, memory: &mut Memory) -> usize {
        let Memory { row, input, out, .. } = memory;
        let kernels = self.product.kernels;
        let write = |channel: usize, from: &[f32], to: &mut [f32]| match &self.snakes {
            Some(snakes) => kernels.snake(from, to, snakes[channel]),
            None => to.copy_from_slice(from),
        };
        let pad = self.shape.pad as isize;
        let reach = self.product.reach();
        let (stride, from, columns) = match self.shape.along {
            Along::Plain { .. } => (1, first as isize - pad, columns),
            Along::Down { stride } => (stride, (first * stride) as isize - pad, columns),
            Along::Up { stride } => {
                let (start, last) = (first + self.shape.pad, first + columns - 1 + self.shape.pad);
                let from = (start / stride) as isize - reach as isize;
                (1, from, last / stride - start / stride + 1)
            }
        };
        let made = kernels.whole(columns);
        // What lies past the columns that are wanted is worked on too, and left out at the end.
        let width = made + reach;
        let filled = columns + reach;
        input.resize(self.product.inputs * width, 0.0);
        if stride == 1 {
            for (channel, to) in input.chunks_exact_mut(width).enumerate() {
                signal.row(channel, from, &mut to[..filled], |from, to| write(channel, from, to));
            }
        } else {
            row.resize(filled * stride, 0.0);
            for (channel, phases) in input.chunks_exact_mut(width * stride).enumerate() {
                signal.row(channel, from, row, |from, to| write(channel, from, to));
                for (phase, to) in phases.chunks_exact_mut(width).enumerate() {
                    for (to, from) in to.iter_mut().zip(row[phase..].iter().step_by(stride)) {
                        *to = *from;
                    }
                }
            }
        }
        self.product.run(input, width, out, made);
        made
    }
}

/// A layer of the network.
#[derive(Debug)]
pub(crate) enum Layer {
    Convolution(Convolution),
    /// Two convolutions, whose result is added to what they are made of.
    Residual(Box<(Convolution, Convolution)>),
}

impl Layer {
    /// How many columns it makes of `columns` columns.
    pub(crate) fn len(&self, columns: usize) -> usize {
        match self {
            Layer::Convolution(one) => len(&one.shape, columns),
            Layer::Residual(..) => columns,
        }
    }

    /// As [`reads`].
    pub(crate) fn reads(&self, first: i64, end: i64) -> (i64, i64) {
        match self {
            Layer::Convolution(one) => reads(&one.shape, first, end),
            Layer::Residual(both) => reads(&both.0.shape, first, end),
        }
    }

    /// Runs the layer; also returns the input's buffer for reuse.
    pub(crate) fn run(&self, signal: Signal, spare: Signal, threads: usize) -> (Signal, Signal) {
        let (one, two) = match self {
            Layer::Convolution(one) => return one.run(signal, spare, threads),
            Layer::Residual(both) => (&both.0, &both.1),
        };
        let mut out = Signal::new(signal.channels, signal.len, BLOCK, spare);
        out.fill(threads, |memory: &mut Memory, _, first, columns, block| {
            let made = one.columns(&signal, first, columns, memory);
            let Memory { out, second, .. } = memory;
            if let Some(snakes) = &two.snakes {
                for (row, snake) in out.chunks_exact_mut(made).zip(snakes) {
                    one.product.kernels.snake_in_place(&mut row[..columns], *snake);
                }
            }
            two.product.run(out, made, second, made);
            let rows = block.chunks_exact_mut(BLOCK).zip(second.chunks_exact(made));
            for (channel, (row, second)) in rows.enumerate() {
                signal.row(channel, first as isize, &mut row[..columns], |from, to| to.copy_from_slice(from));
                for (sum, second) in row[..columns].iter_mut().zip(second) {
                    *sum += second;
                }
            }
        });
        (out, signal)
    }
}
