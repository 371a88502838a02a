"""Runs that are cut and go on: with other ranks, threads and batch sizes, they must give exactly the rest of the unbroken run.

The unbroken run, on one rank, says which rows each step has. A run on some ranks is cut at a random step, its state goes
through JSON, and other ranks go on from it. Then `trace` and `find` must name what came, and a state that was damaged
must be refused, or be the position that it says.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from typing import Any

import numpy as np
import plans
from plans import Plan
from tally import Part

import windrow as wr

MOST_STEPS = 40
LIMIT_SECS = 60
RESUMED, ROWS, TRACED, STATES = "cut, resumed on other ranks", "resumed with another batch size", "trace and find", "damaged states"
Row = tuple[Any, ...]


def torture(part: Part) -> None:
    logging.disable()
    known = plans.sources(part.folder)
    for number in part.rounds():
        began, seed = time.monotonic(), part.random.randrange(1 << 62)
        draws = type(part.random)(seed)
        plan = None
        try:
            plan = plans.draw(draws, known)
            steps = unbroken(plan)
        except (wr.ConfigError, wr.MismatchError):
            # Options that cannot work together, or nothing that fills a batch.
            continue
        said = f"case {seed}: {plan.said}"
        try:
            resumed(part, plan, steps, draws, said)
            if number % 2 == 0:
                other_batches(part, plan, draws, said)
            if number % 3 == 0:
                traced(part, plan, steps, draws, said)
            damaged(part, plan, steps, draws, said)
        except wr.WindrowError as error:
            # A later epoch of a mixture may end with fewer rows than ranks, which is said when it comes.
            if not any(what in str(error) for what in ("some of them would get none", "with the last batch of an epoch")):
                part.found(RESUMED, "wrong", f"{said}: {error!r}")
        if time.monotonic() - began > LIMIT_SECS:
            part.found(RESUMED, "hung", f"{time.monotonic() - began:.0f} s: {said}")


def loaders(plan: Plan, world: int, draws: Any = None, **more: Any) -> list[wr.Loader]:
    threads = draws.choice([0, 0, 0, 1, 2, 4]) if draws else 0
    options = {**plan.options, "num_threads": threads, **more}
    return [wr.Loader(plan.view, rank=rank, world_size=world, **options) for rank in range(world)]


def worlds_of(plan: Plan) -> list[int]:
    """At most 5 ranks: each needs a row of every batch, also of an epoch's last one, and of a budget's as many as the others."""
    works = [1]
    for world in range(2, 6):
        try:
            loaders(plan, world)
        except (wr.ConfigError, wr.MismatchError):
            continue
        works.append(world)
    return works


def ways(plan: Plan, works: list[int], draws: Any) -> tuple[int, dict[str, Any]]:
    """A number of ranks and how rows are dealt to them, which may be another one from cut to cut."""
    for _ in range(20):
        world = draws.choice(works)
        more = {"balance": draws.choice(plan.more.get("balance", [None])), "accumulate": draws.choice([1, 1, 2, 3])}
        try:
            loaders(plan, world, **more)
        except (wr.ConfigError, wr.MismatchError):
            continue
        return world, more
    return draws.choice(works), {"balance": None, "accumulate": 1}


def rows_of(batch: Any, plan: Plan) -> list[Row]:
    """The rows of a batch, as values that can be compared."""
    if isinstance(batch, list):
        return [tuple(sorted(row.items())) for row in batch]
    n = len(next(iter(batch.values()), []))
    # The last token of a batch's longest row has no label, and no place where no row is longer.
    ends: list[int | None] = [None] * n
    if plan.is_trimmed:
        real = [int(length) for length in batch["lengths"]] if "lengths" in batch else batch["loss_masks"].sum(1).tolist()
        ends = [max(1, length) for length in real]

    def cut(array: Any, row: int) -> bytes:
        held: bytes = (array[row, : ends[row]] if array.ndim > 1 else array[row]).tobytes()
        return held

    return [tuple((name, cut(array, i)) for name, array in batch.items()) for i in range(n)]


def unbroken(plan: Plan) -> list[tuple[int, list[Row], Any]]:
    """Of each step its epoch, its rows, and the batch."""
    loader, steps = loaders(plan, 1)[0], []
    for batch in loader.stream():
        steps.append((loader.epoch, rows_of(batch, plan), batch))
        if len(steps) == MOST_STEPS:
            break
    return steps


def resumed(part: Part, plan: Plan, steps: list[Any], draws: Any, said: str) -> None:
    """Several cuts, each time on another number of ranks."""
    part.tried(RESUMED)
    works = worlds_of(plan)
    worlds: list[tuple[int, int, dict[str, Any]]] = []
    at, state = 0, None
    while True:
        world, more = ways(plan, works, draws)
        until = draws.randint(at, len(steps)) if len(worlds) < 3 else len(steps)
        worlds.append((world, at, more))
        ranks = loaders(plan, world, draws, **more)
        if state is not None:
            for loader in ranks:
                loader.load_state_dict(json.loads(state))
        streams = [loader.stream() for loader in ranks]
        for step in range(at, until):
            of_ranks = [[row for _ in range(more["accumulate"]) for row in rows_of(next(stream, []), plan)] for stream in streams]
            got = [row for rows in of_ranks for row in rows]
            expected = steps[step][1]
            if more["balance"] is not None:
                # The same rows, which other ranks have.
                expected, got = sorted(expected), sorted(got)
            if got == expected and [] in of_ranks:
                part.found(RESUMED, "wrong", f"{said}; (ranks, first step): {worlds}, step {step}: a rank gets a batch without rows")
                return
            if got != expected:
                differs(part, RESUMED, expected, got, f"{said}; (ranks, first step): {worlds}, step {step}")
                return
        if until == len(steps) < MOST_STEPS and (late := [n for n, stream in enumerate(streams) if next(stream, None) is not None]):
            part.found(RESUMED, "wrong", f"{said}; ranks, first step: {worlds}: rank {late} gives a batch after the last")
            return
        states = {json.dumps(loader.state_dict()) for loader in ranks}
        if len(states) != 1:
            part.found(RESUMED, "wrong", f"{said}; (ranks, first step): {worlds}: ranks have different states: {states}")
            return
        (state,) = states
        for loader in ranks:
            loader.close()
        if until == len(steps):
            return
        at = until


def differs(part: Part, name: str, expected: list[Row], got: list[Row], said: str) -> None:
    missing, other = Counter(expected) - Counter(got), Counter(got) - Counter(expected)
    what = "lost" if missing and not other else "wrong"
    part.found(name, what, f"{said}: {sum(missing.values())} rows are missing, {sum(other.values())} are others or doubled")


def other_batches(part: Part, plan: Plan, draws: Any, said: str) -> None:
    """After a cut within an epoch, batches of another size are the next samples of the same order."""
    options = plan.options
    if plan.is_by_part:
        refused(part, plan, said)
        return
    if {"skip", "last", "max_tokens"} & options.keys() or (isinstance(options["shuffle"], wr.Blocks)):
        return
    singles = loaders(plan, 1, global_batch_size=1, drop_last=True)[0]
    order: list[Row] = []
    for batch in singles.stream():
        if singles.epoch or len(order) == MOST_STEPS:
            break
        order += rows_of(batch, plan)
    old, new = options["global_batch_size"], draws.choice([1, 2, 3, 5, 8])
    steps = draws.randint(0, len(order) // old)
    if steps * old + new > len(order):
        return
    before = loaders(plan, 1, draws)[0]
    found = [row for _, batch in zip(range(steps), before.stream(), strict=False) for row in rows_of(batch, plan)]
    state = json.dumps(before.state_dict())
    part.tried(ROWS)
    after = loaders(plan, 1, draws, global_batch_size=new)[0]
    after.load_state_dict(json.loads(state))
    for batch in after.stream():
        if len(found) + new > len(order):
            break
        found += rows_of(batch, plan)
    if found != order[: len(found)]:
        differs(part, ROWS, order[: len(found)], found, f"{said}; {steps} steps of {old}, then batches of {new}")


def refused(part: Part, plan: Plan, said: str) -> None:
    """Batches of one part each have one size: a state of another is refused, and the size named."""
    part.tried(ROWS)
    old = plan.options["global_batch_size"]
    loader = loaders(plan, 1)[0]
    next(loader.stream(), None)
    # Of which nothing may stand in the way of another size: phases and skips are at ends of batches.
    options = {name: value for name, value in plan.options.items() if name != "skip"}
    try:
        other = wr.Loader(plan.view, rank=0, world_size=1, num_threads=0, **{**options, "global_batch_size": 2 * old})
    except (wr.ConfigError, wr.MismatchError):
        return
    try:
        other.load_state_dict(loader.state_dict())
        part.found(ROWS, "wrong", f"{said}: a state of batches of {old} rows was taken by batches of {2 * old}")
    except wr.MismatchError as error:
        if f"of {old} rows" not in str(error) and "skip" not in plan.options:
            part.found(ROWS, "wrong", f"{said}: the error does not name {old} rows: {error}")


def traced(part: Part, plan: Plan, steps: list[Any], draws: Any, said: str) -> None:
    """What trace says was read is what a row holds, and find gives the row back."""
    if not steps:
        return
    part.tried(TRACED)
    loader = loaders(plan, 1)[0]
    step = draws.randrange(len(steps))
    epoch, _, batch = steps[step]
    rows = wr.trace(loader, step)
    n = len(batch) if isinstance(batch, list) else len(next(iter(batch.values())))
    if len(rows) != n:
        part.found(TRACED, "wrong", f"{said}; step {step}: trace has {len(rows)} rows of {n}")
        return
    row = draws.randrange(n)
    told, source = rows[row], plan.sources[rows[row].get("part", 0) or 0]
    read = [source.value(one["record"], t) for one in told["reads"] for t in range(one["start"], one["start"] + max(one["len"], 1))]
    held = values_of(batch, row)
    if not held and "context" in plan.options:
        # A part of a row may be padding alone.
        return
    if not held or not held <= set(read):
        part.found(TRACED, "wrong", f"{said}; step {step}, row {row}: holds {sorted(held)[:5]}…, trace says {told}")
        return
    record = draws.choice(told["reads"])["record"]
    places = wr.find(loader, record, part=told.get("part", 0) or 0, epoch=epoch, most=100_000 if plan.ends else 2000)
    if not plan.ends:
        # Samples come again without end, and the first of the record takes all the places.
        places = [one for one in places if one["sample"] == told["sample"]]
    if (places or plan.ends) and not any(one["position"] == told["position"] and one["row"] == row for one in places):
        part.found(TRACED, "wrong", f"{said}; step {step}, row {row}: find(record={record}, epoch={epoch}) does not name it: {told}")
        return


def values_of(batch: Any, row: int) -> set[int]:
    """The values of a row that are not padding."""
    if isinstance(batch, list):
        return {batch[row]["n"]}
    name = next(name for name in ("input_ids", "values", "targets", "n") if name in batch)
    array = np.asarray(batch[name][row])
    if array.ndim == 2:
        array = array[:, 0]
    return {int(value) for value in np.atleast_1d(array) if value > 0}


def damaged(part: Part, plan: Plan, steps: list[Any], draws: Any, said: str) -> None:
    """A changed state is refused, or is a position of the same run that is then read from."""
    loader = loaders(plan, 1)[0]
    for _ in zip(range(draws.randint(0, min(len(steps), 5))), loader.stream(), strict=False):
        pass
    text = json.dumps(loader.state_dict())
    for _ in range(5):
        part.tried(STATES)
        harmed = harm(text, draws)
        try:
            state = json.loads(harmed)
            again = loaders(plan, 1)[0]
            again.load_state_dict(state)
        except (ValueError, TypeError, KeyError, IndexError, wr.WindrowError):
            continue
        own, first = again.state_dict(), json.loads(text)
        same = all(own[key] == first[key] for key in ("version", "plan", "seed"))
        if not same or any(own[key] != state.get(key) for key in ("epoch", "samples")):
            part.found(STATES, "silent", f"{said}; state {harmed}: taken as {own}")


def harm(text: str, draws: Any) -> str:
    """A byte or two changed, gone or more, a part gone, or the text cut."""
    for _ in range(draws.choice([1, 1, 2])):
        at = draws.randrange(len(text))
        to = draws.choice([at + 1, at + 1, at, at + draws.randrange(1, 30)])
        text = (
            text[:at]
            + draws.choice(["", draws.choice('0123456789-.eE"{}[],:nul xé'), draws.choice(["00", "1e3", "null", "-1", "true"])])
            + text[to:]
        )
    return text if draws.random() < 0.95 else text[: draws.randrange(len(text))]
