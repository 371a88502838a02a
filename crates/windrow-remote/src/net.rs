//! The threads that ask: one runtime for each process, made at the first request.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;

use tokio::runtime::{Builder, Runtime};
use windrow_core::stop::{self, BETWEEN_QUESTIONS};
use windrow_core::{Error, PerProcess, Result};

/// Requests under way at a time, of one process.
pub const MOST_REQUESTS: usize = 64;

static RUNTIME: PerProcess<std::result::Result<Arc<Runtime>, String>> = PerProcess::new(start);

fn start() -> std::result::Result<Arc<Runtime>, String> {
    // A client panics without one; another library may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(4);
    let built =
        Builder::new_multi_thread().worker_threads(threads).thread_name("windrow-net").enable_all().build();
    built.map(Arc::new).map_err(|e| e.to_string())
}

/// The runtime of this process.
///
/// # Errors
/// `Memory` where the system gives no threads.
pub(crate) fn runtime() -> Result<Arc<Runtime>> {
    match RUNTIME.get() {
        Ok(runtime) => Ok(runtime.clone()),
        Err(e) => Err(Error::memory(format!("threads to ask a store: {e}"))),
    }
}

/// Waits for an answer, on a thread that does not belong to the runtime.
pub(crate) fn wait<T: Send + 'static>(asked: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // Nobody listens any more: nobody needs it.
        let _ = sender.send(asked.await);
    });
    loop {
        match receiver.recv_timeout(BETWEEN_QUESTIONS) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Timeout) => stop::go_on()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(windrow_core::Kind::Interrupted, "the request was given up"));
            }
        }
    }
}
