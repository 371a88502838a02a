//! What a loader did as named numbers: for a logger as a flat table, for Prometheus as its text format.

use std::fmt::Write;

use windrow_core::loader::Stats;
use windrow_core::plan::Cursor;

/// Where a run is and what was delivered.
type Of = fn(&Stats, Cursor) -> f64;

/// A metric, by its name below `data/`.
struct Metric {
    name: &'static str,
    /// Prometheus counts up by names that end in `_total`.
    is_counter: bool,
    help: &'static str,
    of: Of,
}

const fn counter(name: &'static str, help: &'static str, of: Of) -> Metric {
    Metric { name, is_counter: true, help, of }
}

const fn gauge(name: &'static str, help: &'static str, of: Of) -> Metric {
    Metric { name, is_counter: false, help, of }
}

const METRICS: &[Metric] = &[
    counter("batches", "Batches delivered to this rank.", |s, _| s.batches as f64),
    counter("samples", "Rows delivered to this rank.", |s, _| s.samples as f64),
    counter("repeated", "Rows among them that fill last batches.", |s, _| s.repeated as f64),
    counter("values", "Values in these rows, as tokens, without padding.", |s, _| s.values as f64),
    counter("bytes", "Bytes of batches delivered to this rank.", |s, _| s.bytes as f64),
    gauge("padding_share", "Part of the positions of rows that is padding.", |s, _| s.padding_share()),
    counter("text_values", "Bytes of texts beside audio codes, without padding.", |s, _| {
        s.text_values as f64
    }),
    gauge("text_padding_share", "Part of the positions of these texts that is padding.", |s, _| {
        s.text_padding_share()
    }),
    counter("waited_seconds", "Seconds that the program waited for batches.", |s, _| s.waited_secs),
    gauge("epoch", "The epoch, from 0.", |_, cursor| cursor.epoch as f64),
    gauge("epoch_samples", "Samples of the epoch delivered to all ranks.", |_, cursor| cursor.samples as f64),
    gauge("threads", "Threads that assemble batches.", |s, _| s.threads as f64),
    counter("requests", "Requests sent to stores.", |s, _| s.stores.requests as f64),
    counter("received_bytes", "Bytes received from stores.", |s, _| s.stores.received_bytes as f64),
    counter("read_bytes", "Bytes that reads of stored data gave.", |s, _| s.stores.read_bytes as f64),
    gauge("amplification", "Bytes received from stores for each byte that reads gave.", |s, _| {
        s.stores.amplification()
    }),
    counter("store_waited_seconds", "Seconds that reads waited for stores.", |s, _| {
        s.stores.store_waited_secs
    }),
];

/// Names as `data/samples`, and their numbers.
pub fn metrics(stats: &Stats, cursor: Cursor) -> Vec<(String, f64)> {
    METRICS.iter().map(|metric| (format!("data/{}", metric.name), (metric.of)(stats, cursor))).collect()
}

/// Metrics in the text format of Prometheus, as `windrow_samples_total{rank="0"} 128`.
pub fn prometheus(stats: &Stats, cursor: Cursor, rank: u64) -> String {
    let mut text = String::new();
    for metric in METRICS {
        let (name, kind) = if metric.is_counter {
            (format!("windrow_{}_total", metric.name), "counter")
        } else {
            (format!("windrow_{}", metric.name), "gauge")
        };
        let number = (metric.of)(stats, cursor);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# HELP {name} {}\n# TYPE {name} {kind}\n{name}{{rank=\"{rank}\"}} {number}",
            metric.help
        );
    }
    text
}
