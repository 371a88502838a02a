//! Which tasks run, who runs them and how fast: a small file beside the parts for each, as long as it runs.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use windrow_core::output::files;
use windrow_core::{Progress, Watch};

use super::place::Place;

/// A task that runs, as its worker said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Running {
    /// Its number.
    pub task: u64,
    /// The machine of its worker.
    pub host: String,
    /// The process there.
    pub pid: u32,
    /// Seconds that it ran by then.
    pub secs: u64,
    /// Seconds since then: a worker says something every ten seconds, unless it was killed.
    pub quiet_secs: u64,
    /// Input bytes behind it.
    pub done_bytes: u64,
    /// Input bytes of the task; 0 where that is not known.
    pub total_bytes: u64,
    /// Input bytes a second.
    pub bytes_per_sec: u64,
}

impl Running {
    /// Whether its worker has said something lately.
    pub fn is_heard(&self) -> bool {
        self.quiet_secs < 6 * EVERY.as_secs()
    }
}

/// What a worker writes.
#[derive(Serialize, Deserialize)]
struct Said {
    job: String,
    host: String,
    pid: u32,
    secs: f64,
    /// Milliseconds since 1970.
    at_ms: u64,
    done_bytes: u64,
    total_bytes: u64,
}

/// What is over sooner leaves no such file.
const FIRST: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_secs(10);

/// Says now and then how far a task is, and passes on to who watches it.
pub(super) struct Reporting<'a> {
    watch: &'a dyn Watch,
    place: &'a dyn Place,
    name: String,
    job: &'a str,
    began: Instant,
    last: Mutex<Last>,
}

struct Last {
    next: Instant,
    has_said: bool,
    progress: Progress,
}

impl<'a> Reporting<'a> {
    /// Of a task that begins, whose file has this name.
    pub(super) fn begin(place: &'a dyn Place, name: String, job: &'a str, watch: &'a dyn Watch) -> Self {
        let began = Instant::now();
        let last = Last { next: began + FIRST, has_said: false, progress: Progress::default() };
        Reporting { watch, place, name, job, began, last: Mutex::new(last) }
    }

    fn report(&self, progress: Option<Progress>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.progress = progress.unwrap_or(last.progress);
        if Instant::now() < last.next {
            return;
        }
        let Progress { done_bytes, total_bytes, .. } = last.progress;
        let said = Said {
            job: self.job.to_string(),
            host: host(),
            pid: std::process::id(),
            secs: self.began.elapsed().as_secs_f64(),
            at_ms: now_ms(),
            done_bytes,
            total_bytes,
        };
        // A task runs as well where nobody hears of it.
        let text = serde_json::to_string(&said).unwrap_or_default() + "\n";
        if let Err(e) = self.place.replace(&self.name, text.as_bytes()) {
            windrow_core::log::debug!("{}: {e:#}", self.name);
        }
        (last.has_said, last.next) = (true, Instant::now() + EVERY);
    }
}

impl Watch for Reporting<'_> {
    fn progress(&self, now: Progress) {
        self.report(Some(now));
        self.watch.progress(now);
    }

    fn counted(&self, done: u64, total: u64, one: &'static str) {
        self.watch.counted(done, total, one);
    }

    fn cancelled(&self) -> bool {
        self.report(None);
        self.watch.cancelled()
    }
}

impl Drop for Reporting<'_> {
    fn drop(&mut self) {
        let last = self.last.get_mut().unwrap_or_else(PoisonError::into_inner);
        if last.has_said
            && let Err(e) = self.place.remove(&self.name)
        {
            windrow_core::log::debug!("{}: {e:#}", self.name);
        }
    }
}

/// What the worker of a task of this job said last; `None` for what is no such text.
pub(super) fn heard(task: u64, text: &[u8], job: &str) -> Option<Running> {
    let said: Said = serde_json::from_slice(text).ok()?;
    let rate = said.done_bytes as f64 / said.secs.max(1e-3);
    (said.job == job).then(|| Running {
        task,
        host: said.host,
        pid: said.pid,
        secs: said.secs as u64,
        // Clocks of machines differ.
        quiet_secs: now_ms().saturating_sub(said.at_ms) / 1000,
        done_bytes: said.done_bytes,
        total_bytes: said.total_bytes,
        bytes_per_sec: rate as u64,
    })
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

// As the system calls this machine, or whoever started the process.
fn host() -> String {
    let of_system = files::read(Path::new("/proc/sys/kernel/hostname"));
    let of_system = of_system.map(|name| String::from_utf8_lossy(&name).trim().to_string());
    let of_system = of_system.filter(|name| !name.is_empty());
    of_system.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_else(|| "?".to_string())
}
