//! Plans, as they are typed: a plan's JSON, or data and how to cut it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use windrow::dev::manifest::TokenizerLock;
use windrow::dev::plan::Steps;
use windrow::dev::sampler::Shard;
use windrow::dev::store::at_home;
use windrow::preview::tokens::{self, Tokenizer};
use windrow::{Kind, Paths, Plan, Recipe, numbers_in};

use crate::args::{Choosing, Cutting, Opening, Ordering, loader, no_text, of_row, only_token_ids, path};
use crate::failure::Failure;

/// What a plan is, for the hint where something else is found.
pub(crate) const IS_A_PLAN: &str =
    "a plan is what `windrow plan` writes, or recipe() of a loader in Python gives, as JSON";

/// A plan, from its JSON or from the options that make one.
#[derive(Args, Debug)]
pub(crate) struct Planned {
    /// A plan's JSON, `-` for stdin, or data: a file or folder, several of them, or a pattern in quotes
    #[arg(required = true, value_name = "PLAN", value_parser = path())]
    plan: Vec<PathBuf>,
    /// Decode with this tokenizer; by default the built-in one that the manifest names
    #[arg(long, value_name = "T")]
    tokenizer: Option<String>,
    #[command(flatten)]
    cutting: Cutting,
    #[command(flatten)]
    ordering: Ordering,
    #[command(flatten)]
    opening: Opening,
    #[command(flatten)]
    choosing: Choosing,
}

/// The rows of a batch that one rank gets.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OfRank {
    /// Only the rows of this rank
    #[arg(long, value_name = "R", requires = "world_size")]
    rank: Option<u64>,
    /// Number of ranks; with --batch-size they decide the rows of a step
    #[arg(long, value_name = "W")]
    world_size: Option<u64>,
    #[arg(long, value_name = "R/S", value_parser = context, help = of_row("context"))]
    context: Option<(u64, u64)>,
}

impl OfRank {
    /// All rows of this number of ranks; of one rank where `None`.
    pub(crate) fn of_all(world_size: Option<u64>) -> OfRank {
        OfRank { rank: None, world_size, context: None }
    }

    /// The number of ranks, 1 where none was typed.
    pub(crate) fn world_size(self) -> windrow::Result<u64> {
        let world_size = self.world_size.unwrap_or(1);
        Ok(Shard::new(0, world_size)?.world_size())
    }

    /// All rows, where no rank was typed.
    pub(crate) fn shard(self) -> windrow::Result<Shard> {
        match (self.rank, self.world_size) {
            (Some(rank), Some(world_size)) => Shard::new(rank, world_size),
            _ => Ok(Shard::ALONE),
        }
    }
}

impl Planned {
    /// The plan as text.
    fn recipe(&self, of_rank: OfRank) -> Result<Recipe, Failure> {
        if let Some(view) = self.cutting.view()? {
            self.plan.iter().try_for_each(|path| refuse_plan(path))?;
            let rows = self.ordering.global_batch(of_rank.world_size()?)?.ok_or_else(no_batch)?;
            let paths = Paths::list(&self.plan);
            let options = self.choosing.options(&paths, &self.opening)?;
            return self.ordering.recipe(paths, options, view, rows);
        }
        let [plan] = &self.plan[..] else {
            return Err(Failure::Usage {
                message: format!("{} are data; how is it cut?", Paths::list(&self.plan)),
                hint: Some(
                    "name a view, as in --pack 1024 --batch-size 32 --seed 0, or one plan".to_string(),
                ),
            });
        };
        if plan.is_dir() {
            return Err(Failure::Usage {
                message: format!("{} is data; how is it cut?", plan.display()),
                hint: Some(
                    "name a view, as in --pack 1024 --batch-size 32 --seed 0, or give a plan's JSON"
                        .to_string(),
                ),
            });
        }
        if self.ordering.is_given() || self.opening.is_given() || self.choosing.has_condition() {
            return Err(says_itself("leave those options out; for data, name a view, as in --pack 1024"));
        }
        let hint = format!("{IS_A_PLAN}; data needs a view, as in --pack 1024");
        let mut recipe = read(plan).map_err(|e| e.hint(hint))?;
        fill(&mut recipe, &self.choosing.selected())?;
        Ok(recipe)
    }

    /// The plan opened, and its steps over all ranks.
    pub(crate) fn open(&self, of_rank: OfRank) -> Result<(Recipe, Plan, Steps), Failure> {
        let recipe = self.recipe(of_rank)?;
        let builder = loader(&recipe, Some(0))?;
        let plan = match of_rank.context {
            Some(context) => builder.context(context),
            None => builder,
        }
        .plan()?;
        let steps = recipe.steps(&plan)?;
        Ok((recipe, plan, steps))
    }

    /// The tokenizers that show what a plan reads, one for each part of it: the one asked for, or that of the part.
    pub(crate) fn tokenizers(&self, recipe: &Recipe) -> Result<Vec<Option<Tokenizer>>, Failure> {
        let asked = self.tokenizer.as_deref();
        // A vocabulary takes long to load, and most parts share one.
        let mut loaded: Vec<(Option<TokenizerLock>, Option<Tokenizer>)> = Vec::new();
        let mut of_parts = Vec::new();
        let mut refused = None;
        for part in &recipe.parts {
            let data = part.path.open(&part.options)?;
            only_token_ids(asked, data.source().as_ref())?;
            let lock = data.manifest().and_then(|manifest| manifest.tokenizer.clone());
            let tokenizer = match loaded.iter().find(|(of, _)| *of == lock) {
                Some((_, tokenizer)) => tokenizer.clone(),
                None => {
                    let tokenizer =
                        tokens::tokenizer(asked, data.manifest()).or_else(|e| match e.kind() {
                            // The one that was asked for may be that of another part.
                            Kind::Mismatch if recipe.parts.len() > 1 => {
                                refused = Some(e);
                                Ok(None)
                            }
                            _ => Err(e),
                        })?;
                    loaded.push((lock, tokenizer.clone()));
                    tokenizer
                }
            };
            of_parts.push(tokenizer);
        }
        match refused.filter(|_| of_parts.iter().all(Option::is_none)) {
            Some(e) => Err(e.into()),
            None => Ok(of_parts),
        }
    }

    /// Refuses `--tokenizer` where nothing is shown as text.
    pub(crate) fn no_tokenizer(&self, why: &str) -> Result<(), Failure> {
        if self.tokenizer.is_some() { Err(no_text(why)) } else { Ok(()) }
    }

    /// The files that the plan is made of: its own, and those that it reads.
    pub(crate) fn files(&self, recipe: &Recipe, plan: &Plan) -> Vec<PathBuf> {
        self.plan.iter().cloned().chain(files(recipe, plan)).collect()
    }
}

/// What a plan reads: paths as they are named, and the files there.
pub(crate) fn files(recipe: &Recipe, plan: &Plan) -> Vec<PathBuf> {
    let read =
        plan.feeds().iter().flat_map(|feed| feed.source().files()).map(|file| PathBuf::from(file.file));
    let named = recipe.parts.iter().flat_map(|part| part.path.iter()).map(Path::to_path_buf);
    named.chain(read).collect()
}

/// The error of no batch size: with another number of rows a step reads others.
pub(crate) fn no_batch() -> Failure {
    Failure::Usage {
        message: "no batch size is given, which decides the rows that a step reads".to_string(),
        hint: Some(
            "--batch-size N for each of --world-size W ranks, --global-batch-size N for all of them, or --max-tokens N, as in the run"
                .to_string(),
        ),
    }
}

/// The error of options beside a plan that has them itself.
pub(crate) fn says_itself(hint: &str) -> Failure {
    Failure::Usage {
        message: "a plan says itself how its data is opened and ordered".to_string(),
        hint: Some(hint.to_string()),
    }
}

/// The parser of steps: `a..b`, or one.
pub(crate) fn steps(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match text.split_once("..") {
        Some((from, to)) => number(from).zip(number(to)).map(|(from, to)| from..to),
        None => number(text).and_then(|step| Some(step..step.checked_add(1)?)),
    };
    range
        .filter(|range| !range.is_empty())
        .ok_or_else(|| format!("{text:?}: expected steps as 100..200, without the last"))
}

/// The parser of a rank of a context group: `0/2`.
fn context(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let numbers = text.split_once('/').and_then(|(rank, size)| number(rank).zip(number(size)));
    numbers.ok_or_else(|| format!("{text:?}: expected a rank and the number of ranks, as 0/2"))
}

/// Refuses a plan beside a view: it would be opened as data, and the error be about series.
pub(crate) fn refuse_plan(path: &Path) -> Result<(), Failure> {
    if is_stdin(path) || written(path).is_some() {
        Err(Failure::Usage {
            message: "a plan says itself how its data is cut".to_string(),
            hint: Some("leave the view out, or name the data in place of the plan".to_string()),
        })
    } else {
        Ok(())
    }
}

/// Whether the path stands for stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The plan in a file called `.json`, if it is one.
pub(crate) fn written(path: &Path) -> Option<Recipe> {
    path.extension().filter(|end| *end == "json").and_then(|_| read(path).ok())
}

/// Puts the numbers that files hold where a plan has only their hash.
pub(crate) fn fill(recipe: &mut Recipe, files: &[String]) -> windrow::Result<()> {
    files.iter().try_for_each(|file| {
        let path = at_home(Path::new(file));
        recipe.fill_numbers(&numbers_in(&path)?).map_err(|e| e.or_at(&path))
    })
}

/// The plan in a file, `-` for stdin.
///
/// # Errors
/// As [`Recipe::open`].
pub(crate) fn read(path: &Path) -> windrow::Result<Recipe> {
    if is_stdin(path) {
        return Recipe::read(io::stdin(), Path::new("stdin"));
    }
    Recipe::open(path)
}
