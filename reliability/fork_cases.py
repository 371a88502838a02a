"""What forks.py tries: threads inside of loaders at a fork, threads that read together, ranks and workers that are killed."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from plans import padded_with_draws

import windrow as wr

LIMIT_SECS = 60
# Of a worker that its fork server started, torch hears only when a batch is late.
LATE_SECS = 20


def case(kind: str, seed: int, tokens: str, lines: str) -> str | None:
    """What is wrong, if anything."""
    logging.disable()
    draws = random.Random(seed)
    return {"forked": forked, "threads": threads, "ranks": ranks, "workers": workers, "killed": killed}[kind](draws, tokens, lines)


def view_of(draws: random.Random, tokens: str, by_number: bool = True) -> Any:
    """A view, or a mixture of two, of data that is mapped or read by position; by loaders alone, unless `by_number`."""
    io: Any = draws.choice(["mmap", "pread"])
    ds = wr.open(tokens, dtype="uint16", io=io)
    documents = wr.open(Path(tokens).with_name("documents.bin"), dtype="uint16", document_eos=0, io=io)
    scope = draws.choice([None, 32])
    views: list[Any] = [
        lambda: ds.pack(16),
        lambda: ds.pack(16, labels=None),
        lambda: ds.windows(15, stride=16),
        lambda: documents.pack(16, reshuffle=True, scope=scope),
        lambda: documents.records(40, pad="longest"),
    ]
    view = draws.choice(views)()
    batches: Any = None if by_number else draws.choice([None, "part"])
    return wr.mix({"a": (view, 0.7), "b": (view, 0.3)}, stop="all", batches=batches) if draws.random() < 0.3 else view


def size_of(draws: random.Random, view: Any, rows: int, world: int) -> dict[str, Any]:
    """Batches of a number of rows, or where rows are of many lengths, within a budget."""
    budget: dict[str, Any] = {"max_tokens": 40 * rows, "multiple": world}
    try:
        wr.Loader(view, rank=0, world_size=world, **budget)
    except wr.ConfigError:
        return {"global_batch_size": rows}
    return budget if draws.random() < 0.7 else {"global_batch_size": rows}


def digest(batch: Any) -> str:
    if isinstance(batch, dict):
        return hashlib.blake2b(b"".join(np.ascontiguousarray(array).tobytes() for array in batch.values())).hexdigest()
    return repr(batch)


def take(loader: Any, n: int) -> list[str]:
    return [digest(next(loader)) for _ in range(n)]


def forked(draws: random.Random, tokens: str, lines: str) -> str | None:
    """Children and their parent go on with one loader, while other threads are inside of loaders."""
    view, n = view_of(draws, tokens, by_number=False), draws.choice([1, 8, 50])
    options: dict[str, Any] = {"batch_size": n, "seed": draws.randrange(99)}
    if draws.random() < 0.4:
        options["map"] = padded_with_draws
    expected = take(wr.Loader(view, num_threads=0, **options), 14)
    loader, busy = wr.Loader(view, num_threads=draws.randint(0, 4), **options), wr.Loader(view, 100)
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            next(busy)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(draws.randint(0, 3))]
    for reader in readers:
        reader.start()
    if take(loader, 4) != expected[:4]:
        return "the parent's first batches are others"
    wrong = None
    for number in range(draws.randint(1, 5)):
        time.sleep(draws.choice([0, 0, draws.random() / 100]))
        child = os.fork()
        if child == 0:
            os._exit(of_child(loader, busy, view, options, expected))
        code = ended(child)
        wrong = wrong or (f"child {number}: {code}" if code else None)
    over.set()
    for reader in readers:
        reader.join(LIMIT_SECS)
    if wrong or take(loader, 4) != expected[4:8]:
        return wrong or "the parent's batches after the fork are others"
    return None


def of_child(loader: Any, busy: Any, view: Any, options: dict[str, Any], expected: list[str]) -> int:
    """In the child: continues where the parent was, uses the other thread's loader, has a loader with threads of its own, forks."""
    try:
        if take(loader, 3) != expected[4:7]:
            return 2
        next(busy)
        own = wr.Loader(view, num_threads=2, **options)
        if take(own, 5) != expected[:5]:
            return 3
        inner = os.fork()
        if inner == 0:
            os._exit(0 if take(loader, 2) == expected[7:9] else 4)
        return ended(inner) or 0
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def threads(draws: random.Random, tokens: str, lines: str) -> str | None:
    """16 threads read one data set, one view and one loader."""
    view, rows = view_of(draws, tokens), wr.open(lines)
    loader = wr.Loader(view, 8, seed=draws.randrange(99), epochs=1, num_threads=draws.randint(0, 4), drop_last=False)
    alone = wr.Loader(view, 8, seed=int(loader.state_dict()["seed"]), epochs=1, num_threads=0, drop_last=False)
    expected, samples = sorted(map(digest, alone)), [digest(view[i]) for i in range(0, len(view), 40)]
    got: list[str] = []
    wrong: list[str] = []
    gate = threading.Barrier(16)

    def read(number: int) -> None:
        try:
            gate.wait()
            if number % 2:
                for batch in loader.stream():
                    got.append(digest(batch))
            for i in random.Random(number).sample(range(len(samples)), min(30, len(samples))):
                if digest(view[40 * i]) != samples[i]:
                    wrong.append(f"sample {40 * i} is another")
            if [row["n"] for row in rows[number::50]] != list(range(number, 1500, 50)):
                wrong.append("rows are others")
        except Exception as error:
            wrong.append(f"{error!r}")

    readers = [threading.Thread(target=read, args=(number,)) for number in range(16)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(LIMIT_SECS)
    if sorted(got) != expected:
        wrong.append(f"one loader in 8 threads gave {len(got)} batches of {len(expected)}, or others")
    return "; ".join(wrong) or None


def rank(view: Any, number: int, world: int, state: Any, options: dict[str, Any], pipe: Any) -> None:
    loader = wr.Loader(view, rank=number, world_size=world, num_threads=2, **options)
    if state:
        loader.load_state_dict(state)
    for batch in loader.stream():
        pipe.send((digest(batch), loader.state_dict()))
    pipe.send(None)


def ranks(draws: random.Random, tokens: str, lines: str) -> str | None:
    """One rank is killed at some time; the others end as if nothing were, and a new one continues where it was."""
    view, world = view_of(draws, tokens, by_number=False), draws.randint(2, 4)
    options: dict[str, Any] = {**size_of(draws, view, 8 * world, world), "seed": draws.randrange(99), "epochs": 1}
    if draws.random() < 0.4:
        options["map"] = padded_with_draws
    expected = [[digest(batch) for batch in wr.Loader(view, rank=r, world_size=world, num_threads=0, **options)] for r in range(world)]
    context: Any = multiprocessing.get_context(draws.choice(["fork", "fork", "forkserver", "spawn"]))
    victim, after = draws.randrange(world), draws.randrange(len(expected[0]))
    pipes, processes = [], []
    for number in range(world):
        reads, writes = context.Pipe(duplex=False)
        processes.append(context.Process(target=rank, args=(view, number, world, None, options, writes), daemon=True))
        processes[-1].start()
        writes.close()
        pipes.append(reads)
    for number in range(world):
        got: list[str] = []
        state = None
        while (found := received(pipes[number])) is not None:
            got, state = [*got, found[0]], found[1]
            if number == victim and len(got) == after:
                processes[number].kill()
                break
        if number == victim:
            # What it had sent before it died is not counted: the state is of the last one that was.
            loader = wr.Loader(view, rank=number, world_size=world, **options)
            loader.load_state_dict(state or loader.state_dict())
            got += [] if len(got) == len(expected[number]) else [digest(batch) for batch in loader.stream()]
        if got != expected[number]:
            said = f"{len(got)} batches of {len(expected[number])}, or others; rank {victim} was killed after {after}"
            return f"rank {number} of {world}, {context.get_start_method()}: {said}"
    for process in processes:
        process.kill()
        process.join(LIMIT_SECS)
    return None


def received(pipe: Any) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        return None


def batches_of(draws: random.Random, tokens: str, **more: Any) -> tuple[Any, Any]:
    import torch

    view = view_of(draws, tokens)
    # The parent has used the data, and has threads, when the workers start.
    digest(view[5])
    next(wr.Loader(view, 8, num_threads=2))
    start = draws.choice(["fork", "fork", "forkserver", "spawn"])
    return view, torch.utils.data.DataLoader(
        view, 64, num_workers=draws.randint(1, 3), multiprocessing_context=start, timeout=LATE_SECS, **more
    )


def workers(draws: random.Random, tokens: str, lines: str) -> str | None:
    view, loader = batches_of(draws, tokens, persistent_workers=draws.random() < 0.5)
    # Workers that are told none have another order of documents in each epoch.
    view.set_epoch(draws.randrange(3))
    expected = [
        digest(view.batch(range(at, min(at + 64, len(view))))) if isinstance(view, wr.View) else None for at in range(0, len(view), 64)
    ]
    for epoch in range(2):
        for number, batch in enumerate(loader):
            if expected[number] and digest({name: array.numpy() for name, array in batch.items()}) != expected[number]:
                return f"{loader.multiprocessing_context.get_start_method()}: batch {number} of epoch {epoch} is another"
        if number + 1 != len(expected):
            return f"{number + 1} batches of {len(expected)}"
    return None


def killed(draws: random.Random, tokens: str, lines: str) -> str | None:
    """A worker is killed while it reads: an error that says so, soon, and a new epoch is whole."""
    _, loader = batches_of(draws, tokens)
    after, number = draws.randrange(8), 0
    try:
        iterator: Any = iter(loader)
        for number, _ in enumerate(iterator):
            if number == after:
                time.sleep(draws.random() / 50)
                draws.choice(iterator._workers).kill()
    except (OSError, EOFError):
        # The memory of a batch that was on its way went with the worker; torch says it so.
        pass
    except RuntimeError as error:
        if not any(word in str(error) for word in ("killed", "exited unexpectedly", "timed out")):
            return f"{error!r}"
    else:
        # All that it had to do was done.
        if number + 1 != len(loader):
            return f"{number + 1} batches of {len(loader)} and no error"
    # The workers that are left end with what iterates over them.
    iterator = None
    for attempt in range(2):
        try:
            return None if sum(1 for _ in loader) == len(loader) else "the next epoch is not whole"
        except RuntimeError as error:
            # torch may say it as late as now, once.
            if attempt or "killed" not in str(error):
                return f"the next epoch: {error!r}"
    return None
