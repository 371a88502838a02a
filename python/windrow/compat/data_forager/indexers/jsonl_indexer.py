"""An index of the lines of all JSONL files below a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence

import windrow

from ..files import find_files, find_jsonl_files
from ..index_stores.fs_based import IndexStore
from .text_lines import FileTextLinesIndexer

COMPRESSED = ["*.jsonl.gz", "*.JSONL.gz", "*.jsonl.zst", "*.JSONL.zst"]


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
        # The core would expand and index compressed files, too; data-forager passes them over.
        if find_files(store.base_path, COMPRESSED) or not _core_finds_the_same(store.base_path, self._input_file_paths):
            super().__call__()
        else:
            windrow.index(store.base_path, index_folder=store.index_data_folder, allow_empty=True)


def _core_finds_the_same(base: str, paths: Sequence[str]) -> bool:
    """The core sorts letters beyond ASCII otherwise, and does not follow links to folders."""
    names = [os.path.relpath(path, base) for path in paths]
    folders = {os.path.dirname(name) for name in names} - {""}
    real = os.path.realpath(base)
    return all(map(str.isascii, names)) and all(
        os.path.realpath(os.path.join(base, folder)) == os.path.join(real, folder) for folder in folders
    )
