//! The network on candle, for devices that are not CPU.

use candle_core::{Device as Candle, Tensor};
use windrow_core::{Error, Kind, Result};

use crate::config::Config;
use crate::device::Device;
use crate::layer::{self, Along, Shape};
use crate::network::{Made, Part, Reader};
use crate::signal::Signal;
use crate::weights::Weights;

/// Layers whose weights lie on a device.
pub(crate) struct Layers {
    layers: Vec<Made<Convolution>>,
    device: Candle,
}

struct Convolution {
    shape: Shape,
    /// α, and its inverse.
    snake: Option<(Tensor, Tensor)>,
    weight: Tensor,
    bias: Tensor,
    is_last: bool,
}

/// The device that is meant.
///
/// # Errors
/// `Unsupported` when this build or this machine has none.
pub(crate) fn device(device: Device) -> Result<Candle> {
    let found = match device {
        Device::Cuda(number) => Candle::new_cuda(number),
        Device::Metal(number) => Candle::new_metal(number),
        Device::Cpu | Device::Candle => Ok(Candle::Cpu),
    };
    found.map_err(|cause| {
        Error::unsupported(format!("the device {device:?} cannot be used"))
            .caused_by(cause)
            .hint("build with the feature `cuda` or `metal` on a machine that has it, or use the processor")
    })
}

fn said(cause: candle_core::Error) -> Error {
    Error::new(Kind::Io, "the device could not run the codec").caused_by(cause)
}

impl Layers {
    pub(crate) fn encoder(weights: &mut Weights, config: &Config, device: &Candle) -> Result<Self> {
        let mut make = |part| Convolution::new(part, device).map_err(said);
        let layers = Reader { weights, make: &mut make }.encoder(config)?;
        Ok(Layers { layers, device: device.clone() })
    }

    pub(crate) fn decoder(weights: &mut Weights, config: &Config, device: &Candle) -> Result<Self> {
        let mut make = |part| Convolution::new(part, device).map_err(said);
        let layers = Reader { weights, make: &mut make }.decoder(config)?;
        Ok(Layers { layers, device: device.clone() })
    }

    pub(crate) fn len(&self, columns: usize) -> usize {
        self.layers.iter().fold(columns, |len, layer| match layer {
            Made::Convolution(one) => layer::len(&one.shape, len),
            Made::Residual(..) => len,
        })
    }

    pub(crate) fn reads(&self, first: i64, end: i64) -> (i64, i64) {
        self.layers.iter().rev().fold((first, end), |(first, end), layer| match layer {
            Made::Convolution(one) | Made::Residual(one, _) => layer::reads(&one.shape, first, end),
        })
    }

    pub(crate) fn run(&self, signal: &Signal) -> Result<Signal> {
        let (channels, len) = (signal.channels, signal.len);
        let mut values = vec![0.0; channels * len];
        for (channel, row) in values.chunks_exact_mut(len.max(1)).enumerate() {
            signal.row(channel, 0, row, |from, to| to.copy_from_slice(from));
        }
        let (values, shape) = self.on_device(values, channels, len).map_err(said)?;
        Ok(Signal::whole(values, shape.0, shape.1))
    }

    fn on_device(
        &self,
        values: Vec<f32>,
        channels: usize,
        len: usize,
    ) -> candle_core::Result<(Vec<f32>, (usize, usize))> {
        let mut x = Tensor::from_vec(values, (1, channels, len), &self.device)?;
        for layer in &self.layers {
            x = match layer {
                Made::Convolution(one) => one.run(&x)?,
                Made::Residual(one, two) => (two.run(&one.run(&x)?)? + x)?,
            };
        }
        let (_, channels, len) = x.dims3()?;
        Ok((x.flatten_all()?.to_vec1()?, (channels, len)))
    }
}

impl Convolution {
    fn new(part: Part, device: &Candle) -> candle_core::Result<Self> {
        let Part { shape, alpha, weight, bias, is_last } = part;
        let sizes = match shape.along {
            Along::Up { .. } => (shape.inputs, shape.outputs, shape.kernel),
            _ => (shape.outputs, shape.inputs, shape.kernel),
        };
        let row = |values: Vec<f32>| {
            let n = values.len();
            Tensor::from_vec(values, (1, n, 1), device)
        };
        let snake = match alpha {
            Some(alpha) => {
                let inverse = alpha.iter().map(|alpha| 1.0 / (alpha + 1e-9)).collect();
                Some((row(alpha)?, row(inverse)?))
            }
            None => None,
        };
        Ok(Convolution {
            shape,
            snake,
            weight: Tensor::from_vec(weight, sizes, device)?,
            bias: row(bias)?,
            is_last,
        })
    }

    fn run(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        let x = match &self.snake {
            Some((alpha, inverse)) => {
                let squared = x.broadcast_mul(alpha)?.sin()?.sqr()?;
                (x + squared.broadcast_mul(inverse)?)?
            }
            None => x.clone(),
        };
        let pad = self.shape.pad;
        let y = match self.shape.along {
            Along::Plain { dilation } => x.conv1d(&self.weight, pad, 1, dilation, 1)?,
            Along::Down { stride } => x.conv1d(&self.weight, pad, stride, 1, 1)?,
            Along::Up { stride } => x.conv_transpose1d(&self.weight, pad, 0, stride, 1, 1)?,
        };
        let y = y.broadcast_add(&self.bias)?;
        if self.is_last { y.tanh() } else { Ok(y) }
    }
}
