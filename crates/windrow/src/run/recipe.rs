//! A plan as text: what is needed to open the same samples in the same order elsewhere. Pickles, `trace` and saved
//! plans are made of it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use windrow_core::plan::LastBatch;
use windrow_core::sampler::Stop;
use windrow_core::source::Numbers;
use windrow_core::store::at_home;
use windrow_core::{Error, Result};

use crate::mix::shares::Shares;
use crate::order::shuffle::Shuffle;
use crate::run::budget::LengthsOf;
use crate::views::option::is_default;
use crate::views::part::RecipePart;

/// A whole plan: parts, order and batch size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// 1.
    pub version: u32,
    /// The data: one part, or the parts of a mixture.
    pub parts: Vec<RecipePart>,
    /// The parts' names, in a mixture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The parts' weights, in a mixture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f64>,
    /// When a mixture's epoch ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Weights that change, and mixtures in a mixture: instead of `weights` and `stop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixture: Option<Shares>,
    /// Whether batches say which part each row is of.
    #[serde(default, skip_serializing_if = "is_default")]
    pub part_ids: bool,
    /// Random order, another one each epoch: `true`, `false`, or the numbers of blocks, of a mixture one for each part.
    pub shuffle: Shuffle,
    /// Seed of the shuffle order.
    pub seed: u64,
    /// Rows of a batch over all ranks.
    pub global_batch_size: u64,
    /// Instead of a number of rows: rows of a batch times the longest of them, at most; `global_batch_size` is about the number of
    /// rows then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Rows of such a batch are a multiple of this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<u64>,
    /// How many rows are sorted by length together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<u64>,
    /// How long records are that are rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengths: Option<LengthsOf>,
    /// Leaves out the last batch of an epoch when it is not full.
    pub drop_last: bool,
    /// Fills that batch with the epoch's first samples instead.
    #[serde(default, skip_serializing_if = "is_default")]
    pub repeat_last: bool,
    /// Positions of the run that are left out, as `[from, to)`, counted over its epochs and over all ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<(u64, u64)>,
    /// The name of the function that rows go through, which is not part of the plan itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_name: Option<String>,
    /// By what rows are dealt to ranks, which is not part of the plan itself: `tokens`, `attention`, a number, or `function`, of which a
    /// text holds no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<String>,
    /// Batches of a rank that make a step, where it is not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulate: Option<u64>,
    /// The plan's identity when it was saved: it says nothing of other data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// A plan is a few kilobytes; its text is read up to here.
const MOST_BYTES: u64 = 64 << 20;

impl Recipe {
    /// Reads the plan in a file. Nothing may ever write into a pipe of that name, so only a regular file is read.
    ///
    /// # Errors
    /// `Unsupported` for a pipe, a socket or a device; else as [`Recipe::read`].
    pub fn open(path: &Path) -> Result<Recipe> {
        let path = &*at_home(path);
        // A folder says so when it is read.
        if path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            return Err(Error::unsupported("expected a plan, found a pipe, a socket or a device")
                .at(path)
                .hint("write it to a file; on the command line, `-` reads it from stdin"));
        }
        let file = File::open(path).map_err(|e| Error::io("read the plan", path, e))?;
        Recipe::read(file, path)
    }

    /// Reads a plan from a file or stream, called `name` where that goes wrong.
    ///
    /// # Errors
    /// `Io` when it cannot be read; else as [`Recipe::from_json`].
    pub fn read(from: impl Read, name: &Path) -> Result<Recipe> {
        let mut text = String::new();
        from.take(MOST_BYTES).read_to_string(&mut text).map_err(|e| Error::io("read the plan", name, e))?;
        Recipe::from_json(&text).map_err(|e| e.or_at(name))
    }

    /// Reads the JSON text of a plan.
    ///
    /// # Errors
    /// `Corrupt` when it is not a recipe, `Unsupported` when it is of another version.
    pub fn from_json(text: &str) -> Result<Recipe> {
        let recipe: Recipe =
            serde_json::from_str(text).map_err(|e| Error::corrupt("this is not a plan").caused_by(e))?;
        match recipe.version {
            1 => Ok(recipe),
            other => {
                Err(Error::unsupported(format!("a plan of version {other}; this windrow reads version 1")))
            }
        }
    }

    /// Puts numbers of chosen records where the plan has only their hash.
    ///
    /// # Errors
    /// `Mismatch` where no part is of these numbers.
    pub fn fill_numbers(&mut self, numbers: &Numbers) -> Result<()> {
        let mut is_filled = false;
        self.parts.iter_mut().for_each(|part| is_filled |= part.options.fill_numbers(numbers));
        match is_filled {
            true => Ok(()),
            false => Err(Error::mismatch(format!(
                "no part of the plan is of these {} record numbers, in this order",
                numbers.len()
            ))
            .field("select")
            .hint(
                "give the numbers that the records were chosen by, as `numbers` of that data set has them",
            )),
        }
    }

    /// What becomes of an epoch's last batch when it is not full.
    pub fn last_batch(&self) -> LastBatch {
        match (self.repeat_last, self.drop_last) {
            (true, _) => LastBatch::Repeat,
            (false, true) => LastBatch::Drop,
            (false, false) => LastBatch::Keep,
        }
    }

    /// The JSON text.
    pub fn to_json(&self) -> String {
        // Plain structs with string keys: serialising cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
