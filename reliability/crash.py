"""What a disk holds after a power loss: what was brought to it, and any part of the rest.

A write is on the disk once its file was synced, and a name once a folder that it is in or was in is. Everything else may be
there or not, in any subset, and a write may be torn at sectors of 512 bytes. A rename is one step. With `in_order` names come to
the disk in the order in which they changed, as on file systems with a journal; without it, in any.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from changes import Change, Kind
from tree import Tree

SECTOR = 512


@dataclass(eq=False)
class File:
    """The bytes that are surely there, and what was written since."""

    data: bytes = b""
    time_ns: int = 0
    since: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Offset and bytes of each write; a size and None where it was cut or grown."""

    def sync(self) -> None:
        self.data, self.since = self.whole(), []

    def whole(self) -> bytes:
        data = bytearray(self.data)
        for offset, written in self.since:
            put(data, offset, written)
        return bytes(data)

    def after_loss(self, draw: random.Random) -> bytes:
        """The bytes with some of what was written since."""
        how = draw.choice(["none", "all", "some", "torn", "zeros"])
        data = bytearray(self.data)
        for offset, written in self.since:
            if how == "all" or (how != "none" and draw.random() < 0.5):
                put(data, offset, written)
            elif how == "torn" and written:
                for at in range(0, len(written), SECTOR):
                    if draw.random() < 0.5:
                        put(data, offset + at, written[at : at + SECTOR])
            elif how == "zeros" and written and len(data) < offset + len(written):
                # The size came to the disk, and the bytes did not.
                put(data, offset + len(written), None)
        return bytes(data)


def put(data: bytearray, offset: int, written: bytes | None) -> None:
    end = offset + len(written or b"")
    if written is None:
        del data[offset:]
    if len(data) < end:
        data.extend(bytes(end - len(data)))
    if written:
        data[offset:end] = written


@dataclass(eq=False)
class Folder:
    """Names and what they are of, as they are now."""

    names: dict[str, File | Folder] = field(default_factory=dict)


@dataclass(eq=False)
class Step:
    """A change of names, in one or two folders; it is on the disk once one of them was synced."""

    effects: list[tuple[Folder, str, File | Folder | None]]
    is_durable: bool = False


class Disk:
    """A folder as a process changes it, with what a power loss would leave at any time."""

    def __init__(self, start: Tree) -> None:
        self.root = Folder()
        self.files: list[File] = []
        """All that ever were, in the order in which they came."""
        self._steps: list[Step] = []
        for name in sorted(start):
            item = start[name]
            folder, last = self._place(name)
            folder.names[last] = Folder() if item is None else self._file(*item)
        self._start = {folder: dict(folder.names) for folder in self._folders()}

    def make(self, change: Change) -> None:
        """One more change."""
        kind, path = change.kind, change.path
        if kind in (Kind.WRITTEN, Kind.TRUNCATED, Kind.SYNCED):
            found = self._find(path)
            if isinstance(found, File) and kind == Kind.SYNCED:
                found.sync()
            elif isinstance(found, File):
                found.since.append((change.offset, change.data if kind == Kind.WRITTEN else None))
            elif isinstance(found, Folder):
                for step in self._steps:
                    step.is_durable |= any(folder is found for folder, _, _ in step.effects)
            return
        folder, name = self._place(path)
        if kind in (Kind.CREATED, Kind.MADE):
            self._step([(folder, name, self._file() if kind == Kind.CREATED else Folder())])
        elif kind in (Kind.UNLINKED, Kind.REMOVED):
            self._step([(folder, name, None)])
        else:
            moved = folder.names[name]
            beside, to = self._place(change.to)
            left = {Kind.LINKED: moved, Kind.EXCHANGED: beside.names.get(to)}.get(kind)
            self._step([(folder, name, left), (beside, to, moved)])

    def now(self) -> Tree:
        """What the process itself sees."""
        return self._tree(lambda folder: folder.names, File.whole)

    def after_loss(self, draw: random.Random, in_order: bool) -> Tree:
        """What may be there once the power is back."""
        names = {folder: dict(known) for folder, known in self._start.items()}
        durable = [i for i, step in enumerate(self._steps) if step.is_durable]
        chance = draw.choice([0.1, 0.5, 0.9])
        last = draw.randint(durable[-1] + 1 if durable else 0, len(self._steps))
        for i, step in enumerate(self._steps):
            if i < last if in_order else step.is_durable or draw.random() < chance:
                for folder, name, node in step.effects:
                    known = names.setdefault(folder, {})
                    known.pop(name, None) if node is None else known.__setitem__(name, node)
        bytes_of: dict[File, bytes] = {}

        def data(file: File) -> bytes:
            if file not in bytes_of:
                bytes_of[file] = file.after_loss(draw)
            return bytes_of[file]

        return self._tree(lambda folder: names.get(folder, {}), data)

    def times(self, real: Tree) -> list[int]:
        """When each file was written, of those that are there in the end."""
        for name, item in real.items():
            found = self._find(name)
            if isinstance(found, File) and item is not None:
                found.time_ns = item[1]
        return [file.time_ns for file in self.files]

    def _file(self, data: bytes = b"", time_ns: int = 0) -> File:
        self.files.append(File(data, time_ns))
        return self.files[-1]

    def _tree(self, names, data) -> Tree:  # type: ignore[no-untyped-def]
        found: Tree = {}

        def walk(folder: Folder, below: str) -> None:
            for name, node in names(folder).items():
                if isinstance(node, Folder):
                    found[below + name] = None
                    walk(node, f"{below}{name}/")
                else:
                    found[below + name] = data(node), node.time_ns

        walk(self.root, "")
        return found

    def _step(self, effects: list[tuple[Folder, str, File | Folder | None]]) -> None:
        for folder, name, node in effects:
            folder.names.pop(name, None) if node is None else folder.names.__setitem__(name, node)
        self._steps.append(Step(effects))

    def _find(self, path: str) -> File | Folder | None:
        folder, name = self._place(path)
        return folder.names.get(name) if name else self.root

    def _place(self, path: str) -> tuple[Folder, str]:
        *above, name = path.split("/")
        folder = self.root
        for part in above:
            inner = folder.names[part]
            assert isinstance(inner, Folder)
            folder = inner
        return folder, name

    def _folders(self) -> list[Folder]:
        found, i = [self.root], 0
        while i < len(found):
            found += [node for node in found[i].names.values() if isinstance(node, Folder)]
            i += 1
        return found
