"""What goes wrong, by what a caller can do about it.

Every class is a `WindrowError` and, where one fits, also the Python class that callers already catch. The message says
what happened, where, and how to mend it; each of these is an attribute, too.
"""

from __future__ import annotations


class WindrowError(Exception):
    r"""Base of windrow's errors.

    Attributes: `kind` is the kind's name, by the class, and None in a plain `WindrowError`; `path` the file, `record` the
    record from 0, `byte` the offset in the file and `field` the field of a header, index or manifest, each None where it is
    not known; `hint` says how to mend it.

    >>> import windrow as wr, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.jsonl"
    >>> _ = path.write_text('{"sequence": [1, 2]}\n{"sequence": [3, \n')
    >>> try:
    ...     wr.open(path)
    ... except wr.WindrowError as error:
    ...     print(type(error).__name__, pathlib.Path(error.path).name, error.record)
    CorruptError series.jsonl 1
    """

    kind: str | None = None

    def __init__(
        self,
        message: str = "",
        *,
        kind: str | None = None,
        path: str | None = None,
        record: int | None = None,
        byte: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        if kind is not None:
            self.kind = kind
        self.path = path
        self.record = record
        self.byte = byte
        self.field = field
        self.hint = hint


class NotFoundError(WindrowError, FileNotFoundError):
    """A path, a record's name or a tokenizer that is not there."""

    kind = "not_found"


class OutOfRangeError(WindrowError, IndexError):
    """A number outside 0..len."""

    kind = "out_of_range"


class UnrecognisedError(WindrowError, ValueError):
    """No format recognises what lies at the path."""

    kind = "unrecognised"


class CorruptError(WindrowError, ValueError):
    """The bytes contradict the format, the manifest or each other."""

    kind = "corrupt"


class StaleError(WindrowError, ValueError):
    """The data changed after it was indexed."""

    kind = "stale"


class MismatchError(WindrowError, ValueError):
    """Two things that must agree do not: a state and a plan, a tokenizer and its data."""

    kind = "mismatch"


class ConfigError(WindrowError, ValueError):
    """An option, or a combination of options, that cannot work."""

    kind = "config"


class UnsupportedError(WindrowError, ValueError):
    """Understood, but not readable or writable by this build."""

    kind = "unsupported"


class ExistsError(WindrowError, FileExistsError):
    """The output exists already."""

    kind = "exists"


class IoError(WindrowError, OSError):
    """An operating-system call failed."""

    kind = "io"


class OutOfMemoryError(WindrowError, MemoryError):
    """Out of memory."""

    kind = "memory"
