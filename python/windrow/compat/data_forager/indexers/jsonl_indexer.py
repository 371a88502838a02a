"""An index of the lines of all JSONL files below a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import windrow

from ..files import find_files, find_jsonl_files
from ..index_stores.fs_based import IndexStore
from .text_lines import FileTextLinesIndexer

_PACKED = ("", ".gz", ".zst")
# What the core takes as well, and data-forager does not; the last ones where they hold lines.
OTHERS = [f"*{suffix}{packed}" for suffix in (".jsonl", ".JSONL", ".ndjson") for packed in _PACKED]
OTHERS = [pattern for pattern in OTHERS if pattern not in ("*.jsonl", "*.JSONL")]
PERHAPS = [f"*.json{packed}" for packed in _PACKED]


def create_default_jsonl_indexer(
    input_base_path: str | os.PathLike[str], name: str | None = None
) -> FileTextLinesIndexer:
    """What, called, indexes the `*.jsonl` and `*.JSONL` files below `input_base_path` into `<input_base_path>/index/`.

    A second run over the same files has nothing to do. Raises `windrow.NotFoundError` when the folder is not there;
    when called, an error that is a FileExistsError when there is an index of other files.

    >>> import pathlib, tempfile
    >>> base = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (base / "a.jsonl").write_text('{"text": "hello"}\\n')
    >>> create_default_jsonl_indexer(base)()
    >>> sorted(path.name for path in (base / "index").glob("*.*"))
    ['file_location.txt', 'sample_locations.bin', 'windrow.json']
    """
    return _JsonlIndexer(find_jsonl_files(input_base_path), IndexStore(input_base_path), name=name)


class _JsonlIndexer(FileTextLinesIndexer):
    def __call__(self) -> None:
        store = self._index_store
        assert isinstance(store, IndexStore)
        # The core would index files of other names and compressed ones, too; data-forager passes them over.
        if _core_finds_others(store.base_path) or not _core_finds_the_same(store.base_path, self._input_file_paths):
            super().__call__()
        else:
            windrow.index(store.base_path, index_folder=store.index_data_folder, allow_empty=True)


def _core_finds_others(base: str) -> bool:
    return bool(find_files(base, OTHERS)) or any(map(_may_hold_lines, find_files(base, PERHAPS)))


def _may_hold_lines(path: str) -> bool:
    """Whether a `.json` may be lines to the core; a compressed one always may."""
    if not path.endswith(".json"):
        return True
    with open(path, "rb") as file:
        try:
            # What is beside data begins with a brace that its own line does not close.
            return os.path.basename(path) != "windrow.json" and bool(json.loads(file.readline()))
        except ValueError:
            return False


def _core_finds_the_same(base: str, paths: Sequence[str]) -> bool:
    """The core sorts letters beyond ASCII otherwise, reads a folder once that has several names by links, and hides `_x`."""
    names = [os.path.relpath(path, base) for path in paths]
    if any(part.startswith("_") for name in names for part in name.split(os.sep)):
        return False
    folders = {os.path.dirname(name) for name in names} - {""}
    real = os.path.realpath(base)
    return all(map(str.isascii, names)) and all(
        os.path.realpath(os.path.join(base, folder)) == os.path.join(real, folder) for folder in folders
    )
