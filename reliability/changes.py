"""The changes that a process made to files, in their order, as faults.c recorded them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import tree

HEAD = struct.Struct("<4I2Q")


class Kind(IntEnum):
    CREATED = 1
    TRUNCATED = 2
    WRITTEN = 3
    SYNCED = 4
    RENAMED = 5
    LINKED = 6
    UNLINKED = 7
    REMOVED = 8
    MADE = 9
    EXCHANGED = 10


@dataclass(frozen=True)
class Change:
    """`path` is below the folder; "" is the folder itself. `to` is the second path; `offset` a byte, or a file's new size."""

    kind: Kind
    path: str
    to: str
    offset: int
    data: bytes


def read(log: Path, below: Path) -> list[Change]:
    """All of a log."""
    data, found, at = log.read_bytes(), [], 0

    def name(size: int) -> str:
        path = data[at : at + size].decode()
        return str(Path(path).relative_to(below)) if path and path != str(below) else ""

    while at < len(data):
        kind, first, second, _, offset, size = HEAD.unpack_from(data, at)
        at += HEAD.size
        path = name(first)
        at += first
        to = name(second)
        at += second
        written = size if kind == Kind.WRITTEN else 0
        found.append(Change(Kind(kind), path, to, offset, data[at : at + written]))
        at += written
    return found


def is_visible(change: Change) -> bool:
    """Whether a reader could see that it was made."""
    names = [change.path] if change.kind in (Kind.WRITTEN, Kind.CREATED, Kind.TRUNCATED) else [change.to]
    return change.kind not in (Kind.SYNCED, Kind.MADE) and any(name and not tree.LEFT.search(name) for name in names)


def syncs_before_visible(changes: list[Change]) -> int:
    """How many files and folders are brought to the disk before a reader can see anything new."""
    n = 0
    for change in changes:
        if is_visible(change):
            return n
        n += change.kind == Kind.SYNCED
    return n
