//! How fast a loader is on this machine, beside a plain copy of the same bytes; of data behind URLs also how fast its store
//! answers, and which order and cache that affords.

pub mod afford;
mod far;
mod speed;
mod typed;

use serde::Serialize;
use windrow_core::{Error, Result};

pub use self::far::{Afforded, Limits, Requests};
pub use self::speed::{Speed, copying, feed};
use crate::preview::tokens;
use crate::run::bench::afford::Run;
use crate::run::builder::LoaderBuilder;

/// How to measure, and what of a run the order is chosen by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BenchOptions {
    /// Seconds that the loader is measured for; 3 if not given, and of URLs it is not measured then.
    pub seconds: Option<f64>,
    /// Of URLs: samples a second that a node's model takes; 1000 if not given.
    pub rate: Option<f64>,
    /// Of URLs: nodes that train together; 1 if not given.
    pub nodes: Option<u64>,
    /// Of URLs: epochs of the run; 1 if not given.
    pub epochs: Option<u64>,
    /// Of URLs: bytes a second of a node's network card; 3 GB if not given, 25 Gbit/s.
    pub network: Option<u64>,
    /// Of URLs: requests a second that the store takes for one folder; 5500 if not given, S3's.
    pub get_rate: Option<f64>,
    /// Of URLs: the price of a million GETs; 0.4 dollars if not given, S3's.
    pub get_price: Option<f64>,
    /// Of URLs: the price of a node for an hour; 98 dollars if not given, eight H100.
    pub node_price: Option<f64>,
}

/// What [`bench()`] found.
#[derive(Clone, Debug, Serialize)]
pub struct Benched {
    /// Of data behind URLs, what its store affords.
    #[serde(flatten)]
    pub store: Option<Afforded>,
    /// How fast the loader is, where that was measured.
    #[serde(flatten)]
    pub fed: Option<Fed>,
}

/// How fast a loader is.
#[derive(Clone, Debug, Serialize)]
pub struct Fed {
    /// The view, in words.
    pub view: String,
    /// Samples of an epoch.
    pub samples: u64,
    /// Rows of a batch.
    pub batch_size: u64,
    /// What a second gave.
    pub per_second: Speed,
    /// Bytes a second of the plain copy, on the same number of threads.
    pub memcpy_bytes_per_second: f64,
    /// What [`Speed::positions`] are: `tokens`, `values` or `records`.
    #[serde(skip)]
    pub unit: &'static str,
}

/// Measures a loader, which reads as one rank. `stop` is asked often.
///
/// ```
/// use windrow::bench::{BenchOptions, bench};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("tokens.bin");
/// # windrow::prepare::dummy(&path, 100, 1000, 0, false)?;
///
/// let loader = windrow::open(&path)?.pack(8)?.loader().batch_size(4);
/// let options = BenchOptions { seconds: Some(0.01), ..BenchOptions::default() };
/// let fed = bench(&loader, &options, &|| false)?.fed.unwrap();
/// assert_eq!((fed.batch_size, fed.unit), (4, "tokens"));
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `Config` for a number that makes no sense, and for what is of URLs of data on this machine; `Interrupted` once `stop` says so;
/// what reading says.
pub fn bench(builder: &LoaderBuilder, options: &BenchOptions, stop: &dyn Fn() -> bool) -> Result<Benched> {
    options.check()?;
    let builder = builder.clone().rank(0, 1);
    let store = if far::is_far(&builder) {
        far::afforded(&builder, &options.run(), stop)?
    } else {
        options.refuse_those_of_urls()?;
        None
    };
    let seconds = options.seconds.or(store.is_none().then_some(3.0));
    let fed = seconds.map(|seconds| fed(&builder, seconds, stop)).transpose()?;
    Ok(Benched { store, fed })
}

// How fast the loader feeds.
fn fed(builder: &LoaderBuilder, seconds: f64, stop: &dyn Fn() -> bool) -> Result<Fed> {
    let mut loader = builder.build()?;
    let per_second = feed(&mut loader, seconds, stop)?;
    loader.stop();
    let feed = &loader.plan().feeds()[0];
    let bytes = feed.source().files().iter().map(|file| file.size).sum();
    let copied = copying(bytes, per_second.batch_bytes, per_second.threads, seconds.min(0.5));
    let unit = match feed.collate().rows() {
        Some(_) => "records",
        None if tokens::is_tokens(feed.source().as_ref()) => "tokens",
        None => "values",
    };
    Ok(Fed {
        view: feed.view().describe(),
        samples: feed.len(),
        batch_size: builder.global_batch()?,
        per_second,
        memcpy_bytes_per_second: copied,
        unit,
    })
}

impl BenchOptions {
    /// That its numbers make sense, which [`bench()`] asks too.
    ///
    /// # Errors
    /// `Config` naming the one that does not.
    pub fn check(&self) -> Result<()> {
        let refuse = |name: &'static str, given: f64, expected: &str| {
            Err(Error::config(format!("@the {name}@ is {given}; expected {expected}")).field(name))
        };
        if let Some(seconds) = self.seconds.filter(|seconds| !(*seconds > 0.0 && *seconds < 86_400.0)) {
            return refuse("seconds", seconds, "a time above 0, below a day");
        }
        for (name, given) in self.of_urls().into_iter().filter_map(|(name, given)| Some((name, given?))) {
            let (is_fit, expected) = if name.ends_with("price") {
                (given >= 0.0, "a number, 0 or more")
            } else {
                (given > 0.0, "a number above 0")
            };
            if !(is_fit && given.is_finite()) {
                return refuse(name, given, expected);
            }
        }
        Ok(())
    }

    // What is of data behind URLs alone.
    fn of_urls(&self) -> [(&'static str, Option<f64>); 7] {
        [
            ("rate", self.rate),
            ("nodes", self.nodes.map(|n| n as f64)),
            ("epochs", self.epochs.map(|n| n as f64)),
            ("network", self.network.map(|n| n as f64)),
            ("get_rate", self.get_rate),
            ("get_price", self.get_price),
            ("node_price", self.node_price),
        ]
    }

    fn refuse_those_of_urls(&self) -> Result<()> {
        match self.of_urls().iter().find(|(_, given)| given.is_some()) {
            Some((name, _)) => {
                Err(Error::config(format!("@the {name}@ is for data behind a URL")).field(*name))
            }
            None => Ok(()),
        }
    }

    fn run(&self) -> Run {
        Run {
            rate: self.rate.unwrap_or(1000.0),
            nodes: self.nodes.unwrap_or(1) as f64,
            network: self.network.unwrap_or(3_000_000_000) as f64,
            get_rate: self.get_rate.unwrap_or(5500.0),
            get_price: self.get_price.unwrap_or(0.4),
            node_price: self.node_price.unwrap_or(98.0),
            epochs: self.epochs.unwrap_or(1),
        }
    }
}
