"""Which input files there are, and in which order they come."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

import windrow

from ...failure import failure


def find_jsonl_files(base_path: str | os.PathLike[str]) -> list[str]:
    """The `*.jsonl` and `*.JSONL` files below `base_path`, hidden ones left out, in natural order of their paths."""
    if not os.path.isdir(base_path):
        raise failure(windrow.NotFoundError, "there is no such folder", path=base_path)
    return natural_order(find_files(base_path, ["*.jsonl", "*.JSONL"]))


def find_files(base_path: str | os.PathLike[str], patterns: Iterable[str]) -> list[str]:
    """The files below `base_path` whose names fit a pattern, hidden ones left out, each once; by pattern, then by path.

    Links to folders are followed, but not back into a folder on the way there. A link that leads nowhere is a file.
    """
    found = sorted(_below(os.fspath(base_path)))
    fitting = [path for p in patterns for path in found if fnmatchcase(os.path.basename(path), p)]
    return [path for path in dict.fromkeys(fitting) if os.path.isfile(path) or not os.path.exists(path)]


def natural_order(paths: Iterable[str]) -> list[str]:
    """Sorted without regard to case, runs of digits as numbers: `s2` before `S10`; equal ones stay in the order given.

    >>> natural_order(["s10", "S2", "s1"])
    ['s1', 'S2', 's10']
    """
    return sorted(paths, key=_natural_key)


def _natural_key(path: str) -> list[str | int]:
    text = unicodedata.normalize("NFD", path).casefold()
    # Digits that write no decimal numbers, such as superscripts, are numbers one by one.
    single = "".join({c for c in text if c.isdigit() and not c.isdecimal()})
    parts = re.split(rf"(\d+|[{single}])" if single else r"(\d+)", text)
    # Text and number alternate, text first (perhaps empty): two keys never compare a text with a number.
    return [_number(part) if number % 2 else part for number, part in enumerate(parts)]


def _number(digits: str) -> int:
    return int(digits) if digits.isdecimal() else unicodedata.digit(digits)


def _below(folder: str, above: frozenset[str] = frozenset()) -> Iterator[str]:
    real = os.path.realpath(folder)
    if real in above:
        return
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        raise failure(windrow.IoError, f"cannot look into the folder: {error.strerror}", path=folder) from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _below(entry.path, above | {real})
        else:
            yield entry.path
