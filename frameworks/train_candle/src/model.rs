//! A small GPT: RMS norms, rotary positions, attention with grouped queries, a gated feed-forward layer.

use candle_core::{D, Device, Result, Tensor, Var};

use crate::config::Model;

/// One named part of the weights.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) var: Var,
}

/// The model and its weights, in an order that is always the same.
pub(crate) struct Gpt {
    config: Model,
    parameters: Vec<Parameter>,
    embedding: Var,
    blocks: Vec<Block>,
    norm: Var,
    head: Var,
    rotary: Rotary,
    mask: Tensor,
}

struct Block {
    attention_norm: Var,
    query: Var,
    key: Var,
    value: Var,
    out: Var,
    feed_norm: Var,
    gate: Var,
    up: Var,
    down: Var,
}

impl Gpt {
    /// Weights drawn by `seed`.
    pub(crate) fn new(config: &Model, seed: u64, device: &Device) -> Result<Gpt> {
        let mut draw = Draw { generator: fastrand::Rng::with_seed(seed), device, parameters: Vec::new() };
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let narrow = config.kv_heads * config.head_size();
        // What is added to the stream starts smaller, the more is added.
        let added = 0.02 / (2.0 * config.num_layers as f64).sqrt();
        let embedding = draw.normal("embedding", (config.vocab_size, hidden), 0.02)?;
        let mut blocks = Vec::new();
        for layer in 0..config.num_layers {
            let name = |part: &str| format!("blocks.{layer}.{part}");
            blocks.push(Block {
                attention_norm: draw.ones(&name("attention_norm"), hidden)?,
                query: draw.normal(&name("query"), (hidden, hidden), 0.02)?,
                key: draw.normal(&name("key"), (hidden, narrow), 0.02)?,
                value: draw.normal(&name("value"), (hidden, narrow), 0.02)?,
                out: draw.normal(&name("out"), (hidden, hidden), added)?,
                feed_norm: draw.ones(&name("feed_norm"), hidden)?,
                gate: draw.normal(&name("gate"), (hidden, inner), 0.02)?,
                up: draw.normal(&name("up"), (hidden, inner), 0.02)?,
                down: draw.normal(&name("down"), (inner, hidden), added)?,
            });
        }
        let norm = draw.ones("norm", hidden)?;
        let head = draw.normal("head", (hidden, config.vocab_size), 0.02)?;
        let parameters = draw.parameters;
        let rotary = Rotary::new(config, device)?;
        let mask = causal(config.max_seq_len, device)?;
        Ok(Gpt { config: config.clone(), parameters, embedding, blocks, norm, head, rotary, mask })
    }

    /// All weights, in the order they are drawn in.
    pub(crate) fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// How badly `labels` follow `ids`, both `[B, S]` of i64: the mean over all of them, in nats.
    pub(crate) fn loss(&self, ids: &Tensor, labels: &Tensor) -> Result<Tensor> {
        let logits = self.logits(ids)?;
        let shifted = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?.detach())?;
        let sum = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
        let picked = shifted.gather(&labels.flatten_all()?.unsqueeze(1)?, 1)?;
        (sum - picked)?.mean_all()
    }

    // `[B * S, V]`.
    fn logits(&self, ids: &Tensor) -> Result<Tensor> {
        let (batch, length) = ids.dims2()?;
        let mut x = self.embedding.index_select(&ids.flatten_all()?, 0)?;
        for block in &self.blocks {
            x = (&x + self.attend(block, &rms_norm(&x, &block.attention_norm)?, batch, length)?)?;
            let normed = rms_norm(&x, &block.feed_norm)?;
            let gated = (normed.matmul(&block.gate)?.silu()? * normed.matmul(&block.up)?)?;
            x = (x + gated.matmul(&block.down)?)?;
        }
        rms_norm(&x, &self.norm)?.matmul(&self.head)
    }

    // `x`: `[B * S, hidden]`.
    fn attend(&self, block: &Block, x: &Tensor, batch: usize, length: usize) -> Result<Tensor> {
        let Model { num_heads, kv_heads, .. } = self.config;
        let size = self.config.head_size();
        let split = |weights: &Var, heads| -> Result<Tensor> {
            x.matmul(weights)?.reshape((batch, length, heads, size))?.transpose(1, 2)?.contiguous()
        };
        // A head of keys and values serves several heads of queries that follow each other.
        let share = |heads: Tensor| -> Result<Tensor> {
            let each = num_heads / kv_heads;
            heads
                .unsqueeze(2)?
                .expand((batch, kv_heads, each, length, size))?
                .reshape((batch, num_heads, length, size))
        };
        let query = self.rotary.turn(&split(&block.query, num_heads)?)?;
        let key = share(self.rotary.turn(&split(&block.key, kv_heads)?)?)?;
        let value = share(split(&block.value, kv_heads)?)?;
        let mask = self.mask.narrow(0, 0, length)?.narrow(1, 0, length)?;
        let scores = (query.matmul(&key.transpose(2, 3)?.contiguous()?)? / (size as f64).sqrt())?;
        let seen = softmax(&scores.broadcast_add(&mask)?)?.matmul(&value)?;
        seen.transpose(1, 2)?.reshape((batch * length, num_heads * size))?.matmul(&block.out)
    }
}

/// Angles by position, half of a head's width each.
struct Rotary {
    cos: Tensor,
    sin: Tensor,
}

impl Rotary {
    fn new(config: &Model, device: &Device) -> Result<Rotary> {
        let (length, half) = (config.max_seq_len, config.head_size() / 2);
        let turn = |i: usize| config.rope_theta.powf(-(i as f64) / half as f64);
        let angles = (0..length).flat_map(|at| (0..half).map(move |i| at as f64 * turn(i)));
        let (cos, sin): (Vec<f32>, Vec<f32>) = angles.map(|a| (a.cos() as f32, a.sin() as f32)).unzip();
        let table = |values| Tensor::from_vec(values, (length, half), device);
        Ok(Rotary { cos: table(cos)?, sin: table(sin)? })
    }

    // `x`: `[B, heads, S, size]`.
    fn turn(&self, x: &Tensor) -> Result<Tensor> {
        let (_, _, length, size) = x.dims4()?;
        let (cos, sin) = (self.cos.narrow(0, 0, length)?, self.sin.narrow(0, 0, length)?);
        let (a, b) = (x.narrow(3, 0, size / 2)?, x.narrow(3, size / 2, size / 2)?);
        let first = (a.broadcast_mul(&cos)? - b.broadcast_mul(&sin)?)?;
        let second = (a.broadcast_mul(&sin)? + b.broadcast_mul(&cos)?)?;
        Tensor::cat(&[first, second], 3)
    }
}

/// Makes weights and remembers them.
struct Draw<'a> {
    generator: fastrand::Rng,
    device: &'a Device,
    parameters: Vec<Parameter>,
}

impl Draw<'_> {
    fn normal(&mut self, name: &str, (rows, columns): (usize, usize), deviation: f64) -> Result<Var> {
        let mut values = Vec::with_capacity(rows * columns + 1);
        while values.len() < rows * columns {
            // Box and Muller: two uniform numbers, the first above 0, are two normal ones.
            let (u, v) = (1.0 - self.generator.f64(), self.generator.f64());
            let (radius, angle) = ((-2.0 * u.ln()).sqrt() * deviation, std::f64::consts::TAU * v);
            values.extend([(radius * angle.cos()) as f32, (radius * angle.sin()) as f32]);
        }
        values.truncate(rows * columns);
        let var = Var::from_vec(values, (rows, columns), self.device)?;
        self.keep(name, var)
    }

    fn ones(&mut self, name: &str, size: usize) -> Result<Var> {
        let var = Var::ones(size, candle_core::DType::F32, self.device)?;
        self.keep(name, var)
    }

    fn keep(&mut self, name: &str, var: Var) -> Result<Var> {
        self.parameters.push(Parameter { name: name.to_string(), var: var.clone() });
        Ok(var)
    }
}

fn rms_norm(x: &Tensor, weights: &Var) -> Result<Tensor> {
    let scale = (x.sqr()?.mean_keepdim(D::Minus1)? + 1e-6)?.sqrt()?;
    x.broadcast_div(&scale)?.broadcast_mul(weights)
}

fn softmax(x: &Tensor) -> Result<Tensor> {
    let powers = x.broadcast_sub(&x.max_keepdim(D::Minus1)?.detach())?.exp()?;
    powers.broadcast_div(&powers.sum_keepdim(D::Minus1)?)
}

// 0 where a position sees another, minus infinity where that comes later.
fn causal(length: usize, device: &Device) -> Result<Tensor> {
    let seen = |at: usize, other: usize| if other <= at { 0.0 } else { f32::NEG_INFINITY };
    let values: Vec<f32> = (0..length).flat_map(|at| (0..length).map(move |other| seen(at, other))).collect();
    Tensor::from_vec(values, (length, length), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Model {
        Model {
            hidden_size: 16,
            num_layers: 2,
            num_heads: 4,
            kv_heads: 2,
            intermediate_size: 24,
            vocab_size: 11,
            max_seq_len: 8,
            rope_theta: 100.0,
        }
    }

    fn ids(values: &[i64]) -> Tensor {
        Tensor::from_slice(values, (1, values.len()), &Device::Cpu).unwrap()
    }

    #[test]
    fn an_untrained_model_knows_nothing() {
        let gpt = Gpt::new(&config(), 3, &Device::Cpu).unwrap();
        let loss = gpt.loss(&ids(&[1, 2, 3, 4]), &ids(&[2, 3, 4, 5])).unwrap().to_scalar::<f32>().unwrap();
        assert!((loss - 11f32.ln()).abs() < 0.05, "{loss}");
    }

    #[test]
    fn a_position_sees_itself_and_what_is_before_it() {
        let gpt = Gpt::new(&config(), 3, &Device::Cpu).unwrap();
        let rows = |values: &[i64]| gpt.logits(&ids(values)).unwrap().to_vec2::<f32>().unwrap();
        let (one, other) = (rows(&[1, 2, 3, 4]), rows(&[1, 2, 9, 4]));
        assert_eq!(one[..2], other[..2]);
        assert_ne!(one[2], other[2]);
        assert_ne!(one[3], other[3], "a later position does not see an earlier one");
        // The same ids at other places: positions are told apart.
        assert_ne!(rows(&[1, 2, 2])[2], rows(&[2, 1, 2])[2]);
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let gpt = Gpt::new(&config(), 3, &Device::Cpu).unwrap();
        let (inputs, labels) = (ids(&[1, 2, 3, 4, 2, 7]), ids(&[2, 3, 4, 2, 7, 10]));
        let loss = || gpt.loss(&inputs, &labels).unwrap();
        // As drawn, the weights are so small that attention hardly matters; larger, every part of the model does.
        for Parameter { name, var } in gpt.parameters().iter().filter(|p| !p.name.ends_with("norm")) {
            let larger = (var.as_tensor().copy().unwrap() * 15.0).unwrap();
            var.set(&larger).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        let grads = loss().backward().unwrap();
        for Parameter { name, var } in gpt.parameters() {
            // Along the gradient itself, where the difference is largest.
            let before = var.as_tensor().copy().unwrap();
            let grad = grads.get(var).unwrap_or_else(|| panic!("{name} has no gradient"));
            let square = grad.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
            let step = 0.005 / f64::from(square.sqrt());
            let at = |sign: f64| {
                var.set(&(&before + (grad * (sign * step)).unwrap()).unwrap()).unwrap();
                loss().to_scalar::<f32>().unwrap()
            };
            let (up, down) = (f64::from(at(1.0)), f64::from(at(-1.0)));
            var.set(&before).unwrap();
            let (found, wanted) = ((up - down) / (2.0 * step), f64::from(square));
            assert!((found - wanted).abs() < 0.01 * wanted, "{name}: {found} for {wanted}");
        }
    }
}
