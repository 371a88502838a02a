//! `windrow bench`: how fast a view of some data feeds here; of data behind a URL, how fast its store answers and which order that
//! affords.

mod far;

use clap::Args;
use windrow::Pack;
use windrow::bench::{Fed, bench};
use windrow::dev::threads;

use crate::args::{Choosing, Cutting, Data, Opening, Ordering, loader};
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::text;

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
    choosing: Choosing,
    #[command(flatten)]
    run: far::OfRun,
}

pub(crate) fn run(args: &Bench, out: &mut Out) -> Result<i32, Failure> {
    let paths = args.data.paths()?;
    threads::check(args.num_threads, 1)?;
    let options = args.run.options(args.seconds);
    options.check()?;
    let view = args.cutting.view()?.unwrap_or(Pack::new(1024).into());
    // Names no rows, so any batch will do; it is fed as one rank.
    let rows = args.ordering.global_batch(1)?.unwrap_or(32);
    let opened = args.choosing.options(&paths, &args.opening)?;
    let recipe = args.ordering.recipe(paths, opened, view, rows)?;
    let builder = loader(&recipe, args.num_threads)?;
    let interrupt = Interrupt::listen();
    let found = bench(&builder, &options, &|| interrupt.asked())?;
    if let Some(store) = &found.store {
        far::show(store, out)?;
    }
    if let Some(fed) = &found.fed {
        show(fed, out)?;
    }
    out.object(serde_json::json!(found))?;
    Ok(DONE)
}

// How fast the loader feeds.
fn show(fed: &Fed, out: &mut Out) -> Result<(), Failure> {
    let (speed, unit) = (fed.per_second, fed.unit);
    out.pairs(&[
        ("view", format!("{}, {}", fed.view, text::counted(fed.samples, "sample"))),
        ("batch", format!("{} rows, {}", fed.batch_size, text::size(speed.batch_bytes))),
        ("threads", speed.threads.to_string()),
        ("batches", text::rate(speed.batches, "batches")),
        ("samples", text::rate(speed.samples, "samples")),
        (unit, text::rate(speed.positions, unit)),
        ("bytes", text::rate(speed.bytes, "B")),
        (
            "memcpy",
            format!("{}, the same bytes on the same threads", text::rate(fed.memcpy_bytes_per_second, "B")),
        ),
    ])?;
    Ok(())
}
