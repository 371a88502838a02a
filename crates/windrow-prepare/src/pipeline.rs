//! Several workers, one taker: chunks are read and encoded at once and taken in order, in bounded memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use windrow_core::stop::Stop;
use windrow_core::threads::refused;
use windrow_core::{Error, Kind, Result};

use super::chunks::{Chunk, Chunks, MOST_KEPT};
use super::encode::{Encode, EncodedChunk, LinePlace, Rules, encode_chunk};
use super::text_input::TextInput;

/// How often the watcher is asked while a chunk is being encoded.
const ASK: Duration = Duration::from_millis(20);

/// What is made of every chunk.
pub(super) struct Work<'a> {
    pub(super) encode: &'a dyn Encode,
    pub(super) rules: &'a Rules,
    /// Where records come from; none where they lie nowhere.
    pub(super) inputs: &'a [TextInput],
    /// What they are called, for errors.
    pub(super) names: &'a [String],
}

impl Work<'_> {
    /// `go_on` is asked before each line.
    pub(super) fn run(
        &self,
        chunk: &Chunk,
        spare: EncodedChunk,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<EncodedChunk> {
        let name = self.names.get(chunk.input).map_or("", String::as_str);
        let complete = |place: &LinePlace<'_>, error: Error| match self.inputs.get(chunk.input) {
            Some(TextInput::Lines(_)) => place.complete(error),
            Some(TextInput::Rows(rows)) => rows.complete(error, place.line),
            None if error.place().record.is_none() => error.record(place.line),
            None => error,
        };
        encode_chunk(chunk, name, &complete, self.encode, self.rules, spare, go_on)
    }
}

/// Runs it all on the calling thread.
pub(super) fn in_line(
    read: &mut dyn FnMut(Vec<u8>) -> Option<Result<Chunk>>,
    work: &Work<'_>,
    ask: &mut dyn FnMut() -> Result<()>,
    take: &mut dyn FnMut(&EncodedChunk) -> Result<()>,
) -> Result<()> {
    let mut asked = Instant::now();
    // Asking may cost more than a short line.
    let mut go_on = || {
        if asked.elapsed() < ASK {
            Ok(())
        } else {
            asked = Instant::now();
            ask()
        }
    };
    let (mut room, mut spare) = (Vec::new(), EncodedChunk::default());
    while let Some(chunk) = read(room) {
        let chunk = chunk?;
        spare = work.run(&chunk, spare, &mut go_on)?;
        take(&spare)?;
        go_on()?;
        room = chunk.into_room();
    }
    Ok(())
}

/// Runs `work` on `threads` threads, each of which reads what it encodes; `ask` and `take` run on the calling one.
pub(super) fn in_parallel(
    chunks: Chunks<'_>,
    threads: usize,
    work: &Work<'_>,
    ask: &mut dyn FnMut() -> Result<()>,
    take: &mut dyn FnMut(&EncodedChunk) -> Result<()>,
) -> Result<()> {
    // A chunk waits here from the moment it is read until it is taken: that bounds the memory. Enough of them that the
    // workers continue while the taker waits for the disk.
    let (to_ordered, ordered) = sync_channel(2 * threads + 12);
    let shared = &Shared {
        source: Mutex::new(Some(Source { chunks, to_ordered })),
        spares: Mutex::default(),
        stop: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let started = (0..threads).try_for_each(|_| {
            let stop = Stop::of_this_thread();
            let serve = || stop.hold(|| shared.serve(work));
            Builder::new().name("windrow-encode".to_string()).spawn_scoped(scope, serve).map(drop)
        });
        let done = started.map_err(refused).and_then(|()| shared.take_in_order(&ordered, ask, take));
        // Whatever the others wait for ends now.
        shared.stop.store(true, Ordering::Relaxed);
        drop(ordered);
        done
    })
}

/// What the threads have in common.
struct Shared<'a> {
    // Gone at the end, and with it the sender that the taker waits for.
    source: Mutex<Option<Source<'a>>>,
    /// Chunks that were taken; their buffers are used again.
    spares: Mutex<Vec<EncodedChunk>>,
    stop: AtomicBool,
}

/// Where chunks come from, and where their results are to be found, in the order of the chunks.
struct Source<'a> {
    chunks: Chunks<'a>,
    to_ordered: SyncSender<Receiver<Result<EncodedChunk>>>,
}

impl Shared<'_> {
    /// The next chunk in order, and where its result goes.
    fn next(&self, room: Vec<u8>) -> Option<(Chunk, SyncSender<Result<EncodedChunk>>)> {
        let mut slot = lock(&self.source);
        // Taken out: should reading panic, nobody continues with what is left of it.
        let mut source = slot.take()?;
        let chunk = source.chunks.read(room)?;
        let (to_result, result) = sync_channel(1);
        source.to_ordered.send(result).ok()?;
        match chunk {
            Ok(chunk) => {
                *slot = Some(source);
                Some((chunk, to_result))
            }
            // In its order too: lines before it are encoded first, so the first error is always the same one.
            Err(e) => {
                let _ = to_result.send(Err(e));
                None
            }
        }
    }

    fn serve(&self, work: &Work<'_>) {
        let mut room = Vec::new();
        while let Some((chunk, to_result)) = self.next(room) {
            let spare = lock(&self.spares).pop().unwrap_or_default();
            let mut go_on = || {
                if self.stop.load(Ordering::Relaxed) {
                    Err(Error::new(Kind::Interrupted, "stopped"))
                } else {
                    Ok(())
                }
            };
            // Nobody waits for it any more when the task has failed elsewhere.
            let _ = to_result.send(work.run(&chunk, spare, &mut go_on));
            room = chunk.into_room();
        }
    }

    fn take_in_order(
        &self,
        ordered: &Receiver<Receiver<Result<EncodedChunk>>>,
        ask: &mut dyn FnMut() -> Result<()>,
        take: &mut dyn FnMut(&EncodedChunk) -> Result<()>,
    ) -> Result<()> {
        while let Some(next) = receive(ordered, ask)? {
            let encoded = receive(&next, ask)?
                .ok_or_else(|| Error::new(Kind::Interrupted, "the encoder's thread has ended"))??;
            take(&encoded)?;
            if encoded.tokens.len() <= MOST_KEPT {
                lock(&self.spares).push(encoded);
            }
        }
        Ok(())
    }
}

// What is behind it is whole at any moment.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What comes; `None` where nothing will.
pub(super) fn receive<T>(from: &Receiver<T>, ask: &mut dyn FnMut() -> Result<()>) -> Result<Option<T>> {
    loop {
        ask()?;
        match from.recv_timeout(ASK) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}
