//! The encoder's and the decoder's layers, from the tensors in a file.

use windrow_core::Result;

use crate::config::Config;
use crate::kernels::Kernels;
use crate::layer::{Along, Convolution, Layer, Shape};
use crate::quantizer::Codebook;
use crate::weights::Weights;

/// A convolution as it is in the file.
pub(crate) struct Part {
    pub(crate) shape: Shape,
    /// The snake before it: a number for each input.
    pub(crate) alpha: Option<Vec<f32>>,
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    /// After it: `tanh`.
    pub(crate) is_last: bool,
}

/// What reads the parts in their order, and makes of each what a device runs.
pub(crate) struct Reader<'a, P> {
    pub(crate) weights: &'a mut Weights,
    pub(crate) make: &'a mut dyn FnMut(Part) -> Result<P>,
}

/// A layer of parts that were made.
pub(crate) enum Made<P> {
    Convolution(P),
    Residual(P, P),
}

impl<P> Reader<'_, P> {
    fn part(&mut self, name: &str, snake: Option<&str>, shape: Shape, is_last: bool) -> Result<P> {
        let Shape { inputs, outputs, kernel, along, .. } = shape;
        let alpha = match snake {
            Some(name) => Some(self.weights.tensor(&format!("{name}.alpha"), &[1, inputs, 1])?),
            None => None,
        };
        let sizes = match along {
            Along::Up { .. } => [inputs, outputs, kernel],
            _ => [outputs, inputs, kernel],
        };
        let weight = self.weights.weight(name, sizes)?;
        let bias = self.weights.tensor(&format!("{name}.bias"), &[outputs])?;
        (self.make)(Part { shape, alpha, weight, bias, is_last })
    }

    fn plain(
        &mut self,
        name: &str,
        snake: Option<&str>,
        io: (usize, usize),
        kernel: usize,
    ) -> Result<Made<P>> {
        let shape = plain(io, kernel, 1);
        Ok(Made::Convolution(self.part(name, snake, shape, false)?))
    }

    fn residuals(&mut self, name: &str, first: usize, dim: usize, out: &mut Vec<Made<P>>) -> Result<()> {
        for (i, dilation) in [1, 3, 9].into_iter().enumerate() {
            let name = format!("{name}.block.{}.block", first + i);
            let (snake, inner) = (format!("{name}.0"), format!("{name}.2"));
            let one = self.part(&format!("{name}.1"), Some(&snake), plain((dim, dim), 7, dilation), false)?;
            let two = self.part(&format!("{name}.3"), Some(&inner), plain((dim, dim), 1, 1), false)?;
            out.push(Made::Residual(one, two));
        }
        Ok(())
    }

    /// The encoder: samples → latent.
    pub(crate) fn encoder(&mut self, config: &Config) -> Result<Vec<Made<P>>> {
        let mut dim = config.encoder_dim;
        let mut layers = vec![self.plain("encoder.block.0", None, (1, dim), 7)?];
        for (i, &stride) in config.encoder_rates.iter().enumerate() {
            let name = format!("encoder.block.{}", i + 1);
            self.residuals(&name, 0, dim, &mut layers)?;
            let shape = Shape {
                inputs: dim,
                outputs: 2 * dim,
                kernel: 2 * stride,
                pad: stride.div_ceil(2),
                along: Along::Down { stride },
            };
            let snake = format!("{name}.block.3");
            layers.push(Made::Convolution(self.part(
                &format!("{name}.block.4"),
                Some(&snake),
                shape,
                false,
            )?));
            dim *= 2;
        }
        let last = config.encoder_rates.len() + 1;
        let (snake, name) = (format!("encoder.block.{last}"), format!("encoder.block.{}", last + 1));
        layers.push(self.plain(&name, Some(&snake), (dim, config.latent_dim), 3)?);
        Ok(layers)
    }

    /// The decoder: latent → samples.
    pub(crate) fn decoder(&mut self, config: &Config) -> Result<Vec<Made<P>>> {
        let mut layers =
            vec![self.plain("decoder.model.0", None, (config.latent_dim, config.decoder_dim), 7)?];
        for (i, &stride) in config.decoder_rates.iter().enumerate() {
            let name = format!("decoder.model.{}", i + 1);
            let (inputs, outputs) = (config.decoder_dim >> i, config.decoder_dim >> (i + 1));
            let shape = Shape {
                inputs,
                outputs,
                kernel: 2 * stride,
                pad: stride.div_ceil(2),
                along: Along::Up { stride },
            };
            let snake = format!("{name}.block.0");
            layers.push(Made::Convolution(self.part(
                &format!("{name}.block.1"),
                Some(&snake),
                shape,
                false,
            )?));
            self.residuals(&name, 2, outputs, &mut layers)?;
        }
        let last = config.decoder_rates.len() + 1;
        let (snake, name) = (format!("decoder.model.{last}"), format!("decoder.model.{}", last + 1));
        let dim = config.decoder_dim >> config.decoder_rates.len();
        layers.push(Made::Convolution(self.part(&name, Some(&snake), plain((dim, 1), 7, 1), true)?));
        Ok(layers)
    }
}

fn plain((inputs, outputs): (usize, usize), kernel: usize, dilation: usize) -> Shape {
    Shape { inputs, outputs, kernel, pad: (kernel - 1) * dilation / 2, along: Along::Plain { dilation } }
}

/// A part for this processor.
pub(crate) fn here(kernels: Kernels, part: Part) -> Convolution {
    let mut made = Convolution::new(kernels, part.shape, part.alpha, &part.weight, part.bias);
    made.is_last = part.is_last;
    made
}

/// Layers for this processor.
pub(crate) fn layers(made: Vec<Made<Convolution>>) -> Vec<Layer> {
    let layer = |made| match made {
        Made::Convolution(one) => Layer::Convolution(one),
        Made::Residual(one, two) => Layer::Residual(Box::new((one, two))),
    };
    made.into_iter().map(layer).collect()
}

/// The codebooks.
pub(crate) fn codebooks(weights: &mut Weights, config: &Config, kernels: Kernels) -> Result<Vec<Codebook>> {
    let (latent, size) = (config.latent_dim, config.codebook_size);
    let mut all = Vec::new();
    for (i, &dim) in config.codebook_dims.iter().enumerate() {
        let name = format!("quantizer.quantizers.{i}");
        let mut projection = |end: &str, outputs: usize, inputs: usize| {
            let name = format!("{name}.{end}");
            let weight = weights.weight(&name, [outputs, inputs, 1])?;
            Ok((weight, weights.tensor(&format!("{name}.bias"), &[outputs])?))
        };
        let (into, out_of) = (projection("in_proj", dim, latent)?, projection("out_proj", latent, dim)?);
        let entries = weights.tensor(&format!("{name}.codebook.weight"), &[size, dim])?;
        all.push(Codebook::new(kernels, latent, (size, dim), into, out_of, entries));
    }
    Ok(all)
}
