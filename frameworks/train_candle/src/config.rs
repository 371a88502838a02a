//! The YAML file with the keys of oxidizr's models: what is needed is read, what is not built here is refused by name.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use windrow::{Error, Result};

/// The whole file.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) model: Model,
    pub(crate) trainer: Trainer,
}

/// What decides the shape of the weights and what they compute; a checkpoint fits no other.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Model {
    pub(crate) hidden_size: usize,
    pub(crate) num_layers: usize,
    pub(crate) num_heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) vocab_size: usize,
    pub(crate) max_seq_len: usize,
    pub(crate) rope_theta: f64,
}

/// How it is trained; may change from one run to the run that continues it.
#[derive(Clone, Debug)]
pub(crate) struct Trainer {
    pub(crate) learning_rate: f64,
    pub(crate) batch_size: usize,
    pub(crate) gradient_accumulation: usize,
    pub(crate) num_epochs: u64,
    /// 0: no limit.
    pub(crate) max_steps: u64,
    pub(crate) checkpoint_dir: PathBuf,
    pub(crate) log_interval: u64,
    pub(crate) save_interval: u64,
    /// 0: all are kept.
    pub(crate) max_checkpoints: usize,
}

/// Keys of models that are not built here.
const OTHER_MODELS: &[&str] = &[
    "kv_latent_dim",
    "q_latent_dim",
    "d_rope",
    "num_experts",
    "experts_per_tok",
    "shared_expert_enabled",
    "mamba_layers",
    "mamba2_num_heads",
    "mamba2_head_dim",
    "mamba2_state_size",
    "mamba2_chunk_size",
    "mamba2_n_groups",
    "mamba2_conv_kernel",
    "mamba2_expand",
    "mamba3_enabled",
    "mamba3_complex_rope",
    "mamba3_mimo_rank",
    "mamba3_use_conv",
];

// More numbers than this fit no memory; below it, sizes are products that do not overflow.
const MOST_PARAMETERS: u128 = 1 << 36;

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// `NotFound`; `Config` naming the key that is missing, is of another type, or asks for what is not built here.
    pub(crate) fn read(path: &Path) -> Result<Config> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io("read the configuration", path, e))?;
        Config::parse(&text).map_err(|e| e.or_at(path))
    }

    fn parse(text: &str) -> Result<Config> {
        let file: Map<String, Value> = serde_saphyr::from_str(text)
            .map_err(|e| Error::config("the configuration is no YAML mapping").caused_by(e))?;
        Ok(Config {
            model: Model::from(&Section::of(&file, "model")?)?,
            trainer: Trainer::from(&Section::of(&file, "trainer")?)?,
        })
    }
}

impl Model {
    fn from(section: &Section<'_>) -> Result<Model> {
        for key in OTHER_MODELS {
            section.refuse(
                key,
                "this example builds dense attention alone: no experts, no latent attention, no mamba",
            )?;
        }
        section.only("dtype", "f32", "this example computes in f32")?;
        let hidden_size = section.count("hidden_size")?;
        let num_heads = section.count("num_heads")?;
        Ok(Model {
            hidden_size,
            num_layers: section.count("num_layers")?,
            num_heads,
            kv_heads: section.optional_count("kv_heads")?.unwrap_or(num_heads),
            intermediate_size: section
                .optional_count("intermediate_size")?
                .unwrap_or(hidden_size.saturating_mul(4)),
            vocab_size: section.count("vocab_size")?,
            max_seq_len: section.count("max_seq_len")?,
            rope_theta: section.positive("rope_theta")?,
        })
    }

    /// Width of one head.
    pub(crate) fn head_size(&self) -> usize {
        self.hidden_size / self.num_heads
    }

    /// Refuses sizes that do not go together.
    ///
    /// # Errors
    /// `Config`.
    pub(crate) fn check(&self) -> Result<()> {
        let Model { hidden_size, num_heads, kv_heads, .. } = *self;
        let wrong = |key: &str, says: String| Err(Error::config(says).field(format!("model.{key}")));
        if !hidden_size.is_multiple_of(num_heads) || !self.head_size().is_multiple_of(2) {
            let says =
                format!("hidden_size {hidden_size} over num_heads {num_heads} is not an even whole number");
            return wrong("hidden_size", says);
        }
        if !num_heads.is_multiple_of(kv_heads) {
            return wrong("kv_heads", format!("num_heads {num_heads} is no multiple of kv_heads {kv_heads}"));
        }
        let [hidden, inner, vocab, layers] =
            [hidden_size, self.intermediate_size, self.vocab_size, self.num_layers].map(|n| n as u128);
        let parameters = 2 * vocab * hidden + layers * (4 * hidden * hidden + 3 * hidden * inner);
        if parameters.max(self.max_seq_len as u128 * hidden) > MOST_PARAMETERS {
            return wrong(
                "hidden_size",
                format!("about {parameters} parameters; this example stops at {MOST_PARAMETERS}"),
            );
        }
        Ok(())
    }
}

impl Trainer {
    fn from(section: &Section<'_>) -> Result<Trainer> {
        section.only("target_device", "cpu", "this example trains on the CPU")?;
        if let Some(Value::Object(distributed)) = section.fields.get("distributed") {
            let inner = Section { name: "trainer.distributed", fields: distributed };
            inner.refuse("enabled", "this example trains in one process")?;
        }
        // They belong to experts and to reinforcement learning. The format requires them, so every file has them.
        section.positive_or_zero("load_balance_alpha")?;
        section.required::<u64>("group_size", "a whole number")?;
        section.positive_or_zero("beta_kl")?;
        Ok(Trainer {
            learning_rate: section.positive("learning_rate")?,
            batch_size: section.count("batch_size")?,
            gradient_accumulation: section.count("gradient_accumulation")?,
            num_epochs: section.count("num_epochs")? as u64,
            max_steps: section.required("max_steps", "a whole number")?,
            checkpoint_dir: section.required("checkpoint_dir", "a path")?,
            log_interval: section.count("log_interval")? as u64,
            save_interval: section.count("save_interval")? as u64,
            max_checkpoints: section.optional("max_checkpoints", "a whole number")?.unwrap_or(10),
        })
    }
}

/// One of the two parts of the file.
struct Section<'a> {
    name: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> Section<'a> {
    fn of(file: &'a Map<String, Value>, name: &'a str) -> Result<Section<'a>> {
        match file.get(name) {
            Some(Value::Object(fields)) => Ok(Section { name, fields }),
            None => Err(Error::config(format!("{name} is missing")).field(name)),
            Some(_) => Err(Error::config(format!("{name} is no mapping")).field(name)),
        }
    }

    fn wrong(&self, key: &str, says: &str) -> Error {
        let key = format!("{}.{key}", self.name);
        Error::config(format!("{key} {says}")).field(key)
    }

    fn optional<T: DeserializeOwned>(&self, key: &str, expected: &str) -> Result<Option<T>> {
        let Some(value) = self.fields.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let read = T::deserialize(value)
            .map_err(|_| self.wrong(key, &format!("is {value}, expected {expected}")))?;
        Ok(Some(read))
    }

    fn required<T: DeserializeOwned>(&self, key: &str, expected: &str) -> Result<T> {
        self.optional(key, expected)?
            .ok_or_else(|| self.wrong(key, &format!("is missing; expected {expected}")))
    }

    // At least 1, and small enough that a product of two of them is a size.
    fn optional_count(&self, key: &str) -> Result<Option<usize>> {
        let expected = format!("a whole number from 1 to {}", u32::MAX);
        match self.optional::<u32>(key, &expected)? {
            Some(0) => Err(self.wrong(key, &format!("is 0, expected {expected}"))),
            count => Ok(count.map(|n| n as usize)),
        }
    }

    fn count(&self, key: &str) -> Result<usize> {
        self.optional_count(key)?
            .ok_or_else(|| self.wrong(key, "is missing; expected a whole number above 0"))
    }

    fn positive(&self, key: &str) -> Result<f64> {
        match self.positive_or_zero(key)? {
            0.0 => Err(self.wrong(key, "is 0, expected a number above it")),
            number => Ok(number),
        }
    }

    fn positive_or_zero(&self, key: &str) -> Result<f64> {
        let number: f64 = self.required(key, "a number")?;
        if number.is_finite() && number >= 0.0 {
            Ok(number)
        } else {
            Err(self.wrong(key, &format!("is {number}, expected a number of 0 or more")))
        }
    }

    // Null, false, 0 and an empty list ask for nothing.
    fn refuse(&self, key: &str, why: &str) -> Result<()> {
        match self.fields.get(key) {
            None | Some(Value::Null | Value::Bool(false)) => Ok(()),
            Some(Value::Array(list)) if list.is_empty() => Ok(()),
            Some(Value::Number(number)) if number.as_f64() == Some(0.0) => Ok(()),
            Some(value) => Err(self.wrong(key, &format!("is {value}, but {why}"))),
        }
    }

    fn only(&self, key: &str, accepted: &str, why: &str) -> Result<()> {
        match self.optional::<String>(key, accepted)? {
            Some(other) if other != accepted => {
                Err(self.wrong(key, &format!("is {other}, but {why}")).hint(format!("set it to {accepted}")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NANO: &str = include_str!("../nano.yaml");

    #[track_caller]
    fn refused(from: &str, to: &str, says: &str) {
        assert!(NANO.contains(from), "{from}");
        let error =
            Config::parse(&NANO.replace(from, to)).and_then(|c| c.model.check()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn the_shipped_file_is_read_and_unknown_keys_are_ignored() {
        let config = Config::parse(&NANO.replace("model:\n", "model:\n  colour: blue\n")).unwrap();
        config.model.check().unwrap();
        assert_eq!((config.model.hidden_size, config.model.kv_heads, config.trainer.max_steps), (64, 2, 0));
        assert_eq!(config.trainer.max_checkpoints, 3);
        let config = Config::parse(&NANO.replace("rate: 0.003", "rate: 3e-4")).unwrap();
        assert_eq!(config.trainer.learning_rate, 3e-4);
    }

    #[test]
    fn what_is_left_out_has_the_originals_default() {
        let mut text = NANO.to_string();
        for key in ["kv_heads", "intermediate_size", "max_checkpoints", "target_device"] {
            text = text
                .lines()
                .filter(|line| !line.trim().starts_with(key))
                .map(|line| format!("{line}\n"))
                .collect();
        }
        let config = Config::parse(&text).unwrap();
        assert_eq!((config.model.kv_heads, config.model.intermediate_size), (4, 256));
        assert_eq!(config.trainer.max_checkpoints, 10);
    }

    #[test]
    fn a_missing_key_is_named() {
        for key in ["hidden_size", "num_layers", "num_heads", "vocab_size", "max_seq_len", "rope_theta"] {
            refused(&format!("  {key}:"), "  x:", &format!("model.{key} is missing"));
        }
        for key in [
            "learning_rate",
            "batch_size",
            "max_steps",
            "num_epochs",
            "gradient_accumulation",
            "checkpoint_dir",
            "log_interval",
            "save_interval",
            "load_balance_alpha",
            "group_size",
            "beta_kl",
        ] {
            refused(&format!("  {key}:"), "  x:", &format!("trainer.{key} is missing"));
        }
        refused("trainer:", "coach:", "trainer is missing");
    }

    #[test]
    fn a_value_that_cannot_be_meant_is_quoted() {
        refused(
            "hidden_size: 64",
            "hidden_size: wide",
            "model.hidden_size is \"wide\", expected a whole number",
        );
        refused("num_layers: 2", "num_layers: 0", "model.num_layers is 0");
        refused("num_layers: 2", "num_layers: -1", "model.num_layers is -1");
        refused("learning_rate: 0.003", "learning_rate: 0", "trainer.learning_rate is 0");
        refused("rope_theta: 10000.0", "rope_theta: -1.0", "model.rope_theta is -1");
        refused("num_heads: 4", "num_heads: 3", "hidden_size 64 over num_heads 3");
        refused("kv_heads: 2", "kv_heads: 3", "num_heads 4 is no multiple of kv_heads 3");
        refused("vocab_size: 257", "vocab_size: 4294967295", "parameters");
    }

    #[test]
    fn what_is_not_built_here_is_refused_by_name_and_only_when_asked_for() {
        for key in OTHER_MODELS {
            let set = format!("model:\n  {key}: 4\n");
            refused(
                "model:\n",
                &set,
                &format!("model.{key} is 4, but this example builds dense attention alone"),
            );
        }
        refused("model:\n", "model:\n  mamba_layers: [0, 1]\n", "model.mamba_layers is [0,1]");
        refused("model:\n", "model:\n  dtype: bf16\n", "model.dtype is bf16");
        refused("target_device: cpu", "target_device: gpu", "trainer.target_device is gpu");
        refused(
            "trainer:\n",
            "trainer:\n  distributed: {enabled: true}\n",
            "trainer.distributed.enabled is true",
        );
        let idle = "model:\n  num_experts: 0\n  mamba_layers: []\n  mamba3_enabled: false\n  d_rope: null\n";
        Config::parse(&NANO.replace("model:\n", idle)).unwrap();
    }
}
