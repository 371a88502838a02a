"""Which line of which file is being worked on, for the errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import windrow

from ....failure import describe, place


class LineKeyError(windrow.CorruptError, KeyError):
    """A line without the key that was asked for: a `windrow.CorruptError` (a ValueError) and, as in the original, a
    KeyError.
    """

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would quote it


class LinePlace:
    """Counts lines and bytes; errors that come out of `line` carry file, line (from 0, as `record`) and byte."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else os.fspath(path)
        self._record = 0
        self._byte = 0

    @contextmanager
    def line(self, text: bytes) -> Iterator[None]:
        """Around the work on one line. A ValueError or KeyError becomes a `windrow.CorruptError`; others go through as
        they are.
        """
        try:
            yield
        except (ValueError, KeyError) as error:
            raise self._placed(error) from error
        except Exception as error:
            if hasattr(error, "add_note"):
                error.add_note(describe("while working on a record", hint=None, **self._known()))
            raise
        self._record += 1
        self._byte += len(text)

    def _placed(self, error: Exception) -> Exception:
        known = self._known()
        hint = getattr(error, "hint", None)
        message = str(error)
        if isinstance(error, windrow.WindrowError):
            message = message.split("\n  ")[0]
        kind: type[Exception] = windrow.CorruptError
        if isinstance(error, KeyError):
            kind, message = LineKeyError, f"the record has no key {error}"
        made = kind(describe(message, hint=hint, **known))
        place(made, hint=hint, **known)
        return made

    def _known(self) -> dict[str, Any]:
        return {"path": self._path, "record": self._record, "byte": self._byte}


def find_line(paths: Iterable[str], is_it: Callable[[bytes], bool]) -> AbstractContextManager[None]:
    """`LinePlace.line` of the first line for which `is_it`, so that an error raised within carries that place."""
    for path in paths:
        place = LinePlace(path)
        with open(path, "rb") as file:
            for line in file:
                if is_it(line):
                    return place.line(line)
                with place.line(line):
                    pass
    return nullcontext()
