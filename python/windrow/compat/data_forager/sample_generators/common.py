"""What turns a line of an input file into samples, as the line indexer calls it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

from .schema import SampleSchema


@dataclass
class SampleData:
    """A sample's bytes, and the file that they are in."""

    sample_bytes: bytes
    file_path: str


class SampleGeneratorInterface(Protocol):
    """Per input file: `prepare`, then `create_samples` for each line, then `finish`.

    The samples of one file are stored behind each other in the order in which they are returned: their byte offsets are
    counted, not looked up. More methods are called where a generator has them: `prepare_all(paths)` before the first
    file, `abort()` when the run ends in an error, and `describe(first_line)`, which says in a dict what decides the
    samples.
    """

    def prepare(self, text_file_path: str) -> None:
        """A new input file begins."""

    def create_samples(self, text_line: bytes) -> list[SampleData]:
        """The samples that this line (with its line end) completes."""
        ...

    def finish(self, is_last_file: bool) -> None:
        """The input file is read to its end."""

    def get_sample_schema(self) -> SampleSchema | None:
        """Which arrays a sample is made of; None for plain bytes."""


class NOOPSampleGenerator:
    """Each line is a sample, where it is."""

    def __init__(self) -> None:
        self._path: str | os.PathLike[str] = ""

    def prepare(self, text_file_path: str) -> None:
        """Remembers the file."""
        self._path = text_file_path

    def create_samples(self, text_line: bytes) -> list[SampleData]:
        """The line itself."""
        return noop_sample_processing(text_line, os.fspath(self._path))

    def finish(self, is_last_file: bool) -> None:
        """Nothing to do."""

    def describe(self, first_line: bytes) -> dict[str, Any]:
        """Nothing but the lines decides."""
        return {"task": "lines"}

    def get_sample_schema(self) -> SampleSchema | None:
        """None: a line is plain bytes."""
        return None


def noop_sample_processing(text_line: bytes, text_file_path: str) -> list[SampleData]:
    """The line as one sample of its own file."""
    return [SampleData(text_line, text_file_path)]
