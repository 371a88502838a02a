//! Which order data in a store affords: four limits, by what was measured of the store and what is known of the run.

use serde::Serialize;

/// What is known of the store and of the samples.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Known {
    /// L: seconds until a few bytes are here.
    pub latency_secs: f64,
    /// b: bytes a second of one connection.
    pub bandwidth: f64,
    /// k: requests under way at a time.
    pub connections: f64,
    /// s: bytes of a sample.
    pub sample_bytes: f64,
    /// n.
    pub samples: f64,
    /// Folders that the files are in: stores count requests for each.
    pub folders: f64,
    /// Samples of a block; `None` where the view has no blocks.
    pub block: Option<f64>,
    /// Bytes that a node keeps of what it fetched.
    pub room_bytes: f64,
    /// Bytes of it in memory alone, which two pools of blocks must fit into where the data does not fit into all of it.
    pub memory_bytes: f64,
}

impl Known {
    /// L · b: bytes that a connection brings in the time that a request waits for its first one.
    pub(super) fn gap_bytes(&self) -> f64 {
        self.latency_secs * self.bandwidth
    }
}

/// What the data cannot say.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Run {
    /// r: samples a second that a node's model takes.
    pub rate: f64,
    /// N.
    pub nodes: f64,
    /// Bytes a second of a node's network card.
    pub network: f64,
    /// Requests a second that the store takes for a folder.
    pub get_rate: f64,
    /// Of a million GETs.
    pub get_price: f64,
    /// Of a node, an hour.
    pub node_price: f64,
    /// Epochs of the run.
    pub epochs: u64,
}

/// One of the four.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limit {
    /// What is limited.
    pub name: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// What the run needs.
    pub needed: f64,
    /// What there is.
    pub at_most: f64,
    /// The unit of both.
    pub unit: &'static str,
    /// Samples a second that a node may take at most.
    pub rate: f64,
    /// Whether what the run needs is there.
    pub holds: bool,
}

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// A global shuffle of data that is kept whole: it is local after the first epoch.
    Kept,
    /// A global shuffle, a request for each sample, and nothing is kept.
    Each,
    /// Blocks.
    Blocks,
    /// A global shuffle would be too slow or too dear, and the view has no blocks.
    Neither,
}

/// A network card gives so much of what is written on it.
const OF_NETWORK: f64 = 0.7;
/// A store slows down before it refuses.
const OF_GET_RATE: f64 = 0.5;
/// Requests may cost so much of what the nodes cost.
const OF_NODE_PRICE: f64 = 0.01;

/// The four limits where each request is for `together` samples.
pub fn limits(known: &Known, run: &Run, together: f64) -> [Limit; 4] {
    let (s, m) = (known.sample_bytes, together);
    let request_secs = known.latency_secs + m * s / known.bandwidth;
    // What one sample a second needs.
    let of = |name, formula, of_one: f64, at_most: f64, unit| Limit {
        name,
        formula,
        needed: run.rate * of_one,
        at_most,
        unit,
        rate: at_most / of_one,
        holds: run.rate * of_one <= at_most,
    };
    [
        of("requests under way", "r/m · (L + m·s/b) ≤ k", request_secs / m, known.connections, ""),
        of(
            "requests a second of the store",
            "N · r/m ≤ half of what it takes",
            run.nodes / m,
            OF_GET_RATE * run.get_rate * known.folders,
            "/s",
        ),
        of("network card", "r · s ≤ 0.7 of it", s, OF_NETWORK * run.network, "B/s"),
        of(
            "price of requests",
            "3600 · r/m · price ≤ 1 % of the node's",
            3600.0 / m * run.get_price / 1e6,
            OF_NODE_PRICE * run.node_price,
            "$/h",
        ),
    ]
}

/// What to choose.
pub fn choose(known: &Known, run: &Run) -> Choice {
    let fits = known.samples * known.sample_bytes <= known.room_bytes;
    if run.epochs > 1 && fits {
        return Choice::Kept;
    }
    match (limits(known, run, 1.0).iter().all(|limit| limit.holds), known.block) {
        (true, _) => Choice::Each,
        (false, Some(_)) => Choice::Blocks,
        (false, None) => Choice::Neither,
    }
}

/// Requests of an epoch, of all nodes together, and what they cost.
pub fn of_epoch(known: &Known, run: &Run, together: f64) -> (f64, f64) {
    let requests = (known.samples / together).ceil();
    (requests, requests * run.get_price / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Known = Known {
        latency_secs: 0.03,
        bandwidth: 85e6,
        connections: 64.0,
        sample_bytes: 4000.0,
        samples: 2.4e8,
        folders: 1.0,
        block: Some(2097.0),
        room_bytes: 1e11,
        memory_bytes: 1e9,
    };
    const RUN: Run = Run {
        rate: 500.0,
        nodes: 1.0,
        network: 3e9,
        get_rate: 5500.0,
        get_price: 0.4,
        node_price: 98.0,
        epochs: 1,
    };

    #[track_caller]
    fn check(known: &Known, run: &Run, wanted: [f64; 4]) {
        for (limit, wanted) in limits(known, run, 1.0).iter().zip(wanted) {
            assert!((limit.rate - wanted).abs() < 1.0, "{limit:?}, expected {wanted}");
        }
    }

    #[test]
    fn each_limit_says_how_many_samples_a_node_may_take() {
        check(&KNOWN, &RUN, [2130.0, 2750.0, 525_000.0, 680.0]);
        // A cheap node pays for few requests.
        check(&KNOWN, &Run { node_price: 2.5, ..RUN }, [2130.0, 2750.0, 525_000.0, 17.0]);
        // A store gives so much to all nodes together, of each folder.
        check(&KNOWN, &Run { nodes: 10.0, ..RUN }, [2130.0, 275.0, 525_000.0, 680.0]);
        check(&Known { folders: 4.0, ..KNOWN }, &RUN, [2130.0, 11_000.0, 525_000.0, 680.0]);
        // An epoch of 10^12 tokens in samples of 4,096.
        let (requests, price) = of_epoch(&Known { samples: 244_140_625.0, ..KNOWN }, &RUN, 1.0);
        assert_eq!((requests as u64, price.round() as u64), (244_140_625, 98));
    }

    #[test]
    fn global_is_chosen_below_all_four_limits() {
        assert_eq!(choose(&KNOWN, &RUN), Choice::Each);
        for (number, run) in [
            (0, Run { rate: 2200.0, get_price: 0.0, ..RUN }),
            (1, Run { nodes: 8.0, ..RUN }),
            (2, Run { network: 1e6, ..RUN }),
            (3, Run { rate: 700.0, ..RUN }),
            (3, Run { rate: 18.0, node_price: 2.5, ..RUN }),
        ] {
            let failing: Vec<usize> = limits(&KNOWN, &run, 1.0)
                .iter()
                .enumerate()
                .filter(|(_, l)| !l.holds)
                .map(|(n, _)| n)
                .collect();
            assert_eq!(failing, [number], "{run:?}");
            assert_eq!(choose(&KNOWN, &run), Choice::Blocks);
            assert_eq!(choose(&Known { block: None, ..KNOWN }, &run), Choice::Neither);
        }
    }

    #[test]
    fn what_fits_the_disk_is_kept_where_it_is_read_again() {
        let small = Known { samples: 1e6, ..KNOWN };
        let fast = Run { rate: 1e5, ..RUN };
        assert_eq!(choose(&small, &fast), Choice::Blocks);
        assert_eq!(choose(&small, &Run { epochs: 2, ..fast }), Choice::Kept);
        assert_eq!(choose(&KNOWN, &Run { epochs: 2, ..fast }), Choice::Blocks);
    }

    #[test]
    fn blocks_feed_what_samples_one_by_one_do_not() {
        let fast = Run { rate: 1e5, ..RUN };
        let of_blocks = limits(&KNOWN, &fast, 2097.0);
        assert!(of_blocks.iter().all(|limit| limit.holds), "{of_blocks:?}");
        let (requests, price) = of_epoch(&KNOWN, &RUN, 2097.0);
        assert!(requests < 120_000.0 && price < 0.05, "{requests}, {price}");
        // As docs/remote.md says, of blocks of 8 MiB.
        let of_blocks = |run: &Run| {
            limits(&KNOWN, run, f64::from(8 << 20) / 4000.0).map(|l| (l.rate / 1000.0).round() as u64)
        };
        assert_eq!(of_blocks(&RUN), [1043, 5767, 525, 1427]);
        assert_eq!(of_blocks(&Run { node_price: 2.5, ..RUN })[3], 36);
    }
}
