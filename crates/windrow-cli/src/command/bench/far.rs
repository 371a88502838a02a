//! Data behind URLs: what its store gives, which order and cache to choose, why, and what to type.

use clap::Args;
use windrow::Blocks;
use windrow::bench::afford::{self, Choice, Limit};
use windrow::bench::{Afforded, BenchOptions};
use windrow::dev::store::parse_size;

use crate::failure::Failure;
use crate::out::Out;
use crate::text;

/// What nobody can measure.
#[derive(Args, Debug)]
#[command(next_help_heading = "Of URLs: what the order is chosen by")]
pub(super) struct OfRun {
    /// Samples a second that a node's model takes [default: 1000]
    #[arg(long, value_name = "N", value_parser = positive)]
    rate: Option<f64>,
    /// Nodes that train together [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
    /// Epochs of the run [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    epochs: Option<u64>,
    /// Bytes a second of a node's network card [default: 3GB, 25 Gbit/s]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    network: Option<u64>,
    /// Requests a second that the store takes for one folder [default: 5500, S3's]
    #[arg(long, value_name = "N", value_parser = positive)]
    get_rate: Option<f64>,
    /// Price of a million GETs [default: 0.4 dollars, S3's]
    #[arg(long, value_name = "PRICE", value_parser = not_negative)]
    get_price: Option<f64>,
    /// Price of a node for an hour [default: 98 dollars, eight H100]
    #[arg(long, value_name = "PRICE", value_parser = not_negative)]
    node_price: Option<f64>,
}

impl OfRun {
    /// With the time that the loader is measured for.
    pub(super) fn options(&self, seconds: Option<f64>) -> BenchOptions {
        BenchOptions {
            seconds,
            rate: self.rate,
            nodes: self.nodes.map(u64::from),
            epochs: self.epochs,
            network: self.network,
            get_rate: self.get_rate,
            get_price: self.get_price,
            node_price: self.node_price,
        }
    }
}

/// Says what the store gives, and what to choose.
pub(super) fn show(found: &Afforded, out: &mut Out) -> Result<(), Failure> {
    let Afforded { measured, known, run, .. } = found;
    let bytes = known.samples * known.sample_bytes;
    out.pairs(&[
        (
            "store",
            format!(
                "{:.1} ms to a first byte, {} a connection ({} ranges)",
                measured.latency_secs * 1e3,
                text::rate(measured.bandwidth, "B"),
                text::size(measured.range_bytes),
            ),
        ),
        (
            "gaps",
            format!(
                "{} come in the time that a request waits: what is less apart is one request, where it is kept",
                text::size(found.gap_bytes as u64),
            ),
        ),
        (
            "data",
            format!(
                "{} of {}, {} in {}",
                text::counted(known.samples as u64, "sample"),
                text::size(known.sample_bytes as u64),
                text::size(bytes as u64),
                text::counted(known.folders as u64, "folder"),
            ),
        ),
        (
            "run",
            format!(
                "{} samples/s a node, {}, {}",
                text::number(run.rate),
                text::counted(run.nodes as u64, "node"),
                text::counted(run.epochs, "epoch")
            ),
        ),
    ])?;
    table("shuffle=True, a request for each sample (m = 1)", &found.limits.each, out)?;
    if let (Some(limits), Some(block)) = (&found.limits.blocks, known.block) {
        table(
            &format!("shuffle=wr.Blocks(), m = {} samples of a block", text::count(block as u64)),
            limits,
            out,
        )?;
    }
    let said = Said(found);
    out.line("")?;
    out.pairs(&[("order", said.order()), ("cache", said.cache())])?;
    if !found.typed.is_empty() {
        out.line("type:")?;
        found.typed.iter().try_for_each(|line| out.line(format_args!("  {line}")))?;
    }
    Ok(())
}

fn table(title: &str, limits: &[Limit; 4], out: &mut Out) -> Result<(), Failure> {
    out.line("")?;
    out.line(title)?;
    for (number, limit) in limits.iter().enumerate() {
        let figures = |value: f64| match limit.unit {
            "B/s" => text::rate(value, "B"),
            "$/h" => format!("${value:.2}/h"),
            unit => format!("{}{unit}", text::number((value * 100.0).round() / 100.0)),
        };
        out.line(format_args!(
            "  {} {:30} {:40} {:>10} of {:>10}  {:5} at most {} samples/s a node",
            number + 1,
            limit.name,
            limit.formula,
            figures(limit.needed),
            figures(limit.at_most),
            if limit.holds { "holds" } else { "FAILS" },
            text::count(limit.rate.min(1e18) as u64),
        ))?;
    }
    Ok(())
}

/// The description of a choice.
struct Said<'a>(&'a Afforded);

impl Said<'_> {
    fn order(&self) -> String {
        let Afforded { known, run, choice, blocks, .. } = self.0;
        // `limit 1 fails`, `limits 1, 4 fail`; empty where all hold.
        let failing = |together: f64| {
            let numbers: Vec<String> = afford::limits(known, run, together)
                .iter()
                .enumerate()
                .filter(|(_, limit)| !limit.holds)
                .map(|(number, _)| (number + 1).to_string())
                .collect();
            match numbers.len() {
                0 => String::new(),
                1 => format!("limit {} fails", numbers[0]),
                _ => format!("limits {} fail", numbers.join(", ")),
            }
        };
        let cost = |together: f64| {
            let (requests, price) = afford::of_epoch(known, run, together);
            let price = if price < 0.01 { "below $0.01".to_string() } else { format!("${price:.2}") };
            format!("{} and {price} an epoch", text::counted(requests as u64, "request"))
        };
        match choice {
            Choice::Kept => {
                let first = match failing(1.0).as_str() {
                    "" => String::new(),
                    failing => format!("; {failing} for the first epoch, which is slower or dearer"),
                };
                format!("global: the data fits here and is local after the first epoch{first}")
            }
            Choice::Each => format!("global: all four limits hold; {}", cost(1.0)),
            Choice::Blocks => {
                let block = known.block.unwrap_or(1.0);
                let also = match failing(block).as_str() {
                    "" => String::new(),
                    failing => format!("; {failing} for blocks too"),
                };
                format!("blocks: {} for a global one; {}{also}", failing(1.0), cost(block))
            }
            Choice::Neither => {
                let why = blocks.as_ref().err().map_or("", String::as_str);
                format!("none: {} for a global one, and there is no {why}", failing(1.0))
            }
        }
    }

    // Two pools of the lanes that a node draws from.
    fn pools(&self) -> f64 {
        let Afforded { known, run, blocks, .. } = self.0;
        let Ok(Blocks { size: Some(size), lanes: Some(lanes), pool: Some(pool), .. }) = blocks else {
            return 0.0;
        };
        let of_node = (*lanes as f64 / run.nodes).ceil();
        let bytes = 2.0 * of_node * *pool as f64 * *size as f64 * known.sample_bytes;
        bytes.min(known.samples * known.sample_bytes)
    }

    fn cache(&self) -> String {
        let Afforded { known, run, choice, .. } = self.0;
        let bytes = known.samples * known.sample_bytes;
        let room = text::size(known.room_bytes as u64);
        match choice {
            Choice::Kept => format!("all of it, {} of {room} here", text::size(bytes as u64)),
            Choice::Each => "none: a sample comes once an epoch".to_string(),
            Choice::Blocks => {
                let part = bytes / run.nodes;
                let later = match run.epochs {
                    1 => String::new(),
                    _ => format!("; what fits of {} a node is not fetched again", text::size(part as u64)),
                };
                let ranks = (self.pools() / known.memory_bytes.max(1.0)).ceil();
                let less = match bytes > known.room_bytes && ranks > 1.0 {
                    true => format!(
                        ", too little where a node has fewer than {} ranks",
                        text::count(ranks as u64)
                    ),
                    false => String::new(),
                };
                format!(
                    "two pools of blocks take {} of a node's memory; `read_ahead` of a rank is {}{less}{later}",
                    text::size(self.pools() as u64),
                    text::size(known.memory_bytes as u64),
                )
            }
            Choice::Neither => {
                format!("copy the data to a disk of {}, or choose another view", text::size(bytes as u64))
            }
        }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|n: &f64| *n > 0.0 && n.is_finite())
        .ok_or("expected a number above 0".to_string())
}

fn not_negative(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|n: &f64| *n >= 0.0 && n.is_finite())
        .ok_or("expected a number, 0 or more".to_string())
}

fn bytes(text: &str) -> Result<u64, String> {
    let expected = || "expected bytes a second above 0, as 3GB".to_string();
    parse_size(text).filter(|bytes| *bytes > 0).ok_or_else(expected)
}
