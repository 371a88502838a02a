//! Several workers that are fed by the calling thread, which also takes what they made: for texts that come from one thread only.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::Builder;

use windrow_core::threads::refused;
use windrow_core::{Error, Kind, Result};

use super::chunks::{Chunk, MOST_KEPT};
use super::encode::EncodedChunk;
use super::pipeline::{Work, lock, receive};

/// Where the result of a chunk goes.
type Reply = SyncSender<Result<EncodedChunk>>;

/// Runs `work` on `threads` threads; `read`, `ask` and `take` run on the calling one.
pub(super) fn in_parallel(
    read: &mut dyn FnMut(Vec<u8>) -> Option<Result<Chunk>>,
    threads: usize,
    work: &Work<'_>,
    ask: &mut dyn FnMut() -> Result<()>,
    take: &mut dyn FnMut(&EncodedChunk) -> Result<()>,
) -> Result<()> {
    let (to_workers, chunks) = channel();
    let shared = &Shared {
        chunks: Mutex::new(chunks),
        rooms: Mutex::default(),
        spares: Mutex::default(),
        stop: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let started = (0..threads).try_for_each(|_| {
            let serve = || shared.serve(work);
            Builder::new().name("windrow-encode".to_string()).spawn_scoped(scope, serve).map(drop)
        });
        // A chunk waits from the moment it is read until it is taken: that bounds the memory.
        let most = 2 * threads + 12;
        let done = started.map_err(refused).and_then(|()| shared.feed(to_workers, most, read, ask, take));
        shared.stop.store(true, Ordering::Relaxed);
        done
    })
}

/// What the threads have in common.
struct Shared {
    chunks: Mutex<Receiver<(Chunk, Reply)>>,
    /// Memory of chunks that were encoded, and of results that were taken: used again.
    rooms: Mutex<Vec<Vec<u8>>>,
    spares: Mutex<Vec<EncodedChunk>>,
    stop: AtomicBool,
}

impl Shared {
    fn serve(&self, work: &Work<'_>) {
        let next = || lock(&self.chunks).recv();
        while let Ok((chunk, reply)) = next() {
            let spare = lock(&self.spares).pop().unwrap_or_default();
            let mut go_on = || {
                if self.stop.load(Ordering::Relaxed) {
                    Err(Error::new(Kind::Interrupted, "stopped"))
                } else {
                    Ok(())
                }
            };
            // Nobody waits for it any more when the task has failed elsewhere.
            let _ = reply.send(work.run(&chunk, spare, &mut go_on));
            lock(&self.rooms).push(chunk.into_room());
        }
    }

    // The workers end with the sender.
    fn feed(
        &self,
        to_workers: Sender<(Chunk, Reply)>,
        most: usize,
        read: &mut dyn FnMut(Vec<u8>) -> Option<Result<Chunk>>,
        ask: &mut dyn FnMut() -> Result<()>,
        take: &mut dyn FnMut(&EncodedChunk) -> Result<()>,
    ) -> Result<()> {
        let mut waiting: VecDeque<Receiver<Result<EncodedChunk>>> = VecDeque::new();
        let mut take = |encoded: EncodedChunk| {
            take(&encoded)?;
            if encoded.tokens.len() <= MOST_KEPT {
                lock(&self.spares).push(encoded);
            }
            Ok::<(), Error>(())
        };
        loop {
            ask()?;
            let room = lock(&self.rooms).pop().unwrap_or_default();
            let Some(chunk) = read(room) else { break };
            let (reply, result) = sync_channel(1);
            to_workers.send((chunk?, reply)).map_err(|_| ended())?;
            waiting.push_back(result);
            // What is ready is taken in its order; the first one is waited for only where there is no room for another.
            while let Some(first) = waiting.front() {
                let encoded = match first.try_recv() {
                    Err(TryRecvError::Empty) if waiting.len() < most => break,
                    Err(TryRecvError::Empty) => receive(first, ask)?.ok_or_else(ended)?,
                    Err(TryRecvError::Disconnected) => return Err(ended()),
                    Ok(encoded) => encoded,
                };
                waiting.pop_front();
                take(encoded?)?;
            }
        }
        waiting.iter().try_for_each(|next| take(receive(next, ask)?.ok_or_else(ended)??))
    }
}

fn ended() -> Error {
    Error::new(Kind::Interrupted, "the encoder's thread has ended")
}
