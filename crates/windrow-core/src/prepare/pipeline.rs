//! One reader, several workers, one taker: chunks are encoded at once and taken in order, in bounded memory.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use super::chunks::Chunk;
use super::encode::{Encode, EncodedChunk, Rules, encode_chunk};
use crate::error::{Error, Kind, Result};

/// How often the watcher is asked while a chunk is being encoded.
const ASK: Duration = Duration::from_millis(20);

/// What becomes of every chunk.
pub(super) struct Work<'a> {
    pub(super) encode: &'a dyn Encode,
    pub(super) rules: &'a Rules,
    /// Of the inputs, for errors.
    pub(super) names: &'a [String],
}

impl Work<'_> {
    // By an encoder of one's own, perhaps; `go_on` is asked before each line.
    fn run(
        &self,
        encode: &dyn Encode,
        chunk: &Chunk,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<EncodedChunk> {
        encode_chunk(chunk, &self.names[chunk.input], encode, self.rules, go_on)
    }
}

type Job = (Chunk, SyncSender<Result<EncodedChunk>>);

/// Runs it all on the calling thread.
pub(super) fn in_line(
    chunks: impl Iterator<Item = Result<Chunk>>,
    work: &Work<'_>,
    ask: &mut dyn FnMut() -> Result<()>,
    take: &mut dyn FnMut(EncodedChunk) -> Result<()>,
) -> Result<()> {
    let mut asked = Instant::now();
    // Asking may cost more than a short line.
    let mut go_on = || match asked.elapsed() < ASK {
        true => Ok(()),
        false => {
            asked = Instant::now();
            ask()
        }
    };
    for chunk in chunks {
        take(work.run(work.encode, &chunk?, &mut go_on)?)?;
        go_on()?;
    }
    Ok(())
}

/// Runs `work` on `threads` threads; `ask` and `take` run on the calling one.
pub(super) fn in_parallel(
    chunks: impl Iterator<Item = Result<Chunk>> + Send,
    threads: usize,
    work: &Work<'_>,
    ask: &mut dyn FnMut() -> Result<()>,
    take: &mut dyn FnMut(EncodedChunk) -> Result<()>,
) -> Result<()> {
    let stop = AtomicBool::new(false);
    let stop = &stop;
    std::thread::scope(|scope| {
        // Enough that the workers go on while the taker waits for the disk.
        let waiting = 2 * threads + 12;
        // A chunk waits in `ordered` from the moment it is read until it is taken: that bounds the memory.
        let (to_ordered, ordered) = sync_channel(waiting);
        let (to_jobs, jobs) = sync_channel::<Job>(waiting);
        let started = start(scope, chunks, threads, work, stop, jobs, to_jobs, to_ordered);
        let done = started.and_then(|()| take_in_order(&ordered, ask, take));
        // Whatever the others wait for ends now.
        stop.store(true, Ordering::Relaxed);
        drop(ordered);
        done
    })
}

#[expect(clippy::too_many_arguments, reason = "both ends of both queues have to move into the threads")]
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    chunks: impl Iterator<Item = Result<Chunk>> + Send + 'scope,
    threads: usize,
    work: &'scope Work<'scope>,
    stop: &'scope AtomicBool,
    jobs: Receiver<Job>,
    to_jobs: SyncSender<Job>,
    to_ordered: SyncSender<Receiver<Result<EncodedChunk>>>,
) -> Result<()> {
    let no_thread = |e| Error::new(Kind::Io, "cannot start a thread").caused_by(e);
    let jobs = std::sync::Arc::new(Mutex::new(jobs));
    for thread in 0..threads {
        let jobs = jobs.clone();
        let name = "windrow-encode".to_string();
        let serve = move || serve(&jobs, work, thread > 0, stop);
        Builder::new().name(name).spawn_scoped(scope, serve).map_err(no_thread)?;
    }
    let read = move || {
        for chunk in chunks {
            let (to_result, result) = sync_channel(1);
            let sent = match chunk {
                Ok(chunk) => to_ordered.send(result).is_ok() && to_jobs.send((chunk, to_result)).is_ok(),
                // In its order too: lines before it are encoded first, so the first error is always the same one.
                Err(e) => to_result.send(Err(e)).is_ok() && to_ordered.send(result).is_ok(),
            };
            if !sent || stop.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    Builder::new().name("windrow-read".to_string()).spawn_scoped(scope, read).map_err(no_thread)?;
    Ok(())
}

fn serve(jobs: &Mutex<Receiver<Job>>, work: &Work<'_>, is_further: bool, stop: &AtomicBool) {
    // Made when there is something to do for it.
    let own = OnceCell::new();
    let own = || own.get_or_init(|| work.encode.for_thread()).as_deref();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((chunk, to_result)) = job else { return };
        let encode = if is_further { own().unwrap_or(work.encode) } else { work.encode };
        let result = work.run(encode, &chunk, &mut || match stop.load(Ordering::Relaxed) {
            true => Err(Error::new(Kind::Interrupted, "stopped")),
            false => Ok(()),
        });
        // Nobody waits for it any more when the task has failed elsewhere.
        let _ = to_result.send(result);
    }
}

fn take_in_order(
    ordered: &Receiver<Receiver<Result<EncodedChunk>>>,
    ask: &mut dyn FnMut() -> Result<()>,
    take: &mut dyn FnMut(EncodedChunk) -> Result<()>,
) -> Result<()> {
    while let Some(next) = receive(ordered, ask)? {
        let encoded = receive(&next, ask)?
            .ok_or_else(|| Error::new(Kind::Interrupted, "the encoder's thread has ended"))?;
        take(encoded?)?;
    }
    Ok(())
}

fn receive<T>(from: &Receiver<T>, ask: &mut dyn FnMut() -> Result<()>) -> Result<Option<T>> {
    loop {
        ask()?;
        match from.recv_timeout(ASK) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}
