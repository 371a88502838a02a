//! `windrow bench`: how fast a view of some data feeds here; of data behind a URL, how fast its store answers and which order that
//! affords.

mod afford;
mod far;

use clap::Args;
use serde_json::{Map, Value, json};
use windrow::dev::threads;
use windrow::preview::tokens;
use windrow::{LoaderBuilder, Pack, Recipe};

use crate::args::{Cutting, Data, Opening, Ordering, loader};
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::{speed, text};

/// Measure samples, tokens or values, and bytes a second here, compared with memcpy; of URLs also the store
///
/// Without an option that cuts: --pack 1024. For data behind a URL it measures latency and bandwidth, never through the cache, and says
/// which order and cache to choose, and why; with --seconds it measures the loader as well.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(flatten)]
    data: Data,
    /// Threads that assemble batches; by default as many as there are cores, at most 8
    #[arg(long, value_name = "N")]
    num_threads: Option<usize>,
    /// How long to measure the loader [default: 3; of URLs it is not measured]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    #[command(flatten)]
    cutting: Cutting,
    #[command(flatten)]
    ordering: Ordering,
    #[command(flatten)]
    opening: Opening,
    #[command(flatten)]
    run: far::OfRun,
}

pub(crate) fn run(args: &Bench, out: &mut Out) -> Result<i32, Failure> {
    let paths = args.data.paths()?;
    threads::check(args.num_threads, 1)?;
    if let Some(seconds) = args.seconds.filter(|seconds| !(*seconds > 0.0 && *seconds < 86_400.0)) {
        return Err(Failure::usage(format!("--seconds {seconds}: expected a time above 0, below a day")));
    }
    let view = args.cutting.view()?.unwrap_or(Pack::new(1024).into());
    // Names no rows, so any batch will do; it is fed as one rank.
    let rows = args.ordering.global_batch(1)?.unwrap_or(32);
    let recipe = args.ordering.recipe(paths, &args.opening, view, rows)?;
    let builder = loader(&recipe, args.num_threads)?;
    let interrupt = Interrupt::listen();
    let mut shown = Map::new();
    let is_far = far::is_far(&builder);
    if is_far {
        shown = far::show(&builder, &args.run, &recipe, &interrupt, out)?;
    } else {
        args.run.refuse()?;
    }
    if args.seconds.is_some() || !is_far {
        shown.extend(fed(&builder, &recipe, args.seconds.unwrap_or(3.0), &interrupt, out)?);
    }
    out.object(Value::Object(shown))?;
    Ok(DONE)
}

// How fast the loader feeds.
fn fed(
    builder: &LoaderBuilder,
    recipe: &Recipe,
    seconds: f64,
    interrupt: &Interrupt,
    out: &mut Out,
) -> Result<Map<String, Value>, Failure> {
    let mut loader = builder.build()?;
    let fed = speed::feed(&mut loader, seconds, interrupt)?;
    loader.stop();
    let feed = &loader.plan().feeds()[0];
    let size = feed.source().files().iter().map(|f| f.size).sum();
    let copied = speed::copying(size, fed.batch_bytes, fed.threads, seconds.min(0.5));
    let is_tokens = || tokens::is_tokens(feed.source().as_ref());
    let unit = match feed.collate().rows() {
        Some(_) => "records",
        None if is_tokens() => "tokens",
        None => "values",
    };
    out.pairs(&[
        ("view", format!("{}, {}", feed.view().describe(), text::counted(feed.len(), "sample"))),
        ("batch", format!("{} rows, {}", recipe.global_batch_size, text::size(fed.batch_bytes))),
        ("threads", fed.threads.to_string()),
        ("batches", text::rate(fed.batches, "batches")),
        ("samples", text::rate(fed.samples, "samples")),
        (unit, text::rate(fed.positions, unit)),
        ("bytes", text::rate(fed.bytes, "B")),
        ("memcpy", format!("{}, the same bytes on the same threads", text::rate(copied, "B"))),
    ])?;
    let object = json!({
        "view": feed.view().describe(),
        "samples": feed.len(),
        "batch_size": recipe.global_batch_size,
        "per_second": fed,
        "memcpy_bytes_per_second": copied,
    });
    Ok(object.as_object().cloned().unwrap_or_default())
}
