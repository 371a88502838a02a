"""The files that token samples are written into: one per input, visible together when the last input is done."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import windrow

from ....failure import failure

SAMPLES_FOLDER = "tokenized-samples"


class SampleFiles:
    """`<stem>-<postfix>.bin` for each input, in `folder` or else in `tokenized-samples` beside the input.

    Inputs with one stem get names with their folders: `a__x-<postfix>.bin`, `b__x-<postfix>.bin`.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, postfix: str) -> None:
        self._folder = None if folder is None else os.fspath(folder)
        self._postfix = postfix
        self._stems: dict[str, str] = {}
        self._made: dict[str, str] = {}
        self._made_folders: set[str] = set()
        self._file: BinaryIO | None = None
        self.path = ""

    def plan(self, inputs: Sequence[str]) -> None:
        """Chooses all names, and raises `windrow.ExistsError` if one is taken, before anything is written."""
        self._stems = _stems(inputs) if self._folder is not None else {}
        seen: dict[str, str] = {}
        for path in inputs:
            other = seen.setdefault(self._name(path), path)
            if other != path or list(inputs).count(path) > 1:
                raise failure(
                    windrow.ExistsError, f"its samples would go into the same file as those of {other}", path=path
                )
            self._refuse_existing(self._name(path))

    def begin(self, input_path: str) -> None:
        """The samples of this input follow."""
        self.path = self._name(input_path)
        self._refuse_existing(self.path)
        folder, name = os.path.split(self.path)
        if not os.path.isdir(folder):
            os.makedirs(folder)
            self._made_folders.add(folder)
        work = os.path.join(folder, f".{name}.tmp-{os.getpid()}")
        self._file = open(work, "wb")
        self._made[work] = self.path

    def write(self, sample: bytes) -> None:
        """The next sample of this input."""
        assert self._file is not None
        self._file.write(sample)

    def end(self) -> None:
        """All samples of this input are written."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def show(self) -> None:
        """All inputs are done: the files get their names."""
        self.end()
        for work, path in self._made.items():
            os.replace(work, path)
        self._made, self._made_folders = {}, set()

    def abort(self) -> None:
        """Removes what is not visible yet."""
        if self._file is not None:
            self._file.close()
            self._file = None
        for work in self._made:
            if os.path.exists(work):
                os.remove(work)
        for folder in self._made_folders:
            if not os.listdir(folder):
                os.rmdir(folder)
        self._made, self._made_folders = {}, set()

    def _name(self, input_path: str) -> str:
        folder = self._folder
        if folder is None:
            folder = os.path.join(os.path.dirname(input_path), SAMPLES_FOLDER)
        stem = self._stems.get(input_path, Path(input_path).stem)
        return os.path.join(folder, f"{stem}-{self._postfix}.bin")

    def _refuse_existing(self, path: str) -> None:
        if os.path.lexists(path):
            raise failure(
                windrow.ExistsError,
                "the file of token samples exists already",
                path=path,
                hint="remove it, or choose another base_output_path",
            )


def _stems(inputs: Sequence[str]) -> dict[str, str]:
    stems = {path: Path(path).stem for path in inputs}
    chosen = list(stems.values())
    base = os.path.commonpath([os.path.dirname(os.path.abspath(p)) for p in inputs]) if inputs else ""
    for path, stem in stems.items():
        if chosen.count(stem) > 1:
            folder = os.path.relpath(os.path.dirname(os.path.abspath(path)), base)
            stems[path] = "__".join([*(p for p in Path(folder).parts if p != "."), stem])
    return stems
