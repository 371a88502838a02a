"""What `windrow.json` beside an index knows: where it came from, the data files' sizes and times, the tokens' dtype."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import windrow

from ....failure import failure

SIDE_FILE = "windrow.json"


@dataclass
class SideFile:
    """`files` and `inputs` are rows of name and size, and the time of the last change of what windrow did not write
    itself.

    `options` are what the index was made with: the same inputs and options again give the same index.
    """

    records: int = 0
    dtype: np.dtype[Any] | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def find(cls, index_path: str) -> SideFile | None:
        """The manifest of the index at `index_path`, or None; `windrow.CorruptError` when it cannot be understood."""
        path = os.path.join(index_path, SIDE_FILE)
        if not os.path.exists(path):
            return None
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            dtype = found.get("dtype")
            return cls(
                records=int(found.get("records") or 0),
                dtype=None if dtype is None else np.dtype(dtype),
                files=[{**row, "name": os.fspath(row["name"]), "size": int(row["size"])} for row in found["files"]],
                inputs=list(found.get("inputs", [])),
                options=dict(found.get("options", {})),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise failure(windrow.CorruptError, f"the manifest cannot be understood: {error!r}", path=path) from error

    def text(self) -> str:
        """The content of the file."""
        found: dict[str, Any] = {
            "version": 1,
            "windrow": windrow.__version__,
            "format": "forager",
            "records": self.records,
        }
        if self.dtype is not None and self.dtype.isnative:
            found["dtype"] = self.dtype.name
        found |= {"files": self.files, "inputs": self.inputs, "options": self.options}
        return json.dumps(found, indent=2, ensure_ascii=False) + "\n"

    def has_origin(self, inputs: list[dict[str, Any]], options: dict[str, Any]) -> bool:
        """Whether the index was made from these inputs with these options."""
        return bool(self.options) and self.inputs == inputs and self.options == json.loads(json.dumps(options))

    def refuse_stale(self, base_path: str) -> None:
        """Raises `windrow.StaleError` when a data file's size or time is not what it was."""
        for row in self.files:
            path = os.path.join(base_path, row["name"])
            try:
                now = os.stat(path)
            except FileNotFoundError as error:
                raise failure(windrow.NotFoundError, "an indexed file is not there", path=path) from error
            for what, found, expected in (
                ("bytes", now.st_size, row["size"]),
                ("as time of its last change", now.st_mtime_ns, row.get("modified_ns")),
            ):
                if expected is not None and found != expected:
                    raise failure(
                        windrow.StaleError,
                        f"the file changed after it was indexed: found {found} {what}, expected {expected}",
                        path=path,
                        hint="index it again: IndexStore.clear(), then the indexer; or `windrow index --overwrite`",
                    )


def file_row(path: str, name: str, *, timed: bool) -> dict[str, Any]:
    """The row for the file at `path`; `windrow.NotFoundError` when it is not there."""
    try:
        now = os.stat(path)
    except FileNotFoundError as error:
        raise failure(windrow.NotFoundError, "a file is not there", path=path) from error
    return {"name": name, "size": now.st_size} | ({"modified_ns": now.st_mtime_ns} if timed else {})
