"""The data sets below a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

import windrow

from ....failure import failure
from .normalizers import Transform
from .sequences import BinarySequenceDataset, GeneralSequenceDataset, StoredDataset

SUFFIXES = (".json", ".jsonl", ".npy", ".npz", ".pkl", ".pickle", ".yaml", ".yml")
COMPRESSIONS = ("", ".gz", ".zst")


def discover_sequence_datasets(
    path: str | os.PathLike[str],
    transform: Transform | None = None,
    use_mmap: bool = True,
    mmap_cache_size: int = 32,
    include_patterns: Sequence[str] | None = None,
) -> list[StoredDataset]:
    """A folder of shards, a file, or every data set below a folder, by the natural order of their relative paths.

    Below a folder of shards nothing else is looked at. Those without sequences are left out.

    Raises `windrow.NotFoundError` where nothing is, `windrow.UnrecognisedError` where no data set is.
    """
    root = os.fspath(path)
    if not os.path.exists(root):
        raise failure(windrow.NotFoundError, "there is no such file or folder", path=root)
    if is_shards(root):
        found = [""]
    elif os.path.isfile(root):
        found = [""] if is_series(root) else []
    else:
        found = sorted(below(root), key=natural)
        if include_patterns is not None:
            found = [name for name in found if matches(name, include_patterns)]
    if not found:
        raise failure(
            windrow.UnrecognisedError,
            "there is no data set of sequences",
            path=root,
            hint=f"a data set is meta.json with .bin files, or a file ending {', '.join(SUFFIXES)}",
        )
    datasets: list[StoredDataset] = []
    for name in found:
        at = os.path.join(root, name) if name else root
        dataset: StoredDataset
        if is_shards(at):
            dataset = BinarySequenceDataset(at, transform, use_mmap, mmap_cache_size)
        else:
            dataset = GeneralSequenceDataset(at, transform)
        # Of a folder's data sets those without sequences are left out; one that was named is that one.
        if len(dataset) or not name:
            datasets.append(dataset)
    return datasets


def below(root: str, folder: str = "") -> Iterator[str]:
    """The relative paths of data sets below a folder; links to folders are not followed."""
    with os.scandir(os.path.join(root, folder)) as entries:
        for entry in entries:
            name = os.path.join(folder, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if is_shards(entry.path):
                    yield name
                else:
                    yield from below(root, name)
            elif entry.is_file() and not is_told(entry.name) and is_series(entry.name):
                yield name


def is_shards(path: str) -> bool:
    """Whether it is a folder with `meta.json` and a `.bin` file."""
    if not os.path.isfile(os.path.join(path, "meta.json")):
        return False
    with os.scandir(path) as entries:
        return any(entry.name.endswith(".bin") and entry.is_file() for entry in entries)


def is_told(name: str) -> bool:
    """Whether it describes data beside it: no data of its own."""
    return name in ("meta.json", "windrow.json") or name.endswith(".windrow.json")


def is_series(name: str) -> bool:
    """Whether a file's name ends as one of sequences does."""
    return name.endswith(tuple(suffix + end for suffix in SUFFIXES for end in COMPRESSIONS))


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a relative path, or a folder it lies in, matches one of the patterns."""
    parts = name.split(os.sep)
    paths = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return any(fnmatch(path, pattern.rstrip("/")) for path in paths for pattern in patterns)


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sorts `part-2` before `part-10`."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"([0-9]+)", name) if part]
