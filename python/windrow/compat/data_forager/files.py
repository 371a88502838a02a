"""Which input files there are, and in which order they come."""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from collections.abc import Iterable

import windrow

from ..failure import failure


def find_jsonl_files(base_path: str | os.PathLike[str]) -> list[str]:
    """The `*.jsonl` and `*.JSONL` files below `base_path`, hidden ones left out, in natural order of their paths."""
    if not os.path.isdir(base_path):
        raise failure(windrow.NotFoundError, "there is no such folder", path=base_path)
    return natural_order(find_files(base_path, ["*.jsonl", "*.JSONL"]))


def find_files(base_path: str | os.PathLike[str], patterns: Iterable[str]) -> list[str]:
    """The regular files below `base_path` whose names fit a pattern, each once; by pattern, then by path."""
    base = glob.escape(os.fspath(base_path))
    found = [path for p in patterns for path in sorted(glob.glob(os.path.join(base, "**", p), recursive=True))]
    return [path for path in dict.fromkeys(found) if os.path.isfile(path)]


def natural_order(paths: Iterable[str]) -> list[str]:
    """Sorted without regard to case, runs of digits as numbers: `s2` before `S10`; equal ones stay in the order given.

    >>> natural_order(["s10", "S2", "s1"])
    ['s1', 'S2', 's10']
    """
    return sorted(paths, key=_natural_key)


def _natural_key(path: str) -> list[str | int]:
    parts = re.split(r"([0-9]+)", unicodedata.normalize("NFD", path.casefold()))
    # Text and number alternate, text first (perhaps empty): two keys never compare a text with a number.
    return [int(part) if number % 2 else part for number, part in enumerate(parts)]
