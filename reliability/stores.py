"""Data behind URLs while the store fails: the data of the local files comes, or an error in time, and a damaged cache is never served."""

from __future__ import annotations

import concurrent.futures
import functools
import logging
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sets
from store_server import LASTING, PASSING, Script, Store
from tally import Part
from worker import Died, Hung, Worker, own_panic

import windrow as wr

TIMEOUT_SECS = 6
# A read fails after the time-out; opening and reading wait for one such read each at most, and the machine is shared.
LIMIT_SECS = 10 * TIMEOUT_SECS
# Of a store that fails for good: what is asked for beside the data may be waited for as well.
MOST_SECS = 4 * TIMEOUT_SECS + 10
# A store that says what is wrong, and seldom fails, is asked until it answers.
HONEST = {"503", "429", "500", "408", "closed", "reset", "cut", "whole"}
AT_ONCE = 8
PASS, LAST, FLIPPED, POISONED = "faults that pass", "faults that stay", "flipped bytes, verify=always", "a damaged cache"
CHECKED, MUTE, READER = "flipped bytes, checksums of the store", "no versions, another length", "no right to list"
# Formats that are read where they are, and some that are fetched as a whole.
NAMES = (
    "tokens, ragged; shards, ragged; mds, rows; forager, ragged; flat-tokens, zarr 3, sharded; arrow, rows; jsonl, rows; parquet, rows; "
    "parts; megatron, ragged; webdataset, rows; npz, equal"
).split("; ")


class Lane:
    """A store and a reader of their own, so that several cases wait at the same time."""

    def __init__(self, part: Part, number: int, folder: Path) -> None:
        self.store = Store(folder)
        place = part.folder / f"lane{number}"
        place.mkdir()
        self.cache, self.worker = place / "cache", Worker("stores", "case", place, LIMIT_SECS)


def torture(part: Part) -> None:
    local = {one.name: one for one in sets.written(part.folder / "bucket") if one.name in NAMES}
    local["megatron, ragged"].path += ".idx"
    large = part.folder / "bucket" / "large"
    large.mkdir()
    # Several granules of the cache, and several requests.
    wr.write(large / "data.bin", [np.arange(700_000) * 7 % 65_521], to="tokens", dtype="uint16", fsync=False)
    local["large"] = sets.Set("large", str(large / "data.bin"), str(large), is_summed=True, is_always=True)
    whole = {name: sets.content(wr.open(one.path)) for name, one in local.items()}
    lanes = [Lane(part, number, part.folder) for number in range(AT_ONCE)]
    try:
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in part.rounds():
                seeds = [part.random.randrange(1 << 60) for _ in lanes]
                list(pool.map(lambda lane, seed: one_case(part, lane, local, whole, seed), lanes, seeds))
    finally:
        for lane in lanes:
            lane.worker.stop()
            lane.store.shutdown()


def one_case(part: Part, lane: Lane, local: dict[str, sets.Set], whole: dict[str, str], seed: int) -> None:
    draws = random.Random(seed)
    row = draws.choice([PASS, PASS, LAST, LAST, FLIPPED, CHECKED, MUTE, READER, POISONED, POISONED])
    one = local[draws.choice(["large", *local])]
    # Of a web server only files are read that say all; a store lists.
    if row in (MUTE, READER) and not Path(one.path).is_file():
        one = local["large"]
    web = row == MUTE or (row not in (CHECKED, READER) and Path(one.path).is_file() and draws.random() < 0.5)
    key = Path(one.path).relative_to(part.folder)
    url = f"{lane.store.url}/{key}" if web else f"s3://{key}"
    options: dict[str, Any] = {"timeout": TIMEOUT_SECS}
    if not web:
        options["store_options"] = {"endpoint_url": lane.store.url, "access_key_id": "A", "secret_access_key": "S", "region": "x"}
    shutil.rmtree(lane.cache, ignore_errors=True)
    options |= {"cache": str(lane.cache)} if draws.random() < 0.6 or row == POISONED else {"cache_limit": 0}
    if row == FLIPPED or draws.random() < 0.2:
        options["verify_checksums"] = True
    script = Script(seed=seed & 0xFFFFFFFF)
    if row == PASS:
        kinds = draws.choice([PASSING, sorted(HONEST)])
        script.share, script.kinds = draws.choice([0.02, 0.1, 0.3]), draws.sample(kinds, draws.randint(1, len(kinds)))
    elif row == LAST:
        script.lasting, script.since = draws.choice(LASTING), draws.randrange(12)
    elif row in (FLIPPED, CHECKED):
        script.flips, script.checksums = draws.choice([0.05, 0.3, 1.0]), row == CHECKED
    elif row == MUTE:
        script.versions, script.lasting, script.since = False, "truncated", draws.randrange(12)
    elif row == READER:
        script.lists, script.share, script.kinds = False, draws.choice([0.0, 0.1]), sorted(HONEST)
    said = f"case {seed}: {url} {options}, {script}"
    asked = {"url": url, "options": options, "seed": seed & 0xFFFF, "timed": script.lasting in ("cut", "drip")}
    part.tried(row)
    try:
        if row == POISONED:
            lane.store.begin(Script())
            if (answer := lane.worker.ask(**asked))["content"] != whole[one.name]:
                part.found(row, "wrong", f"{said}: without a fault: {answer}")
                return
            said += f"; {poison(draws, lane.cache)}"
        lane.store.begin(script)
        began = time.monotonic()
        answer = lane.worker.ask(**asked)
        if row == LAST:
            # Each answer that is cut brings some bytes, and many reads succeed before one gives up: each has its own time.
            took = answer["longest"] if asked["timed"] else time.monotonic() - began
            part.took(row, took)
            if took > MOST_SECS:
                part.found(row, "hung", f"{took:.0f} s: {said}: {answer['error']}")
    except Hung as error:
        part.found(row, "hung", f"{said}: {error}")
        return
    except Died as error:
        part.found(row, "wrong", f"{said}: the process died: {error}")
        return
    if own_panic(text := lane.worker.said()):
        part.found(row, "wrong", f"{said}: {text[-500:]}")
    if answer["odd"]:
        part.found(row, "wrong", f"{said}: {answer['odd']}")
        return
    if answer["content"] is not None and answer["content"] != whole[one.name]:
        part.found(row, "silent", f"{said}: other data; met {sorted(lane.store.met)}")
        return
    if answer["epoch"]:
        part.found(row, "silent", f"{said}: {answer['epoch']}; met {sorted(lane.store.met)}")
        return
    is_honest = script.share <= 0.1 and set(script.kinds) <= HONEST
    must_come = row == POISONED or (row in (PASS, READER) and is_honest)
    if answer["content"] is None and not answer.get("is_whole") and must_come:
        part.found(row, "lost", f"{said}: {answer['error']}")


def poison(draws: random.Random, cache: Path) -> str:
    """Damages files of the cache: what was done."""
    files = [path for path in sorted(cache.rglob("*")) if path.is_file() and path.stat().st_size]
    said = []
    for path in draws.sample(files, min(len(files), draws.randint(1, 4))):
        data, what = bytearray(path.read_bytes()), draws.choice(["flip", "flip", "cut", "zero", "append", "other"])
        at = draws.randrange(len(data))
        if what == "flip":
            data[at] ^= 1 << draws.randrange(8)
        elif what == "cut":
            del data[at:]
        elif what == "zero":
            data[at : at + 70_000] = bytes(len(data[at : at + 70_000]))
        elif what == "append":
            data += b"x" * draws.randrange(1, 5000)
        else:
            data[:] = draws.choice(files).read_bytes()
        path.write_bytes(data)
        said.append(f"{what} {path.relative_to(cache)} at {at}")
    return ", ".join(said)


# What follows runs in the worker.


def case(url: str, options: dict[str, Any], seed: int, timed: bool) -> dict[str, Any]:
    """Reads everything, then an epoch of a loader: the content, what an epoch has that it should not, and errors.

    Where `timed`, each record is read once before, and the longest call counts.
    """
    logging.disable()
    answer: dict[str, Any] = {"content": None, "epoch": None, "error": None, "odd": None, "longest": 0.0}

    def call(work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            return work()
        finally:
            answer["longest"] = max(answer["longest"], time.monotonic() - began)

    try:
        ds = call(lambda: wr.open(url, **options))
        for i in range(len(ds) if timed else 0):
            call(functools.partial(ds.__getitem__, i))
        if ds.info()["dtype"] is not None and not ds.info()["tracks"] and ds.info()["channels"] is None:
            answer["epoch"] = epoch(ds, seed)
        answer["content"] = sets.content(ds)
    except (wr.WindrowError, OSError) as error:
        answer["error"] = f"{type(error).__name__}: {error}"
        # A server that once ignored ranges is taken for one that knows none; what does not fit into the cache is an error then.
        answer["is_whole"] = "the server ignores ranges" in str(error)
    except BaseException as error:
        answer["odd"] = f"{type(error).__name__}: {error}"
    return answer


def epoch(ds: wr.Dataset, seed: int) -> str | None:
    """Every sample of an epoch, read by threads in a random order, is the one that is read by its number; each comes once."""
    view = ds.pack(32)
    shuffle: Any = [True, False, wr.Blocks(size=50)][seed % 3]
    given = np.concatenate([batch["input_ids"] for batch in wr.Loader(view, 16, seed=seed, shuffle=shuffle, epochs=1, drop_last=False)])
    alone = view.batch(range(len(view)))["input_ids"]
    if given.shape != alone.shape or sorted(map(bytes, given)) != sorted(map(bytes, alone)):
        return f"{len(given)} samples of {len(alone)}, or others than are read by number"
    return None
