//! What a codec is made of: as the file says, or as its tensors' names and shapes show.

use windrow_core::{Error, Result};
use windrow_pickle::Saved;

use crate::weights::Weights;

/// Samples per second, where a file does not say: that of the weights most models are trained on.
const SAMPLE_RATE: u64 = 44_100;

/// A codec's sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) encoder_dim: usize,
    pub(crate) encoder_rates: Vec<usize>,
    pub(crate) latent_dim: usize,
    pub(crate) decoder_dim: usize,
    pub(crate) decoder_rates: Vec<usize>,
    pub(crate) codebook_size: usize,
    /// One for each codebook.
    pub(crate) codebook_dims: Vec<usize>,
    pub(crate) sample_rate: u32,
}

impl Config {
    /// The sizes of the codec in a file. They are compared with the tensors when those are read.
    pub(crate) fn of(weights: &Weights) -> Result<Config> {
        let config = match weights.kwargs() {
            Some(kwargs) => described(kwargs)?,
            None => seen(weights)?,
        };
        config.check()?;
        Ok(config)
    }

    /// Samples of a frame.
    pub(crate) fn hop(&self) -> usize {
        self.encoder_rates.iter().product()
    }

    // No layer is wider than a product of sizes that a real codec has by far; all arithmetic on them fits.
    fn check(&self) -> Result<()> {
        let Config { encoder_dim, latent_dim, decoder_dim, codebook_size, codebook_dims, .. } = self;
        within("encoder_dim", *encoder_dim as u64, 1, 1 << 14)?;
        within("latent_dim", *latent_dim as u64, 1, 1 << 16)?;
        within("decoder_dim", *decoder_dim as u64, 1, 1 << 16)?;
        within("codebook_size", *codebook_size as u64, 1, 1 << 16)?;
        within("n_codebooks", codebook_dims.len() as u64, 1, 256)?;
        for dim in codebook_dims {
            within("codebook_dim", *dim as u64, 1, 1 << 12)?;
        }
        for (name, rates) in [("encoder_rates", &self.encoder_rates), ("decoder_rates", &self.decoder_rates)]
        {
            within(&format!("{name}: their number"), rates.len() as u64, 1, 10)?;
            for rate in rates {
                within(name, *rate as u64, 2, 64)?;
            }
            let hop = rates.iter().fold(1u64, |hop, rate| hop.saturating_mul(*rate as u64));
            within(&format!("{name}: their product"), hop, 2, 1 << 16)?;
        }
        within("encoder_dim", (*encoder_dim as u64) << self.encoder_rates.len(), 1, 1 << 16)?;
        within("decoder_dim", (*decoder_dim as u64) >> self.decoder_rates.len(), 1, 1 << 16)?;
        within("sample_rate", u64::from(self.sample_rate), 1, 1 << 24)?;
        Ok(())
    }
}

fn within(name: &str, found: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        Err(Error::unsupported(format!("expected {least} to {most}, found {found}"))
            .field(name)
            .hint("the description of the codec is damaged, or of another kind of model"))
    }
}

fn described(kwargs: &Saved) -> Result<Config> {
    let wrong = |name: &str, what: &str| {
        Error::corrupt(format!("expected {what}"))
            .field(format!("metadata: kwargs: {name}"))
            .hint("save the model as the package does: `model.save(path, package=False)`")
    };
    let number = |name: &str, value: Option<&Saved>| match value {
        Some(Saved::Int(number)) => u32::try_from(*number).map_err(|_| wrong(name, "a small whole number")),
        _ => Err(wrong(name, "a whole number")),
    };
    let size = |name: &str| number(name, kwargs.get(name)).map(|number| number as usize);
    let list = |name: &str, values: &[Saved]| {
        within(&format!("{name}: their number"), values.len() as u64, 1, 256)?;
        values.iter().map(|v| number(name, Some(v)).map(|number| number as usize)).collect::<Result<Vec<_>>>()
    };
    let sizes = |name: &str| match kwargs.get(name) {
        Some(Saved::List(values)) => list(name, values),
        _ => Err(wrong(name, "a list of whole numbers")),
    };
    let (encoder_dim, encoder_rates) = (size("encoder_dim")?, sizes("encoder_rates")?);
    let n_codebooks = size("n_codebooks")?;
    within("n_codebooks", n_codebooks as u64, 1, 256)?;
    let codebook_dims = match kwargs.get("codebook_dim") {
        Some(Saved::List(values)) => list("codebook_dim", values)?,
        one => vec![number("codebook_dim", one)? as usize; n_codebooks],
    };
    if codebook_dims.len() < n_codebooks {
        return Err(wrong("codebook_dim", &format!("{n_codebooks} numbers, found {}", codebook_dims.len())));
    }
    let latent_dim = match kwargs.get("latent_dim") {
        // As wide as the encoder is at its end.
        None | Some(Saved::None) => encoder_dim.checked_shl(encoder_rates.len() as u32).unwrap_or(0),
        Some(_) => size("latent_dim")?,
    };
    Ok(Config {
        encoder_dim,
        encoder_rates,
        latent_dim,
        decoder_dim: size("decoder_dim")?,
        decoder_rates: sizes("decoder_rates")?,
        codebook_size: size("codebook_size")?,
        codebook_dims: codebook_dims.into_iter().take(n_codebooks).collect(),
        sample_rate: match kwargs.get("sample_rate") {
            None => SAMPLE_RATE as u32,
            some => number("sample_rate", some)?,
        },
    })
}

// What the tensors' names and shapes show: a kernel is twice its stride.
fn seen(weights: &Weights) -> Result<Config> {
    const MOST: usize = 257;
    let outputs = |name: &str| weights.shape_of(name).map(|shape| shape[0]);
    let strides = |name: &dyn Fn(usize) -> String| -> Result<Vec<usize>> {
        let present = (1..MOST).map(name).take_while(|name| weights.has(name));
        present.map(|name| Ok(weights.shape_of(&name)?[2] / 2)).collect()
    };
    let encoder_rates = strides(&|i| format!("encoder.block.{i}.block.4"))?;
    let decoder_rates = strides(&|i| format!("decoder.model.{i}.block.1"))?;
    let entries: Vec<[usize; 2]> = (0..MOST)
        .map(|i| format!("quantizer.quantizers.{i}.codebook.weight"))
        .map_while(|name| weights.tensor_shape(&name))
        .filter_map(|shape| <[usize; 2]>::try_from(shape).ok())
        .collect();
    let Some(&[codebook_size, _]) = entries.first() else {
        return Err(weights.missing("quantizer.quantizers.0.codebook.weight", "[codes, dim]"));
    };
    Ok(Config {
        encoder_dim: outputs("encoder.block.0")?,
        latent_dim: outputs(&format!("encoder.block.{}", encoder_rates.len() + 2))?,
        encoder_rates,
        decoder_dim: outputs("decoder.model.0")?,
        decoder_rates,
        codebook_size,
        codebook_dims: entries.iter().map(|entry| entry[1]).collect(),
        sample_rate: weights.sample_rate().unwrap_or(SAMPLE_RATE).min(u64::from(u32::MAX)) as u32,
    })
}
