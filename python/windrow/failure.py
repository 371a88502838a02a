"""Errors raised from Python that read like those of the core: what, where, how to mend it."""

from __future__ import annotations

import os
from typing import Any, TypeVar

E = TypeVar("E", bound=Exception)


def failure(
    kind: type[E],
    message: str,
    *,
    path: str | os.PathLike[str] | None = None,
    record: int | None = None,
    byte: int | None = None,
    hint: str | None = None,
) -> E:
    """An error of class `kind` (`windrow.CorruptError`, …) with its place in the text and as attributes.

    >>> import windrow
    >>> error = failure(windrow.CorruptError, "found 3 bytes, expected 4", path="a.bin", byte=8)
    >>> print(error)
    found 3 bytes, expected 4
      at: a.bin (byte 8)
    >>> error.byte
    8
    """
    name = None if path is None else os.fspath(path)
    error = kind(describe(message, path=name, record=record, byte=byte, hint=hint))
    place(error, path=name, record=record, byte=byte, hint=hint)
    return error


def describe(message: str, *, path: str | None, record: int | None, byte: int | None, hint: str | None) -> str:
    """The text: what on the first line, then `at:` and `hint:` where they are known."""
    text = message
    parts = [f"{what} {number}" for what, number in (("record", record), ("byte", byte)) if number is not None]
    where = " ".join(filter(None, [_printable(path), f"({', '.join(parts)})" if parts else ""]))
    if where:
        text += f"\n  at: {where}"
    if hint is not None:
        text += f"\n  hint: {hint}"
    return text


def place(error: Any, *, path: str | None, record: int | None, byte: int | None, hint: str | None) -> None:
    """Sets the attributes that every `WindrowError` has; its class says the kind."""
    error.path, error.record, error.byte, error.field, error.hint = path, record, byte, None, hint


def _printable(path: str | None) -> str:
    return "" if path is None else "".join(c if c.isprintable() else repr(c)[1:-1] for c in path)[:4096]
