//! Data behind URLs: what its store gives, which order and cache to choose, why, and what to type.

use std::collections::HashSet;

use clap::Args;
use serde_json::{Map, Value, json};
use windrow::dev::store::parse_size;
use windrow::{Blocks, LoaderBuilder, Measured, Recipe, Shuffle};

use super::afford::{self, Choice, Known, Limit, Run};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
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
    /// For data on this machine.
    ///
    /// # Errors
    /// Where one of these was typed.
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        let given = [
            ("--rate", self.rate.is_some()),
            ("--nodes", self.nodes.is_some()),
            ("--epochs", self.epochs.is_some()),
            ("--network", self.network.is_some()),
            ("--get-rate", self.get_rate.is_some()),
            ("--get-price", self.get_price.is_some()),
            ("--node-price", self.node_price.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(Failure::usage(format!("{option} is for data behind a URL"))),
            None => Ok(()),
        }
    }

    fn run(&self) -> Run {
        Run {
            rate: self.rate.unwrap_or(1000.0),
            nodes: f64::from(self.nodes.unwrap_or(1)),
            network: self.network.unwrap_or(3_000_000_000) as f64,
            get_rate: self.get_rate.unwrap_or(5500.0),
            get_price: self.get_price.unwrap_or(0.4),
            node_price: self.node_price.unwrap_or(98.0),
            epochs: self.epochs.unwrap_or(1),
        }
    }
}

/// Whether any of its files is behind a URL.
pub(super) fn is_far(builder: &LoaderBuilder) -> bool {
    builder.parts().iter().any(|samples| samples.feed().source().files().iter().any(|file| file.is_far()))
}

/// Measures the store, and says what to choose.
pub(super) fn show(
    builder: &LoaderBuilder,
    of_run: &OfRun,
    recipe: &Recipe,
    interrupt: &Interrupt,
    out: &mut Out,
) -> Result<Map<String, Value>, Failure> {
    let Some(samples) = builder.parts().first() else { return Ok(Map::new()) };
    let measured = samples.dataset().measure(&|| interrupt.asked())?;
    let run = of_run.run();
    let blocks = blocks_of(builder, &run, recipe)?;
    let known = known(samples, &measured, blocks.as_ref().ok());
    let choice = afford::choose(&known, &run);
    let each = afford::limits(&known, &run, 1.0);
    let together = known.block.map(|block| afford::limits(&known, &run, block));

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
    table("shuffle=True, a request for each sample (m = 1)", &each, out)?;
    if let (Some(limits), Some(block)) = (&together, known.block) {
        table(
            &format!("shuffle=wr.Blocks(), m = {} samples of a block", text::count(block as u64)),
            limits,
            out,
        )?;
    }
    let said = Said { known: &known, run: &run, blocks: blocks.as_ref(), recipe };
    let typed = said.typed(choice);
    out.line("")?;
    out.pairs(&[("order", said.order(choice)), ("cache", said.cache(choice))])?;
    if !typed.is_empty() {
        out.line("type:")?;
        typed.iter().try_for_each(|line| out.line(format_args!("  {line}")))?;
    }

    let object = json!({
        "measured": measured,
        "known": known,
        "run": run,
        "limits": { "each": shown(&each), "blocks": together.as_ref().map(shown) },
        "requests_of_epoch": {
            "each": afford::of_epoch(&known, &run, 1.0).0,
            "blocks": known.block.map(|block| afford::of_epoch(&known, &run, block).0),
        },
        "choice": choice,
        "type": typed,
    });
    Ok(object.as_object().cloned().unwrap_or_default())
}

// The numbers of an order by blocks for the batch of all nodes; else why there is none.
fn blocks_of(builder: &LoaderBuilder, run: &Run, recipe: &Recipe) -> Result<Result<Blocks, String>, Failure> {
    let given = match &recipe.shuffle {
        Shuffle::Blocks(blocks) => *blocks,
        _ => Blocks::new(),
    };
    let rows = recipe.global_batch_size.max(run.nodes as u64);
    let fixed = builder.clone().global_batch_size(rows).shuffle(given).with_order_fixed();
    match fixed.and_then(|fixed| fixed.recipe()) {
        Ok(Recipe { shuffle: Shuffle::Blocks(blocks), .. }) => Ok(Ok(blocks)),
        Ok(_) => Ok(Err("the data has no order by blocks".to_string())),
        Err(e) if e.kind() == windrow::Kind::Config => Ok(Err(e.message().to_string())),
        Err(e) => Err(e.into()),
    }
}

fn known(samples: &windrow::Samples, measured: &Measured, blocks: Option<&Blocks>) -> Known {
    let files = samples.feed().source().files();
    let bytes: f64 = files.iter().map(|file| file.size as f64).sum();
    let folders: HashSet<&str> =
        files.iter().map(|file| file.file.rsplit_once('/').map_or("", |(folder, _)| folder)).collect();
    let n = (samples.len() as f64).max(1.0);
    Known {
        latency_secs: measured.latency_secs,
        bandwidth: measured.bandwidth,
        connections: measured.connections as f64,
        sample_bytes: (bytes / n).max(1.0),
        samples: n,
        folders: folders.len() as f64,
        block: blocks.and_then(|blocks| blocks.size).map(|size| size as f64),
        room_bytes: measured.room_bytes as f64,
    }
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
            if limit.holds() { "holds" } else { "FAILS" },
            text::count(limit.rate.min(1e18) as u64),
        ))?;
    }
    Ok(())
}

fn shown(limits: &[Limit; 4]) -> Vec<Value> {
    let one = |limit: &Limit| {
        let mut object = json!(limit);
        object["holds"] = json!(limit.holds());
        object
    };
    limits.iter().map(one).collect()
}

/// The description of a choice.
struct Said<'a> {
    known: &'a Known,
    run: &'a Run,
    blocks: Result<&'a Blocks, &'a String>,
    recipe: &'a Recipe,
}

impl Said<'_> {
    fn order(&self, choice: Choice) -> String {
        let (known, run) = (self.known, self.run);
        // `limit 1 fails`, `limits 1, 4 fail`; empty where all hold.
        let failing = |together: f64| {
            let numbers: Vec<String> = afford::limits(known, run, together)
                .iter()
                .enumerate()
                .filter(|(_, limit)| !limit.holds())
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
                let why = self.blocks.err().map_or("", String::as_str);
                format!("none: {} for a global one, and there is no {why}", failing(1.0))
            }
        }
    }

    // Two pools of the lanes that a node draws from.
    fn pools(&self) -> f64 {
        let Ok(Blocks { size: Some(size), lanes: Some(lanes), pool: Some(pool), .. }) = self.blocks else {
            return 0.0;
        };
        let of_node = (*lanes as f64 / self.run.nodes).ceil();
        let bytes = 2.0 * of_node * *pool as f64 * *size as f64 * self.known.sample_bytes;
        bytes.min(self.known.samples * self.known.sample_bytes)
    }

    fn cache(&self, choice: Choice) -> String {
        let bytes = self.known.samples * self.known.sample_bytes;
        let room = text::size(self.known.room_bytes as u64);
        match choice {
            Choice::Kept => format!("all of it, {} of {room} here", text::size(bytes as u64)),
            Choice::Each => "none: a sample comes once an epoch".to_string(),
            Choice::Blocks => {
                let part = bytes / self.run.nodes;
                let later = match self.run.epochs {
                    1 => String::new(),
                    _ => format!("; what fits of {} a node is not fetched again", text::size(part as u64)),
                };
                format!("{} for two pools, of {room} here{later}", text::size(self.pools() as u64))
            }
            Choice::Neither => {
                format!("copy the data to a disk of {}, or choose another view", text::size(bytes as u64))
            }
        }
    }

    fn typed(&self, choice: Choice) -> Vec<String> {
        let bytes = (self.known.samples * self.known.sample_bytes).ceil() as u64;
        let path = self.recipe.parts.first().map(|part| part.path.to_string()).unwrap_or_default();
        let batch = self.recipe.global_batch_size;
        let (cache, shuffle) = match choice {
            Choice::Kept => (Some(bytes), ""),
            Choice::Each => (Some(0), ""),
            Choice::Blocks => (None, ", shuffle=wr.Blocks()"),
            Choice::Neither => return Vec::new(),
        };
        let limit = cache.map_or(String::new(), |bytes| format!(", cache_limit={bytes}"));
        let of_command = match (cache, choice) {
            (_, Choice::Blocks) => "--shuffle blocks".to_string(),
            (Some(bytes), _) => format!("--cache-limit {bytes}"),
            (None, _) => String::new(),
        };
        vec![
            format!("ds = wr.open({path:?}{limit})"),
            format!("loader = wr.Loader(view, global_batch_size={batch}{shuffle})"),
            format!("on the command line: {of_command}"),
        ]
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
