"""What `windrow.json` beside an index knows: the data files' sizes and times, and the tokens' dtype."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

import windrow

from ...failure import failure

SIDE_FILE = "windrow.json"


@dataclass
class SideFile:
    """The side file at `path`: rows of name, size and, for files that were only indexed, the time of their last change."""

    path: str
    dtype: np.dtype[Any] | None
    files: list[dict[str, Any]]

    @classmethod
    def find(cls, index_path: str) -> SideFile | None:
        """The side file of the index at `index_path`, or None; `windrow.CorruptError` when it cannot be understood."""
        path = os.path.join(index_path, SIDE_FILE)
        if not os.path.exists(path):
            return None
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            dtype = found.get("dtype")
            rows = [dict(row, name=os.fspath(row["name"]), size=int(row["size"])) for row in found.get("files", [])]
            return cls(path, None if dtype is None else np.dtype(dtype), rows)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise failure(windrow.CorruptError, f"the side file cannot be understood: {error!r}", path=path) from error

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


def side_file_text(dtype: np.dtype[Any], records: int, files: list[tuple[str, int]]) -> str:
    """The side file of token samples: their dtype, their number, and the name and size of each file they lie in."""
    found = {
        "version": 1,
        "windrow": windrow.__version__,
        "format": "forager",
        "records": records,
        "dtype": dtype.name,
        "files": [{"name": name, "size": size} for name, size in files],
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
