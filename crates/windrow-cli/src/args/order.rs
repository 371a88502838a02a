//! In which order samples come, and how many to a batch.

use clap::Args;
use windrow::format::Options;
use windrow::{
    Balance, LOADER, LastBatch, LengthsOf, LoaderBuilder, Paths, Recipe, RecipePart, Shuffle, ViewRecipe,
    last_batch,
};

use crate::failure::Failure;
use crate::options;
use crate::text;

/// In which order samples come, and how many to a batch.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How to order")]
pub(crate) struct Ordering {
    #[arg(long, value_name = "N", help = of_row("batch_size"))]
    batch_size: Option<u64>,
    #[arg(long, value_name = "N", conflicts_with = "batch_size", help = of_row("global_batch_size"))]
    global_batch_size: Option<u64>,
    #[arg(long, value_name = "N", conflicts_with_all = ["batch_size", "global_batch_size"], help = of_row("max_tokens"))]
    max_tokens: Option<u64>,
    #[arg(long, value_name = "D", requires = "max_tokens", help = of_row("multiple"))]
    batch_multiple: Option<u64>,
    #[arg(long, value_name = "Q", requires = "max_tokens", help = of_row("pool"))]
    pool: Option<u64>,
    #[arg(long, value_name = "COLUMN", requires = "max_tokens", help = of_row("lengths"))]
    lengths: Option<String>,
    #[arg(long, value_name = "S", help = of_row("seed"))]
    seed: Option<u64>,
    #[arg(long, value_name = "ORDER", value_parser = shuffle, help = of_row("shuffle"))]
    shuffle: Option<Shuffle>,
    /// The order of the records: --shuffle off
    #[arg(long, conflicts_with = "shuffle")]
    no_shuffle: bool,
    #[arg(long, conflicts_with = "last", help = of_row("drop_last"))]
    no_drop_last: bool,
    #[arg(long, value_name = "HOW", value_parser = ["repeat"], help = of_row("last"))]
    last: Option<String>,
    #[arg(long, value_name = "NAME", help = of_row("map_name"))]
    map_name: Option<String>,
    #[arg(long, value_name = "A", value_parser = balance, help = of_row("balance"))]
    balance: Option<String>,
    #[arg(long, value_name = "M", help = of_row("accumulate"))]
    accumulate: Option<u64>,
}

/// What the table of loaders says of an option.
pub(crate) fn of_row(name: &str) -> String {
    LOADER.iter().find(|row| row.name == name).map(options::help).unwrap_or_default()
}

impl Ordering {
    /// Whether any of it was typed.
    pub(crate) fn is_given(&self) -> bool {
        self.batch_size.is_some()
            || self.global_batch_size.is_some()
            || self.max_tokens.is_some()
            || self.seed.is_some()
            || self.shuffle.is_some()
            || self.no_shuffle
            || self.no_drop_last
            || self.last.is_some()
            || self.map_name.is_some()
            || self.balance.is_some()
            || self.accumulate.is_some()
    }

    /// Rows of a batch over this number of ranks, as far as they were typed; 1 of batches within a budget, whose rows the data decides.
    ///
    /// # Errors
    /// Where there are more than 2^64.
    pub(crate) fn global_batch(&self, world_size: u64) -> Result<Option<u64>, Failure> {
        let too_many = || Failure::usage("--batch-size over all ranks is larger than 2^64");
        match self.batch_size {
            Some(rows) => {
                let batches = rows.checked_mul(world_size);
                let rows = batches.and_then(|rows| rows.checked_mul(self.accumulate.unwrap_or(1)));
                Ok(Some(rows.ok_or_else(too_many)?))
            }
            None => Ok(self.global_batch_size.or(self.max_tokens.map(|_| 1))),
        }
    }

    pub(crate) fn recipe(
        &self,
        path: Paths,
        options: Options,
        view: ViewRecipe,
        global_batch_size: u64,
    ) -> Result<Recipe, Failure> {
        let last = last_batch(!self.no_drop_last, self.last.as_deref())?;
        let part = RecipePart { path, options, view, dtype: None };
        Ok(Recipe {
            version: 1,
            parts: vec![part],
            names: Vec::new(),
            weights: Vec::new(),
            mixture: None,
            part_ids: false,
            stop: None,
            shuffle: self.shuffle.clone().unwrap_or((!self.no_shuffle).into()),
            seed: self.seed.unwrap_or(0),
            global_batch_size,
            max_tokens: self.max_tokens,
            multiple: self.batch_multiple,
            pool: self.pool,
            lengths: self.lengths.as_deref().map(LengthsOf::from),
            drop_last: last == LastBatch::Drop,
            repeat_last: last == LastBatch::Repeat,
            skip: Vec::new(),
            map_name: self.map_name.clone(),
            balance: self.balance.clone(),
            accumulate: self.accumulate.filter(|batches| *batches != 1),
            plan: None,
        })
    }
}

/// The parser of `--shuffle`.
pub(crate) fn shuffle(text: &str) -> Result<Shuffle, String> {
    text.parse().map_err(|e| text::one_line(&e))
}

/// The parser of `--balance`, to the text that a recipe holds.
fn balance(text: &str) -> Result<String, String> {
    text.parse().map(|by: Balance| by.to_string()).map_err(|e| text::one_line(&e))
}

/// The loader of a recipe on this machine, alone.
pub(crate) fn loader(recipe: &Recipe, threads: Option<usize>) -> windrow::Result<LoaderBuilder> {
    Ok(recipe.builder()?.rank(0, 1).num_threads(threads))
}
