//! `windrow bench`: how fast a view of some data feeds here.

use clap::Args;
use serde_json::json;
use windrow::preview::tokens;
use windrow::{Labels, ViewRecipe};

use crate::args::{Cutting, Data, Opening, Ordering, loader};
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::{speed, text};

/// Measure samples, tokens or values, and bytes a second here, beside a plain copy of as many bytes
///
/// Without an option that cuts: --pack 1024.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(flatten)]
    data: Data,
    /// Threads that lay batches; by default as many as there are cores, at most 8
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// How long to measure
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    seconds: f64,
    #[command(flatten)]
    cutting: Cutting,
    #[command(flatten)]
    ordering: Ordering,
    #[command(flatten)]
    opening: Opening,
}

pub(crate) fn run(args: &Bench, out: &mut Out) -> Result<i32, Failure> {
    let paths = args.data.paths()?;
    if !(args.seconds > 0.0 && args.seconds < 86_400.0) {
        return Err(Failure::usage(format!(
            "--seconds {}: expected a time above 0, below a day",
            args.seconds
        )));
    }
    let view = args.cutting.view()?.unwrap_or(ViewRecipe::Pack {
        length: 1024,
        eos: None,
        shifted: false,
        fields: Vec::new(),
        labels: Labels::default(),
    });
    let recipe = args.ordering.recipe(paths, &args.opening, view);
    let mut loader = loader(&recipe, args.threads)?.build()?;
    let interrupt = Interrupt::listen();
    let fed = speed::feed(&mut loader, args.seconds, &interrupt)?;
    loader.stop();
    let feed = &loader.plan().feeds()[0];
    let size = feed.source().files().iter().map(|f| f.size).sum();
    let copied = speed::copying(size, fed.batch_bytes, fed.threads, args.seconds.min(0.5));
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
    out.object(json!({
        "view": feed.view().describe(),
        "samples": feed.len(),
        "batch_size": recipe.global_batch_size,
        "per_second": fed,
        "memcpy_bytes_per_second": copied,
    }))?;
    Ok(DONE)
}
