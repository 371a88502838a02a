"""A small data set of each format that windrow reads: where it lies, how it is opened, and what comes out of it.

`written` are those that windrow itself wrote, whose bytes all have checksums; foreign.py has those of other programs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import windrow as wr


@dataclass
class Set:
    """A data set in a folder that holds nothing else."""

    name: str
    path: str
    """What is opened."""
    folder: str
    options: dict[str, Any] = field(default_factory=dict)
    is_summed: bool = False
    """Whether every file of it has checksums, so that `verify` finds any change."""
    is_always: bool = False
    """Whether it opens with `verify_checksums=True`."""
    is_sound: bool = False
    ignored: list[str] = field(default_factory=list)
    """Files in the folder that say nothing about the data."""

    def files(self) -> list[Path]:
        """Its files, in a fixed order, without empty ones."""
        found = sorted(path for path in Path(self.folder).rglob("*") if path.is_file())
        return [path for path in found if path.stat().st_size and str(path.relative_to(self.folder)) not in self.ignored]

    def content(self, **more: Any) -> str:
        """A hash of everything that a reader gets."""
        if self.is_sound:
            samples, rate = wr.read_audio(self.path, sample_rate=None)
            return digest(feed([rate, samples]))
        return content(wr.open(self.path, **self.options, **more))

    def plain(self) -> dict[str, Any]:
        """What `Set(**…)` takes, as JSON."""
        return asdict(self)


def content(ds: wr.Dataset) -> str:
    """A hash of all records, their metadata, and of the stream that a view takes them for."""
    info = ds.info()
    said = [ds.format, len(ds), info["dtype"], info["channels"], info["tracks"], info.get("columns")]

    def parts() -> Iterable[bytes | memoryview]:
        yield from feed(said)
        for i in range(len(ds)):
            yield from feed([ds[i], ds.extras(i)])
        if info["dtype"] is not None and info["channels"] is None and not info["tracks"] and info["values"] > 8:
            view = ds.pack(min(64, info["values"] - 1))
            # Not all at once: what is asked for here would count as memory that windrow takes.
            for first in range(0, len(view), 4096):
                yield from feed(view.batch(range(first, min(len(view), first + 4096))))

    return digest(parts())


def feed(value: Any) -> Iterable[bytes | memoryview]:
    """The bytes that stand for a value; values of other types, shapes or signs have others."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype}{value.shape}".encode()
        # No copy, which would count as memory that windrow takes.
        yield np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    elif isinstance(value, dict):
        yield b"{"
        for key, one in value.items():
            yield repr(key).encode()
            yield from feed(one)
    elif isinstance(value, list | tuple):
        yield f"[{len(value)}".encode()
        for one in value:
            yield from feed(one)
    else:
        yield repr(value).encode()


def digest(parts: Iterable[bytes | memoryview]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


# Records of each kind. The longest are above 4 KiB, so that a set has several blocks of checksums.
def ragged(dtype: str = "uint16") -> list[np.ndarray]:
    return [((np.arange(n * 60 + 1) * 37 + n * 11) % 251).astype(dtype) for n in (0, 3, 1, 25, 7, 60, 2)]


def equal(dtype: str = "float32") -> list[np.ndarray]:
    return [(np.arange(150) * 3 + n).astype(dtype) for n in range(9)]


def codes() -> list[np.ndarray]:
    return [((np.arange(9 * (4 + 40 * n)) * 13 + n) % 1000).reshape(-1, 9).astype("int16") for n in range(4)]


def rows() -> list[dict[str, Any]]:
    return [
        {"id": n, "share": n / 8, "text": f"words {n} " + "and more " * (n * 9), "values": np.arange(40, dtype=np.int32) + n}
        for n in range(12)
    ]


# Each writer of windrow: the endings of its file ("" is a folder), and the kinds of records that it takes.
WRITERS: dict[str, tuple[str, str]] = {
    "shards": ("", "ragged codes"),
    "npy": (".npy", "equal"),
    "npz": (".npz", "equal codes"),
    "jsonl": (".jsonl", "ragged rows"),
    "tokens": (".bin", "ragged"),
    "forager": ("", "ragged"),
    "megatron": ("", "ragged"),
    "codes": ("", "codes"),
    "mds": ("", "ragged rows"),
    "llmc": (".bin", "ragged"),
    "datatrove": ("", "ragged"),
    "olmo": ("", "ragged"),
    "webdataset": ("", "ragged rows"),
    "tfrecord": (".tfrecord", "ragged rows"),
    "array_record": (".array_record", "ragged rows"),
    "bagz": (".bagz", "ragged rows"),
    "arrow": (".arrow", "ragged codes rows"),
    "parquet": (".parquet", "ragged rows"),
    "litdata": ("", "ragged rows"),
}
ZARRS: dict[str, dict[str, Any]] = {
    "zarr 2": {},
    "zarr 2, chunks": {"zarr_format": 2, "tokens_chunk_size": 600, "seq_starts_chunk_size": 3},
    "zarr 3, chunks": {"zarr_format": 3, "tokens_chunk_size": 600, "seq_starts_chunk_size": 3},
    "zarr 3, sharded": {"zarr_format": 3, "tokens_chunk_size": 200, "seq_starts_chunk_size": 2, "chunks_per_shard": 4},
}


def written(folder: Path) -> list[Set]:
    """What windrow writes, in every format and by every command."""
    kinds: dict[str, Callable[[], list[Any]]] = {"ragged": ragged, "equal": equal, "codes": codes, "rows": rows}
    sets = []

    def add(name: str, path: Path, base: Path | None = None, **more: Any) -> None:
        base = base or path.parent
        sets.append(Set(name, str(path), str(base), is_summed=True, **{"is_always": True, **more}))

    def place(name: str) -> Path:
        return folder / name.replace(" ", "-").replace(",", "")

    for to, (ending, takes) in WRITERS.items():
        for kind in takes.split():
            out = place(f"{to}, {kind}") / f"data{ending}"
            wr.write(out, kinds[kind](), to=to, fsync=False)  # type: ignore[arg-type]
            # A folder is the set; a file, or a pair of them, lies alone in one.
            add(f"{to}, {kind}", out, out if out.is_dir() else out.parent)
    for name, options in ZARRS.items():
        out = place(name) / "data.zarr" / "train"
        wr.write(out, ragged("uint32"), to="flat-tokens", fsync=False, **options)
        add(f"flat-tokens, {name}", out)
    squeezed: dict[str, dict[str, Any]] = {
        "mds, zstd": {"to": "mds", "compression": "zstd:3"},
        "parquet, zstd": {"to": "parquet", "compression": "zstd:9"},
    }
    for name, options in squeezed.items():
        out = place(name) / ("data.parquet" if name.startswith("parquet") else "data")
        wr.write(out, rows(), fsync=False, **options)
        add(name, out, out if out.is_dir() else out.parent)

    texts = folder / "texts"
    texts.mkdir()
    lines = [{"text": f"text {n} of them, " * (1 + n % 9), "mask": [n % 2] * len(f"text {n} of them, " * (1 + n % 9))} for n in range(40)]
    (texts / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:25]))
    (texts / "b.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[25:]))
    commands: dict[str, dict[str, Any]] = {
        "tokenize": {},
        "tokenize, samples": {"sample_size": 128},
        "tokenize, mask": {"mask_field": "mask"},
        "tokenize, tokens": {"to": "tokens", "append_eos": True},
        "tokenize, megatron": {"to": "megatron"},
        "tokenize, zarr 3": {"to": "flat-tokens", **ZARRS["zarr 3, sharded"]},
    }
    for name, options in commands.items():
        out = place(name) / ("data.zarr/train" if options.get("to") == "flat-tokens" else "data")
        wr.tokenize(texts, out, tokenizer="bytes", fsync=False, **options)
        add(name, out, out if options.get("to") != "flat-tokens" else out.parent)
    out = place("converted")
    wr.convert(Path(next(s.path for s in sets if s.name == "arrow, ragged")), out, to="shards", fsync=False)
    add("converted", out, out)

    out = place("index, checksums")
    for name in ("a.jsonl", "deeper/b.jsonl"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text('{"a": 1}\n22\n[3, "three"]\n444444\n5.5\n' * 90)
    wr.index(out, checksum=True)
    add("index, checksums", out, out)

    out = place("parts")
    job = wr.prep.plan("tokenize", [texts], out, tokenizer="bytes", task_bytes=3000)
    wr.prep.run(job, workers=1)
    # The job is for those who make the parts; the description of a part is what its task said, and is not read again.
    told = [str(p.relative_to(out)) for p in [*out.glob("prep/*"), *out.glob("parts/*.json")]]
    add("parts", out, out, ignored=told)
    return sets
