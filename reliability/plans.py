"""Random plans: a view or a mixture of small data, and the options of a loader that decide what comes in which order.

Every value says where it is from: value t of record r of a data set is 1 + base + 1,000 r + t, never 0, which is padding.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import windrow as wr

STRIDE = 1000
# No row is longer: the largest bucket.
LONGEST = 66


@dataclass
class Source:
    """A data set, and the number of its first value."""

    ds: wr.Dataset
    base: int
    lengths: list[int]

    def value(self, record: int, at: int) -> int:
        return 1 + self.base + STRIDE * record + at


@dataclass
class Plan:
    """What is read, in which order; `said` makes it again."""

    view: Any
    sources: list[Source]
    """One for each part of a mixture, in the order of their numbers."""
    options: dict[str, Any]
    said: str
    is_trimmed: bool = False
    """Whether rows are as long as the longest of their batch, so that padding says nothing."""
    kind: str = ""
    ends: bool = True
    is_by_part: bool = False
    """Whether each batch is of one part, which makes its size part of the plan."""
    more: dict[str, Any] = field(default_factory=dict)
    """`balance`: by what rows may be dealt to ranks, which decides no plan."""


def sources(folder: Path) -> dict[str, list[Source]]:
    """Data of each kind of record, two or three data sets of a kind, so that they can be mixed."""
    found: dict[str, list[Source]] = {"tokens": [], "channels": [], "rows": []}
    lengths = {
        "tokens": [[(7 * r) % 60 + 1 for r in range(40)], [30] * 25, [r % 3 + 1 for r in range(90)]],
        "channels": [[9 + r % 4 for r in range(20)], [40] * 12],
        "rows": [[1] * 70, [1] * 23],
    }
    for kind, sets in lengths.items():
        for n, lens in enumerate(sets):
            base = n * 100_000
            arrays = [np.arange(count, dtype="uint32") + 1 + base + STRIDE * r for r, count in enumerate(lens)]
            out = folder / f"{kind}{n}"
            if kind == "tokens":
                wr.write(out, arrays, to="forager", fsync=False)
            elif kind == "channels":
                wr.write(out, [np.stack([a, a + 500], 1).astype("int32") for a in arrays], to="shards", fsync=False)
            else:
                out = out.with_suffix(".jsonl")
                out.write_text("".join(json.dumps({"n": int(a[0]), "t": "x" * (r % 5)}) + "\n" for r, a in enumerate(arrays)))
            found[kind].append(Source(wr.open(out), base, lens))
    return found


def draw(draws: random.Random, known: dict[str, list[Source]]) -> Plan:
    """A plan; `draws` decides everything about it."""
    kind = draws.choice(["tokens", "tokens", "tokens", "channels", "rows"])
    cut, said = view_of(draws, kind)
    is_mixed = draws.random() < 0.35 and "group" not in said
    batch = draws.choice([1, 2, 3, 4, 6, 8, 12])
    if is_mixed:
        view, parts, how = mixture(draws, known[kind], cut, batch)
        said = f"wr.mix({how}) of {said}"
    else:
        parts = [draws.choice(known[kind])]
        view = cut(parts[0])
        said = f"{said} of {kind}{known[kind].index(parts[0])}"
    ends = not is_mixed or "'never'" not in said
    options = options_of(draws, batch, parts, is_mixed, said, ends)
    # In batches within a budget, crops are as long as their longest, too. Other batches of the same rows may have other buckets.
    is_trimmed = "longest" in said or "pad': [" in said or ("crop(" in said and "max_tokens" in options)
    if is_trimmed and "map" in options:
        options["map"] = padded_with_draws
    plan = Plan(view, parts, options, "", is_trimmed=is_trimmed, kind=kind, ends=ends, is_by_part="'batches'" in said)
    if "documents" in said or any(name in said for name in ("bins(", "segments(", "records(", "crop(")):
        plan.more["balance"] = [None, "attention", draws.choice([0, 3, 24]), cubes]
    plan.said = f"{said}; Loader({options})"
    return plan


def view_of(draws: random.Random, kind: str) -> tuple[Any, str]:
    """A function that makes the view of a source, whose rows are `times` as long, and what it is."""
    length = draws.choice([1, 2, 7, 16, 33])
    labels = draws.choice(["next", "next", "same", None])
    if kind == "rows":
        stack = draws.random() < 0.5
        return lambda s, times=1: s.ds.rows(["n"], stack=stack), f"rows(['n'], stack={stack})"
    if kind == "channels":
        name = draws.choice(["windows", "records", "trimmed", "segments", "crop"])
    else:
        kinds = ["pack", "pack", "documents", "records", "trimmed", "buckets", "grouped", "windows", "bins", "segments", "crop"]
        name = draws.choice(kinds)
    more: dict[str, Any] = {"labels": labels}
    if name == "pack":
        name, more = "pack", {**more, **draws.choice([{}, {"shifted": True, "labels": "next"}])}
    elif name == "documents":
        name, more = "pack", {**more, "documents": True, "positions": draws.choice(["block", "document"])}
        length, multiple = filled(draws, length)
        more |= {"multiple": multiple} if multiple > 1 else {}
    elif name == "grouped":
        # Where labels are -100 in the padding, it is not told from what is learned.
        name, more = "records", {"labels": "next", "pad": "longest", "group": draws.choice([2, 3, 8])}
    elif name == "trimmed":
        name, more = "records", {"labels": "next", "pad": "longest"}
    elif name == "buckets":
        name, more = "records", {"labels": labels, "pad": sorted({1, length // 2 + 1, length})}
    elif name == "windows":
        more |= {"stride": draws.choice([1, 3, length]), "tail": draws.choice(["drop", "pad"])}
    elif name == "bins":
        length = max(length, 16)
        more |= {"strategy": draws.choice(["best_fit", "first_fit"]), "overlong": draws.choice(["cut", "split", "drop"])}
        length, multiple = filled(draws, length)
        more |= {"multiple": multiple} if multiple > 1 else {}
    elif name == "segments":
        length = max(length, 60)
    elif name == "crop":
        more = {"mode": draws.choice(["random", "start"])}
    if name in ("pack", "bins") and draws.random() < 0.4:
        more |= {"reshuffle": True, "scope": draws.choice([None, 5, 16])}
    return lambda s, times=1: getattr(s.ds, name)(times * length, **more), f"{name}({length}, **{more})"


def filled(draws: random.Random, length: int) -> tuple[int, int]:
    """What documents are filled up to, and a length that it divides."""
    multiple = draws.choice([1, 1, 2, 4, 8])
    return -(-length // multiple) * multiple, multiple


def mixture(draws: random.Random, known: list[Source], cut: Any, batch: int) -> tuple[Any, list[Source], str]:
    parts = draws.sample(known, draws.randint(2, len(known)))
    weights = [draws.choice([0.1, 0.25, 0.5, 1.0]) for _ in parts]
    more: dict[str, Any] = {}
    times = [1 for _ in parts]
    if draws.random() < 0.4:
        more["batches"] = "part"
        times = [draws.choice([1, 2]) for _ in parts]
    views = {f"p{n}": (cut(part, long), weight) for n, (part, long, weight) in enumerate(zip(parts, times, weights, strict=True))}
    stop = draws.choice(["first", "all", "never"])
    if stop == "never" and draws.random() < 0.7:
        starts = sorted(draws.sample(range(5, 200), draws.randint(1, 3)))
        more["phases"] = [(start, {name: draws.choice([0.0, 0.2, 1.0]) + (name == "p0") for name in views}) for start in starts]
        more["steps_of"] = batch if "batches" in more else draws.choice([1, 1, 3])
    if draws.random() < 0.3:
        more["part_ids"] = True
    how = f"{[known.index(part) for part in parts]}, times as long={times}, weights={weights}, stop={stop!r}, **{more}"
    return wr.mix(views, stop=stop, **more), parts, how  # type: ignore[arg-type]


def options_of(draws: random.Random, batch: int, parts: list[Source], is_mixed: bool, said: str, ends: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"global_batch_size": batch, "seed": draws.randrange(1 << 32)}
    has_lengths = ("longest" in said and "group" not in said) or "pad': [" in said or "crop(" in said or "rows(" in said
    if has_lengths and "'batches'" not in said and draws.random() < 0.6:
        options = {**budget(draws, parts, said), "seed": options["seed"]}
    from_everywhere = "reshuffle" in said and "'scope': None" in said
    blocks = "bins" not in said and "segments" not in said and "group" not in said and not from_everywhere
    shuffle = draws.choice([True, True, False, "blocks"])
    if "group" in said:
        shuffle = True
    if shuffle == "blocks":
        lanes = draws.choice([n for n in (1, 2, 4) if batch % n == 0])
        numbers = {"size": draws.choice([1, 3, 8]), "lanes": 1 if is_mixed else lanes, "pool": draws.choice([1, 2, 5])}
        shuffle = wr.Blocks(**numbers) if blocks else True
    options["shuffle"] = shuffle
    if draws.random() < 0.5:
        options["drop_last"] = False
    elif draws.random() < 0.3 and "max_tokens" not in options:
        options["last"] = "repeat"
    if ends:
        options["epochs"] = draws.choice([1, 2, 3])
    if draws.random() < 0.3 and "lengths" not in options:
        out = [draws.sample(range(len(part.lengths)), draws.randint(1, 4)) for part in parts]
        options["exclude"] = {f"p{n}": one for n, one in enumerate(out)} if is_mixed else out[0]
    if draws.random() < 0.3 and "max_tokens" not in options:
        edges = sorted(draws.sample(range(150), 2 * draws.randint(1, 2)))
        if "'batches'" in said:
            edges = [batch * edge for edge in edges]
        options["skip"] = list(zip(edges[::2], edges[1::2], strict=True))
    # A function makes columns of rows, and what is not numbers it leaves as it is.
    if draws.random() < 0.3:
        options["map"] = with_draws
    elif draws.random() < 0.4 and any(f"{cut}(" in said for cut in ("pack", "bins", "records")):
        size = draws.choice([2, 2, 4])
        options["context"] = (draws.randrange(size), size)
    return options


def budget(draws: random.Random, parts: list[Source], said: str) -> dict[str, Any]:
    """A budget that any row fits: none is longer than 66, the largest bucket."""
    multiple = draws.choice([1, 2, 4, 6])
    options: dict[str, Any] = {"max_tokens": draws.randint(66, 400) * multiple, "multiple": multiple}
    if draws.random() < 0.5:
        options["pool"] = multiple * draws.randint(1, 20)
    if "rows(" in said:
        options["lengths"] = [draws.randint(0, 66) for part in parts for _ in part.lengths]
    return options


def cubes(lengths: np.ndarray[Any, Any]) -> int:
    """What a row costs, as a function may say."""
    return int((lengths**3).sum())


def with_draws(row: Any, rng: np.random.Generator) -> Any:
    """A row, and random numbers of the sample: as many as it has tokens."""
    return {**row, "drawn": rng.random(row["loss_masks"].shape if "loss_masks" in row else None)}


def padded_with_draws(row: Any, rng: np.random.Generator) -> Any:
    """A row that is as long as its record, padded to the length of the longest there is, and its random numbers."""

    def padded(array: Any) -> Any:
        return np.pad(array, [(0, LONGEST - len(array)), *[(0, 0)] * (array.ndim - 1)]) if array.ndim else array

    return {name: padded(np.asarray(values)) for name, values in with_draws(row, rng).items()}
