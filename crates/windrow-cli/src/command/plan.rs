//! `windrow plan`: the plan of a run as a file.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use windrow::dev::sampler::Shard;
use windrow::dev::store::at_home;
use windrow::{Batches, Error, Paths, Recipe, RecipePart, Shares, Stop};

use crate::args::output::{self, no_overwrite_of_stdout, refuse_input};
use crate::args::{Choosing, Cutting, Opening, Ordering, loader, no_stdin, path};
use crate::failure::{DONE, Failure};
use crate::out::Out;
use crate::{plan, text};

/// Write the plan of a run: its data, view and order, as JSON
///
/// The file is what `recipe()` of a loader gives in Python. `trace`, `coverage`, `extract`, `diff`, `inspect --mixing` and `report` read
/// it. Paths in it are absolute.
#[derive(Args, Debug)]
pub(crate) struct Plan {
    /// A file or folder, or several as one data set; also a pattern in quotes: 'data/*.parquet', 'x-{000..127}.tar'
    #[arg(required_unless_present = "mix", conflicts_with = "mix", value_name = "PATH", value_parser = path())]
    paths: Vec<PathBuf>,
    /// A part of a mixture and its weight, once for each part: web=a/:0.7
    #[arg(long, value_name = "NAME=PATH:WEIGHT", value_parser = part)]
    mix: Vec<Part>,
    /// With --mix: when an epoch ends: before the first sample that would come twice, once every sample has come, never [default: first]
    #[arg(long, value_name = "WHEN", value_parser = ["first", "all", "never"])]
    stop: Option<String>,
    /// With --mix: make each batch of one part, so that parts are mixed batch by batch [default: batches have rows of all parts]
    #[arg(long, value_name = "OF", value_parser = ["part"])]
    batches: Option<String>,
    /// Where it goes; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_parser = path())]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
    /// Number of ranks; with --batch-size they decide the rows of a step
    #[arg(long, value_name = "W", default_value_t = 1)]
    world_size: u64,
    #[command(flatten)]
    cutting: Cutting,
    #[command(flatten)]
    ordering: Ordering,
    #[command(flatten)]
    opening: Opening,
    #[command(flatten)]
    choosing: Choosing,
}

/// A part of a mixture, as it is typed.
#[derive(Clone, Debug)]
struct Part {
    name: String,
    path: PathBuf,
    weight: f64,
}

pub(crate) fn run(args: &Plan, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(&args.paths)?;
    let is_stdout = args.out.as_os_str() == "-";
    if is_stdout {
        no_overwrite_of_stdout(args.overwrite)?;
    }
    // Opened, so that the file has the identity of the data, and of what can be read alone.
    let mut recipe = recipe(args)?;
    // The plan works from any folder, as Python's does.
    for part in &mut recipe.parts {
        part.path = part.path.try_map(absolute)?;
    }
    let builder = loader(&recipe, Some(0))?;
    let (recipe, plan) = (builder.recipe()?, builder.plan()?);
    let text = recipe.to_json();
    if !is_stdout {
        refuse_input(&args.out, plan::files(&recipe, &plan))?;
        output::write(&args.out, text.as_bytes(), args.overwrite)?;
    }
    let steps = recipe.steps(&plan)?.in_epoch(plan.sampler(), 0);
    let samples = plan.sampler().len(0);
    if !is_stdout {
        let epoch = match (samples, steps) {
            (Some(samples), Some(steps)) => {
                format!("{} in {} an epoch", text::counted(samples, "sample"), text::counted(steps, "step"))
            }
            _ => "an epoch without end".to_string(),
        };
        out.line(format_args!("{}: {epoch}", text::quoted_path(&args.out)))?;
    } else if !out.is_json() {
        out.raw(text.as_bytes())?
    }
    out.object(json!({
        "out": (!is_stdout).then_some(&args.out),
        "plan": plan.identity()?.to_string(),
        "samples": samples,
        "steps": steps,
        "recipe": recipe,
    }))?;
    Ok(DONE)
}

fn absolute(path: &Path) -> windrow::Result<PathBuf> {
    if path.to_string_lossy().contains("://") {
        Ok(path.to_path_buf())
    } else {
        std::path::absolute(path).map_err(|e| Error::io("find the data", path, e))
    }
}

fn recipe(args: &Plan) -> Result<Recipe, Failure> {
    // clap waives `requires` where the path and --mix exclude each other.
    if args.stop.is_some() && args.mix.is_empty() {
        return Err(Failure::usage("--stop is an option of --mix"));
    }
    if args.batches.is_some() && args.mix.is_empty() {
        return Err(Failure::usage("--batches is an option of --mix"));
    }
    let Some(view) = args.cutting.view()? else {
        return Err(Failure::Usage {
            message: "a plan needs a view, which says how the data is cut".to_string(),
            hint: Some("name one, as in --pack 1024; `windrow help views` lists them".to_string()),
        });
    };
    args.paths
        .iter()
        .chain(args.mix.iter().map(|part| &part.path))
        .try_for_each(|path| plan::refuse_plan(path))?;
    let world_size = Shard::new(0, args.world_size)?.world_size();
    let rows = args.ordering.global_batch(world_size)?.ok_or_else(plan::no_batch)?;
    let paths = Paths::list(&args.paths);
    let options = match args.mix.is_empty() {
        true => args.choosing.options(&paths, &args.opening)?,
        false => args.opening.options()?,
    };
    let mut recipe = args.ordering.recipe(paths, options, view, rows)?;
    if !args.mix.is_empty() {
        let of = recipe.parts.remove(0);
        for part in &args.mix {
            let path = Paths::from(part.path.clone());
            let options = args.choosing.options(&path, &args.opening)?;
            recipe.parts.push(RecipePart { path, options, ..of.clone() });
        }
        recipe.names = args.mix.iter().map(|part| part.name.clone()).collect();
        recipe.mixture = Some(Shares {
            names: recipe.names.clone(),
            weights: args.mix.iter().map(|part| part.weight).collect(),
            stop: stop(args.stop.as_deref()),
            batches: if args.batches.is_some() { Batches::Part } else { Batches::Mixed },
            ..Shares::default()
        });
    }
    Ok(recipe)
}

fn stop(word: Option<&str>) -> Stop {
    [Stop::First, Stop::All, Stop::Never]
        .into_iter()
        .find(|stop| Some(stop.name()) == word)
        .unwrap_or_default()
}

/// The parser of `--mix`. A URL has colons too, so the weight is behind the last one.
fn part(text: &str) -> Result<Part, String> {
    let split = || {
        let (name, rest) = text.split_once('=')?;
        let (path, weight) = rest.rsplit_once(':')?;
        let weight = weight.parse().ok()?;
        (!name.is_empty() && !path.is_empty()).then(|| Part {
            name: name.to_string(),
            path: at_home(Path::new(path)).into_owned(),
            weight,
        })
    };
    split().ok_or_else(|| "expected a name, a path and a weight as web=a/:0.7".to_string())
}
